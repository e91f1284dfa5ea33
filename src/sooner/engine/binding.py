"""Registered tables as Spark views of the same name, so that any SQL text finds them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sooner.engine.failures import plain_errors
from sooner.engine.rows import table_rows
from sooner.errors import CatalogError
from sooner.storage.records import Table

# Spark's views belong to a session, which several Databases may share: what is bound is known here
# for all of them. The lock holds from binding until Spark has resolved the query's names.
lock = threading.RLock()
_bound: dict[tuple[int, str], tuple[str, int, int]] = {}
# The rows that each of them shows.
_rows: dict[tuple[int, str], DataFrame] = {}


def bind(spark: SparkSession, home: str, table: Table) -> None:
    """Make a Spark view of the table at its version; a view that somebody else made is not replaced."""
    place = (id(spark), table.name.lower())
    content = (home, table.id, table.version)
    if _bound.get(place) == content:
        return
    # A table that was registered from the view of its own name is meant to take its place.
    replaces = table.source.options.get("stands_for", "").lower() == table.name.lower()
    if place not in _bound and not replaces and spark.catalog.tableExists(table.name):
        raise CatalogError(
            f"This Spark session has a view or table {table.name!r} of its own, which would hide the "
            "registered one. Drop that view, or register the table under another name."
        )
    with plain_errors():
        _rows[place] = table_rows(spark, table)
        _rows[place].createOrReplaceTempView(table.name)
    _bound[place] = content


def unbind(spark: SparkSession, name: str) -> None:
    """Remove the view of a table, if it is ours."""
    if _bound.pop((id(spark), name.lower()), None) is not None:
        del _rows[id(spark), name.lower()]
        spark.catalog.dropTempView(name)


def read_by(spark: SparkSession, view: str) -> list[str]:
    """What the text of a temporary view of the user's reads; Spark resolves it anew in every query."""
    found: Any = spark._jsparkSession.sessionState().catalog().getTempView(view)
    if found.isEmpty():
        return []
    names = found.get().desc().viewReferredTempViewNames().iterator()
    read = []
    while names.hasNext():
        read.append(names.next().mkString(".").lower())
    return read


@contextmanager
def standing_in(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Other rows under the names of tables that are bound, for a text that Spark resolves meanwhile."""
    with lock:
        mine = {name: rows for name, rows in frames.items() if (id(spark), name) in _bound}
        try:
            for name, rows in mine.items():
                rows.createOrReplaceTempView(name)
            yield
        finally:
            for name in mine:
                _rows[id(spark), name].createOrReplaceTempView(name)
