"""Parquet files rewritten into the blocks of a scramble column by column, without rows of Spark.

Spark encodes Parquet value by value and sorts rows as objects: for a table of whole-number keys in local
files its tasks rather use Arrow. First every piece of the files is dealt into blocks, in one Arrow file;
then every block is gathered from all pieces, ordered and written. Twice as fast as Spark's own shuffle.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sooner.engine import key_hashes
from sooner.engine.exact import arrow_schema
from sooner.engine.hashing import WHOLE_NUMBERS
from sooner.engine.row_groups import shifts_days
from sooner.engine.rows import ddl
from sooner.storage.expand import local_path
from sooner.storage.layout import BLOCK, HASH, REPLICATE
from sooner.storage.records import Scramble, Table
from sooner.storage.row_groups import RowGroup, row_groups, why_not_by_row_groups
from sooner.storage.unchanged import check_unchanged

# Executors need not have Sooner: what their tasks call travels with them.
for _module in (sys.modules[__name__], key_hashes):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_TASKS_PER_CORE = 8
_SMALL_BYTES = 16 * 2**20
_PIECE_BYTES = 32 * 2**20
_DEALT_BYTES = 256 * 2**20
_MOST_BLOCK_BYTES = 2**30
# Rows in memory against rows in compressed Parquet, more rather than less.
_EXPANSION = 8
_SAMPLED_ROWS = 2**14
_LONG_DIGITS = 18  # of a decimal that is stored in eight bytes
_KEY_TYPES = (*WHOLE_NUMBERS, "timestamp")
# With its version in the footer Spark takes days and times as they are stored.
_SPARK_VERSION = "org.apache.spark.version"


@dataclass(frozen=True)
class _Work:
    """What the tasks need to know: the columns to write, how to hash them, and where everything is."""

    schema: pa.Schema
    by: tuple[str, ...]
    salt: int
    blocks: int
    replicates: int
    directory: str
    batch_rows: int

    def piece(self, number: int) -> str:
        return os.path.join(self.directory, "_pieces", f"{number}.arrow")


def can_reorder(spark: SparkSession, table: Table, scramble: Scramble) -> bool:
    """Whether Arrow reads, hashes and holds this table as Spark would."""
    columns = {column.name: column.type for column in table.columns}
    if not all(columns[name] in _KEY_TYPES for name in scramble.by):
        return False
    if why_not_by_row_groups(table, columns) or shifts_days(spark, table):
        return False
    if not str(spark.sparkContext.master).startswith("local"):
        return False  # pieces are gathered through a file system that all tasks share
    groups = row_groups(table)
    if any(group.columns[name].nulls != 0 for group in groups for name in scramble.by):
        return False  # a row without a key hashes its other columns, of any type
    rows, size = _totals(groups)
    block_bytes = rows * _row_bytes(size, rows, len(columns)) / scramble.blocks
    return rows > 0 and block_bytes <= _MOST_BLOCK_BYTES


def reorder(spark: SparkSession, table: Table, scramble: Scramble, directory: str) -> bool:
    """Write every block of the scramble into its own directory.

    Gives ``False``, with nothing left behind, where Spark's Python cannot do it: it may lack Arrow.
    """
    groups = row_groups(table)
    work = _work(spark, table, scramble, groups, directory)
    pieces = _pieces(groups)
    os.makedirs(os.path.dirname(work.piece(0)))
    # Few rows are written before a task would have begun.
    each = _each_here if _totals(groups)[1] <= _SMALL_BYTES else partial(_each, spark)
    try:
        each(len(pieces), lambda number: _deal(work, number, pieces[number]))
        check_unchanged(list(table.files))
        each(scramble.blocks, lambda block: _gather(work, block, len(pieces)))
    except (PythonException, ImportError, OSError, pa.ArrowException):
        check_unchanged(list(table.files))
        shutil.rmtree(directory)
        return False
    shutil.rmtree(os.path.dirname(work.piece(0)))
    return True


def _work(
    spark: SparkSession,
    table: Table,
    scramble: Scramble,
    groups: Sequence[RowGroup],
    directory: str,
) -> _Work:
    struct = StructType.fromDDL(ddl(table.columns))
    assert isinstance(struct, StructType)
    rows, size = _totals(groups)
    return _Work(
        schema=arrow_schema(spark, struct).with_metadata({_SPARK_VERSION: spark.version}),
        by=scramble.by,
        salt=scramble.salt,
        blocks=scramble.blocks,
        replicates=scramble.replicates,
        directory=directory,
        batch_rows=math.ceil(_DEALT_BYTES / _row_bytes(size, rows, len(table.columns))),
    )


def _totals(groups: Sequence[RowGroup]) -> tuple[int, int]:
    return sum(group.rows for group in groups), sum(group.bytes for group in groups)


def _row_bytes(size: int, rows: int, columns: int) -> float:
    """Bytes of a row in memory: not less than eight a column, however well the files are compressed."""
    return max(_EXPANSION * size / max(1, rows), 8 * columns + 8)


def _pieces(groups: Sequence[RowGroup]) -> list[list[tuple[str, int]]]:
    """Row groups that one task reads, as path and number: of one file after the other, of like size."""
    pieces: list[list[tuple[str, int]]] = []
    left = 0
    for group in groups:
        if left <= 0:
            pieces.append([])
            left = _PIECE_BYTES
        pieces[-1].append((local_path(group.file.path), group.number))
        left -= group.bytes
    return pieces


def _each_here(count: int, do: Callable[[int], None]) -> None:
    for number in range(count):
        do(number)


def _each(spark: SparkSession, count: int, do: Callable[[int], None]) -> None:
    """Do it for every number below the count, in a few Spark tasks for each core."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                do(number)
            yield batch

    # A task of Python costs a tenth of a second before it does anything.
    tasks = min(count, _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    spark.range(0, count, 1, tasks).mapInArrow(run, "id BIGINT").toArrow()


def _deal(work: _Work, number: int, groups: Sequence[tuple[str, int]]) -> None:
    """One piece dealt into blocks: as many record batches as there are blocks, again and again."""
    schema = _while_moving(work.schema).append(pa.field(HASH, pa.uint64()))
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(work.piece(number), schema, options=options) as writer:
        for rows in _batches(work, groups):
            hashes = key_hashes.key_hashes(work.salt, [_numbers(rows[name]) for name in work.by])
            block = ((hashes >> np.uint64(32)) * np.uint64(work.blocks)) >> np.uint64(32)
            # Few bits are ordered by counting instead of comparing.
            order = np.argsort(block.astype(np.uint16), kind="stable")
            ends = np.cumsum(np.bincount(block.astype(np.int64), minlength=work.blocks))
            dealt = rows.append_column(HASH, pa.array(hashes)).take(pa.array(order))
            whole = dealt.combine_chunks().to_batches()[0]
            for start, end in zip([0, *ends[:-1]], ends, strict=True):
                writer.write_batch(whole.slice(start, end - start))


def _batches(work: _Work, groups: Sequence[tuple[str, int]]) -> Iterator[pa.Table]:
    """The rows of some row groups, a bounded number at a time."""
    schema = _while_moving(work.schema)
    files: dict[str, list[int]] = {}
    for path, number in groups:
        files.setdefault(path, []).append(number)
    for path, numbers in files.items():
        with pq.ParquetFile(path, memory_map=False) as file:
            for batch in file.iter_batches(
                work.batch_rows, numbers, schema.names, use_threads=False
            ):
                if batch.num_rows:
                    columns = [
                        batch.column(name).cast(schema.field(name).type) for name in schema.names
                    ]
                    yield pa.table(columns, schema=schema)


def _gather(work: _Work, block: int, pieces: int) -> None:
    """One block from all pieces, in the order of its hashes, as one file of two row groups."""
    found = []
    options = pa.ipc.IpcReadOptions(use_threads=False)
    for number in range(pieces):
        with pa.memory_map(work.piece(number)) as source:
            reader = pa.ipc.open_file(source, options=options)
            for place in range(block, reader.num_record_batches, work.blocks):
                found.append(reader.get_batch(place))
    rows = pa.Table.from_batches(found).combine_chunks()
    if not rows.num_rows:
        return
    hashes = rows[HASH].to_numpy()
    replicate = hashes.view(np.int64) % work.replicates
    rows = rows.drop_columns([HASH]).append_column(REPLICATE, pa.array(replicate.astype(np.int8)))
    directory = os.path.join(work.directory, f"{BLOCK}={block}")
    os.makedirs(directory, exist_ok=True)
    repeating = _repeating(rows)
    pq.write_table(
        rows.take(pa.array(np.argsort(hashes))).replace_schema_metadata(work.schema.metadata),
        os.path.join(directory, "rows.parquet"),
        row_group_size=math.ceil(rows.num_rows / 2),
        use_dictionary=repeating,
        compression={
            field.name: "none"
            if field.name not in repeating and _is_number(field.type)
            else "snappy"
            for field in rows.schema
        },
        # Arrow's bounds leave out NaN, which to Spark is the largest value: a filter would lose its rows.
        write_statistics=[field.name for field in rows.schema if _has_bounds(field.type)],
        store_decimal_as_integer=True,
        store_schema=False,
    )


def _repeating(rows: pa.Table) -> list[str]:
    """The columns with few different values, by a sample; others are read sooner without a dictionary."""
    sample = rows.take(np.arange(0, rows.num_rows, max(1, rows.num_rows // _SAMPLED_ROWS)))
    return [
        name
        for name in rows.column_names
        if 2 * pc.count_distinct(sample[name]).as_py() <= sample.num_rows
    ]


def _is_number(kind: pa.DataType) -> bool:
    """Whether values have up to eight bytes: they are read sooner as they are than from compressed ones."""
    return pa.types.is_primitive(kind) or (
        pa.types.is_decimal(kind) and bool(kind.precision <= _LONG_DIGITS)
    )


def _has_bounds(kind: pa.DataType) -> bool:
    return not (pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return np.ascontiguousarray(column.to_numpy().astype(np.int64))


def _while_moving(schema: pa.Schema) -> pa.Schema:
    """The schema with offsets of 64 bits, so that the texts of a block are one array however long."""
    wide: dict[Any, pa.DataType] = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return pa.schema([pa.field(field.name, wide.get(field.type, field.type)) for field in schema])
