"""Ranges that values of open aggregates stay in: who is decided by them, and when they no longer hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from sooner.algebra import Column, Scan
from sooner.algebra.scalar import column
from sooner.progressive.estimates import Extreme, Varying
from sooner.progressive.gates import CannotGate, Check, Gate, gate_of
from sooner.progressive.ranges import Ranges, Values, narrowed, no_ranges
from sooner.statistics.arrays import Floats

AVERAGE = Scan("__state_0", ("average",), (Column("average", "double"),))
SLOW = Gate(AVERAGE, (), (Check("buffer_time", exp.GT, column("average")),))
NOTHING = pa.table({})


def varying(theta: list[list[float]], replicates: int = 32) -> Varying:
    """Estimates of some keys, each spread over all replicates."""
    middle = np.array(theta)
    return Varying(middle, np.ones((middle.shape[1], replicates)))


def spread(values: list[float], error: float, replicates: int = 32) -> Varying:
    """Estimates with a standard error of their own, at 0% read."""
    steps = np.where(np.arange(replicates) % 2 == 0, 1.0, -1.0)[:, None]
    # se² = (R − 1)/R · Σ step², with R steps of the same size.
    size = error / np.sqrt((replicates - 1) / replicates * replicates)
    middle = np.array(values)
    return Varying(np.vstack([middle, middle + size * steps]), np.ones((len(values), replicates)))


def test_the_sessions_of_the_paper() -> None:
    """iOLAP, Figure 3: with [21.1, 53.9] given only t1 can be decided either way."""
    batch = pa.table({"session": ["t1", "t2", "t3"], "buffer_time": [36.0, 58.0, 17.0]})
    assert np.mean(batch["buffer_time"].to_numpy()) == 37
    given = Ranges(NOTHING, np.array([[21.1]]), np.array([[53.9]]))
    passes, fails = given.decisions(SLOW, batch)
    assert passes.tolist() == [False, True, False]
    assert fails.tolist() == [False, False, True]


@pytest.mark.parametrize("fifth", [0.0, 10.0, 22.5, 45.0])
def test_the_second_batch_of_the_paper_keeps_the_decisions(fifth: float) -> None:
    """t4 is 56; any t5 and t6 of 45 together bring the average to 35.3: in the range, t1 now passes."""
    times = [36.0, 58.0, 17.0, 56.0, fifth, 45.0 - fifth]
    average = sum(times) / len(times)
    assert round(average, 1) == 35.3
    given = Ranges(NOTHING, np.array([[21.1]]), np.array([[53.9]]))
    assert given.hold(Values(NOTHING, 1, (varying([[average]]),)))
    assert not times[0] > 37 and times[0] > average


def test_a_value_outside_its_range_is_noticed() -> None:
    given = Ranges(NOTHING, np.array([[21.1]]), np.array([[53.9]]))
    assert not given.hold(Values(NOTHING, 1, (varying([[54.0]]),)))
    assert not given.hold(Values(NOTHING, 1, (varying([[40.0], [40.0], [21.0]]),)))


def test_a_value_that_became_nan_is_outside_every_range() -> None:
    """Spark's NaN is larger than any number: what was decided by numbers no longer holds."""
    given = Ranges(NOTHING, np.array([[21.1]]), np.array([[53.9]]))
    nan = Values(NOTHING, 1, (varying([[np.nan]]),))
    assert not given.hold(nan)
    assert no_ranges(SLOW, {}).hold(nan)


def test_ranges_grow_with_slack_and_only_get_narrower() -> None:
    start = no_ranges(SLOW, {})
    assert start.hold(Values(NOTHING, 1, (varying([[1e9]]),)))
    wide = narrowed(start, Values(NOTHING, 1, (spread([40.0], 2.0),)), 0.0, slack=2.0)
    assert np.allclose([wide.low[0, 0], wide.high[0, 0]], [31.0, 49.0])
    tight = narrowed(start, Values(NOTHING, 1, (spread([40.0], 2.0),)), 0.0, slack=0.0)
    assert np.allclose([tight.low[0, 0], tight.high[0, 0]], [35.0, 45.0])
    later = narrowed(wide, Values(NOTHING, 1, (spread([45.0], 1.0),)), 0.0, slack=2.0)
    assert np.allclose([later.low[0, 0], later.high[0, 0]], [40.5, 49.0])


def averages(sums: Floats, counts: Floats) -> Varying:
    """The average of each key by its sums and counts in each replicate, and the leave-one-out ones."""
    with np.errstate(invalid="ignore"):
        theta = np.vstack(
            [
                sums.sum(axis=1) / counts.sum(axis=1),
                ((sums.sum(axis=1)[:, None] - sums) / (counts.sum(axis=1)[:, None] - counts)).T,
            ]
        )
    return Varying(theta, counts)


