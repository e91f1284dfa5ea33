"""Scrambles that were opened before: Spark lists the files of each only once.

Listing takes as long as reading a small batch, and files that are stored never change.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from sooner.engine.rows import scramble_rows
from sooner.storage.records import Scramble, Table

_MOST = 100
# By session, what Spark made of a scramble and the changes since; nothing here keeps a session alive.
_opened: WeakKeyDictionary[SparkSession, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()


def opened_scramble(
    users: SparkSession, own: SparkSession, table: Table, scramble: Scramble
) -> DataFrame:
    """The rows of :func:`scramble_rows` in a session of a query's own, opened in the user's."""
    plans = _opened.setdefault(users, {})
    changes = tuple(change.directory for change in table.changes_of(scramble.id))
    key = (scramble.directory, table.columns, changes)
    if key not in plans:
        rows = scramble_rows(users, table, scramble)
        while len(plans) >= _MOST:
            del plans[next(iter(plans))]
        plans[key] = rows._jdf.queryExecution().analyzed()
    jvm = own._jvm
    assert jvm is not None
    dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own._jsparkSession, plans[key])
    return DataFrame(dataset, own)
