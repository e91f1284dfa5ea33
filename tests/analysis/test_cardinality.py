from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from random_plans import World, plans, sql, worlds
from test_laws import laws
from tpch_tables import TABLES, scan

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
    Scan,
    Union,
)
from sooner.algebra.scalar import column
from sooner.analysis import ColumnFacts, TableFacts, TableInfo, estimate
from sooner.analysis.cardinality import UNKNOWN_ROWS

T = Scan(
    "t",
    ("n", "d", "s", "w", "m"),
    (
        Column("n", "int"),
        Column("d", "date"),
        Column("s", "string"),
        Column("w", "timestamp"),
        Column("m", "decimal(10,2)"),
    ),
)
FACTS = {
    "n": ColumnFacts(1, 100, 0, 100),
    "d": ColumnFacts(date(2020, 1, 1), date(2020, 4, 9), 0, 100),
    "s": ColumnFacts("a", "z", 200, 10),
    "w": ColumnFacts(datetime(2020, 1, 1), datetime(2020, 1, 11), 0, None),
    "m": ColumnFacts(Decimal("0.00"), Decimal("10.00"), 0, 500),
}
INFOS = {"t": TableInfo(facts=TableFacts(1000, 50_000, FACTS))}


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("n = 7", 10),
        ("n = 700", 0),
        ("n <> 7", 990),
        ("n <= 50", 500),
        ("n < 50", 490),
        ("50 > n", 490),
        ("n BETWEEN 11 AND 20", 100),
        ("n > 10 AND n <= 20", 100),
        ("n > 10.5 AND n < 20.5", 100),
        ("NOT (n <= 10 OR n > 20)", 100),
        ("n IN (1, 2, 3)", 30),
        ("n IN (1, 2, 1000)", 20),
        ("n = 1 OR n = 2", 20),
        ("n NOT IN (1, 2)", 980),
        ("d < DATE '2020-01-11'", 100),
        ("d < CAST('2020-01-11' AS DATE)", 100),
        ("d >= '2020-01-01' AND d < DATE '2020-01-01' + INTERVAL '10' DAY", 100),
        ("w < TIMESTAMP '2020-01-02'", 100),
        ("m < 2.5", 250),
        ("m > -1", 1000),
        ("s IS NULL", 200),
        ("s IS NOT NULL", 800),
        ("s = 'b'", 80),
        ("s LIKE 'b'", 80),
        ("s NOT LIKE 'b'", 720),
        ("n = 7 AND s = 'b'", 0.8),
        ("TRUE", 1000),
        ("FALSE", 0),
    ],
)
def test_filters_that_can_be_counted(condition: str, rows: float) -> None:
    assert estimate(Filter(T, sql(condition)), INFOS).rows == pytest.approx(rows)


@pytest.mark.parametrize("condition", ["s LIKE '%b%'", "s LIKE 'b%'", "length(s) > 2", "s < 'm'"])
def test_other_filters_keep_some(condition: str) -> None:
    assert 0 < estimate(Filter(T, sql(condition)), INFOS).rows < 1000


def test_columns_follow_the_filter() -> None:
    kept = estimate(Filter(T, sql("n > 90 AND s = 'b'")), INFOS)
    assert kept.columns["n"].distinct == pytest.approx(8)  # no more values than rows
    assert (kept.columns["s"].distinct, kept.columns["s"].null_share) == (1, 0)


def test_groups_limits_and_set_operations() -> None:
    count = (Item("c", sql("count(*)")),)
    assert estimate(Aggregate(T, (), count), INFOS).rows == 1
    assert estimate(Aggregate(T, ("n",), count), INFOS).rows == 100
    assert estimate(Aggregate(T, ("s",), count), INFOS).rows == 11  # a null is a group too
    assert estimate(Aggregate(T, ("n", "d"), count), INFOS).rows == 1000
    assert estimate(Limit(T, 7, offset=5), INFOS).rows == 7
    assert estimate(Limit(T, 7, offset=999), INFOS).rows == 1
    assert estimate(Union(T, T), INFOS).rows == 2000
    one = Project(T, (Item("x", column("n")),))
    assert estimate(Intersect(one, one), INFOS).rows == 100
    assert estimate(Except(one, one, all=True), INFOS).rows == 1000


