"""The steps that bring changes into random views, in SQLite: the rows are those of the view made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_oracle import Table, rows_of, table_of
from random_plans import KEYS, World, plans, sql, worlds
from sqlglot import exp
from test_deltas import changed

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Filter,
    Intersect,
    Item,
    Project,
    Relation,
    Scalar,
    Scan,
    Union,
)
from sooner.algebra.scalar import column
from sooner.analysis import TableInfo
from sooner.views.deltas import OLD, CannotMaintain, as_it_is, as_it_was
from sooner.views.form import Form, form_of
from sooner.views.maintenance import VIEW, maintenance

INFOS = {name: TableInfo(key) for name, key in KEYS.items()}
_AGGREGATES = ("count(*)", "count({x})", "sum({x})", "min({x})", "max({x})", "count(DISTINCT {x})")


@dataclass(frozen=True)
class Typed:
    """Types of a plan's columns as Spark has them."""

    tables: Mapping[str, Table]

    def __call__(self, plan: Relation) -> dict[str, str]:
        if isinstance(plan, Scan):
            types = self.tables[f"{OLD}{plan.table}"].columns
            return {n: str(types[s]) for s, n in zip(plan.sources, plan.names, strict=True)}
        inputs = [self(child) for child in plan.children]
        below = {name: type_ for types in inputs for name, type_ in types.items()}
        if isinstance(plan, Project):
            return {item.name: type_of(item.scalar, below) for item in plan.items}
        if isinstance(plan, Aggregate):
            below |= {item.name: type_of(item.scalar, below) for item in plan.aggregates}
        if isinstance(plan, Union | Intersect | Except):
            pairs = zip(*(types.values() for types in inputs), strict=True)
            return {name: widest(pair) for name, pair in zip(plan.names, pairs, strict=True)}
        return {name: below[name] for name in plan.names}


def type_of(scalar: Scalar, types: Mapping[str, str]) -> str:
    match scalar:
        case exp.Column():
            return types[scalar.name]
        case exp.Literal():
            return "string" if scalar.is_string else "int"
        case exp.Count():
            return "bigint"
        case exp.Sum():
            return "double" if type_of(scalar.this, types) == "string" else "bigint"
        case exp.Coalesce():
            return widest([type_of(one, types) for one in (scalar.this, *scalar.expressions)])
        case exp.Min() | exp.Max() | exp.Filter() | exp.Paren():
            return type_of(scalar.this, types)
    raise AssertionError(f"no type of {scalar!r}")


def widest(types: Sequence[str]) -> str:
    """The type of values of these types: all are texts, or all are whole numbers."""
    return types[0] if len(set(types)) == 1 else "bigint"


@st.composite
def views(draw: st.DrawFn, depth: int = 1) -> Relation:
    """Groups of what a random plan gives, some of them left out, some of their keys not shown."""
    child = draw(plans(depth=depth, limits=False))
    names = list(child.names)
    keys = tuple(name for name in names if draw(st.booleans()))
    items = []
    for place in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(_AGGREGATES))
        items.append(Item(f"g{place}", sql(text.format(x=draw(st.sampled_from(names))))))
    if draw(st.booleans()):
        rare = sql(f"count(*) FILTER (WHERE {draw(st.sampled_from(names))} IS NOT NULL)")
        items.append(Item("gf", rare))
    groups: Relation = Aggregate(child, keys, tuple(items))
    if draw(st.booleans()):
        groups = Filter(groups, sql("g0 IS NULL OR CAST(g0 AS VARCHAR) <> '1'"))
    shown = [name for name in groups.names if draw(st.booleans())] or [groups.names[-1]]
    return Project(groups, tuple(Item(f"o{n}", column(name)) for n, name in enumerate(shown)))


def assert_brought_in(plan: Relation, before: World, after: World) -> None:
    tables = changed(before, after)
    try:
        columns = tuple(Column(name) for name in plan.names)
        form = form_of(plan, columns, INFOS, Typed(tables))
        if form.key is None or form.why_whole is not None:
            return  # nothing tells its rows apart: such a view is made again
        found = brought_in(form, tables)
    except CannotMaintain:
        assume(False)
    expected = rows_of(as_it_is(form.plan), tables)
    assert found == Counter(expected)
    visible = Counter(row[: len(plan.names)] for row in expected)
    assert visible == Counter(rows_of(as_it_is(plan), tables))
    places = [form.plan.names.index(name) for name in form.key or ()]
    assert len({tuple(row[p] for p in places) for row in expected}) == len(expected)


def brought_in(form: Form, tables: dict[str, Table]) -> Counter[Any]:
    """The stored rows as they were, without those that go, and with those that come."""
    view = table_of(as_it_was(form.plan), tables)
    types = Typed(tables)(form.plan)
    stored = tuple(Column(name, types[name]) for name in form.plan.names)
    known = {**tables, VIEW: view}
    rows = Counter(view.rows)
    for step in maintenance(form, stored, ()):
        if step.name:
            known[step.name] = table_of(step.plan, known)
            continue
        for *row, sign in rows_of(step.plan, known):
            rows[tuple(row)] += sign
    assert all(number >= 0 for number in rows.values()), "nothing goes that was not there"
    return +rows


@given(views(), worlds(), worlds())
def test_groups(plan: Relation, before: World, after: World) -> None:
    assert_brought_in(plan, before, after)


@given(plans(depth=2, limits=False), worlds(), worlds())
def test_any_view(plan: Relation, before: World, after: World) -> None:
    assert_brought_in(plan, before, after)


@pytest.mark.slow
@settings(max_examples=600)
@given(views(depth=2), worlds(), worlds())
def test_deeper_groups(plan: Relation, before: World, after: World) -> None:
    assert_brought_in(plan, before, after)
