"""Rows of a table with a hash of each: samples drawn by it are the same whoever draws them.

Local Parquet files are read by Arrow inside Spark's tasks, where it reads them as Spark would: handing
rows from Spark to Python takes several times as long as reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.types import StructType

from sooner.engine.exact import arrow_schema
from sooner.engine.failures import plain_errors
from sooner.engine.hashing import WHOLE_NUMBERS
from sooner.engine.key_hashes import key_hashes
from sooner.engine.row_groups import shifts_days
from sooner.engine.rows import ddl, table_rows
from sooner.sql import quote
from sooner.storage.expand import local_path
from sooner.storage.records import Table
from sooner.storage.row_groups import row_groups, why_not_by_row_groups
from sooner.storage.unchanged import check_unchanged

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[bytes]]

_LEAST = -(2**63)
_BATCH_ROWS = 1 << 17
# What a job gives is a few rows more or less than expected.
_SPARE = 1.2


class HashedRows:
    """Some columns of a table and, under ``name``, a hash of every row by its key.

    Rows of a table without a key are told apart by where they lie.
    """

    def __init__(
        self, spark: SparkSession, table: Table, columns: Sequence[str], name: str, seed: int
    ) -> None:
        types = {column.name: column.type for column in table.columns}
        # As bigint, because Spark hashes an int otherwise, and NumPy must find the same.
        key = [
            f"CAST({quote(one)} AS BIGINT)" if types[one] in WHOLE_NUMBERS else quote(one)
            for one in table.key
        ]
        hashed = f"xxhash64({seed}L, {', '.join(key) or 'monotonically_increasing_id()'})"
        with plain_errors():
            rows = table_rows(spark, table)
            self._rows = rows.selectExpr(
                *(quote(one) for one in columns), f"{hashed} AS {quote(name)}"
            )
        self._spark = spark
        self._table = table
        self._hash = quote(name)
        self._reader = _Reader(tuple(columns), table.key, name, seed)

    def some(self, wanted: int) -> tuple[pa.Table, int]:
        """About so many rows, those with the smallest hashes, and how many rows there are in all."""
        total = self._table.facts.rows
        with plain_errors():
            if total is not None:
                share = min(1.0, _SPARE * wanted / max(1, total))
                below = _LEAST + int(2**64 * share)
                chosen = self._rows.where(f"{self._hash} < {below}L") if share < 1 else self._rows
                return chosen.toArrow(), total
            observed = Observation()
            counted = self._rows.observe(observed, count(lit(1)).alias("rows"))
            found = counted.orderBy(self._hash).limit(wanted).toArrow()
            return found, int(observed.get["rows"])

    def in_partitions(self, work: Work) -> list[bytes]:
        """What some work gives for each partition's rows, which come to it as Arrow batches."""
        with plain_errors():
            if not self._is_arrows():
                table = self._rows.mapInArrow(_call(work), "found BINARY").toArrow()
            else:
                table = self._by_arrow(work)
                check_unchanged(list(self._table.files))
        return list(table.column("found").to_pylist())

    def _is_arrows(self) -> bool:
        """Whether Arrow reads and hashes this table as Spark would, in tasks that see its files."""
        table, reader = self._table, self._reader
        types = {column.name: column.type for column in table.columns}
        if not str(self._spark.sparkContext.master).startswith("local"):
            return False
        if any(types[one] not in WHOLE_NUMBERS for one in table.key):
            return False
        if why_not_by_row_groups(table, reader.needed) or shifts_days(self._spark, table):
            return False
        groups = row_groups(table)
        return all(group.columns[one].nulls == 0 for group in groups for one in table.key)

    def _by_arrow(self, work: Work) -> pa.Table:
        wanted = set(self._reader.needed)
        known = tuple(column for column in self._table.columns if column.name in wanted)
        struct = StructType.fromDDL(ddl(known))
        assert isinstance(struct, StructType)
        schema = arrow_schema(self._spark, struct)
        parts: list[_Part] = []
        first = 0
        for group in row_groups(self._table):
            parts.append((local_path(group.file.path), group.number, first))
            first += group.rows
        tasks = min(len(parts), self._spark.sparkContext.defaultParallelism)
        dealt = [parts[number::tasks] for number in range(tasks)]
        reader = self._reader

        def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mine = [task for batch in numbers for task in batch.column(0).to_pylist()]
            yield from _call(work)(
                reader.batches([p for task in mine for p in dealt[task]], schema)
            )

        return (
            self._spark.range(0, tasks, 1, max(1, tasks)).mapInArrow(read, "found BINARY").toArrow()
        )


# A file, the number of a row group in it, and the number of its first row in the table.
_Part: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True)
class _Reader:
    """Reads row groups and hashes their rows, in a task."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    name: str
    seed: int

    @property
    def needed(self) -> list[str]:
        """All columns to read."""
        return list(dict.fromkeys([*self.columns, *self.key]))

    def batches(self, parts: Sequence[_Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of some row groups."""
        for path, number, first in parts:
            with pq.ParquetFile(path, memory_map=False) as file:
                at = first
                for batch in file.iter_batches(
                    _BATCH_ROWS, [number], self.needed, use_threads=False
                ):
                    yield self._hashed(batch, at, schema)
                    at += batch.num_rows

    def _hashed(self, batch: pa.RecordBatch, first: int, schema: pa.Schema) -> pa.RecordBatch:
        keys = [np.asarray(batch.column(one).to_numpy(), np.int64) for one in self.key]
        rows = keys or [np.arange(first, first + batch.num_rows, dtype=np.int64)]
        hashes = key_hashes(self.seed, [np.ascontiguousarray(one) for one in rows])
        arrays = [batch.column(one).cast(schema.field(one).type) for one in self.columns]
        return pa.RecordBatch.from_arrays(
            [*arrays, pa.array(hashes.view(np.int64))], names=[*self.columns, self.name]
        )


def _call(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for found in work(batches):
            yield pa.record_batch({"found": pa.array([found], pa.binary())})

    return call
