"""The value of a scalar that reads no column."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from sooner.algebra.scalar import Scalar, columns_of


def constant_value(scalar: Scalar) -> Any:
    """The value of a scalar without columns, dates and times as text; ``None`` if we cannot tell.

    >>> import sqlglot
    >>> constant_value(sqlglot.parse_one("DATE '1994-01-01' + INTERVAL '1' YEAR", read="spark"))
    '1995-01-01'
    """
    while isinstance(scalar, exp.Paren):
        scalar = scalar.this
    if isinstance(scalar, exp.Literal):
        return scalar.name if scalar.is_string else _numeric(scalar.name)
    if isinstance(scalar, exp.Boolean):
        return bool(scalar.this)
    if isinstance(scalar, exp.Cast):
        return constant_value(scalar.this)
    if isinstance(scalar, exp.Neg):
        value = constant_value(scalar.this)
        return -value if isinstance(value, int | float) else None
    if isinstance(scalar, exp.Binary) and not columns_of(scalar):
        folded = simplify(scalar.copy())  # DATE '1994-01-01' + INTERVAL '1' YEAR
        return constant_value(folded) if isinstance(folded, exp.Literal | exp.Cast) else None
    return None


def _numeric(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
