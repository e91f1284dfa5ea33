"""The steps that bring changes into random views, in DuckDB: the rows are those of the view made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_oracle import Table, rows_of, table_of
from random_plans import KEYS, World, plans, sql, worlds
from test_deltas import changed

from sooner.algebra import Aggregate, Column, Filter, Item, Project, Relation
from sooner.algebra.scalar import column
from sooner.analysis import TableInfo
from sooner.views.deltas import CannotMaintain, as_it_is, as_it_was
from sooner.views.form import Form, form_of
from sooner.views.maintenance import VIEW, maintenance

INFOS = {name: TableInfo(key) for name, key in KEYS.items()}
_AGGREGATES = ("count(*)", "count({x})", "sum({x})", "min({x})", "max({x})", "count(DISTINCT {x})")


@dataclass(frozen=True)
class Typed:
    """Types of a plan's columns as DuckDB has them."""

    tables: Mapping[str, Table]

    def __call__(self, plan: Relation) -> dict[str, str]:
        return dict(table_of(as_it_was(plan), self.tables).columns)


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
    except Exception as error:  # a sum of texts, which DuckDB refuses as Spark would
        assume("sum(VARCHAR)" not in str(error))
        raise
    expected = rows_of(as_it_is(form.plan), tables)
    assert found == Counter(expected)
    visible = Counter(row[: len(plan.names)] for row in expected)
    assert visible == Counter(rows_of(as_it_is(plan), tables))
    places = [form.plan.names.index(name) for name in form.key or ()]
    assert len({tuple(row[p] for p in places) for row in expected}) == len(expected)


def brought_in(form: Form, tables: dict[str, Table]) -> Counter[Any]:
    """The stored rows as they were, without those that go, and with those that come."""
    view = table_of(as_it_was(form.plan), tables)
    stored = tuple(Column(name, view.columns[name]) for name in form.plan.names)
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
