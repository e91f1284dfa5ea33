"""Where a plan is cut: what adds up block by block, what is kept, and what cannot be streamed."""

from __future__ import annotations

import pytest
import sqlglot

from sooner.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Opaque,
    Relation,
    Scan,
    Sort,
    plan_text,
    walk,
)
from sooner.algebra.scalar import SortKey, column
from sooner.analysis import ColumnFacts, TableFacts, TableInfo
from sooner.progressive.cut import cut
from sooner.progressive.parts import CannotStream
from sooner.progressive.streams import choose_stream
from sooner.storage.layout import REPLICATE

FACTS = TableFacts(rows=1000, columns={"k": ColumnFacts(nulls=0)})
TABLES = {
    "t": TableInfo(key=("id",), scrambles=(("k",),), facts=FACTS),
    "u": TableInfo(scrambles=(("k",),), facts=TableFacts(rows=1000)),
}


def scan(table: str, *names: str) -> Scan:
    return Scan(
        table, tuple(n.split("_")[0] for n in names), tuple(Column(n, "int") for n in names)
    )


def scalar(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


T, U = scan("t", "id", "k", "v"), scan("u", "k_2", "w")
TOTAL = (Item("total", scalar("sum(v)")),)


def test_groups_of_the_stream_key_are_complete_rows() -> None:
    (state,) = cut(Aggregate(T, ("k",), TOTAL), TABLES, {0: ("k",)}).states
    assert state.aggregate is None


def test_other_groups_are_merged_by_replicate() -> None:
    (state,) = cut(Aggregate(T, ("v",), TOTAL), TABLES, {0: ("k",)}).states
    assert state.aggregate is not None
    assert state.carried is not None and REPLICATE in state.carried.names


def test_a_key_that_may_be_null_completes_no_group() -> None:
    groups = Aggregate(U, ("k_2",), (Item("n", scalar("count(*)")),))
    (state,) = cut(groups, TABLES, {0: ("k",)}).states
    assert state.aggregate is not None


def test_of_a_top_list_only_its_rows_are_kept() -> None:
    by = (SortKey(column("total"), descending=True),)
    (state,) = cut(Limit(Sort(Aggregate(T, ("k",), TOTAL), by), 3, 2), TABLES, {0: ("k",)}).states
    assert state.keep == 5


def test_an_aggregate_read_beforehand_is_static() -> None:
    average = Aggregate(U, (), (Item("a", scalar("avg(w)")),))
    found = cut(Join(T, average, JoinKind.INNER, scalar("v > a")), TABLES, {0: ("k",)})
    assert list(found.statics.values()) == [average]


@pytest.mark.parametrize(
    ("condition", "refused"),
    [("k = k_2", None), ("v = w", "other columns"), ("k <=> k_2", "without a key")],
)
def test_two_streams_meet_on_their_key(condition: str, refused: str | None) -> None:
    join = Join(T, U, JoinKind.INNER, scalar(condition))
    if refused is None:
        assert len(cut(join, TABLES, {0: ("k",), 1: ("k",)}).states) == 1
        return
    with pytest.raises(CannotStream, match=refused):
        cut(join, TABLES, {0: ("k",), 1: ("k",)})


def test_the_reason_is_the_plans_own() -> None:
    plan = Opaque("SELECT …", (Column("c1", "int"),), "GROUP BY ALL", ("t",))
    with pytest.raises(CannotStream, match="as written, because of GROUP BY ALL"):
        choose_stream(plan, {}, TABLES, None)


def test_a_condition_on_two_static_parts_reduces_both() -> None:
    """Towns join customers before they are kept, though the condition also names another static part."""
    tables = {
        "t": TableInfo(scrambles=(("k",),), facts=TableFacts(rows=10_000_000)),
        "seller": TableInfo(key=("s",), facts=TableFacts(rows=1000)),
        "buyer": TableInfo(key=("b",), facts=TableFacts(rows=100_000)),
        "town": TableInfo(key=("n",), facts=TableFacts(rows=25)),
    }
    plan: Relation = Join(
        scan("t", "k", "v", "c"), scan("seller", "s", "x"), JoinKind.INNER, scalar("v = s")
    )
    plan = Join(plan, scan("buyer", "b", "lives"), JoinKind.INNER, scalar("c = b"))
    either = "(x = 1 AND n = 2) OR (x = 2 AND n = 1)"
    plan = Join(plan, scan("town", "n"), JoinKind.INNER, scalar(f"lives = n AND ({either})"))
    found = cut(Aggregate(plan, ("x",), TOTAL), tables, {0: ("k",)})
    sellers, buyers, delta = (
        plan_text(one).replace("(", "").replace(")", "")
        for one in (*found.statics.values(), found.states[0].delta)
    )
    assert "Filter x = 1 OR x = 2" in sellers
    assert "Filter n = 2 OR n = 1" in buyers and "Join inner on lives = n" in buyers
    assert "Filter x = 1 AND n = 2 OR x = 2 AND n = 1" in delta


@pytest.mark.parametrize("condition", ["c = b AND n = n_2", "v = n"])
def test_a_large_static_part_loses_what_another_rules_out(condition: str) -> None:
    """By a column of the stream that both meet, or because one meets the other."""
    large = TableFacts(rows=1_000_000)
    tables = {
        "t": TableInfo(scrambles=(("k",),), facts=TableFacts(rows=10_000_000)),
        "few": TableInfo(key=("a",), facts=TableFacts(rows=1000)),
        "many": TableInfo(key=("b",), facts=large),
    }
    few = Filter(scan("few", "a", "n_2", "kind"), scalar("kind = 7"))
    met = Join(scan("t", "k", "v", "c"), few, JoinKind.INNER, scalar("v = a"))
    plan = Join(met, scan("many", "b", "n"), JoinKind.INNER, scalar(condition))
    found = cut(Aggregate(plan, ("kind",), TOTAL), tables, {0: ("k",)})
    kinds = [
        node.kind
        for static in found.statics.values()
        for node in walk(static)
        if isinstance(node, Join)
    ]
    assert kinds == [JoinKind.SEMI]


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI, JoinKind.NULL_AWARE_ANTI])
def test_of_rows_that_are_only_asked_for_each_is_kept_once(kind: JoinKind) -> None:
    plan = Join(scan("few", "a", "b"), T, kind, scalar("a = v"))
    (state,) = cut(plan, {**TABLES, "few": TableInfo()}, {1: ("k",)}).states
    assert state.aggregate == Aggregate(state.delta, ("v",)) and state.delta.names == ("v",)


def test_too_many_rows_that_are_asked_for_are_not_kept() -> None:
    tables = {**TABLES, "t": TableInfo(facts=TableFacts(rows=3_000_000)), "few": TableInfo()}
    with pytest.raises(CannotStream, match="too many rows"):
        cut(Join(scan("few", "a"), T, JoinKind.ANTI, scalar("a = v")), tables, {1: ("k",)})
