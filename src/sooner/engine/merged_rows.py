"""Rows merged by key in Spark, batch after batch: for more groups than the driver should hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sooner.engine.type_text import type_text
from sooner.sql import quote


class MergedRows:
    """One row for each key, from rows that :func:`held` gave, and more of them batch by batch.

    ``merges`` names what brings the values of each other column together, such as ``sum``.
    """

    def __init__(self, first: DataFrame, keys: Sequence[str], merges: Mapping[str, str]) -> None:
        self.rows = first
        self._keys = [quote(key) for key in keys]
        types = {field.name: type_text(field.dataType) for field in first.schema}
        self._values = [
            # Spark widens the type of a sum, and would again with every batch.
            f"CAST({merge}({quote(name)}) AS {types[name]}) AS {quote(name)}"
            for name, merge in merges.items()
        ]

    def add(self, part: DataFrame) -> None:
        """Merge more rows in, held as the first ones."""
        both = self.rows.unionByName(part)
        merged = both.groupBy(*self._keys).agg(*(F.expr(value) for value in self._values))
        before, self.rows = self.rows, held(merged)
        forget(before)
        forget(part)


def held(rows: DataFrame, now: bool = True) -> DataFrame:
    """The same rows, computed now or when they are first read, without how they came about.

    Else Spark would plan all batches anew with each one that is merged in.
    """
    return rows.localCheckpoint(eager=now, storageLevel=StorageLevel.MEMORY_AND_DISK)


def held_count(rows: DataFrame) -> int:
    """How many rows there are in what :func:`held` gave, which are computed now if they were not.

    Counted as they are: a query that counts would be planned first, and run in two jobs.
    """
    return int(rows._jdf.queryExecution().toRdd().count())


def forget(rows: DataFrame) -> None:
    """Give back what :func:`held` keeps; Spark itself waits until Python and Java collect garbage."""
    rows._jdf.queryExecution().logical().rdd().unpersist(False)
