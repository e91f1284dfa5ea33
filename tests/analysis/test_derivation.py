from __future__ import annotations

from random_plans import sql
from tpch_tables import scan

from sooner.algebra import Aggregate, Column, Filter, Item, Join, JoinKind, Map, Project, Union
from sooner.algebra.scalar import column
from sooner.analysis import Derivation, How, Source, derivation

LINEITEM = scan("lineitem")


def test_copies_computations_and_aggregates() -> None:
    join = Join(LINEITEM, scan("orders"), JoinKind.LEFT, sql("l_orderkey = o_orderkey"))
    price = Project(
        join,
        (
            Item("k", column("o_orderkey")),
            Item("paid", sql("l_extendedprice * l_quantity")),
            Item("one", sql("1")),
        ),
    )
    plan = Filter(Aggregate(price, ("k", "one"), (Item("s", sql("sum(paid)")),)), sql("s > 1"))
    found = derivation(Project(plan, (*_copies("k", "one", "s"), Item("half", sql("s / 2")))))
    assert found["k"].copy_of == Source(1, "orders", "o_orderkey")
    assert found["one"] == Derivation(frozenset(), How.COMPUTED)
    paid = {Source(0, "lineitem", "l_extendedprice"), Source(0, "lineitem", "l_quantity")}
    assert found["s"] == Derivation(frozenset(paid), How.AGGREGATED)
    assert found["half"].how is How.AGGREGATED
    assert found["half"].copy_of is None


def test_each_occurrence_of_a_table_is_a_source_of_its_own() -> None:
    first = Project(LINEITEM, (Item("a", column("l_partkey")),))
    second = Project(LINEITEM, (Item("b", column("l_partkey")),))
    found = derivation(Join(first, second, JoinKind.INNER, sql("a = b")))
    assert found["a"].copy_of == Source(0, "lineitem", "l_partkey")
    assert found["b"].copy_of == Source(1, "lineitem", "l_partkey")


def test_a_union_copies_from_both_sides_and_a_map_computes_from_everything() -> None:
    orders, customer = scan("orders"), scan("customer")
    one = Project(orders, (Item("x", column("o_custkey")),))
    two = Project(customer, (Item("y", column("c_custkey")),))
    both = derivation(Union(one, two))["x"]
    assert (both.how, len(both.sources), both.copy_of) == (How.COPY, 2, None)
    mapped = Map(one, lambda frame: frame, ("x",), (Column("z", "int"),))
    assert derivation(mapped)["z"].how is How.COMPUTED


def _copies(*names: str) -> list[Item]:
    return [Item(name, column(name)) for name in names]
