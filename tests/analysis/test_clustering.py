from __future__ import annotations

import pytest
from random_plans import sql
from tpch_tables import TABLES, scan

from sooner.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Project,
    Scan,
    Sort,
    SortKey,
    Union,
)
from sooner.algebra.scalar import column
from sooner.analysis import TableInfo, clustering_key

LINEITEM, ORDERS, CUSTOMER = scan("lineitem"), scan("orders"), scan("customer")
ON_ORDER = sql("l_orderkey = o_orderkey")
BY_ORDER = {0: ("l_orderkey",), 1: ("o_orderkey",)}
SUM = Item("qty", sql("sum(l_quantity)"))


def test_a_scan_is_clustered_by_each_of_its_scrambles() -> None:
    assert clustering_key(LINEITEM, TABLES) == {("l_orderkey",), ("l_partkey",)}
    assert clustering_key(LINEITEM, TABLES, {0: ("l_partkey",)}) == {("l_partkey",)}
    assert clustering_key(LINEITEM, TABLES, {}) == set()
    assert clustering_key(LINEITEM, {}) == set()


def test_renames_keep_it_and_dropped_columns_lose_it() -> None:
    kept = Project(LINEITEM, (Item("k", column("l_orderkey")), Item("q", column("l_quantity"))))
    assert clustering_key(kept, TABLES) == {("k",)}
    assert clustering_key(Project(LINEITEM, (Item("k", sql("l_orderkey + 1")),)), TABLES) == set()


def test_a_join_on_the_common_key_keeps_it_under_both_names() -> None:
    join = Join(LINEITEM, ORDERS, JoinKind.INNER, ON_ORDER)
    assert clustering_key(join, TABLES, BY_ORDER) == {("l_orderkey",), ("o_orderkey",)}
    # Streamed by customer, orders meets a static lineitem; both by unlike keys do not meet.
    assert clustering_key(join, TABLES, {1: ("o_custkey",)}) == {("o_custkey",)}
    assert clustering_key(join, TABLES, {0: ("l_partkey",), 1: ("o_orderkey",)}) == set()


def test_an_aggregate_by_the_key_is_exact_per_key_and_another_is_not() -> None:
    join = Join(LINEITEM, ORDERS, JoinKind.INNER, ON_ORDER)
    by_order = Aggregate(join, ("o_orderdate", "o_orderkey"), (SUM,))
    assert clustering_key(by_order, TABLES, BY_ORDER) == {("o_orderkey",)}
    assert clustering_key(Aggregate(join, ("o_orderdate",), (SUM,)), TABLES) == set()
    large = Filter(by_order, sql("qty > 300"))
    again = Join(scan("lineitem", "x_"), large, JoinKind.SEMI, sql("x_l_orderkey = o_orderkey"))
    streamed = {0: ("l_orderkey",), 1: ("l_orderkey",), 2: ("o_orderkey",)}
    assert clustering_key(again, TABLES, streamed) == {("x_l_orderkey",)}


@pytest.mark.parametrize(
    ("kind", "co_streamed", "left_only", "right_only"),
    [
        (JoinKind.INNER, True, True, True),
        (JoinKind.LEFT, True, True, False),
        (JoinKind.RIGHT, True, False, True),
        (JoinKind.FULL, True, False, False),
        (JoinKind.SEMI, True, True, False),
        (JoinKind.ANTI, True, True, False),
        (JoinKind.NULL_AWARE_ANTI, False, True, False),
    ],
)
def test_which_sides_may_be_streamed(
    kind: JoinKind, co_streamed: bool, left_only: bool, right_only: bool
) -> None:
    join = Join(ORDERS, LINEITEM, kind, ON_ORDER)
    both = {0: ("o_orderkey",), 1: ("l_orderkey",)}
    assert bool(clustering_key(join, TABLES, both)) == co_streamed
    assert bool(clustering_key(join, TABLES, {0: ("o_orderkey",)})) == left_only
    assert bool(clustering_key(join, TABLES, {1: ("l_orderkey",)})) == right_only


def test_an_outer_join_is_not_clustered_by_what_only_partners_equal() -> None:
    # An order without a partner is in the block of its order key, whatever its customer is.
    on = sql("o_orderkey = l_orderkey AND o_custkey = l_orderkey")
    join = Join(ORDERS, LINEITEM, JoinKind.LEFT, on)
    streamed = {0: ("o_orderkey",), 1: ("l_orderkey",)}
    assert clustering_key(join, TABLES, streamed) == {("o_orderkey",), ("l_orderkey",)}
    inner = Join(ORDERS, LINEITEM, JoinKind.INNER, on)
    assert ("o_custkey",) in clustering_key(inner, TABLES, streamed)


def test_columns_of_unlike_types_are_hashed_apart() -> None:
    infos = {name: TableInfo(scrambles=(("k",),)) for name in "abc"}
    a = Scan("a", ("k",), (Column("a", "int"),))
    b = Scan("b", ("k",), (Column("b", "bigint"),))
    c = Scan("c", ("k",), (Column("c", "decimal(10,0)"),))
    streamed = {0: ("k",), 1: ("k",)}
    joined = Join(a, b, JoinKind.INNER, sql("a = b"))
    assert clustering_key(joined, infos, streamed) == {("a",), ("b",)}
    assert clustering_key(Join(a, c, JoinKind.INNER, sql("a = c")), infos, streamed) == set()


def test_columns_of_a_key_are_hashed_in_order() -> None:
    infos = {name: TableInfo(scrambles=(("k", "n"),)) for name in "ab"}
    a, b = (Scan(t, ("k", "n"), (Column(f"{t}k", "int"), Column(f"{t}n", "int"))) for t in "ab")
    streamed = {0: ("k", "n"), 1: ("k", "n")}
    straight = Join(a, b, JoinKind.INNER, sql("ak = bk AND an = bn"))
    assert ("ak", "bn") in clustering_key(straight, infos, streamed)
    crossed = Join(a, b, JoinKind.INNER, sql("ak = bn AND an = bk"))
    assert clustering_key(crossed, infos, streamed) == set()


def test_sorts_keep_limits_lose_and_unions_need_both_sides() -> None:
    assert clustering_key(Sort(CUSTOMER, (SortKey(column("c_custkey")),)), TABLES) == {
        ("c_custkey",)
    }
    assert clustering_key(Limit(CUSTOMER, 5), TABLES) == set()
    one = Project(CUSTOMER, (Item("k", column("c_custkey")),))
    two = Project(ORDERS, (Item("o", column("o_custkey")),))
    both = {0: ("c_custkey",), 1: ("o_custkey",)}
    assert clustering_key(Union(one, two), TABLES, both) == {("k",)}
    assert clustering_key(Union(one, two), TABLES, {0: ("c_custkey",)}) == set()
