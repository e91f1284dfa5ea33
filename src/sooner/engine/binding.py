"""Registered tables as Spark views of the same name, so that any SQL text finds them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sooner.engine.failures import plain_errors
from sooner.engine.rows import table_rows
from sooner.errors import CatalogError
from sooner.storage.catalog import Catalog
from sooner.storage.records import Table

# Spark's views belong to a session, which several Databases may share: what is bound is known here
# for all of them. The lock holds from binding until Spark has resolved the query's names.
lock = threading.RLock()


@dataclass(frozen=True)
class _Bound:
    """What a name stands for: a version of a table of a catalog, its rows, and Spark's own view of them."""

    content: tuple[str, str, int, int]
    rows: DataFrame
    view: Any


_bound: dict[tuple[int, str], _Bound] = {}


def bind(spark: SparkSession, catalog: Catalog, table: Table) -> None:
    """Make a Spark view of the table at its version; a view that somebody else made is not replaced."""
    place = (id(spark), table.name.lower())
    # A home that was removed and made again has another catalog, which counts from 1 again.
    content = (str(catalog.home.path), catalog.database.id, table.id, table.version)
    known = _bound.get(place)
    is_same = known is not None and known.content == content
    shown = _shown(spark, table.name)
    is_ours = known is not None and shown is not None and shown == known.view
    if is_same and is_ours:
        return
    # A table that was registered from the view of its own name is meant to take its place.
    replaces = table.source.options.get("stands_for", "").lower() == table.name.lower()
    may_replace = is_ours or (replaces and not is_same)
    if not may_replace and spark.catalog.tableExists(table.name):
        raise CatalogError(
            f"This Spark session has a view or table {table.name!r} of its own, which would hide the "
            "registered one. Drop that view, or register the table under another name."
        )
    with plain_errors():
        rows = table_rows(spark, table)
        _bound[place] = _Bound(content, rows, _show(spark, table.name, rows))


def unbind(spark: SparkSession, name: str) -> None:
    """Remove the view of a table, if it is ours."""
    known = _bound.pop((id(spark), name.lower()), None)
    if known is not None and _shown(spark, name) == known.view:
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


def _show(spark: SparkSession, name: str, rows: DataFrame) -> Any:
    rows.createOrReplaceTempView(name)
    return _shown(spark, name)


def _shown(spark: SparkSession, name: str) -> Any:
    """Spark's own record of a temporary view, which tells it from a later one of that name."""
    found = spark._jsparkSession.sessionState().catalog().getRawTempView(name)
    return found.get() if found.isDefined() else None


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
                known = _bound[id(spark), name]
                _bound[id(spark), name] = replace(known, view=_show(spark, name, known.rows))
