"""Runs a plan in DuckDB, to see what its rows really are."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

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
)

Row = tuple[Any, ...]
_DUCKDB_TYPES = {"int": "INTEGER", "bigint": "BIGINT", "string": "VARCHAR"}


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("PRAGMA disable_optimizer")  # it costs more than it saves on five rows
    atexit.register(_connection.cache_clear)  # DuckDB complains of what is open at the end
    return connection


@dataclass(frozen=True)
class Table:
    columns: Mapping[
        str, str
    ]  # name and type in Spark's spelling, or DuckDB's where that is another
    rows: Sequence[Row]


def rows_of(plan: Relation, tables: Mapping[str, Table]) -> list[Row]:
    """The rows of a plan over these tables, by the tables' names."""
    used = {node.table for node in _scans(plan)}
    common = ", ".join(f"{name} AS ({_values(tables[name])})" for name in sorted(used))
    return _connection().execute(f"WITH {common} {_sql(plan)}").fetchall()


def table_of(plan: Relation, tables: Mapping[str, Table]) -> Table:
    """The same as a table that other plans can read."""
    rows = rows_of(plan, tables)
    described = _connection().description
    types = (str(kind).lower() for _, kind, *_ in described)
    spark = {"hugeint": "decimal(38,0)", "integer": "int", "varchar": "string"}
    return Table({n: spark.get(t, t) for n, t in zip(plan.names, types, strict=True)}, rows)


def _scans(plan: Relation) -> list[Scan]:
    if isinstance(plan, Scan):
        return [plan]
    return [scan for child in plan.children for scan in _scans(child)]


def _values(table: Table) -> str:
    types = {name: _DUCKDB_TYPES.get(type_, type_) for name, type_ in table.columns.items()}
    casts = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in types.items())
    rows = table.rows or [(None,) * len(table.columns)]
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    where = "" if table.rows else " WHERE FALSE"
    return f"SELECT {casts} FROM (VALUES {values}) AS t({', '.join(table.columns)}){where}"


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _sql(plan: Relation) -> str:
    types = {column.name: column.type for child in plan.children for column in child.schema}

    def as_spark_compares(node: exp.Expr) -> exp.Expr:
        # Spark reads a text as a number when it compares the two; DuckDB refuses.
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            for side, other in (("this", "expression"), ("expression", "this")):
                if types.get(node.args[side].name) == "string" and (
                    types.get(node.args[other].name) in ("int", "bigint")
                ):
                    node.set(side, exp.cast(node.args[side], "bigint"))
        return node

    def scalar(expression: exp.Expr) -> str:
        return expression.transform(as_spark_compares).sql("duckdb")

    match plan:
        case Scan():
            columns = (f"{s} AS {n}" for s, n in zip(plan.sources, plan.names, strict=True))
            return f"SELECT {', '.join(columns) or '1'} FROM {plan.table}"
        case Filter():
            return f"SELECT * FROM ({_sql(plan.child)}) WHERE {scalar(plan.condition)}"
        case Project():
            items = ", ".join(f"{scalar(item.scalar)} AS {item.name}" for item in plan.items)
            return f"SELECT {items or '1'} FROM ({_sql(plan.child)})"
        case Join():
            return _join_sql(plan, "TRUE" if plan.condition is None else scalar(plan.condition))
        case Aggregate():
            results = [*plan.keys, *(f"{scalar(i.scalar)} AS {i.name}" for i in plan.aggregates)]
            by = f" GROUP BY {', '.join(plan.keys)}" if plan.keys else ""
            return f"SELECT {', '.join(results)} FROM ({_sql(plan.child)}){by}"
        case Union():
            return _set_sql(plan, "UNION ALL")
        case Intersect():
            return _set_sql(plan, "INTERSECT ALL" if plan.all else "INTERSECT")
        case Except():
            return _set_sql(plan, "EXCEPT ALL" if plan.all else "EXCEPT")
        case Sort():
            keys = ", ".join(scalar(key.scalar) for key in plan.by)
            return f"SELECT * FROM ({_sql(plan.child)}) ORDER BY {keys}"
        case Limit():
            count = "ALL" if plan.count is None else plan.count
            return f"SELECT * FROM ({_sql(plan.child)}) LIMIT {count} OFFSET {plan.offset}"
    raise AssertionError(f"no SQL for {type(plan).__name__}")


def _join_sql(plan: Join, condition: str) -> str:
    left, right = f"({_sql(plan.left)}) AS l", f"({_sql(plan.right)}) AS r"
    match plan.kind:
        case JoinKind.SEMI:
            return f"SELECT * FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        case JoinKind.ANTI:
            return (
                f"SELECT * FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {condition})"
            )
        case JoinKind.NULL_AWARE_ANTI:
            unless = f"SELECT 1 FROM {right} WHERE ({condition}) IS DISTINCT FROM FALSE"
            return f"SELECT * FROM {left} WHERE NOT EXISTS ({unless})"
    return f"SELECT * FROM {left} {plan.kind.value.upper()} JOIN {right} ON {condition}"


def _set_sql(plan: Union | Intersect | Except, operator: str) -> str:
    return f"SELECT * FROM ({_sql(plan.left)}) {operator} SELECT * FROM ({_sql(plan.right)})"
