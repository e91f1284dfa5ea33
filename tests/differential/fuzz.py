"""Random queries as SQL text, and small random tables to ask them of, for Hypothesis.

The tables hold nulls, duplicates and few different values; sums of them are exact in floating point.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from sooner.algebra import Column, Schema

COLUMNS: dict[str, dict[str, str]] = {
    "p": {
        "id": "int",
        "a": "int",
        "b": "bigint",
        "d": "decimal(8,2)",
        "x": "double",
        "s": "string",
        "t": "date",
    },
    "q": {
        "id": "int",
        "c": "int",
        "b": "bigint",
        "e": "decimal(6,1)",
        "s": "string",
        "t": "date",
    },
    "r": {"k": "bigint", "a": "int", "y": "double", "u": "string"},
    "z": {"id": "int", "w": "decimal(8,2)"},
}
_VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, None],
    "bigint": [0, 1, 2, None],
    "decimal(8,2)": [Decimal("0.00"), Decimal("1.00"), Decimal("2.25"), None],
    "decimal(6,1)": [Decimal("0.0"), Decimal("1.0"), Decimal("2.5"), None],
    "double": [0.0, 0.5, 1.0, 2.5, None],
    "string": ["", "a", "b", "ab", None],
    "date": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2021, 3, 1), None],
}
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal(8,2)": pa.decimal128(8, 2),
    "decimal(6,1)": pa.decimal128(6, 1),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
}
_LITERALS = {
    "number": ["0", "1", "2", "1.5", "2.25"],
    "string": ["'a'", "'b'", "''", "'ab'"],
    "date": ["DATE '2020-01-01'", "DATE '2020-12-31'"],
}
SCHEMAS: dict[str, Schema] = {
    table: tuple(Column(name, type_) for name, type_ in columns.items())
    for table, columns in COLUMNS.items()
}


def world(seed: int, rows: int = 9) -> dict[str, pa.Table]:
    """Random rows for every table; the last one is sometimes empty."""
    generator = random.Random(seed)
    made = {}
    for table, columns in COLUMNS.items():
        size = generator.choice([0, 2]) if table == "z" else generator.randint(rows // 2, rows)
        made[table] = pa.table(
            {
                name: pa.array(
                    [generator.choice(_VALUES[type_]) for _ in range(size)], _ARROW[type_]
                )
                for name, type_ in columns.items()
            }
        )
    return made


@dataclass(frozen=True)
class Query:
    """A query; ``ordered`` if its text fixes the order, ``portable`` if DuckDB means the same by it."""

    text: str
    ordered: bool
    portable: bool


def queries() -> st.SearchStrategy[Query]:
    """Random queries over the tables."""
    return _queries()


def groups_beside_filters() -> st.SearchStrategy[Query]:
    """Random joins of a filtered table with groups of others, and subqueries that become such joins."""
    return _groups_beside_filters()


@st.composite
def _groups_beside_filters(draw: st.DrawFn) -> Query:
    def pick(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    ours, key = draw(
        st.sampled_from([("a", "c"), ("id", "id"), ("b", "b"), ("a", "b"), ("s", "s")])
    )
    where = pick("l.s = 'a'", "l.a IN (1, 2)", "l.s LIKE 'a%'", "l.a = 1 AND l.b > 0", "l.b > 0")
    left = pick("p", "p", "p JOIN z ON p.id = z.id", "p LEFT SEMI JOIN r ON p.a = r.a AND r.k = 1")
    rows = pick(
        "q",
        "q",
        "q JOIN r ON q.b = r.k",
        "q LEFT JOIN r ON q.c = r.a",
        "q LEFT ANTI JOIN z ON q.id = z.id",
    )
    total = pick("count(*)", "sum(q.c)", "min(q.b)", "max(q.e)", "count(DISTINCT q.c)")
    filtered = f"(SELECT p.* FROM {left}) AS l"
    if draw(st.booleans()):
        kind = pick(
            "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"
        )
        having = pick("", "", " HAVING count(*) > 1")
        groups = f"(SELECT q.{key} AS k, {total} AS v FROM {rows} GROUP BY q.{key}{having}) AS g"
        on = f"l.{ours} {pick('=', '=', '<=>')} g.k{pick('', '', ' AND g.v > 1')}"
        shown = "l.id, l.a" if "SEMI" in kind or "ANTI" in kind else "l.id, g.k, g.v"
        return Query(
            f"SELECT {shown} FROM {filtered} {kind} {groups} ON {on} WHERE {where}", False, True
        )
    inner = f"SELECT {total} FROM {rows} WHERE q.{key} = l.{ours}"
    return Query(f"SELECT l.id, l.a FROM {filtered} WHERE {where} AND ({inner}) > 1", False, True)


def unions() -> st.SearchStrategy[Query]:
    """Random unions of joins that have much, but often not everything, in common."""
    return _unions()


@st.composite
def _unions(draw: st.DrawFn) -> Query:
    """Two to four branches, each as the first or with something else instead."""

    def pick(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    usual = {
        "kind": pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"),
        "on": pick("l.id = m.id AND l.b > 0", "l.a = m.c AND l.b >= m.b", "l.s = m.s AND m.e > 1"),
        "left": pick("p", "p", "(SELECT * FROM p WHERE a > 0)"),
        "right": pick("q", "(SELECT * FROM q WHERE c < 3)", "(SELECT DISTINCT * FROM q)"),
        "where": pick("l.a > 0", "l.s <> 'a'", "l.d < 2"),
        "more": pick("", " JOIN r ON r.k = l.id", " WHERE l.id IN (SELECT k FROM r)"),
    }
    unlike = {
        "kind": ["JOIN", "LEFT ANTI JOIN"],
        "on": ["l.id = m.c", "m.id = l.id"],
        "left": ["(SELECT * FROM p WHERE a > 1)", "(SELECT * FROM p LIMIT 99)"],
        "right": ["(SELECT * FROM q WHERE c < 2)"],
        "where": ["l.a < 2", "l.t IS NULL", "length(l.s) = 1"],
        "more": [" JOIN r ON r.k = l.a"],
    }
    shown = draw(st.lists(st.sampled_from(["l.a", "l.id", "l.a + 1", "m"]), min_size=1, max_size=3))
    texts = []
    for number in range(draw(st.integers(2, 4))):
        parts = dict(usual)
        for place in draw(st.lists(st.sampled_from(sorted(usual)), max_size=2)) if number else []:
            parts[place] = pick(*unlike[place])
        has_right = "SEMI" not in parts["kind"] and "ANTI" not in parts["kind"]
        items = [("m.c" if has_right else "l.a") if item == "m" else item for item in shown]
        items.append(pick("'x'", "'y'", "l.s", "upper(l.s)"))
        names = ", ".join(f"{item} AS o{place}" for place, item in enumerate(items))
        word = "AND" if "WHERE" in parts["more"] else "WHERE"
        texts.append(
            f"SELECT {names} FROM {parts['left']} AS l {parts['kind']} {parts['right']} AS m"
            f" ON {parts['on']}{parts['more']} {word} {parts['where']}"
        )
    return Query(" UNION ALL ".join(texts), ordered=False, portable=True)


@st.composite
def _queries(draw: st.DrawFn) -> Query:
    return _Writer(draw).top()


@dataclass(frozen=True)
class _Col:
    sql: str
    name: str
    type: str

    @property
    def kind(self) -> str:
        return self.type if self.type in ("string", "date") else "number"


@dataclass
class _Source:
    text: str
    columns: list[_Col]


@dataclass
class _Part:
    """A query as text with the columns that it gives."""

    text: str
    columns: list[tuple[str, str]] = field(default_factory=list)


class _Writer:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.numbers = count(1)
        self.with_queries: list[tuple[str, list[tuple[str, str]]]] = []
        self.portable = True

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def chance(self, one_in: int) -> bool:
        return bool(self.draw(st.integers(0, one_in - 1)) == one_in - 1)

    def fresh(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def top(self) -> Query:
        entries = []
        for _ in range(self.pick([0, 0, 0, 1, 2])):
            part = self.query(1)
            name = self.fresh("w")
            entries.append(f"{name} AS ({part.text})")
            self.with_queries.append((name, part.columns))
        part = self.query(2)
        text = part.text
        ordered = self.chance(3)
        if ordered:
            keys = [
                f"{place} {self.pick(['ASC', 'DESC', 'ASC NULLS LAST', 'DESC NULLS FIRST'])}"
                for place in range(1, len(part.columns) + 1)
            ]
            text += f" ORDER BY {', '.join(keys)}"
            if self.chance(2):
                text += f" LIMIT {self.pick([0, 1, 3, 5])}"
                if self.chance(3):
                    text += f" OFFSET {self.pick([1, 2])}"
        if entries:
            text = f"WITH {', '.join(entries)} {text}"
        return Query(text, ordered, self.portable)

    def query(self, depth: int, types: Sequence[str] | None = None) -> _Part:
        if self.chance(6):
            left = self.select(depth - 1, types)
            right = self.select(depth - 1, [type_ for _, type_ in left.columns])
            words = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
            word = self.pick(words)
            text = f"{left.text} {word} {right.text}"
            if self.chance(4):
                third = self.select(0, [type_ for _, type_ in left.columns])
                text += f" {self.pick(words)} {third.text}"
            # The values of unlike numbers are alike, but which type they widen to is each engine's own.
            return _Part(text, left.columns)
        return self.select(depth, types)

    def select(self, depth: int, types: Sequence[str] | None = None, outer: Any = ()) -> _Part:
        from_text, scope = self.from_clause(depth)
        where = self.where(scope, depth, outer)
        base = f"FROM {from_text}{where}"
        shapes = ["plain", "plain", "plain", "distinct", "group", "group"]
        if types is None:
            shapes.append("total")
        shape = self.pick(shapes)
        wanted = list(types) if types is not None else [None] * self.pick([1, 2, 3])
        if shape in ("plain", "distinct"):
            outputs = [self.output(scope, type_) for type_ in wanted]
            if types is None and depth > 0 and shape == "plain" and self.chance(5):
                outputs.append(self.scalar_subquery(scope))
            word = "SELECT DISTINCT" if shape == "distinct" else "SELECT"
            return self.part(f"{word} {{}} {base}", outputs)
        if shape == "total":
            outputs = [self.aggregate(scope) for _ in wanted]
            return self.part(f"SELECT {{}} {base}{self.having(scope, [], depth)}", outputs)
        keys = [self.pick(scope) for _ in range(self.pick([1, 1, 2]))]
        keys = list({key.sql: key for key in keys}.values())
        outputs = []
        for type_ in wanted:
            same = [key for key in keys if type_ is None or key.type == type_]
            if same and self.chance(2):
                key = self.pick(same)
                outputs.append((key.sql, key.type))
            else:
                outputs.append(self.aggregate(scope, type_))
        text = f"SELECT {{}} {base} GROUP BY {', '.join(key.sql for key in keys)}"
        return self.part(text + self.having(scope, keys, depth), outputs)

    def part(self, template: str, outputs: list[tuple[str, str]]) -> _Part:
        names = [self.fresh("o") for _ in outputs]
        items = ", ".join(f"{sql} AS {name}" for (sql, _), name in zip(outputs, names, strict=True))
        columns = [(name, type_) for name, (_, type_) in zip(names, outputs, strict=True)]
        return _Part(template.replace("{}", items, 1), columns)

    def from_clause(self, depth: int) -> tuple[str, list[_Col]]:
        first = self.source(depth)
        text, scope = first.text, list(first.columns)
        for _ in range(self.pick([0, 0, 1, 1, 2]) if depth > 0 else self.pick([0, 0, 1])):
            right = self.source(depth - 1)
            inner = [",", "JOIN", "JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
            kind = self.pick([*inner, "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            if kind == ",":
                if (
                    "JOIN" in text
                ):  # a comma binds less than JOIN: the ON before it would not see all
                    kind = "CROSS JOIN"
                else:
                    text = f"{text}, {right.text}"
                    scope += right.columns
                    continue
            if kind == "CROSS JOIN":
                text = f"{text} CROSS JOIN {right.text}"
                scope += right.columns
                continue
            text = f"{text} {kind} {right.text} ON {self.join_condition(scope, right.columns)}"
            if kind not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
                scope += right.columns
        return text, scope

    def source(self, depth: int) -> _Source:
        if depth > 0 and self.chance(4):
            part = self.query(depth - 1)
            alias = self.fresh("v")
            return self.source_of(f"({part.text}) AS {alias}", alias, part.columns)
        if self.with_queries and self.chance(3):
            name, columns = self.pick(self.with_queries)
            alias = self.fresh("v")
            return self.source_of(f"{name} AS {alias}", alias, columns)
        table = self.pick([*COLUMNS, "p", "q", "r"])
        alias = self.fresh("t")
        return self.source_of(f"{table} AS {alias}", alias, list(COLUMNS[table].items()))

    @staticmethod
    def source_of(text: str, alias: str, columns: Sequence[tuple[str, str]]) -> _Source:
        return _Source(text, [_Col(f"{alias}.{name}", name, type_) for name, type_ in columns])

    def like(self, column: _Col, candidates: Sequence[_Col]) -> _Col | None:
        same = [other for other in candidates if other.kind == column.kind]
        return self.pick(same) if same else None

    def equality(self, left: Sequence[_Col], right: Sequence[_Col], operators: Any = ("=",)) -> str:
        for _ in range(3):
            one = self.pick(left)
            other = self.like(one, right)
            if other is not None:
                return f"{one.sql} {self.pick(operators)} {other.sql}"
        return "TRUE"

    def join_condition(self, left: list[_Col], right: list[_Col]) -> str:
        parts = [self.equality(left, right, ("=", "=", "=", "=", "<=>", "<"))]
        if self.chance(3):
            parts.append(self.predicate(left + right))
        return " AND ".join(parts)

    def where(self, scope: list[_Col], depth: int, outer: Any) -> str:
        parts = [self.predicate(scope) for _ in range(self.pick([0, 0, 1, 1, 2]))]
        if depth > 0 and self.chance(2):
            parts.append(self.subquery_predicate(scope))
        parts += outer
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def predicate(self, scope: list[_Col]) -> str:
        x = self.pick(scope)
        y = self.like(x, scope) or x
        literal, other = (self.pick(_LITERALS[x.kind]) for _ in range(2))
        compare = self.pick(["=", "<>", "<", "<=", ">", ">="])
        templates = [
            f"{x.sql} {compare} {literal}",
            f"{x.sql} {compare} {y.sql}",
            f"{x.sql} IS NULL",
            f"{x.sql} IS NOT NULL",
            f"{x.sql} IN ({literal}, {other})",
            f"{x.sql} NOT IN ({literal}, {other})",
            f"{x.sql} BETWEEN {literal} AND {y.sql}",
            f"NOT ({x.sql} {compare} {y.sql})",
            f"coalesce({x.sql}, {literal}) = {y.sql}",
            f"({x.sql} = {literal} OR {y.sql} {compare} {other})",
            f"(({x.sql} = {y.sql} AND {x.sql} < {literal}) OR ({x.sql} = {y.sql} AND {y.sql} > {other}))",
            f"({x.sql} = {literal} OR {x.sql} IS NULL)",
        ]
        if x.kind == "string":
            templates += [f"{x.sql} LIKE 'a%'", f"{x.sql} NOT LIKE '%b'", f"length({x.sql}) > 1"]
        if x.kind == "date":
            templates += [f"year({x.sql}) = 2020", f"{x.sql} + INTERVAL '1' DAY > {y.sql}"]
        return str(self.pick(templates))

    def tie(self, own: list[_Col], scope: list[_Col], scalar: bool) -> str:
        """A condition between a subquery and the query around it."""
        if not scalar:
            return self.equality(own, scope, ("=", "=", "=", "=", "<", "<>"))
        # Spark itself takes only equalities here; most of one type, as the algebra wants them.
        alike = [(x, y) for x in own for y in scope if x.type == y.type]
        if not alike or self.chance(8):
            return self.equality(own, scope)
        x, y = self.pick(alike)
        return f"{x.sql} = {y.sql}"

    def inner(self, scope: list[_Col], scalar: bool = False) -> tuple[str, list[_Col]]:
        """FROM and WHERE of a subquery, tied to the query around it or not, and its columns."""
        first = self.source(0)
        text, own = first.text, list(first.columns)
        if self.chance(5):
            second = self.source(0)
            text += f" JOIN {second.text} ON {self.join_condition(own, second.columns)}"
            own += second.columns
        ties = [self.tie(own, scope, scalar) for _ in range(self.pick([0, 1, 1, 2]))]
        parts = ties + [self.predicate(own) for _ in range(self.pick([0, 0, 1]))]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return text + where, own

    def subquery_predicate(self, scope: list[_Col]) -> str:
        form = self.pick(["exists", "in", "in", "pair", "scalar", "scalar"])
        negation = self.pick(["", "NOT "])
        if form == "scalar":
            text, _ = self.scalar_subquery(scope)
            number = next((c for c in self.shuffled(scope) if c.kind == "number"), None)
            left = number.sql if number else self.pick(["0", "1"])
            return f"{left} {self.pick(['=', '<', '>=', '<>'])} {text}"
        text, own = self.inner(scope)
        if form == "exists":
            return f"{negation}EXISTS (SELECT {self.pick(['1', '*'])} FROM {text})"
        if form == "pair":
            pairs = [(x, self.like(x, own)) for x in (self.pick(scope), self.pick(scope))]
            if all(y is not None for _, y in pairs):
                left = ", ".join(x.sql for x, _ in pairs)
                right = ", ".join(y.sql for _, y in pairs if y is not None)
                return f"({left}) {negation}IN (SELECT {right} FROM {text})"
        x = self.pick(scope)
        y = self.like(x, own)
        if y is None:
            return f"{negation}EXISTS (SELECT 1 FROM {text})"
        group = " GROUP BY " + y.sql if self.chance(5) else ""
        shown = f"max({y.sql})" if group and self.chance(2) else y.sql
        return f"{x.sql} {negation}IN (SELECT {shown} FROM {text}{group})"

    def shuffled(self, scope: list[_Col]) -> list[_Col]:
        start = self.draw(st.integers(0, len(scope) - 1))
        return scope[start:] + scope[:start]

    def scalar_subquery(self, scope: list[_Col]) -> tuple[str, str]:
        text, own = self.inner(scope, scalar=True)
        number = next((c for c in self.shuffled(own) if c.kind == "number"), None)
        choices = ["count(*)", "count(*)"]
        if number is not None:
            choices += [f"{name}({number.sql})" for name in ("sum", "min", "max", "count")]
            choices += [f"coalesce(sum({number.sql}), -1)", f"count(DISTINCT {number.sql})"]
        having = " HAVING count(*) > 1" if self.chance(6) else ""
        return f"(SELECT {self.pick(choices)} FROM {text}{having})", "number"

    def having(self, scope: list[_Col], keys: list[_Col], depth: int) -> str:
        if not self.chance(3):
            return ""
        number = next((c for c in self.shuffled(scope) if c.kind == "number"), None)
        tests = ["count(*) > 1", "count(*) >= 1"]
        if number is not None:
            tests += [f"sum({number.sql}) > 1", f"max({number.sql}) IS NOT NULL"]
            tests += [f"min({number.sql}) < (SELECT max(id) FROM q)"]
        if keys:
            tests += [f"{keys[0].sql} IS NOT NULL"]
        return f" HAVING {self.pick(tests)}"

    def output(self, scope: list[_Col], wanted: str | None) -> tuple[str, str]:
        """A scalar of the row, of the wanted type."""
        # "number" is any numeric type: a computed column, of which only Spark knows the type.
        same = [c for c in scope if wanted in (None, c.type, c.kind)]
        if not same:
            type_ = "int" if wanted == "number" else str(wanted)
            return f"CAST({'0' if _is_number(wanted) else 'NULL'} AS {type_})", type_
        column = self.pick(same)
        x, type_ = column.sql, column.type
        y = self.pick([c for c in same if c.type == type_]).sql
        if self.chance(2):
            return x, type_
        templates = [f"coalesce({x}, {y})", f"CASE WHEN {self.predicate(scope)} THEN {x} END"]
        templates.append(f"CASE WHEN {x} IS NULL THEN {y} ELSE {x} END")
        if type_ in ("int", "bigint", "double"):
            templates += [f"{x} + {y}", f"-{x}", f"{x} * 2", f"abs({x} - {y})"]
        if type_ == "string":
            templates += [f"upper({x})", f"{x} || {y}", f"substring({x}, 1, 1)"]
        if wanted is None and column.kind == "number":
            other = self.pick([c for c in scope if c.kind == "number"]).sql
            return self.pick([*templates, f"{x} - {other}", f"{x} / 2", f"{x} * {other}"]), "number"
        return str(self.pick(templates)), type_

    def aggregate(self, scope: list[_Col], wanted: str | None = None) -> tuple[str, str]:
        fitting = [c for c in scope if wanted in (None, c.type, c.kind)]
        if wanted == "number":
            if not fitting:
                return "count(*)", "bigint"
            wanted = None
        column = self.pick(fitting or scope)
        x, type_ = column.sql, column.type
        if wanted is not None:
            if type_ != wanted:
                return f"CAST(NULL AS {wanted})", wanted
            return f"{self.pick(['min', 'max'])}({x})", wanted
        call, type_ = self.pick(
            [("count(*)", "bigint"), (f"count({x})", "bigint"), (f"count(DISTINCT {x})", "bigint")]
            + [(f"min({x})", type_), (f"max({x})", type_)]
            + ([(f"sum({x})", "number")] * 3 if column.kind == "number" else [])
            + ([(f"avg({x})", "number")] if column.kind == "number" else [])
            + ([(f"sum(DISTINCT {x})", "number")] if column.kind == "number" else [])
        )
        if call.startswith("avg"):
            self.portable = False  # each engine rounds an average of decimals in its own way
        if self.chance(5):
            return f"{call} FILTER (WHERE {self.predicate(scope)})", type_
        if type_ == "bigint" and self.chance(4):
            return f"{call} + 1", type_
        return call, type_


def _is_number(type_: str | None) -> bool:
    return type_ not in (None, "string", "date")
