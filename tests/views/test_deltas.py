"""A view and its changes are the view made again, whatever the plan and whatever changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_oracle import Table, rows_of
from random_plans import COLUMNS, KEYS, World, plans, worlds

from sooner.algebra import Relation
from sooner.views.deltas import CHANGED, NEW, OLD, SIGN, CannotMaintain, as_it_is, as_it_was, delta

Rows = list[tuple[Any, ...]]


def changed(before: World, after: World) -> dict[str, Table]:
    """The tables as they were, as they are, and what came and went."""
    found = {}
    for name, columns in COLUMNS.items():
        old, new = (Counter(world.tables[name].rows) for world in (before, after))
        signed = [(*row, 1) for row in (new - old).elements()]
        signed += [(*row, -1) for row in (old - new).elements()]
        found[OLD + name], found[NEW + name] = before.tables[name], after.tables[name]
        found[CHANGED + name] = Table({**columns, SIGN: "int"}, signed)
    return found


def maintained(plan: Relation, tables: dict[str, Table]) -> Counter[Any]:
    rows = Counter(rows_of(as_it_was(plan), tables))
    for *row, sign in rows_of(delta(plan), tables):
        rows[tuple(row)] += sign
    assert all(number >= 0 for number in rows.values()), "nothing goes that was not there"
    return +rows


@given(plans(depth=2, limits=False), worlds(), worlds())
def test_the_view_and_its_changes_are_the_view_made_again(
    plan: Relation, before: World, after: World
) -> None:
    assert_maintained(plan, changed(before, after))


@pytest.mark.slow
@settings(max_examples=500)
@given(plans(limits=False), worlds(), worlds())
def test_deeper_plans(plan: Relation, before: World, after: World) -> None:
    assert_maintained(plan, changed(before, after))


def assert_maintained(plan: Relation, tables: dict[str, Table]) -> None:
    try:
        found = maintained(plan, tables)
    except CannotMaintain:
        assume(False)
    assert found == Counter(rows_of(as_it_is(plan), tables))


@given(plans(depth=2, limits=False), worlds(), st.data())
def test_small_changes(plan: Relation, before: World, data: st.DataObject) -> None:
    """One row comes, goes or is another, in one table."""
    name = data.draw(st.sampled_from(sorted(COLUMNS)))
    rows = list(before.tables[name].rows)
    if rows and data.draw(st.booleans()):
        rows.pop(data.draw(st.integers(0, len(rows) - 1)))
    new = data.draw(worlds()).tables[name].rows[:1]
    keys = [list(COLUMNS[name]).index(key) for key in KEYS[name]]
    there = {tuple(row[k] for k in keys) for row in rows}
    rows += [row for row in new if not keys or tuple(row[k] for k in keys) not in there]
    after = World({**before.tables, name: Table(COLUMNS[name], rows)}, before.infos)
    assert_maintained(plan, changed(before, after))
