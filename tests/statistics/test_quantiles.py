from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from populations import PROGRESS, R, assert_covers, keys_read

from sooner.statistics import Sample, quantile, quantile_interval, sample_of

SEEDS = 1000


def test_is_the_quantile_of_each_group() -> None:
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=300), rng.integers(0, 5, 300)
    sample = sample_of(values, groups, np.zeros(300, dtype=int), (6, 1))
    for p in (0.0, 0.1, 0.5, 0.87, 1.0):
        expected = [np.quantile(values[groups == g], p) for g in range(5)]
        found = quantile(sample, p)
        np.testing.assert_allclose(found[:5], expected)
        assert np.isnan(found[5]), "a group without rows"


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    values, times = rng.normal(size=40), rng.integers(0, 5, 40)
    zeros = np.zeros(40, dtype=int)
    sample = sample_of(values, zeros, zeros, (1, 1), times.astype(float))
    for p in (0.0, 0.3, 0.5, 1.0):
        assert quantile(sample, p)[0] == pytest.approx(np.quantile(np.repeat(values, times), p))


def test_nulls_are_left_out() -> None:
    values, zeros = np.array([np.nan, 3.0, 1.0, np.nan]), np.zeros(4, dtype=int)
    assert quantile(sample_of(values, zeros, zeros, (1, 1)), 0.5)[0] == 2.0
    nothing = sample_of(np.full(4, np.nan), zeros, zeros, (1, 1))
    assert np.isnan(quantile(nothing, 0.5)[0])
    assert not quantile_interval(nothing, 0.5, 0.1, 0.95).known[0]


def test_no_width_when_all_has_been_read() -> None:
    values, zeros = np.arange(10.0), np.zeros(10, dtype=int)
    found = quantile_interval(sample_of(values, zeros, zeros, (1, 1)), 0.5, 1.0, 0.95)
    assert found.low[0] == found.high[0] == 4.5


def test_unknown_where_few_replicates_have_rows_or_an_end_is_beyond_the_sample() -> None:
    values, zeros = np.arange(320.0), np.zeros(320, dtype=int)
    few = sample_of(values, zeros, np.arange(320) % 4, (1, R))
    assert np.isnan(quantile_interval(few, 0.5, 0.1, 0.95).low[0])
    many = sample_of(values, zeros, np.arange(320) * 7919 % 31, (1, R))
    found = quantile_interval(many, 0.99, 0.1, 0.95, fewest=3)
    assert np.isfinite(found.low[0]) and np.isnan(found.high[0])


@cache
def drawn(t: float) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """What rows of a key share, what each has of its own, and the rows that are read.

    A sample for each seed, of 40, 60 or 200 keys; of a row read the seed, the row, the replicate.
    """
    rng = np.random.default_rng(6)
    keys = {0.02: 2000, 0.1: 600, 0.5: 400}[t]
    each = rng.integers(1, 8, keys)
    key = np.repeat(np.arange(keys), each)
    shared, own = rng.normal(size=keys)[key], rng.normal(size=key.size)
    read = keys_read(rng, t, keys, SEEDS)
    replicate = rng.integers(0, R, read.size)
    seed, times = read // keys, each[read % keys]
    first = (np.cumsum(each) - each)[read % keys]
    row = np.arange(times.sum()) + np.repeat(first - (np.cumsum(times) - times), times)
    return shared, own, (np.repeat(seed, times), row, np.repeat(replicate, times))


@cache
def sampled(kind: str, t: float) -> tuple[np.ndarray, Sample]:
    """Rows, and the sample of each seed as a group."""
    shared, own, (seed, row, replicate) = drawn(t)
    values = (
        50 + 20 * shared + 10 * own if kind == "clustered" else np.exp(0.8 * shared + 0.6 * own)
    )
    if kind == "tied":
        values = np.round(values)
    return values, sample_of(values[row], seed, replicate, (SEEDS, R))


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@pytest.mark.simulation
def test_bias_and_coverage(kind: str, t: float, probability: float) -> None:
    values, sample = sampled(kind, t)
    truth = np.quantile(values, probability)
    estimate = quantile(sample, probability)
    assert abs(estimate.mean() - truth) <= 0.35 * estimate.std()
    found = quantile_interval(sample, probability, t, 0.95)
    # An end beyond the sample is not wrong; to ask for both ends would choose among samples.
    right = ~(found.low > truth) & ~(found.high < truth)
    some = ~(np.isnan(found.low) & np.isnan(found.high))
    share = float(right[some].mean())
    if probability == 0.5 or t == 0.5:
        assert_covers(share)
    else:
        # Few keys lie in the tail, and the degrees of freedom are theirs: a little too wide.
        assert 0.93 <= share <= 0.99, share


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99])
def test_values_that_many_rows_share(t: float, probability: float) -> None:
    """Steps of the distribution make intervals too wide, never too narrow."""
    values, sample = sampled("tied", t)
    truth = np.quantile(values, probability)
    found = quantile_interval(sample, probability, t, 0.95)
    assert (~(found.low > truth) & ~(found.high < truth)).mean() >= 0.93
