"""Small random plans over three small random tables, with nulls, for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import sqlglot
from hypothesis import strategies as st
from plan_oracle import Row, Table

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Filter,
    Intersect,
    Item,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scalar,
    Scan,
    Sort,
    SortKey,
    Union,
)
from sooner.algebra.scalar import column
from sooner.analysis import ColumnFacts, TableFacts, TableInfo

COLUMNS = {
    "t": {"k": "int", "a": "int", "b": "bigint", "s": "string"},
    "u": {"k": "int", "c": "int", "d": "int"},
    "v": {"x": "bigint", "y": "string"},
}
KEYS: dict[str, tuple[str, ...]] = {"t": ("k",), "u": ("k", "c"), "v": ()}
SCRAMBLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "t": (("k",), ("a",), ("s",)),
    "u": (("k",), ("k", "c")),
    "v": (("x",), ("y",)),
}


@dataclass(frozen=True)
class World:
    tables: dict[str, Table]
    infos: dict[str, TableInfo]


def sql(text: str) -> Scalar:
    return sqlglot.parse_one(text, read="spark")


# Made once: Hypothesis checks each strategy that is new to it.
_TEXTS, _NUMBERS = st.sampled_from(["0", "1", "01", None]), st.sampled_from([0, 1, 2, None])
_ROWS = {
    name: st.lists(
        st.tuples(*(_TEXTS if type_ == "string" else _NUMBERS for type_ in columns.values())),
        max_size=5,
    )
    for name, columns in COLUMNS.items()
}
_BOOLEANS = st.booleans()
_below = cache(lambda number: st.integers(0, number - 1))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tables: dict[str, Table] = {}
    infos: dict[str, TableInfo] = {}
    for name, columns in COLUMNS.items():
        rows: list[Row] = draw(_ROWS[name])
        if KEYS[name]:
            places = [list(columns).index(key) for key in KEYS[name]]
            rows = list({tuple(row[i] for i in places): row for row in rows}.values())
        tables[name] = Table(columns, rows)
        nulls = [sum(row[i] is None for row in rows) for i in range(len(columns))]
        known = draw(_BOOLEANS)
        facts = {c: ColumnFacts(nulls=n) for c, n in zip(columns, nulls, strict=True) if known}
        infos[name] = TableInfo(KEYS[name], SCRAMBLES[name], TableFacts(len(rows), None, facts))
    return World(tables, infos)


@st.composite
def plans(draw: st.DrawFn, depth: int = 3, limits: bool = True) -> Relation:
    return _Build(draw, limits).plan(depth)


class _Build:
    def __init__(self, draw: st.DrawFn, limits: bool) -> None:
        self.draw = draw
        self.limits = limits
        self.numbers = count()
        self.texts: set[str] = set()  # the columns that hold texts; others hold whole numbers

    def pick(self, choices: Any) -> Any:
        options = list(choices)
        # As sampled_from, which would be built and checked anew for each list.
        return options[self.draw(_below(len(options)))]

    def name(self, text: bool = False) -> str:
        name = f"c{next(self.numbers)}"
        if text:
            self.texts.add(name)
        return name

    def like(self, name: str, names: Any) -> Any:
        """Some column that can be compared with this one."""
        same = [n for n in names if (n in self.texts) == (name in self.texts)]
        return self.pick(same) if same else name

    def copy(self, name: str) -> Item:
        return Item(self.name(name in self.texts), column(name))

    def plan(self, depth: int) -> Relation:
        if depth == 0:
            return self.scan()
        kinds = ["filter", "project", "join", "join", "join", "self join", "aggregate", "set"]
        kind = self.pick([*kinds, "order"])
        if kind == "join":
            left, right = self.plan(depth - 1), self.plan(self.pick(range(depth)))
            return self.join(left, right)
        if kind == "set":
            return self.set_operation(self.plan(depth - 1), self.plan(self.pick(range(depth))))
        child = self.plan(depth - 1)
        match kind:
            case "filter":
                return Filter(child, self.condition(child))
            case "project":
                return self.project(child)
            case "self join":
                return self.join(self.renamed(child), self.renamed(child))
            case "aggregate":
                return self.aggregate(child)
        if self.limits and self.pick([True, False]):
            return Limit(child, self.pick([1, 2]))
        return Sort(child, (SortKey(column(self.pick(child.names))),))

    def scan(self) -> Scan:
        table = self.pick(COLUMNS)
        columns = COLUMNS[table]
        dropped = self.pick([None, None, None, *columns])
        sources = tuple(source for source in columns if source != dropped)
        return Scan(
            table,
            sources,
            tuple(Column(self.name(columns[s] == "string"), columns[s]) for s in sources),
        )

    def renamed(self, child: Relation) -> Project:
        return Project(child, tuple(self.copy(name) for name in child.names))

    def condition(self, *inputs: Relation, joining: bool = False) -> Scalar:
        left, right = inputs[0].names, inputs[-1].names
        typed = {c.name for relation in inputs for c in relation.schema if c.type}
        templates = ["{x} = {y}"] * (4 if joining else 2)
        templates += ["{x} = {1}", "{x} IS NULL", "{x} > {0}", "{x} IN ({0}, {1})", "{x} <=> {y}"]
        templates += ["NOT {x} = {y}", "{x} = {1} OR {y} = {0}", "{x} IS NOT NULL", "{x} = {z}"]
        templates += [
            "{x} BETWEEN {0} AND {y}",
            "{y} = {1}",
            "{y} = {0} AND {y} < {1}",
            "{x} = {w}",
        ]
        parts = []
        for _ in range(self.pick([1, 1, 2])):
            x = self.pick(left)
            zero, one = ("'0'", "'1'") if x in self.texts else ("0", "1")
            same = {"x": x, "y": self.like(x, right), "z": self.like(x, left)}
            text: str = self.pick(templates).replace("{0}", zero).replace("{1}", one)
            w = self.pick(right)  # of whatever type, if both are known: see plan_oracle
            parts.append(text.format(**same, w=w if {w, x} <= typed else same["y"]))
        return sql(" AND ".join(f"({part})" for part in parts))

    def join(self, left: Relation, right: Relation) -> Join:
        kind = self.pick([*JoinKind, JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL])
        return Join(left, right, kind, self.condition(left, right, joining=True))

    def project(self, child: Relation) -> Project:
        items = [self.copy(name) for name in child.names if self.pick([1, 1, 0])]
        for _ in range(self.pick([0, 1, 2]) or not items):
            x = self.pick(child.names)
            one = "'1'" if x in self.texts else "1"
            text = self.pick(
                ["coalesce({x}, {y})", "coalesce({x}, {y})", "coalesce({x}, {1})", "{1}"]
            )
            text = text.replace("{1}", one).format(x=x, y=self.like(x, child.names))
            items.append(Item(self.name(x in self.texts), sql(text)))
        return Project(child, tuple(items))

    def aggregate(self, child: Relation) -> Aggregate:
        keys = tuple(name for name in child.names if self.pick([1, 0]))
        texts = [t for t in ("count(*)", "max({x})", "count({x})") if self.pick([1, 0]) or not keys]
        items = []
        for text in texts:
            x = self.pick(child.names)
            items.append(Item(self.name(x in self.texts and "max" in text), sql(text.format(x=x))))
        return Aggregate(child, keys, tuple(items))

    def set_operation(self, left: Relation, right: Relation) -> Relation:
        constants = self.pick([True, False])
        items: tuple[list[Item], list[Item]] = ([], [])
        for name in left.names[:3]:
            other = self.like(name, right.names)
            if other in right.names:
                items[0].append(self.copy(name))
                items[1].append(self.copy(other))
        if constants or not items[0]:
            for side in items:
                side.append(Item(self.name(text=True), sql(self.pick(["'7'", "'8'", "'9'"]))))
        sides = [Project(left, tuple(items[0])), Project(right, tuple(items[1]))]
        kind = self.pick(["union", "union", "intersect", "except"])
        if kind == "union":
            return Union(*sides)
        build = Intersect if kind == "intersect" else Except
        return build(sides[0], sides[1], all=self.pick([True, False]))
