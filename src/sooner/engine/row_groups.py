"""Chosen row groups of Parquet files as a Spark DataFrame.

Spark itself cannot be told which row groups to read. So its tasks read them through Arrow, only the
columns that are asked for, and hand the rows on in Spark's types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sooner.engine.exact import arrow_schema
from sooner.engine.rows import ddl
from sooner.errors import QueryFailed
from sooner.storage.arrow_types import is_of_calendar
from sooner.storage.expand import local_path
from sooner.storage.layout import REPLICATE
from sooner.storage.records import Table
from sooner.storage.row_groups import RowGroup
from sooner.storage.unchanged import check_unchanged

# Path, number in the file, rows, replicate: all that a task needs to know of a row group.
_Part: TypeAlias = tuple[str, int, int, int]
_BATCH_ROWS = 65_536
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInRead"


def shifts_days(spark: SparkSession, table: Table) -> bool:
    """Whether the session makes Spark read this table's dates otherwise than they are stored."""
    dated = any(is_of_calendar(column.type or "") for column in table.columns)
    return dated and spark.conf.get(_CALENDAR) != "CORRECTED"


class RowGroups:
    """Row groups of one table, each in a replicate, to be read a few at a time."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        groups: Sequence[RowGroup],
        replicate: Sequence[int],
    ) -> None:
        self._spark = spark
        self._table = table
        self._groups = groups
        self._replicate = replicate

    def rows(self, columns: Collection[str], blocks: Collection[int]) -> DataFrame:
        """These columns, and the replicate, of the rows in the row groups at these places."""
        wanted = {name.lower() for name in columns}
        known = tuple(c for c in self._table.columns if c.name.lower() in wanted)
        struct = StructType.fromDDL(ddl(known, ((REPLICATE, "tinyint"),)))
        assert isinstance(struct, StructType)
        parts = [
            (local_path(group.file.path), group.number, group.rows, self._replicate[block])
            for block in sorted(blocks)
            for group in (self._groups[block],)
        ]
        tasks = _spread(parts, self._spark.sparkContext.defaultParallelism)
        numbers = self._spark.range(0, len(tasks), 1, max(1, len(tasks)))
        return numbers.mapInArrow(_reader(tasks, arrow_schema(self._spark, struct)), struct)

    @contextmanager
    def reading(self, blocks: Collection[int]) -> Iterator[None]:
        """What is read inside comes from unchanged files; else an error says what happened."""
        files = {self._groups[block].file for block in blocks}
        try:
            yield
        except PythonException as error:
            check_unchanged(list(files))
            said = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
            raise QueryFailed(
                f"A row group of {self._table.name} could not be read: {said[-1]}"
            ) from error
        check_unchanged(list(files))


def _spread(parts: Sequence[_Part], tasks: int) -> list[list[_Part]]:
    """The parts dealt to at most so many tasks, the largest first and always to the one with least."""
    dealt: list[list[_Part]] = [[] for _ in range(min(tasks, len(parts)))]
    for part in sorted(parts, key=lambda part: -part[2]):
        min(dealt, key=lambda mine: sum(rows for _, _, rows, _ in mine)).append(part)
    return dealt


def _reader(
    tasks: Sequence[Sequence[_Part]], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What each task does: from its number to the rows of its row groups.

    All of it inside, because a function in here travels whole: executors need not have Sooner.
    """
    names = schema.names[:-1]
    most = _BATCH_ROWS

    def pieces(path: str, number: int, rows: int) -> Iterator[tuple[int, list[pa.Array]]]:
        if not names:  # rows that are only counted
            for start in range(0, rows, most):
                yield min(most, rows - start), []
            return
        with pq.ParquetFile(path, memory_map=False) as file:
            for batch in file.iter_batches(most, [number], names, use_threads=False):
                found = [batch.column(name).cast(schema.field(name).type) for name in names]
                yield batch.num_rows, found

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                for path, number, rows, replicate in tasks[task]:
                    for count, arrays in pieces(path, number, rows):
                        carried = pa.repeat(pa.scalar(replicate, pa.int8()), count)
                        yield pa.RecordBatch.from_arrays([*arrays, carried], schema=schema)

    return read
