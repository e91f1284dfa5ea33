"""The top of a plan over estimates: what is computed, and which rows are marked as chosen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import (
    Column,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
)
from sooner.algebra.scalar import SortKey, column
from sooner.progressive.answers import Moment, answer_of, widest
from sooner.progressive.estimates import Extreme, Rows, Varying, certain_rows
from sooner.progressive.top import over_estimates
from sooner.statistics.evaluate import NotNumeric, evaluate

REPLICATES = 8
GROUPS = Scan("__state_0", ("k", "total"), (Column("k", "string"), Column("total", "bigint")))
ONE = Scan("__state_1", ("all_of_it",), (Column("all_of_it", "bigint"),))


def scalar(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


def varying(*estimates: float, spread: float = 0.01) -> Varying:
    """Estimates whose leave-one-out values lie within a share of them."""
    waves = 1 + spread * np.array([0.0, *np.linspace(-1, 1, REPLICATES)])
    theta = waves[:, None] * np.array(estimates)[None, :]
    return Varying(theta, np.ones((len(estimates), REPLICATES)), positive=True)


STATES = {
    "__state_0": certain_rows(
        {"k": pa.chunked_array([["a", "b", "c"]]), "total": varying(10.0, 30.0, 20.0)}, 3
    ),
    "__state_1": certain_rows({"all_of_it": varying(60.0)}, 1),
}


def shown(top: Relation) -> Rows:
    return over_estimates(top, STATES)


def test_expressions_see_every_replicate() -> None:
    rows = shown(Project(GROUPS, (Item("half", scalar("total / 2 + 1")),)))
    half = rows.columns["half"]
    assert isinstance(half, Varying)
    total = STATES["__state_0"].columns["total"]
    assert isinstance(total, Varying)
    assert np.allclose(half.theta, total.theta / 2 + 1)


def test_a_condition_far_from_its_threshold_is_decided() -> None:
    assert not shown(Filter(GROUPS, scalar("total > 15"))).chosen.any()
    near = shown(Filter(GROUPS, scalar("total > 19.99")))
    assert near.columns["k"].to_pylist() == ["b", "c"]
    assert near.chosen.tolist() == [False, True]


def test_a_total_stands_beside_every_row() -> None:
    joined = Join(GROUPS, ONE, JoinKind.INNER, scalar("total > all_of_it * 0.25"))
    rows = shown(joined)
    assert rows.columns["k"].to_pylist() == ["b", "c"]


def test_order_and_limit_choose() -> None:
    ordered = Sort(GROUPS, (SortKey(column("total"), descending=True),))
    assert shown(ordered).columns["k"].to_pylist() == ["b", "c", "a"]
    top = shown(Limit(ordered, 2))
    assert top.columns["k"].to_pylist() == ["b", "c"]
    assert top.chosen.all()
    assert not shown(Limit(ordered, 3)).chosen.any()


@pytest.mark.parametrize("text", ["upper(k)", "cast(total AS string)", "total IN (1, 2)"])
def test_the_rest_is_left_to_spark(text: str) -> None:
    with pytest.raises(NotNumeric):
        shown(Project(GROUPS, (Item("x", scalar(text)),)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN a > 1 THEN a ELSE 0 END", [0.0, 2.0, 0.0]),
        ("a / 0", [None, None, None]),
        ("coalesce(a, 5)", [1.0, 2.0, 5.0]),
        ("a > 1 OR a IS NULL", NotNumeric),
        ("a BETWEEN 1 AND 1", [1.0, 0.0, None]),
        ("NOT a = 1 AND a < 5", [0.0, 1.0, None]),
        ("-a + 2 * 3", [5.0, 4.0, None]),
    ],
)
def test_scalars(text: str, expected: object) -> None:
    values = {"a": np.array([[1.0, 2.0, np.nan]])}
    if expected is NotNumeric:
        with pytest.raises(NotNumeric):
            evaluate(scalar(text), values)
        return
    found = np.broadcast_to(evaluate(scalar(text), values), (1, 3))[0]
    assert [None if np.isnan(v) else v for v in found] == expected


SCHEMA = pa.schema([("k", pa.string()), ("total", pa.decimal128(20, 2))])
MOMENT = Moment(SCHEMA, 0.1, 0.95, 1.0, {}, {})


def test_an_answer_has_the_promised_types_and_intervals() -> None:
    answer = answer_of(STATES["__state_0"], MOMENT)
    assert answer.table.schema == SCHEMA
    assert not answer.final
    assert [status.value for status in answer.status("total")] == ["estimate"] * 3
    low, high = answer.bounds["total"].low.to_pylist(), answer.bounds["total"].high.to_pylist()
    assert all(a < v < b for a, v, b in zip(low, [10, 30, 20], high, strict=True))
    assert [status.value for status in answer.status("k")] == ["exact"] * 3


def test_too_few_replicates_are_unknown() -> None:
    few = Varying(np.ones((5, 1)), np.array([[1.0, 1.0, 1.0, 0.0]]))
    answer = answer_of(certain_rows({"k": pa.chunked_array([["a"]]), "total": few}, 1), MOMENT)
    assert [status.value for status in answer.status("total")] == ["unknown"]
    assert answer.bounds["total"].low.to_pylist() == [None]
    assert answer.relative_error is None


def test_an_extreme_has_one_side() -> None:
    values = pa.chunked_array([pa.array([3], pa.decimal128(20, 2))])
    rows = certain_rows({"k": pa.chunked_array([["a"]]), "total": Extreme(values, least=True)}, 1)
    answer = answer_of(rows, MOMENT)
    assert answer.bounds["total"].low.to_pylist() == [None]
    assert answer.bounds["total"].high.to_pylist() == [3]


def test_a_target_over_many_cells_is_stricter_than_each_interval() -> None:
    rows = STATES["__state_0"]
    answer = answer_of(rows, MOMENT)
    worst = widest(rows, 0.1, 0.95)
    assert worst is not None and answer.relative_error is not None
    assert worst > answer.relative_error
    assert widest(rows.also_chosen(True), 0.1, 0.95) is None


def test_rows_without_estimates_meet_no_target() -> None:
    rows = STATES["__state_0"]
    nothing_yet = rows.take(np.zeros(0, np.int64))
    exact = Rows({"k": rows.columns["k"]}, rows.chosen)
    assert widest(nothing_yet, 0.1, 0.95) is None
    assert widest(exact, 0.1, 0.95) is None
