"""A view and its changes are the view made again, whatever the plan and whatever changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_oracle import Table, rows_of
from random_plans import COLUMNS, KEYS, World, plans, sql, worlds

from sooner.algebra import Column, Filter, Join, JoinKind, Relation, Scan, walk
from sooner.views.deltas import (
    CHANGED,
    NEW,
    NOTHING,
    OLD,
    SIGN,
    CannotMaintain,
    Known,
    as_it_is,
    as_it_was,
    delta,
)

Rows = list[tuple[Any, ...]]
# That rows only came to a table makes a plan look first whether they meet any; true or not, it is right.
NAMES = sorted(COLUMNS)
KNOWN = st.builds(
    Known,
    st.frozensets(st.sampled_from(NAMES)),
    st.permutations(range(len(NAMES))).map(lambda rows: dict(zip(NAMES, rows, strict=True))),
)


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


def maintained(plan: Relation, tables: dict[str, Table], known: Known) -> Counter[Any]:
    rows = Counter(rows_of(as_it_was(plan), tables))
    for *row, sign in rows_of(delta(plan, known), tables):
        rows[tuple(row)] += sign
    assert all(number >= 0 for number in rows.values()), "nothing goes that was not there"
    return +rows


@given(plans(depth=2, limits=False), worlds(), worlds(), KNOWN)
def test_the_view_and_its_changes_are_the_view_made_again(
    plan: Relation, before: World, after: World, known: Known
) -> None:
    assert_maintained(plan, changed(before, after), known)


@pytest.mark.slow
@settings(max_examples=500)
@given(plans(limits=False), worlds(), worlds(), KNOWN)
def test_deeper_plans(plan: Relation, before: World, after: World, known: Known) -> None:
    assert_maintained(plan, changed(before, after), known)


def assert_maintained(plan: Relation, tables: dict[str, Table], known: Known = NOTHING) -> None:
    try:
        found = maintained(plan, tables, known)
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


def scan(table: str, prefix: str) -> Scan:
    columns = [Column(f"{prefix}{name}", type_) for name, type_ in COLUMNS[table].items()]
    return Scan(table, tuple(COLUMNS[table]), tuple(columns))


@given(
    worlds(),
    worlds(),
    KNOWN,
    st.sampled_from(["l_k = r_k", "l_k <=> r_k AND l_a < r_c", "l_k = r_k AND l_a = r_c"]),
    st.booleans(),
)
def test_rows_that_only_came_to_one_side(
    before: World, after: World, known: Known, condition: str, swapped: bool
) -> None:
    sides = [scan("t", "l_"), Filter(scan("u", "r_"), sql("r_d IS NULL OR r_d < 2"))]
    left, right = sides[::-1] if swapped else sides
    plan = Join(left, right, JoinKind.INNER, sql(condition))
    smaller, larger = sorted(("t", "u"), key=known.rows.__getitem__)
    looks_first = len(list(walk(delta(plan, known)))) > len(list(walk(delta(plan))))
    assert looks_first == (smaller in known.only_came), larger
    assert_maintained(plan, changed(before, after), known)
