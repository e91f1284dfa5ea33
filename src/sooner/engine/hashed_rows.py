"""Rows of a table with a hash of each: samples drawn by it are the same whoever draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

from sooner.engine.failures import plain_errors
from sooner.engine.rows import table_rows
from sooner.sql import quote
from sooner.storage.records import Table

_LEAST = -(2**63)
# What a job gives is a few rows more or less than expected.
_SPARE = 1.2


class HashedRows:
    """Some columns of a table and, under ``name``, a hash of every row by its key.

    Rows of a table without a key are told apart by where they lie.
    """

    def __init__(
        self, spark: SparkSession, table: Table, columns: Sequence[str], name: str, seed: int
    ) -> None:
        key = ", ".join(quote(one) for one in table.key) or "monotonically_increasing_id()"
        hashed = f"xxhash64({seed}L, {key}) AS {quote(name)}"
        with plain_errors():
            rows = table_rows(spark, table)
            self._rows = rows.selectExpr(*(quote(one) for one in columns), hashed)
        self._hash = quote(name)
        self._count = table.facts.rows

    def some(self, wanted: int) -> tuple[pa.Table, int]:
        """About so many rows, those with the smallest hashes, and how many rows there are in all."""
        with plain_errors():
            if self._count is not None:
                share = min(1.0, _SPARE * wanted / max(1, self._count))
                below = _LEAST + int(2**64 * share)
                chosen = self._rows.where(f"{self._hash} < {below}L") if share < 1 else self._rows
                return chosen.toArrow(), self._count
            observed = Observation()
            counted = self._rows.observe(observed, count(lit(1)).alias("rows"))
            found = counted.orderBy(self._hash).limit(wanted).toArrow()
            return found, int(observed.get["rows"])

    def in_partitions(
        self, work: Callable[[Iterator[pa.RecordBatch]], Iterator[bytes]]
    ) -> list[bytes]:
        """What some work gives for each partition's rows, which come to it as Arrow batches."""

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for found in work(batches):
                yield pa.record_batch({"found": pa.array([found], pa.binary())})

        with plain_errors():
            table = self._rows.mapInArrow(call, "found BINARY").toArrow()
        return list(table.column("found").to_pylist())