def goes_back(seed: int, keys: int, rows: int, blocks: int = 56, steps: int = 14) -> bool:
    """Whether averages of so many rows a key, read to the end in random order, ever leave their ranges."""
    generator = np.random.default_rng(seed)
    places = np.repeat(np.arange(keys), rows) * blocks
    places += generator.integers(0, blocks, rows * keys)
    quantities = generator.integers(1, 51, rows * keys)
    counts, sums = (
        np.bincount(places, weights, keys * blocks).reshape(keys, blocks).astype(float)
        for weights in (None, quantities)
    )
    top = Scan("__state_0", ("g", "a"), (Column("g", "int"), Column("a", "double")))
    by_key = Gate(top, (("__g", "g"),), (Check("v", exp.LT, column("a")),))
    table = pa.table({"g": pa.array(range(keys), pa.int32())}) if keys > 1 else NOTHING
    ranges = no_ranges(by_key, {"g": pa.int32()}) if keys > 1 else no_ranges(SLOW, {})
    for read in range(blocks // steps, blocks + 1, blocks // steps):
        is_read = np.arange(blocks) < read
        values = Values(table, keys, (averages(sums * is_read, counts * is_read),))
        if not ranges.hold(values):
            return True
        ranges = narrowed(ranges, values, read / blocks, slack=2.0)
    return False


@pytest.mark.parametrize(
    ("keys", "rows", "most"),
    [
        (200, 30, 1),  # with 4.5 errors for each of them thirty-eight would go back
        (1, 56_000, 0),  # known from the second answer on, by six to eight row groups
    ],
)
def test_of_forty_runs_hardly_one_goes_back(keys: int, rows: int, most: int) -> None:
    assert sum(goes_back(seed, keys, rows) for seed in range(40)) <= most


@pytest.mark.parametrize(("keyed", "fewest"), [(False, 6), (True, 12)])
def test_few_replicates_give_a_wide_range_or_none(keyed: bool, fewest: int) -> None:
    top = Scan("__state_0", ("g", "a"), (Column("g", "string"), Column("a", "double")))
    by_key = Gate(top, (("__g", "g"),), (Check("v", exp.LT, column("a")),))
    start = no_ranges(by_key, {"g": pa.string()}) if keyed else no_ranges(SLOW, {})
    keys = pa.table({"g": ["x"]}) if keyed else NOTHING

    def range_of(replicates: int) -> Ranges:
        seen = np.where(np.arange(32) < replicates, 1.0, 0.0)[None, :]
        values = Values(keys, 1, (Varying(spread([40.0], 2.0).theta, seen),))
        return narrowed(start, values, 0.0, slack=2.0)

    none = range_of(fewest - 1)
    assert np.isinf(none.low).all() and np.isinf(none.high).all()
    few, all_of_them = range_of(6), range_of(32)
    assert all_of_them.high[0, 0] == pytest.approx(40 + 4.5 * 2)
    assert keyed or few.high[0, 0] > 40 + 6 * 2


def test_what_is_certain_bounds_a_minimum_and_a_count() -> None:
    least = Extreme(pa.chunked_array([pa.array([5.0])]), least=True)
    found = narrowed(no_ranges(SLOW, {}), Values(NOTHING, 1, (least,)), 0.0, slack=2.0)
    assert found.low[0, 0] == -np.inf and found.high[0, 0] == 5.0
    counted = spread([40.0], 2.0)
    counted = Varying(counted.theta, counted.contributions, certain_low=np.array([39.0]))
    found = narrowed(no_ranges(SLOW, {}), Values(NOTHING, 1, (counted,)), 0.0, slack=2.0)
    assert found.low[0, 0] == 39.0


def test_keys_have_their_own_ranges_and_a_row_without_one_waits() -> None:
    top = Scan("__state_0", ("g", "a"), (Column("g", "string"), Column("a", "double")))
    gate = Gate(top, (("__g", "g"),), (Check("v", exp.LT, column("a")),))
    start = no_ranges(gate, {"g": pa.string()})
    first = Values(pa.table({"g": ["x"]}), 1, (spread([10.0], 0.1),))
    ranges = narrowed(start, first, 0.0, slack=2.0)
    both = Values(pa.table({"g": ["y", "x"]}), 2, (spread([20.0, 10.05], 0.1),))
    assert ranges.hold(both)
    ranges = narrowed(ranges, both, 0.0, slack=2.0)
    rows = pa.table(
        {"__g": ["x", "x", "y", "y", "z", None], "v": [1.0, 15.0, 15.0, 25.0, 1.0, None]}
    )
    passes, fails = ranges.decisions(gate, rows)
    assert passes.tolist() == [True, False, True, False, False, False]
    assert fails.tolist() == [False, True, False, True, False, True]  # null compares with nothing
    assert ranges.table(gate).column_names == ["__key_0", "__low_0", "__high_0"]
    moved = Values(pa.table({"g": ["y", "x"]}), 2, (spread([20.0, 12.0], 0.1),))
    assert not ranges.hold(moved)


def test_too_many_keys_have_no_range_but_what_is_certain() -> None:
    count = 1001
    top = Scan("__state_0", ("g", "n"), (Column("g", "int"), Column("n", "bigint")))
    gate = Gate(top, (("__g", "g"),), (Check("v", exp.LT, column("n")),))
    some = spread([10.0] * count, 0.1)
    counts = Varying(some.theta, some.contributions, certain_low=np.full(count, 3.0))
    values = Values(pa.table({"g": pa.array(range(count), pa.int32())}), count, (counts,))
    found = narrowed(no_ranges(gate, {"g": pa.int32()}), values, 0.0, slack=2.0)
    assert (found.low == 3.0).all() and np.isinf(found.high).all()


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("v + a > 3", "mixes"),
        ("v > a OR v < 2", "not a comparison"),
        ("v IS NULL AND v = 3", "nothing is compared"),
    ],
)
def test_conditions_that_are_no_gate(condition: str, reason: str) -> None:
    import sqlglot

    delta = Scan("t", ("v",), (Column("v", "int"),))
    top = Scan("__state_0", ("a",), (Column("a", "double"),))
    scalar = sqlglot.parse_one(condition, dialect="spark")
    with pytest.raises(CannotGate, match=reason):
        gate_of(scalar, delta, top, frozenset(), {"a"}, 0)


def test_a_partner_that_is_not_unique_is_no_gate() -> None:
    import sqlglot

    delta = Scan("t", ("v",), (Column("v", "int"),))
    top = Scan("__state_0", ("g", "a"), (Column("g", "int"), Column("a", "double")))
    with pytest.raises(CannotGate, match="several rows"):
        gate_of(sqlglot.parse_one("v > a"), delta, top, frozenset({"g"}), {"a"}, 0)
