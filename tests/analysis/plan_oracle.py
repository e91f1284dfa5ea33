"""Runs a plan in SQLite, to see what its rows really are. Over five rows nothing plans a query sooner."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from zlib import crc32

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from sooner.algebra import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
    walk,
)

Row = tuple[Any, ...]
_SQLITE = Dialect.get_or_raise("sqlite").generator()


@cache
def _connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.create_function(
        "hash", -1, lambda *values: crc32(repr(values).encode()), deterministic=True
    )
    return connection


@dataclass(frozen=True)
class Table:
    columns: Mapping[str, str | None]  # name and type in Spark's spelling, if it is known
    rows: Sequence[Row]


def rows_of(plan: Relation, tables: Mapping[str, Table]) -> list[Row]:
    """The rows of a plan over these tables, by the tables' names."""
    used = {node.table for node in walk(plan) if isinstance(node, Scan)}
    query = _Query({})
    last = query.add(plan)
    named = [_values(name, tables[name]) for name in sorted(used)]
    # Made one by one: SQLite has errors where it puts outer joins into one another.
    named += [f"{name} AS MATERIALIZED ({text})" for text, name in query.names.items()]
    return _connection().execute(f"WITH {', '.join(named)} SELECT * FROM {last}").fetchall()


def table_of(plan: Relation, tables: Mapping[str, Table]) -> Table:
    """The same as a table that other plans can read."""
    return Table({one.name: one.type for one in plan.schema}, rows_of(plan, tables))


def _values(name: str, table: Table) -> str:
    rows = ", ".join(f"({', '.join(map(_literal, row))})" for row in table.rows)
    none = f"SELECT {', '.join(['NULL'] * len(table.columns))} WHERE FALSE"
    return f"{name}({', '.join(table.columns)}) AS ({f'VALUES {rows}' if rows else none})"


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class _Query:
    """A SELECT for each node, as SQLite takes none that is nested deeply; the same ones only once."""

    names: dict[str, str]  # by the text

    def add(self, plan: Relation) -> str:
        """The name of a plan's rows."""
        text = self._text(plan, [self.add(child) for child in plan.children])
        return self.names.setdefault(text, f"__rows_{len(self.names)}")

    def _text(self, plan: Relation, inputs: list[str]) -> str:
        scalar = partial(_scalar, plan)
        match plan:
            case Scan():
                columns = (f"{s} AS {n}" for s, n in zip(plan.sources, plan.names, strict=True))
                return f"SELECT {', '.join(columns) or '1'} FROM {plan.table}"
            case Filter():
                return f"SELECT * FROM {inputs[0]} WHERE {scalar(plan.condition)}"
            case Project():
                items = ", ".join(f"{scalar(item.scalar)} AS {item.name}" for item in plan.items)
                return f"SELECT {items or '1'} FROM {inputs[0]}"
            case Join():
                condition = "TRUE" if plan.condition is None else scalar(plan.condition)
                return _joined(plan.kind, *inputs, condition)
            case Aggregate():
                items = (f"{scalar(item.scalar)} AS {item.name}" for item in plan.aggregates)
                by = f" GROUP BY {', '.join(plan.keys)}" if plan.keys else ""
                return f"SELECT {', '.join((*plan.keys, *items))} FROM {inputs[0]}{by}"
            case Union():
                return f"SELECT * FROM {inputs[0]} UNION ALL SELECT * FROM {inputs[1]}"
            case Intersect() | Except():
                return _both(plan, inputs)
            case Sort():
                keys = ", ".join(scalar(key.scalar) for key in plan.by)
                return f"SELECT * FROM {inputs[0]} ORDER BY {keys}"
            case Limit():
                count = -1 if plan.count is None else plan.count
                return f"SELECT * FROM {inputs[0]} LIMIT {count} OFFSET {plan.offset}"
        raise AssertionError(f"no SQL for {type(plan).__name__}")


def _scalar(plan: Relation, expression: exp.Expr) -> str:
    def as_spark_compares(node: exp.Expr) -> exp.Expr:
        # Spark reads a text as a number when it compares the two; to SQLite they are never equal.
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            types = {one.name: one.type for child in plan.children for one in child.schema}
            for side, other in (("this", "expression"), ("expression", "this")):
                if types.get(node.args[side].name) == "string" and (
                    types.get(node.args[other].name) in ("int", "bigint")
                ):
                    node.set(side, exp.cast(node.args[side], "bigint"))
        return node

    if isinstance(expression, exp.Column):
        return expression.name  # most are
    return _SQLITE.generate(expression.transform(as_spark_compares), copy=False)


def _joined(kind: JoinKind, left: str, right: str, condition: str) -> str:
    match kind:
        case JoinKind.SEMI:
            return f"SELECT * FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        case JoinKind.ANTI:
            return (
                f"SELECT * FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {condition})"
            )
        case JoinKind.NULL_AWARE_ANTI:
            unless = f"SELECT 1 FROM {right} WHERE ({condition}) IS NOT FALSE"
            return f"SELECT * FROM {left} WHERE NOT EXISTS ({unless})"
    return f"SELECT * FROM {left} {kind.value.upper()} JOIN {right} ON {condition}"


def _both(plan: Intersect | Except, inputs: list[str]) -> str:
    word = type(plan).__name__.upper()
    if not plan.all:
        return f"SELECT * FROM {inputs[0]} {word} SELECT * FROM {inputs[1]}"
    # SQLite has no ALL: a number tells the first of like rows from the second.
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(child.names)}) FROM {name}"
        for child, name in zip(plan.children, inputs, strict=True)
    )
    return f"SELECT {', '.join(plan.names)} FROM ({f' {word} '.join(numbered)})"
