"""How distinct counts are cut: apart from other aggregates, by stream key, side by side again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Item, Project, Scan, Union
from sooner.analysis import ColumnFacts, TableFacts, TableInfo
from sooner.progressive.cut import cut
from sooner.progressive.distinct_values import distinct_values
from sooner.progressive.estimates import Rows, Varying, certain_rows
from sooner.progressive.parts import CannotStream, Cut
from sooner.progressive.stream_keys import key_names
from sooner.progressive.top import over_estimates
from sooner.statistics.evaluate import NotNumeric
from sooner.storage.layout import REPLICATE

FACTS = TableFacts(rows=1000, columns={"k": ColumnFacts(nulls=0)})
TABLES = {"t": TableInfo(key=("id",), scrambles=(("k",),), facts=FACTS)}
T = Scan("t", ("id", "k", "g", "v"), tuple(Column(name, "int") for name in ("id", "k", "g", "v")))


def aggregate(*texts: str, keys: tuple[str, ...] = ("g",), rows: Scan = T) -> Aggregate:
    items = (sqlglot.parse_one(text, dialect="spark") for text in texts)
    return Aggregate(rows, keys, tuple(Item(f"a{n}", one) for n, one in enumerate(items)))


def streamed(plan: Aggregate) -> Cut:
    return cut(plan, TABLES, {0: ("k",)})


def test_counts_of_the_same_values_go_together() -> None:
    others, distinct = distinct_values(
        aggregate("count(DISTINCT v)", "sum(v)", "count(DISTINCT id, v)", "count(DISTINCT v)")
    )
    assert [item.name for item in others] == ["a1"]
    assert [one.names for one in distinct] == [("a0", "a3"), ("a2",)]
    assert [len(one.values) for one in distinct] == [1, 2]


def test_a_filter_makes_values_null() -> None:
    _, (one,) = distinct_values(aggregate("count(DISTINCT v) FILTER (WHERE id > 1)"))
    assert one.values[0].scalar.sql("spark") == "CASE WHEN id > 1 THEN v END"


def test_values_of_the_stream_key_are_counted_as_rows() -> None:
    (state,) = streamed(aggregate("count(DISTINCT k)")).states
    assert state.pairs is None and state.carried is not None
    assert state.aggregate is not None
    assert state.aggregate.aggregates[0].scalar.sql("spark") == "COUNT(`__value_0`)"


def test_other_values_are_kept_with_the_stream_keys_they_were_in() -> None:
    (state,) = streamed(aggregate("count(DISTINCT v)")).states
    assert state.pairs is not None and state.pairs.aggregate is not None
    assert state.pairs.aggregate.keys == ("g", "__value_0")
    assert set(state.pairs.delta.names) == {"g", "__value_0", REPLICATE, "__key_0"}


def test_the_stream_key_is_carried_through_unions_and_groups() -> None:
    groups = Aggregate(T, ("k", "g"), (Item("v", sqlglot.parse_one("max(v)", dialect="spark")),))
    other = Scan("t", ("k", "g", "v"), tuple(Column(name, "int") for name in ("k2", "g2", "v2")))
    both = Union(groups, other)
    (state,) = cut(
        Aggregate(both, ("g",), aggregate("count(DISTINCT v)").aggregates),
        TABLES,
        {0: ("k",), 1: ("k",)},
    ).states
    assert state.pairs is not None
    assert key_names(state.pairs.delta) == ("__key_0",)


def test_several_are_put_side_by_side() -> None:
    found = streamed(aggregate("count(DISTINCT v)", "sum(v)", "count(DISTINCT k)"))
    assert len(found.states) == 3
    assert isinstance(found.top, Project) and found.top.names == ("g", "a0", "a1", "a2")


@pytest.mark.parametrize("text", ["sum(DISTINCT v)", "count(DISTINCT (v, id))"])
def test_what_is_left_to_spark(text: str) -> None:
    with pytest.raises(CannotStream, match="DISTINCT"):
        streamed(aggregate("count(DISTINCT v)", text))


def rows(name: str, groups: list[int | None], values: list[float]) -> Rows:
    theta = np.tile(np.array(values), (5, 1))
    column = Varying(theta, np.ones((len(values), 4)))
    return certain_rows({"g": pa.chunked_array([groups]), name: column}, len(values))


def test_side_by_side_goes_by_group_not_by_place() -> None:
    top = streamed(aggregate("count(DISTINCT v)", "sum(v)")).top
    one = rows("a1", [1, None, 3], [10.0, 20.0, 30.0])
    found = over_estimates(
        top, {"__state_0": one, "__state_1": rows("a0", [3, 1, None], [3.0, 1.0, 2.0])}
    )
    assert found.columns["g"].to_pylist() == [1, None, 3]  # type: ignore[union-attr]
    counts, sums = found.columns["a0"], found.columns["a1"]
    assert isinstance(counts, Varying) and isinstance(sums, Varying)
    assert counts.theta[0].tolist() == [1.0, 2.0, 3.0]
    assert sums.theta[0].tolist() == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("groups", [[1, 2, 4], [1, 1, 3], [1, 3]])
def test_unlike_groups_are_left_to_spark(groups: list[int | None]) -> None:
    top = streamed(aggregate("count(DISTINCT v)", "sum(v)")).top
    states = {
        "__state_0": rows("a1", [1, 2, 3], [1.0, 2.0, 3.0]),
        "__state_1": rows("a0", groups, [1.0] * len(groups)),
    }
    with pytest.raises(NotNumeric):
        over_estimates(top, states)
