"""Scalars and scans for plans that a test writes down."""

from __future__ import annotations

import sqlglot

from sooner.algebra import Column, Scan
from sooner.algebra.scalar import column, columns_of, substitute


def scalar(text: str) -> sqlglot.exp.Expr:
    found = sqlglot.parse_one(text, dialect="spark")
    return substitute(found, {name: column(name) for name in columns_of(found)})


def scan(table: str, **names: str) -> Scan:
    """A scan of whole numbers: what a column is called, and which one it is."""
    return Scan(table, tuple(names.values()), tuple(Column(name, "int") for name in names))
