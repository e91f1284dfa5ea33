"""Plans that give the same rows become one with the columns of both; others do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Filter, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import column, columns_of, substitute
from sooner.analysis import TableFacts, TableInfo
from sooner.progressive.commons import with_commons
from sooner.progressive.cut import cut
from sooner.progressive.parts import Cut, State
from sooner.progressive.unify import unify
from sooner.storage.layout import REPLICATE

TOTAL = (Item("total", sqlglot.parse_one("sum(v)", dialect="spark")),)


def scalar(text: str) -> sqlglot.exp.Expr:
    found = sqlglot.parse_one(text, dialect="spark")
    return substitute(found, {name: column(name) for name in columns_of(found)})


def scan(table: str, **names: str) -> Scan:
    """Columns by the names they have here."""
    return Scan(table, tuple(names.values()), tuple(Column(name, "int") for name in names))


def over(plan: Relation, condition: str) -> Filter:
    return Filter(plan, scalar(condition))


def test_a_scan_has_the_columns_of_both() -> None:
    both = unify(scan("t", a="a", b="b"), scan("t", x="b", y="c"))
    assert both is not None
    assert both.plan == scan("t", a="a", b="b", y="c")
    assert both.names == {"x": "b", "y": "y"}


def test_a_name_that_is_taken_gets_another() -> None:
    both = unify(scan("t", a="a"), scan("t", a="b"))
    assert both is not None and both.plan.names == ("a", "a__also1")
    assert both.names == {"a": "a__also1"}


def test_conditions_are_compared_under_the_names_of_both() -> None:
    ours = over(scan("t", a="a", b="b"), "a > 1")
    both = unify(ours, over(scan("t", x="a", c="c"), "x > 1"))
    assert both is not None and both.plan == over(scan("t", a="a", b="b", c="c"), "a > 1")


@pytest.mark.parametrize(
    "theirs",
    [
        over(scan("t", a="a"), "a > 2"),
        over(scan("u", a="a"), "a > 1"),
        over(scan("t", a="b"), "a > 1"),
        scan("t", a="a"),
    ],
)
def test_other_rows_are_other_plans(theirs: Relation) -> None:
    assert unify(over(scan("t", a="a", b="b"), "a > 1"), theirs) is None


def test_computed_columns_are_added_once() -> None:
    ours = Project(scan("t", a="a"), (Item("twice", scalar("a * 2")),))
    theirs = Project(
        scan("t", x="a", y="b"),
        (Item("same", scalar("x * 2")), Item("twice", scalar("y * 2")), Item("y", column("y"))),
    )
    both = unify(ours, theirs)
    assert both is not None
    assert both.names == {"same": "twice", "twice": "twice__also1", "y": "y"}
    assert both.plan.names == ("twice", "twice__also1", "y")


def test_a_projection_that_adds_nothing_changes_nothing() -> None:
    ours = over(scan("t", a="a", b="b"), "a > 1")
    theirs = Project(over(scan("t", x="a", y="b"), "x > 1"), (Item("z", column("y")),))
    both = unify(ours, theirs)
    assert both is not None and both.plan == ours and both.names == {"z": "b"}


def test_joins_and_groups_go_by_their_parts() -> None:
    def joined(kind: JoinKind, total: str, **left: str) -> Aggregate:
        first = next(iter(left))
        rows = Join(scan("t", **left), scan("u", k="k"), kind, scalar(f"{first} = k"))
        return Aggregate(rows, (first,), (Item("total", scalar(total)),))

    ours = joined(JoinKind.INNER, "sum(b)", a="a", b="b")
    both = unify(ours, joined(JoinKind.INNER, "max(c)", x="a", c="c"))
    assert both is not None and both.names == {"x": "a", "total": "total__also1"}
    assert both.plan.names == ("a", "total", "total__also1")
    assert unify(ours, joined(JoinKind.LEFT, "sum(b)", a="a", b="b")) is None


def test_states_of_the_same_rows_have_them_in_common() -> None:
    tables = {"t": TableInfo(key=("k",), scrambles=(("k",),), facts=TableFacts(rows=1000))}

    def state(number: int, key: str, condition: str) -> State:
        groups = Aggregate(over(scan("t", **{key: key}, v="v"), condition), (key,), TOTAL)
        (found,) = cut(groups, tables, {0: ("k",)}).states
        return replace(found, name=f"__state_{number}")

    states = (state(0, "a", "v > 1"), state(1, "b", "v > 1"), state(2, "b", "v > 2"))
    together = with_commons(Cut(scan("t", v="v"), states, {}))
    (name,) = together.commons
    read = [one.carried.table for one in together.states if isinstance(one.carried, Scan)]
    assert read == [name, name] and together.states[2] == states[2]
    assert set(together.commons[name].names) == {"a", "b", "v", REPLICATE}
