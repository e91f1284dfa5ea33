"""Estimates from a bounded sample hold what they promise: replayed for many seeds, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Item, Relation, Scan
from sooner.progressive.estimates import Varying
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State
from sooner.progressive.sampled import Sampled
from sooner.progressive.samplers import sampler
from sooner.statistics import Interval
from sooner.storage.layout import REPLICATE

R, BLOCKS, KEYS, ROWS = 32, 64, 2000, 20_000


pytestmark = pytest.mark.simulation


@cache
def population(kind: str) -> pa.Table:
    """Rows of keys of unlike size, alike within a key, in the blocks and replicates of their keys.

    Group 9 has three keys.
    """
    rng = np.random.default_rng(42)
    weights = rng.gamma(2.0, size=KEYS)
    key = rng.choice(KEYS, ROWS, p=weights / weights.sum())
    shared = rng.normal(size=KEYS)[key]
    own = rng.normal(size=ROWS)
    value = 50 + 20 * shared + 10 * own if kind == "clustered" else np.exp(shared + 0.5 * own)
    group = np.where(key < 3, 9, rng.integers(0, 5, ROWS))
    block, replicate = rng.integers(0, BLOCKS, KEYS)[key], rng.integers(0, R, KEYS)[key]
    return pa.table(
        {
            "g": pa.array(group, pa.int32()),
            "v": pa.array(value, pa.float64(), mask=rng.random(ROWS) < 0.1),
            "block": block,
            REPLICATE: pa.array(replicate, pa.int8()),
        }
    )


def trimmed_mean(values: Mapping[int, float]) -> float:
    ordered = np.sort(np.asarray(values))
    cut = len(ordered) // 10
    return float(ordered[cut : len(ordered) - cut].mean())


FUNCTIONS: dict[str, Callable[..., float]] = {
    "trimmed_mean": trimmed_mean,
    "spread": lambda values: float(np.std(np.asarray(values))),
    "broken": lambda values: 1 / 0,
}


def sample_state(text: str) -> Sampled:
    """A sample for one aggregate ``a`` by the group ``g``."""
    scalar = sqlglot.parse_one(text, read="spark")
    if isinstance(scalar, sqlglot.exp.Anonymous):
        scalar = sqlglot.exp.AnonymousAggFunc(this=scalar.name, expressions=scalar.expressions)
    item = Item("a", scalar.copy())
    found = sampler(item)
    assert found is not None
    plain = Scan("s", ("g", "v"), (Column("g", "int"), Column("v", "double")))
    carried = Scan("s", ("g", "v", REPLICATE), (*plain.columns, Column(REPLICATE, "tinyint")))
    aggregate = Aggregate(plain, ("g",), (item,))
    state = State("s0", plain, 0, aggregate, carried, samplers=(found,))
    schema = pa.schema([("g", pa.int32()), ("a", pa.float64())])

    def no_spark(plan: Relation, tables: Mapping[str, pa.Table]) -> pa.Table:
        raise AssertionError("nothing here is exact")

    return Sampled(state, schema, R, None, FUNCTIONS, no_spark)


def read(kind: str, seed: int, steps: tuple[int, ...]) -> Iterator[tuple[pa.Table, float]]:
    """Batches of so many blocks in the order of a seed, and the share of rows read after each."""
    rows = population(kind)
    order = np.random.default_rng(seed).permutation(BLOCKS)
    block = rows.column("block").to_numpy()
    batch = rows.append_column("a__value", rows.column("v")).drop_columns(["block"])
    first = done = 0
    for step in steps:
        chosen = np.flatnonzero(np.isin(block, order[first : first + step]))
        first, done = first + step, done + len(chosen)
        yield batch.take(pa.array(chosen)), done / ROWS


def estimated(state: Sampled) -> tuple[list[int], Varying]:
    rows = state.estimated(Scaling(np.ones(R), float(ROWS)))
    column = rows.columns["a"]
    assert isinstance(column, Varying)
    return rows.columns["g"].to_pylist(), column  # type: ignore[union-attr]


def truth(kind: str, function: Callable[[np.ndarray], float]) -> dict[int, float]:
    rows = population(kind).to_pandas().dropna()
    return {int(g): function(part["v"].to_numpy()) for g, part in rows.groupby("g")}


def coverage(
    text: str, kind: str, exact: dict[int, float], seeds: int, steps: tuple[int, ...]
) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, the share unknown, and the mean error in errors.

    Of the five groups of many keys; that of three keys must be unknown.
    """
    held, known, cells = 0, 0, 0
    errors: list[float] = []
    for seed in range(seeds):
        state, progress = sample_state(text), 0.0
        for batch, share in read(kind, seed, steps):
            state.add(batch)
            progress = share
        groups, column = estimated(state)
        found: Interval = column.interval(progress, 0.95)
        for group, value, low, high in zip(
            groups, column.theta[0], found.low, found.high, strict=True
        ):
            if group == 9:
                assert np.isnan(low) and np.isnan(high)
                continue
            cells += 1
            if np.isnan(low) or np.isnan(high):
                continue
            assert low <= value <= high
            known += 1
            held += low <= exact[group] <= high
            errors.append(value - exact[group])
    off = np.array(errors)
    return held / known, 1 - known / cells, float(off.mean() / off.std())


