"""Estimates from a bounded sample hold what they promise: replayed for many seeds, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
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


def trimmed_mean(values: pd.Series) -> float:
    ordered = np.sort(values.to_numpy())
    cut = len(ordered) // 10
    return float(ordered[cut : len(ordered) - cut].mean())


def spread(values: pd.Series) -> float:
    plain = values.to_numpy()
    return float(np.sqrt(np.square(plain - plain.mean()).mean()))


FUNCTIONS: dict[str, Callable[..., float]] = {
    "trimmed_mean": trimmed_mean,
    "spread": spread,
    "broken": lambda values: 1 / 0,
}


@cache
def _sample_state(*texts: str) -> Sampled:
    items = []
    for name, text in zip("abcd", texts, strict=False):
        scalar = sqlglot.parse_one(text, read="spark")
        if isinstance(scalar, sqlglot.exp.Anonymous):
            scalar = sqlglot.exp.AnonymousAggFunc(this=scalar.name, expressions=scalar.expressions)
        items.append(Item(name, scalar.copy()))
    found = [sampler(item) for item in items]
    plain = Scan("s", ("g", "v"), (Column("g", "int"), Column("v", "double")))
    carried = Scan("s", ("g", "v", REPLICATE), (*plain.columns, Column(REPLICATE, "tinyint")))
    aggregate = Aggregate(plain, ("g",), tuple(items))
    samplers = tuple(one for one in found if one is not None)
    assert len(samplers) == len(texts)
    state = State("s0", plain, 0, aggregate, carried, samplers=samplers)
    schema = pa.schema([("g", pa.int32()), *((item.name, pa.float64()) for item in items)])

    def no_spark(plan: Relation, tables: Mapping[str, pa.Table]) -> pa.Table:
        raise AssertionError("nothing here is exact")

    return Sampled(state, schema, R, None, FUNCTIONS, no_spark)


def sample_state(*texts: str) -> Sampled:
    """A sample for aggregates ``a``, ``b``, … by the group ``g``, with nothing in it."""
    return copy(_sample_state(*texts))


@cache
def _batch(kind: str) -> tuple[pa.Table, np.ndarray]:
    """All rows as a batch of a sample for two aggregates of ``v``, and their blocks."""
    rows = population(kind)
    batch = rows.append_column("a__value", rows.column("v"))
    batch = batch.append_column("b__value", rows.column("v"))
    return batch.drop_columns(["block"]), rows.column("block").to_numpy()


def read(kind: str, seed: int, steps: tuple[int, ...]) -> Iterator[tuple[pa.Table, float]]:
    """Batches of so many blocks in the order of a seed, and the share of rows read after each."""
    batch, block = _batch(kind)
    order = np.random.default_rng(seed).permutation(BLOCKS)
    first = done = 0
    for step in steps:
        inside = np.zeros(BLOCKS, np.bool_)
        inside[order[first : first + step]] = True
        chosen = np.flatnonzero(inside[block])
        first, done = first + step, done + len(chosen)
        yield batch.take(pa.array(chosen)), done / ROWS


def estimated(state: Sampled, name: str = "a") -> tuple[list[int], Varying]:
    rows = state.estimated(Scaling(np.ones(R), float(ROWS)))
    column = rows.columns[name]
    assert isinstance(column, Varying)
    return rows.columns["g"].to_pylist(), column  # type: ignore[union-attr]


@cache
def truth(kind: str, function: Callable[[pd.Series], float]) -> dict[int, float]:
    rows = population(kind).to_pandas().dropna()
    return {int(g): function(part["v"]) for g, part in rows.groupby("g")}


@dataclass(frozen=True)
class Cells:
    """Of all groups of all seeds: the estimate and the ends of its interval."""

    group: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def drawn(texts: tuple[str, ...], kind: str, seeds: int, steps: tuple[int, ...]) -> list[Cells]:
    """What samples of so many seeds say of each of these aggregates."""
    found: list[list[tuple[np.ndarray, ...]]] = [[] for _ in texts]
    for seed in range(seeds):
        state, progress = sample_state(*texts), 0.0
        for batch, share in read(kind, seed, steps):
            state.add(batch)
            progress = share
        columns = state.estimated(Scaling(np.ones(R), float(ROWS))).columns
        groups = columns["g"].to_numpy()  # type: ignore[union-attr]
        for cells, name in zip(found, "abcd", strict=False):
            column = columns[name]
            assert isinstance(column, Varying)
            interval: Interval = column.interval(progress, 0.95)
            cells.append((groups, column.theta[0], interval.low, interval.high))
    return [Cells(*map(np.concatenate, zip(*cells, strict=True))) for cells in found]


drawn_once = cache(drawn)


def coverage(cells: Cells, exact: dict[int, float]) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, the share unknown, and the mean error in errors.

    Of the five groups of many keys; that of three keys must be unknown.
    """
    few = cells.group == 9
    assert few.any() and np.isnan(cells.low[few]).all() and np.isnan(cells.high[few]).all()
    known = ~few & ~(np.isnan(cells.low) | np.isnan(cells.high))
    value, low, high = cells.value[known], cells.low[known], cells.high[known]
    right = np.array([exact[group] for group in cells.group[known].tolist()])
    assert (low <= value).all() and (value <= high).all()
    held = (low <= right) & (right <= high)
    off = value - right
    return held.mean(), 1 - known.sum() / (~few).sum(), float(off.mean() / off.std())


EARLY, LATE = (2, 4), (8, 24)
QUANTILES = {
    "median(v)": lambda values: float(np.median(values)),
    "percentile(v, 0.9)": lambda values: float(np.quantile(values, 0.9)),
}


@pytest.mark.parametrize("steps", [EARLY, LATE])
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.parametrize("text", QUANTILES)
def test_quantiles(text: str, kind: str, steps: tuple[int, ...]) -> None:
    texts = tuple(QUANTILES)
    cells = drawn_once(texts, kind, 100, steps)[texts.index(text)]
    share, unknown, bias = coverage(cells, truth(kind, QUANTILES[text]))
    # 300 seeds gave 95 to 97%; 500 cells of 100 seeds are worth some 250.
    assert 0.92 <= share <= 0.99, share
    assert unknown <= 0.01
    assert abs(bias) < 0.3


def test_quantiles_of_a_sample_that_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of half of the rows that were read: still fair, and never too narrow."""
    monkeypatch.setattr("sooner.progressive.sampled.MOST_ROWS", 5000)
    (cells,) = drawn(("median(v)",), "clustered", 100, LATE)
    share, unknown, bias = coverage(cells, truth("clustered", QUANTILES["median(v)"]))
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
    (cells,) = drawn((text,), kind, 24, EARLY)
    share, unknown, bias = coverage(cells, truth(kind, FUNCTIONS[name]))
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
