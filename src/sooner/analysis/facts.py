"""What is known about a table before reading it: plain values, gathered elsewhere and passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What Parquet footers and Spark know about a column; ``None`` where nobody has looked."""

    minimum: Any = None
    maximum: Any = None
    nulls: int | None = None
    distinct: int | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Rows, bytes and columns of a table at one version; ``rows`` is ``None`` where unknown."""

    rows: int | None = None
    bytes: int | None = None
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)

    def column(self, name: str) -> ColumnFacts:
        """The facts of one column, empty where nothing is known."""
        return self.columns.get(name, ColumnFacts())


@dataclass(frozen=True, slots=True)
class TableInfo:
    """All that analysis is told about a table; every name is one of the table's own columns.

    Analyses take a mapping from a table's name in lower case to its ``TableInfo``.

    ``key`` is unique, a null counting as a value like any other. A column is taken to hold no nulls
    only if it is in ``never_null`` or its facts count none. Facts are true of one version: who
    needs an answer that outlives it (a view's key) passes no facts and says ``never_null``.

    >>> TableInfo(key=("l_orderkey", "l_linenumber")).facts.rows is None
    True
    """

    key: tuple[str, ...] = ()
    scrambles: tuple[tuple[str, ...], ...] = ()
    facts: TableFacts = field(default_factory=TableFacts)
    never_null: frozenset[str] = frozenset()


def table_info(tables: Mapping[str, TableInfo], table: str) -> TableInfo:
    """What is known about a table; nothing for one that is not in the mapping."""
    return tables.get(table.lower(), TableInfo())
