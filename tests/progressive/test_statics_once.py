"""Static parts of the same rows become one with the columns of all; and the rows stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_oracle import Table, rows_of, table_of
from small_plans import scalar, scan

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Relation, Scan, walk
from sooner.progressive.decomposed import Late
from sooner.progressive.parts import Cut, State
from sooner.progressive.statics_once import statics_once


def reading(name: str, static: Relation, on: str, late: Late | None = None) -> State:
    """Streamed rows that meet a static part."""
    read = Scan(name, static.names, static.schema)
    plan = Join(scan("__stream_0", k="k", v="v"), read, JoinKind.INNER, scalar(on))
    return State(f"__state_for{name}", plan, 0, late=late)


def cut_of(*parts: tuple[Relation, str], late: Late | None = None) -> Cut:
    statics = {f"__static_{number}": plan for number, (plan, _) in enumerate(parts)}
    states = tuple(
        reading(name, plan, on, late if late and late.static == name else None)
        for (name, plan), (_, on) in zip(statics.items(), parts, strict=True)
    )
    top = Scan(states[0].name, states[0].delta.names, states[0].delta.schema)
    return Cut(top, states, statics)


WIDE = Filter(scan("shops", s="s", kind="kind", town="town"), scalar("kind = 7"))
NARROW = Filter(scan("shops", s2="s", kind2="kind"), scalar("kind2 = 7"))
OTHER = Filter(scan("shops", s3="s", kind3="kind"), scalar("kind3 = 8"))
RANDOM = Filter(scan("shops", s2="s"), scalar("rand() < 0.5"))


def test_one_part_has_the_columns_of_both() -> None:
    once = statics_once(cut_of((NARROW, "s2 = k"), (WIDE, "s = k"), (OTHER, "s3 = k")))
    assert list(once.statics) == ["__static_0", "__static_2"]
    assert len(once.statics["__static_0"].names) == 3
    read = [node for node in walk(once.states[1].delta) if isinstance(node, Scan)]
    assert read[1].table == "__static_0"
    assert read[1].sources == ("s2", "kind2", "town") and read[1].names == ("s", "kind", "town")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([(NARROW, "s2 = k"), (OTHER, "s3 = k")], id="other rows"),
        pytest.param([(RANDOM, "s2 = k"), (RANDOM, "s2 = k")], id="rows that chance picks"),
    ],
)
def test_others_stay_apart(parts: list[tuple[Relation, str]]) -> None:
    cut = cut_of(*parts)
    assert statics_once(cut) is cut


@pytest.mark.parametrize("name", ["__static_0", "__static_1"])
def test_what_columns_are_looked_up_in_stays_apart(name: str) -> None:
    late = Late(name, WIDE, "s", ("town",), ("k", "v", "town"))
    cut = cut_of((NARROW, "s2 = k"), (WIDE, "s = k"), late=late)
    assert statics_once(cut) is cut


SMALL = st.integers(0, 3)


@given(
    st.lists(st.tuples(SMALL, SMALL), max_size=6),
    st.lists(st.tuples(SMALL, st.sampled_from([7, 8]), SMALL), max_size=6),
    st.permutations([(WIDE, "s = k"), (NARROW, "s2 = k"), (OTHER, "s3 = k")]),
)
def test_the_rows_stay_the_same(
    sales: list[tuple[int, ...]],
    shops: list[tuple[int, ...]],
    parts: list[tuple[Relation, str]],
) -> None:
    before = cut_of(*parts)
    once = statics_once(before)
    assert len(once.statics) == 2
    tables = {
        "__stream_0": Table({"k": "int", "v": "int"}, sales),
        "shops": Table({"s": "int", "kind": "int", "town": "int"}, shops),
    }

    def rows(cut: Cut) -> list[list[tuple[object, ...]]]:
        own = {name: table_of(plan, tables) for name, plan in cut.statics.items()}
        return [sorted(rows_of(state.delta, {**tables, **own})) for state in cut.states]

    assert rows(once) == rows(before)


def test_columns_of_an_aggregate_are_added() -> None:
    def by_kind(**totals: str) -> Aggregate:
        shops = scan("shops", kind="kind", town="town")
        return Aggregate(
            shops, ("kind",), tuple(Item(n, scalar(text)) for n, text in totals.items())
        )

    once = statics_once(
        cut_of((by_kind(a="sum(town)"), "kind = k"), (by_kind(b="max(town)"), "kind = k"))
    )
    (static,) = once.statics.values()
    assert static.names == ("kind", "a", "b")
