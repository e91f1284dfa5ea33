"""Checks that every node makes of itself when it is built."""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from sooner.algebra.scalar import Scalar, assert_detached, columns_of, to_sql
from sooner.algebra.schema import Schema, names


def require(condition: bool, message: str) -> None:
    """Refuse a broken plan. Plans are built by Sooner, so this is a bug and no SoonerError."""
    if not condition:
        raise ValueError(message)


def require_unique(schema: Schema) -> None:
    """Every column of a relation has a name of its own."""
    twice = [name for name, count in Counter(names(schema)).items() if count > 1]
    require(not twice, f"columns named twice: {twice}")


def require_scalar(scalar: Scalar, known: frozenset[str], aggregate: bool = False) -> None:
    """A scalar is detached, reads known columns only, and holds no subquery; nor an aggregate unless told."""
    assert_detached(scalar)
    missing = sorted(columns_of(scalar) - known)
    # Every node of every plan comes here: the text of a scalar is for the message alone.
    if missing:
        raise ValueError(f"{to_sql(scalar)} reads unknown columns {missing}")
    if not aggregate and scalar.find(exp.AggFunc):
        raise ValueError(f"an aggregate outside an Aggregate: {to_sql(scalar)}")
    if scalar.find(exp.Query):
        raise ValueError(f"a subquery inside a scalar: {to_sql(scalar)}")
