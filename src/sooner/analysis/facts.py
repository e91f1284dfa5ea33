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