def test_joins_along_foreign_keys() -> None:
    lineitem, orders = scan("lineitem"), scan("orders")
    on = sql("l_orderkey = o_orderkey")
    assert estimate(Join(lineitem, orders, JoinKind.INNER, on), TABLES).rows == 6_000_000
    urgent = Filter(orders, sql("o_orderpriority = '1-URGENT'"))
    assert estimate(Join(lineitem, urgent, JoinKind.INNER, on), TABLES).rows == 1_200_000
    assert estimate(Join(urgent, lineitem, JoinKind.SEMI, on), TABLES).rows == 300_000
    assert estimate(Join(orders, lineitem, JoinKind.ANTI, on), TABLES).rows == 150_000
    assert estimate(Join(orders, lineitem, JoinKind.LEFT, on), TABLES).rows == 6_000_000
    assert estimate(Join(scan("customer"), scan("part"), JoinKind.INNER), TABLES).rows == 3e10


def test_groups_by_a_key_and_what_it_fixes() -> None:
    join = Join(scan("lineitem"), scan("orders"), JoinKind.INNER, sql("l_orderkey = o_orderkey"))
    keys = ("l_orderkey", "o_orderdate", "o_custkey")
    assert estimate(Aggregate(join, keys), TABLES).rows == 1_500_000
    flags = Aggregate(scan("lineitem"), ("l_returnflag", "l_linestatus"))
    assert estimate(flags, TABLES).rows == 6
    year = Project(scan("orders"), (Item("y", sql("year(o_orderdate)")),))
    assert estimate(Aggregate(year, ("y",)), TABLES).rows == 7


def test_nothing_known_has_a_stated_answer() -> None:
    size = estimate(T, {})
    assert size.rows == UNKNOWN_ROWS
    assert size.row_bytes == 4 + 4 + 20 + 8 + 8
    assert estimate(T, {"t": TableInfo(facts=TableFacts(rows=0))}).bytes == 0


@laws
@given(plans(), worlds())
def test_estimates_are_finite_and_fall_with_every_filter(plan: Relation, world: World) -> None:
    size = estimate(plan, world.infos)
    assert list(size.columns) == list(plan.names)
    assert math.isfinite(size.rows) and size.rows >= 0 and math.isfinite(size.row_bytes)
    for one in size.columns.values():
        assert 0 <= one.distinct <= size.rows and 0 <= one.null_share <= 1
    name = plan.names[0]
    for text in (f"{name} > 0", f"{name} = 1 OR {name} IS NULL", f"NOT {name} IN (0, 1)"):
        once = Filter(plan, sql(text))
        twice = Filter(once, sql(f"{name} < 2"))
        less = estimate(once, world.infos).rows
        assert 0 <= estimate(twice, world.infos).rows <= less <= size.rows


@pytest.mark.parametrize("condition", ["l_partkey < 1000", "l_returnflag = 'R'", "l_orderkey = 7"])
def test_a_filter_below_lets_fewer_through_above(condition: str) -> None:
    def above(lines: Relation) -> Relation:
        orders = Join(lines, scan("orders"), JoinKind.INNER, sql("l_orderkey = o_orderkey"))
        join = Join(orders, scan("customer"), JoinKind.INNER, sql("o_custkey = c_custkey"))
        return Aggregate(join, ("c_nationkey", "l_partkey"), (Item("n", sql("count(*)")),))

    fewer = estimate(above(Filter(scan("lineitem"), sql(condition))), TABLES)
    assert fewer.rows <= estimate(above(scan("lineitem")), TABLES).rows
