"""Columns and schemas as plain values: names and Spark's own spelling of types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and its type in Spark's DDL spelling, such as ``decimal(15,2)``.

    The type is ``None`` where only Spark can tell it (the result of an expression): Sooner never
    guesses a type.

    >>> Column("l_quantity", "decimal(15,2)")
    Column(name='l_quantity', type='decimal(15,2)')
    """

    name: str
    type: str | None = None


Schema: TypeAlias = tuple[Column, ...]


def names(schema: Schema) -> tuple[str, ...]:
    """The column names of a schema, in order."""
    return tuple(column.name for column in schema)
