"""Where DuckDB and Spark mean different things by the same SQL, and how answers are compared then.

Everything that is known to differ stands here, with the reason; nowhere else is anything forgiven.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import sqlglot
from comparison import Row

REASONS = {
    "average of decimals": "Spark rounds to four more digits; DuckDB gives a double.",
    "division of decimals": "Spark rounds to a decimal of its own choice; DuckDB gives a double.",
    "sums": "Spark widens to bigint or decimal(p + 10, s); DuckDB to hugeint or decimal(38, s).",
    "null ordering": "Spark: nulls first, last if descending; DuckDB: last. sqlglot writes it out.",
    "whole numbers divided": "Spark's / gives a double, and so does DuckDB's as sqlglot writes it.",
    "ties": "Rows that are equal in all that ORDER BY names come in any order.",
}

# Relative, for values that one of the two engines rounds: six digits of an average of prices.
TOLERANCE = 1e-6

# TPC-H queries whose ORDER BY leaves ties, or that have none.
WITHOUT_TOTAL_ORDER = frozenset({6, 11, 14, 17, 19})


def for_duckdb(text: str) -> str:
    """A query in Spark's SQL as DuckDB reads it."""
    (translated,) = sqlglot.transpile(text, read="spark", write="duckdb")
    return translated


def loosely(rows: Iterable[Row]) -> list[Row]:
    """Rows with every number as a float, for lack of a common type."""
    return [
        tuple(float(v) if isinstance(v, int | float | Decimal) else v for v in row) for row in rows
    ]
