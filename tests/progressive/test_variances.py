"""Variances and deviations in parts: merged without losing digits, estimated with honest intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from test_differential import assert_ends_exactly

from sooner.algebra import Aggregate, Column, Item, Scan
from sooner.answer import Status
from sooner.progressive.estimates import Varying
from sooner.progressive.partials import Scaling, accumulator
from sooner.progressive.parts import State
from sooner.progressive.states import Kept
from sooner.progressive.variances import merge_spreads
from sooner.statistics import Interval
from sooner.storage.layout import REPLICATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

R = 32
FUNCTIONS = ("var_samp", "var_pop", "variance", "stddev", "stddev_samp", "stddev_pop")
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def columns(parts: Parts) -> list[pa.ChunkedArray]:
    n, mean, variance = parts
    empty = n == 0
    arrays = [pa.array(n.astype(np.int64)), *(pa.array(p, mask=empty) for p in (mean, variance))]
    return [pa.chunked_array([array]) for array in arrays]


def merged(groups: np.ndarray, parts: Parts) -> Parts:
    found = merge_spreads(groups, int(groups.max()) + 1, columns(parts))
    n, mean, variance = (np.asarray(part.to_numpy(zero_copy_only=False), float) for part in found)
    return n, mean, variance


def parts_of(*samples: np.ndarray) -> Parts:
    n = np.array([float(len(one)) for one in samples])
    mean = np.array([one.mean() if len(one) else np.nan for one in samples])
    variance = np.array([one.var() if len(one) else np.nan for one in samples])
    return n, mean, variance


def some(seed: int, count: int, mean: float = 1e6) -> np.ndarray:
    return mean + np.random.default_rng(seed).random(count)


def test_merging_is_as_taking_all_values_together_in_any_order() -> None:
    samples = [some(seed, count) for seed, count in enumerate((5, 1, 40, 0, 7))]
    whole = np.concatenate(samples)
    zeros = np.zeros(5, np.int64)
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1]):
        n, mean, variance = merged(zeros, parts_of(*(samples[place] for place in order)))
        assert n[0] == len(whole)
        assert mean[0] == pytest.approx(whole.mean(), rel=1e-15)
        assert variance[0] == pytest.approx(whole.var(), rel=1e-9)


def test_nothing_is_neutral_and_nothing_alone_stays_nothing() -> None:
    sample = some(1, 9)
    n, mean, variance = merged(np.array([0, 0, 1]), parts_of(sample, sample[:0], sample[:0]))
    assert (n[0], mean[0], variance[0]) == (9, sample.mean(), sample.var())
    assert n[1] == 0 and np.isnan(mean[1]) and np.isnan(variance[1])


def test_a_small_variance_around_a_large_mean_is_kept() -> None:
    samples = [some(seed, 1000) for seed in range(200)]
    _, _, variance = merged(np.zeros(200, np.int64), parts_of(*samples))
    assert variance[0] == pytest.approx(1 / 12, rel=0.01)
    assert variance[0] == pytest.approx(np.concatenate(samples).var(), rel=1e-9)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stays_so_and_in_its_group(odd: float) -> None:
    n, mean, variance = np.array([3.0, 1.0, 2.0]), np.array([1.0, odd, 5.0]), np.array([0.5] * 3)
    variance[1] = np.nan  # as Spark says of one that is not finite
    _, _, found = merged(np.array([0, 0, 1]), (n, mean, variance))
    assert np.isnan(found[0]) and found[1] == 0.5


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("var_samp", None, 2.0),
        ("variance", None, 2.0),
        ("var_pop", 0.0, 1.0),
        ("stddev", None, math.sqrt(2)),
        ("stddev_samp", None, math.sqrt(2)),
        ("stddev_pop", 0.0, 1.0),
    ],
)
def test_exact_of_none_of_one_and_of_two(name: str, one: float | None, two: float) -> None:
    found = accumulator(Item("x", sqlglot.parse_one(f"{name}(a)", dialect="spark")))
    assert found is not None
    none = np.zeros(0)
    parts = columns(parts_of(none, np.array([3.0]), np.array([3.0, 5.0])))
    assert found.exact(parts, pa.float64()).to_pylist() == [None, one, pytest.approx(two)]


# --- Replayed: a seed is a group here, so that one state holds all of them ----------------------------


def spread_state(seeds: int, name: str) -> Kept:
    scanned = (Column("seed", "bigint"), Column("v", "double"))
    scan = Scan("__stream_0", ("seed", "v"), scanned)
    carried = Scan("__stream_0", ("seed", "v", REPLICATE), (*scanned, Column(REPLICATE, "tinyint")))
    node = Aggregate(
        scan, ("seed",), (Item("a", sqlglot.parse_one(f"{name}(v)", dialect="spark")),)
    )
    schema = pa.schema([("seed", pa.int64()), ("a", pa.float64())])
    return Kept(State("__state_0", scan, 0, node, carried), schema, R)


def replayed(
    kind: str, t: float, name: str, seeds: int = 1000
) -> tuple[Interval, np.ndarray, float]:
    """Intervals and estimates of so many seeds, and the truth: rows of a key are alike."""
    rng = np.random.default_rng(1)
    keys = 3000 if t < 0.5 else 1000
    rows = rng.integers(1, 8, keys)
    effect = rng.normal(50, 20, keys) if kind == "clustered" else rng.lognormal(0.0, 1.0, keys)
    noise = rng.normal(0, 10, rows.sum()) if kind == "clustered" else 0.0
    key = np.repeat(np.arange(keys), rows)
    value = effect[key] + noise
    truth = float(value.var(ddof=0 if name.endswith("pop") else 1))
    truth = math.sqrt(truth) if name.startswith("stddev") else truth
    read = rng.random((seeds, keys)) < t
    replicate, late = rng.integers(0, R, (seeds, keys)), rng.random((seeds, keys)) < 0.5
    state = spread_state(seeds, name)
    counted = np.zeros((seeds, R))
    starts = np.cumsum(rows) - rows
    for half in (read & late, read & ~late):  # two batches
        seed, chosen = np.nonzero(half)
        sizes = rows[chosen]
        ahead = np.repeat(np.cumsum(sizes) - sizes, sizes)
        row = np.repeat(starts[chosen], sizes) + np.arange(sizes.sum()) - ahead
        cell = np.repeat(seed * R + replicate[seed, chosen], sizes)
        n = np.bincount(cell, minlength=seeds * R).astype(float)
        counted += n.reshape(seeds, R)
        mean = np.bincount(cell, value[row], minlength=seeds * R) / np.maximum(n, 1)
        off = np.square(value[row] - mean[cell])
        variance = np.bincount(cell, off, minlength=seeds * R) / np.maximum(n, 1)
        here = np.flatnonzero(n)
        names = ["seed", REPLICATE, "a__0", "a__1", "a__2"]
        state.add(
            pa.Table.from_arrays(
                [
                    pa.array(here // R),
                    pa.array((here % R).astype(np.int8)),
                    pa.array(n[here].astype(np.int64)),
                    pa.array(mean[here]),
                    pa.array(variance[here]),
                ],
                names,
            )
        )
    # One scaling for all seeds: what is left of N only matters for the last digits of var_pop.
    found = state.estimated(Scaling(counted.mean(axis=0), float(len(value)))).columns["a"]
    assert isinstance(found, Varying) and found.fewest == 12
    return found.interval(t, 0.95), found.theta[0], truth


# As measured. A variance rests on fourth moments: with long tails, or few keys, it is left unknown.
@pytest.mark.parametrize(
    ("kind", "t", "name", "known", "wrong"),
    [
        ("clustered", 0.02, "var_samp", 0.008, 0.002),
        ("clustered", 0.1, "var_pop", 0.999, 0.064),
        ("clustered", 0.5, "stddev", 1.0, 0.053),
        ("skewed", 0.1, "var_samp", 0.006, 0.006),
        ("skewed", 0.5, "stddev_pop", 0.025, 0.025),
    ],
)
@pytest.mark.simulation
def test_coverage_and_bias(kind: str, t: float, name: str, known: float, wrong: float) -> None:
    """How many cells have an interval, and how many have one that does not hold the truth."""
    found, estimate, truth = replayed(kind, t, name)
    assert abs(found.known.mean() - known) <= 0.01, found.known.mean()
    missed = (found.known & ~found.holds(truth)).mean()
    assert abs(missed - wrong) <= 0.01, missed
    error = estimate.std() / math.sqrt(len(estimate))
    assert abs(estimate.mean() - truth) < 4 * error + 0.02 * truth


# --- Through Spark ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """t: 400 rows scrambled by k; group 8 has one row, 9 only nulls; z has what is not finite."""
    import sooner

    place = tmp_path_factory.mktemp("variances")
    rng = np.random.default_rng(4)
    count = 400
    group = rng.integers(0, 5, count)
    group[0], group[1:4] = 8, 9
    value = 1e6 + rng.random(count)
    value[1:4] = np.nan
    odd = rng.choice(
        [1.0, 2.5, math.inf, -math.inf, math.nan], count, p=[0.6, 0.37, 0.01, 0.01, 0.01]
    )
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "k": pa.array(rng.integers(0, 90, count), pa.int64()),
            "g": pa.array(group, pa.int32()),
            "v": pa.array(value, pa.float64(), from_pandas=True),
            "z": pa.array(odd),
            "i": pa.array(rng.integers(-50, 50, count), pa.int32()),
            "d": pa.array(np.round(rng.random(count) * 100), pa.float64()).cast(
                pa.decimal128(8, 2)
            ),
        }
    )
    pq.write_table(table, place / "t.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        opened.register("t", place / "t.parquet", key="id")
        opened.scramble("t", ["k"], blocks=24)
        yield opened


ALL = ", ".join(f"{name}(v) AS a{place}" for place, name in enumerate(FUNCTIONS))


TEXTS = [
    f"SELECT g, {ALL}, count(*) AS n, avg(v) AS m, max(v) AS most FROM t GROUP BY g",
    f"SELECT {ALL} FROM t",
    "SELECT g, var_samp(z), stddev_pop(z), var_pop(i), stddev(d) FROM t GROUP BY g",
    "SELECT g, stddev(i) FILTER (WHERE i > 40), var_pop(d) FILTER (WHERE i > 60) FROM t GROUP BY g",
    "SELECT g, i % 3 AS m, variance(v) FROM t GROUP BY g, i % 3",
    "SELECT stddev(v), var_pop(v) FROM t WHERE id < 0",
    "SELECT g, stddev(v) / avg(v) AS cv FROM t GROUP BY g ORDER BY g LIMIT 3",
]


# Seconds each: every third in `make test`, the others in `make test-slow`.
@pytest.mark.parametrize(
    ("text", "batches", "seed"),
    [
        pytest.param(text, batches, seed, marks=[pytest.mark.slow] if (place + seed) % 3 else [])
        for place, text in enumerate(TEXTS)
        for batches, seed in ((2, 0), (5, 1), (24, 2))
    ],
)
def test_ends_as_spark(measured: Database, text: str, batches: int, seed: int) -> None:
    answers = assert_ends_exactly(measured.sql(text), batches, seed)
    assert len(answers) == batches


def test_too_many_groups_for_replicates_end_as_spark(
    measured: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sooner.progressive.states._MOST_REPLICATED_GROUPS", 2)
    answers = assert_ends_exactly(measured.sql(f"SELECT g, {ALL} FROM t GROUP BY g"), 5, 3)
    assert set(answers[2].status("a0")) == {Status.UNKNOWN}


def test_what_is_not_finite_has_no_interval(measured: Database) -> None:
    for answer in measured.sql("SELECT var_pop(z) AS a, sum(z) AS s FROM t").progress(batches=4):
        if not answer.final:
            assert answer.status("a") == answer.status("s") == (Status.UNKNOWN,)
