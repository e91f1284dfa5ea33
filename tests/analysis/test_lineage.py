from __future__ import annotations

from random_plans import sql
from tpch_tables import scan

from sooner.algebra import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Project,
    Sort,
    SortKey,
    Union,
)
from sooner.algebra.scalar import column
from sooner.analysis import lineage_blocks, lineage_text

LINEITEM = scan("lineitem")
AVERAGE = Aggregate(
    scan("lineitem", "i_"), ("i_l_partkey",), (Item("m", sql("avg(i_l_quantity)")),)
)


def test_a_nested_aggregate_is_a_block_below_the_outer_one() -> None:
    # TPC-H 17: lines below a fifth of their part's average quantity.
    join = Join(LINEITEM, AVERAGE, JoinKind.INNER, sql("l_partkey = i_l_partkey"))
    small = Filter(join, sql("l_quantity < 0.2 * m"))
    total = Aggregate(small, (), (Item("s", sql("sum(l_extendedprice)")),))
    plan = Project(total, (Item("yearly", sql("s / 7.0")),))
    inner, outer, top = lineage_blocks(plan)
    assert (inner.root, inner.key, inner.reads) == (AVERAGE, ("i_l_partkey",), ())
    assert (outer.root, outer.key, outer.reads) == (total, (), (1,))
    assert outer.scans == (LINEITEM,)
    assert (top.root, top.key, top.reads, top.scans) == (plan, None, (2,), ())
    assert lineage_text((inner, outer, top)).splitlines() == [
        "Block 1: one row per i_l_partkey from lineitem",
        "Block 2: one row from lineitem and block 1",
        "Block 3 (the answer): rows from block 2",
    ]


def test_sorting_stays_with_its_limit_and_unions_inside_a_block() -> None:
    both = Union(LINEITEM, scan("lineitem", "x_"))
    groups = Aggregate(both, ("l_returnflag",), (Item("n", sql("count(*)")),))
    plan = Limit(Sort(groups, (SortKey(column("n"), descending=True),)), 3)
    first, last = lineage_blocks(plan)
    assert [scan_.table for scan_ in first.scans] == ["lineitem", "lineitem"]
    assert last.reads == (1,)
    assert lineage_text((first, last)).endswith("Block 2 (the answer): the first rows from block 1")


def test_a_shared_aggregate_is_one_block() -> None:
    left = Project(AVERAGE, (Item("a", column("m")),))
    right = Project(AVERAGE, (Item("b", column("m")),))
    blocks = lineage_blocks(Join(left, right, JoinKind.INNER, sql("a = b")))
    assert [block.reads for block in blocks] == [(), (1,)]


def test_a_plan_without_aggregates_is_one_block() -> None:
    (block,) = lineage_blocks(LINEITEM)
    assert (block.id, block.scans) == (1, (LINEITEM,))
    distinct = lineage_blocks(Aggregate(LINEITEM, ("l_partkey",)))
    assert lineage_text(distinct) == "Block 1 (the answer): distinct l_partkey from lineitem"
