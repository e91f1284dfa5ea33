"""Partial results merge into what Spark would have computed at once."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Item, Scan
from sooner.progressive.estimates import Extreme, Varying
from sooner.progressive.partials import Scaling, accumulator
from sooner.progressive.parts import State
from sooner.progressive.states import Kept, SumTooLarge
from sooner.storage.layout import REPLICATE


def item(text: str) -> Item:
    return Item("x", sqlglot.parse_one(text, dialect="spark"))


@pytest.mark.parametrize(
    ("text", "partials"),
    [
        ("count(*)", ["COUNT(*)"]),
        ("sum(a + 1)", ["SUM(a + 1)"]),
        ("avg(a)", ["SUM(a)", "COUNT(a)"]),
        ("min(a)", ["MIN(a)"]),
        (
            "avg(a) FILTER (WHERE b > 1)",
            ["SUM(a) FILTER(WHERE b > 1)", "COUNT(a) FILTER(WHERE b > 1)"],
        ),
    ],
)
def test_partials_of_an_aggregate(text: str, partials: list[str]) -> None:
    found = accumulator(item(text))
    assert found is not None
    assert [part.scalar.sql("spark") for part in found.partials] == partials


@pytest.mark.parametrize("text", ["avg(a)", "stddev(a)"])
def test_what_is_counted_is_what_is_averaged(text: str) -> None:
    """Where Spark is not strict it averages texts, and those that are no number do not count."""
    found = accumulator(item(text), pa.float64())
    assert found is not None
    (counted,) = (p.scalar for p in found.partials if isinstance(p.scalar, sqlglot.exp.Count))
    assert counted.sql("spark") == "COUNT(CAST(a AS DOUBLE))"


@pytest.mark.parametrize(
    "text", ["count(DISTINCT a)", "sum(DISTINCT a)", "collect_list(a)", "max_by(a, b)"]
)
def test_what_cannot_be_merged(text: str) -> None:
    assert accumulator(item(text)) is None


@pytest.mark.parametrize(
    ("total", "count", "expected"),
    [
        ("10.00", 4, "2.500000"),
        ("2.00", 3, "0.666667"),
        ("-2.00", 3, "-0.666667"),
        ("0.01", 3, "0.003333"),
        ("-0.000001", 2, "-0.000001"),  # half up, away from zero
    ],
)
def test_an_average_of_decimals_rounds_half_up(total: str, count: int, expected: str) -> None:
    average = accumulator(item("avg(a)"))
    assert average is not None
    parts = [pa.chunked_array([[Decimal(total)]]), pa.chunked_array([[count]])]
    (found,) = average.exact(parts, pa.decimal128(19, 6)).to_pylist()
    assert found == Decimal(expected)


COLUMNS = (Column("k", "string"), Column("v", "bigint"))
SCAN = Scan("__stream_0", ("k", "v"), COLUMNS)
CARRIED = Scan("__stream_0", ("k", "v", REPLICATE), (*COLUMNS, Column(REPLICATE, "tinyint")))


def kept(keys: tuple[str, ...], *aggregates: str) -> Kept:
    items = tuple(
        Item(f"a{n}", sqlglot.parse_one(text, dialect="spark")) for n, text in enumerate(aggregates)
    )
    node = Aggregate(SCAN, keys, items)
    schema = pa.schema(
        [(key, pa.string()) for key in keys] + [(one.name, pa.int64()) for one in items]
    )
    return Kept(State("__state_0", SCAN, 0, node, CARRIED), schema, replicates=4)


def batch(**columns: list[object]) -> pa.Table:
    table = pa.table(columns)
    return table.set_column(
        table.column_names.index(REPLICATE), REPLICATE, table.column(REPLICATE).cast(pa.int8())
    )


def test_batches_merge_by_group_and_replicate() -> None:
    state = kept(("k",), "sum(v)", "max(v)")
    state.add(batch(k=["a", "b"], **{REPLICATE: [0, 0]}, a0__0=[5, None], a1__0=[5, 1]))
    state.add(batch(k=["a", "a", None], **{REPLICATE: [0, 1, 3]}, a0__0=[1, 2, 7], a1__0=[9, 2, 7]))
    exact = {row["k"]: (row["a0"], row["a1"]) for row in state.exact().to_pylist()}
    assert exact == {"a": (8, 9), "b": (None, 1), None: (7, 7)}


def test_a_sum_of_decimals_that_is_too_large_is_told() -> None:
    """Arrow goes on adding beyond 38 digits, and beyond 128 bits it starts again."""
    most, type_ = Decimal(9 * 10**37), pa.decimal128(38)
    for count, fits in ((1, True), (2, False), (4, False)):
        state = kept((), "sum(v)")
        state.add(batch(**{REPLICATE: [0] * count}, a0__0=pa.array([most] * count, type_)))
        if fits:
            assert state.table.column("a0__0").to_pylist() == [most]
        else:
            with pytest.raises(SumTooLarge):
                state.merged(state.table, ())


def test_estimates_scale_totals_and_leave_extremes() -> None:
    state = kept(("k",), "sum(v)", "max(v)")
    state.add(
        batch(k=["a", "a", "b"], **{REPLICATE: [0, 1, 2]}, a0__0=[5, 3, None], a1__0=[5, 3, 1])
    )
    rows = state.estimated(Scaling(np.full(4, 10.0), 80.0))
    total, largest = rows.columns["a0"], rows.columns["a1"]
    assert isinstance(total, Varying) and isinstance(largest, Extreme)
    assert total.theta[0, 0] == 16.0  # 8, of half the rows
    assert total.theta[1, 0] == pytest.approx(80 / 30 * 3)  # without replicate 0
    assert np.isnan(total.theta[0, 1])  # only nulls so far: nothing observed, not 0
    assert largest.values.to_pylist() == [5, 1]


def test_a_total_of_nothing_is_one_row() -> None:
    state = kept((), "sum(v)", "count(v)")
    empty = batch(
        **{REPLICATE: pa.array([], pa.int8())},
        a0__0=pa.array([], pa.int64()),
        a1__0=pa.array([], pa.int64()),
    )
    state.add(empty)
    assert state.exact().to_pylist() == [{"a0": None, "a1": 0}]


def test_beyond_many_groups_replicates_are_given_up() -> None:
    state = kept(("k",), "sum(v)")
    names = [str(number) for number in range(60_000)]
    many = batch(
        k=names, **{REPLICATE: [number % 4 for number in range(60_000)]}, a0__0=[1] * 60_000
    )
    assert REPLICATE in state.batch.names
    state.add(many)
    assert REPLICATE not in state.batch.names
    state.add(many)  # asked for before
    assert set(state.exact().column("a0").to_pylist()) == {2}
    found = state.estimated(Scaling(np.full(4, 10.0), 40.0)).columns["a0"]
    assert isinstance(found, Varying)
    assert np.isnan(found.interval(0.5, 0.95).low).all()


def estimated(state: Kept, progress: float) -> Varying:
    found = state.estimated(Scaling(np.full(4, 10.0), 40.0 / progress)).columns["a0"]
    assert isinstance(found, Varying)
    return found


def test_groups_seen_little_grow_less_than_what_is_read() -> None:
    """A hundred groups in one replicate, fifty in two: one key more for each that has one."""
    state = kept(("k",), "sum(v)", "avg(v)")
    names = [str(number) for number in range(150)] + [str(number) for number in range(50)]
    replicates = [number % 4 for number in range(150)] + [3 - number % 4 for number in range(50)]
    values = {name: [3] * 200 for name in ("a0__0", "a1__0", "a1__1", "__rows")}
    state.add(batch(k=names, **{REPLICATE: replicates}, **values))
    found = estimated(state, 0.1)
    seen = (found.contributions > 0).sum(axis=1)
    assert found.theta[0] == pytest.approx(30.0 * seen), "a total of groups needs all"
    assert found.grown.theta[0][seen == 1] == pytest.approx(30.0)  # 2 · 50 / 100 keys to come
    assert found.grown.theta[0][seen == 2] == pytest.approx(6.0)  # no group has three
    averages = state.estimated(Scaling(np.full(4, 10.0), 400.0)).columns["a1"]
    assert isinstance(averages, Varying)
    assert averages.grown is averages


def test_without_replicates_the_share_of_new_groups_tells() -> None:
    state = kept(("k",), "sum(v)")
    for first in (0, 30_000):
        names = [str(number) for number in range(first, first + 60_000)]
        many = batch(k=names, **{REPLICATE: [0] * 60_000}, a0__0=[1] * 60_000)
        state.add(many)
    found = estimated(state, 0.1)
    assert set(found.theta[0]) == {10.0, 20.0}
    assert set(found.grown.theta[0].round(6)) == {5.5, 11.0}  # half of the second batch was new


def test_groups_of_an_empty_table_do_not_grow() -> None:
    state = kept(("k",), "sum(v)")
    nothing = {"k": pa.array([], pa.string()), "a0__0": pa.array([], pa.int64())}
    state.add(batch(**nothing, **{REPLICATE: pa.array([], pa.int8())}))
    found = state.estimated(Scaling(np.zeros(4), 0.0)).columns["a0"]
    assert isinstance(found, Varying)
    assert found.grown.theta.shape == (5, 0)