EARLY, LATE = (2, 4), (8, 24)
QUANTILES = {
    "median(v)": lambda values: float(np.median(values)),
    "percentile(v, 0.9)": lambda values: float(np.quantile(values, 0.9)),
}


@pytest.mark.parametrize("steps", [EARLY, LATE])
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.parametrize("text", QUANTILES)
def test_quantiles(text: str, kind: str, steps: tuple[int, ...]) -> None:
    share, unknown, bias = coverage(text, kind, truth(kind, QUANTILES[text]), 100, steps)
    # 300 seeds gave 95 to 97%; 500 cells of 100 seeds are worth some 250.
    assert 0.92 <= share <= 0.99, share
    assert unknown <= 0.01
    assert abs(bias) < 0.3


def test_quantiles_of_a_sample_that_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of half of the rows that were read: still fair, and never too narrow."""
    monkeypatch.setattr("sooner.progressive.sampled.MOST_ROWS", 5000)
    exact = truth("clustered", QUANTILES["median(v)"])
    share, unknown, bias = coverage("median(v)", "clustered", exact, 100, LATE)
    assert share >= 0.93 and unknown == 0 and abs(bias) < 0.3, (share, unknown, bias)
    state = sample_state("median(v)")
    for batch, _ in read("clustered", 1, LATE):
        state.add(batch)
    assert state.is_full and not state.is_exact and state.bytes < 5000 * 64


# As measured with 60 seeds, 300 cells. The deviation of lognormal values hangs on a few large ones:
# no resample knows of those that were not drawn.
@pytest.mark.parametrize(
    ("text", "kind", "measured"),
    [
        ("trimmed_mean(v)", "clustered", 0.96),
        ("trimmed_mean(v)", "skewed", 0.96),
        ("spread(v)", "clustered", 0.94),
        ("spread(v)", "skewed", 0.84),
    ],
)
def test_functions(text: str, kind: str, measured: float) -> None:
    name = text.split("(", maxsplit=1)[0]
    exact = truth(kind, lambda values: FUNCTIONS[name](pd.Series(values)))
    share, unknown, bias = coverage(text, kind, exact, 24, EARLY)
    assert abs(share - measured) <= 0.08, share
    assert unknown == 0
    assert abs(bias) < 0.7


def test_a_function_that_fails_on_a_sample_is_unknown() -> None:
    state = sample_state("broken(v)")
    for batch, _ in read("clustered", 1, EARLY):
        state.add(batch)
    _, column = estimated(state)
    assert np.isnan(column.theta).all()
    assert not column.interval(0.1, 0.95).known.any()


def test_too_many_groups_for_a_function_have_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sooner.progressive.resampled._MOST_CALLS", 100)
    state = sample_state("trimmed_mean(v)")
    for batch, _ in read("clustered", 1, EARLY):
        state.add(batch)
    _, column = estimated(state)
    assert np.isfinite(column.theta).all()
    assert not column.interval(0.1, 0.95).known.any()


def test_cells_can_be_taken() -> None:
    for text in ("median(v)", "trimmed_mean(v)"):
        state = sample_state(text)
        for batch, _ in read("skewed", 1, EARLY):
            state.add(batch)
        _, column = estimated(state)
        places = np.array([2, 0, 2])
        taken, whole = column.take(places), column.interval(0.1, 0.9)
        np.testing.assert_array_equal(taken.theta[0], column.theta[0][places])
        np.testing.assert_array_equal(taken.interval(0.1, 0.9).low, whole.low[places])


def test_nothing_read_and_nothing_there() -> None:
    state = sample_state("median(v)")
    nothing = next(read("skewed", 1, EARLY))[0].slice(0, 0)
    state.add(nothing)
    groups, _ = estimated(state)
    assert groups == []
