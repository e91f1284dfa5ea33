from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from populations import PROGRESS, R
from scipy.special import gammaln

from sooner.statistics import (
    Interval,
    count_distinct,
    distinct_interval,
    frequency_variation,
    leave_one_out,
    leave_one_out_distinct,
    maybe_skewed,
)


def expected(values: np.ndarray, n: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Eq. 3.4 and 3.5 of DeepOLA as they are written."""
    z = total / values
    log_h = gammaln(total - z + 1) + gammaln(total - n + 1)
    return values * (1 - np.exp(log_h - gammaln(total - n - z + 1) - gammaln(total + 1)))


def test_solves_the_equation_of_the_paper() -> None:
    rng = np.random.default_rng(1)
    total = rng.integers(200, 100_000, 500).astype(float)
    n = np.ceil(total * rng.uniform(0.01, 0.5, 500))
    truth = np.maximum(total / 50, total * rng.uniform(0.0, 1.0, 500))
    found = count_distinct(expected(truth, n, total), n, total)
    seen = expected(truth, n, total)
    open_ = seen < n * (1 - 1e-6)
    np.testing.assert_allclose(
        expected(found[open_], n[open_], total[open_]), seen[open_], rtol=1e-7
    )
    np.testing.assert_allclose(found[open_], truth[open_], rtol=1e-3)


def test_ends() -> None:
    y, n, total = map(
        np.array,
        ([0.0, 0.0, 10.0, 10.0, 7.0, 1.0], [0.0, 5, 10, 20, 9, 5], [9.0, 9, 50, 20, 8, 50]),
    )
    found = count_distinct(y, n, total)
    assert np.isnan(found[0]), "nothing seen"
    assert found[1] == 0.0, "only nulls"
    assert found[2] == 50.0, "all differ"
    assert found[3] == 10.0, "all read"
    assert found[4] == 7.0, "more read than was thought to be there"
    assert found[5] == pytest.approx(1.0)


def test_lies_between_what_is_seen_and_all_pairs_and_grows_with_what_is_seen() -> None:
    y = np.arange(1.0, 1001.0)
    found = count_distinct(y, np.array(1000.0), np.array(20_000.0))
    assert (found >= y).all() and (found <= 20_000).all()
    assert (np.diff(found) >= 0).all()


def test_large_numbers_keep_their_digits() -> None:
    truth, total, t = 3e7, 6e9, 0.01
    missed = (1 - t) ** (total / truth)
    found = count_distinct(np.array(truth * (1 - missed)), np.array(total * t), np.array(total))
    assert found == pytest.approx(truth, rel=1e-4)


@dataclass(frozen=True)
class Found:
    truth: int
    theta: np.ndarray
    seen: np.ndarray
    skewed: np.ndarray
    bounds: Interval


SEEDS, KEYS, EACH = 200, 2000, 3


@cache
def drawn(kind: str, values: int) -> tuple[np.ndarray, ...]:
    """The key and the value of each pair, and when and in which replicate each seed reads a key."""
    rng = np.random.default_rng(1)
    if kind == "alike":
        each = rng.permutation(np.arange(KEYS * EACH) % values)
    else:
        chances = np.ones(values) if kind == "random" else 1.0 / np.arange(1, values + 1)
        each = rng.choice(values, KEYS * EACH, p=chances / chances.sum())
    # A pair once, however often a key has the value. Small numbers are sorted sooner.
    pair = np.unique(np.arange(KEYS * EACH) // EACH * values + each)
    key, value = pair // values, (pair % values).astype(np.int32)
    when = rng.random((SEEDS, KEYS), dtype=np.float32)
    return key, value, when, rng.integers(0, R, (SEEDS, KEYS)).astype(np.int32)


@cache
def found(kind: str, values: int, t: float) -> Found:
    """Count distinct over 2,000 keys of three rows, the progress known by keys."""
    key, value, when, replicate = drawn(kind, values)
    read = when < t
    seed, place = np.divmod(np.flatnonzero(read[:, key]).astype(np.int32), np.int32(len(key)))
    spot = replicate[seed, key[place]]
    pairs = table(seed * R + spot)
    seen, times = np.unique((seed * values + value[place]) * R + spot, return_counts=True)
    starts = np.flatnonzero(np.diff(seen // R, prepend=-1))
    of = seen[starts] // R // values
    times = np.add.reduceat(times, starts)
    single = np.diff(starts, append=seen.size) == 1
    alone = table((of * R + seen[starts] % R)[single])
    distinct = np.bincount(of, minlength=SEEDS).astype(float)
    repeats = np.bincount(of, times * (times - 1.0), minlength=SEEDS)
    owner, owned = np.nonzero(read)
    key_counts = table(owner * R + replicate[owner, owned])
    totals = leave_one_out(pairs, key_counts, KEYS)
    theta = leave_one_out_distinct(distinct, alone, pairs, totals)
    skewed = maybe_skewed(theta[0], pairs.sum(axis=1), totals[0], repeats)
    bounds = distinct_interval(distinct, theta, t, pairs, skewed, 0.95)
    return Found(np.unique(value).size, theta, distinct, skewed, bounds)


def table(cells: np.ndarray) -> np.ndarray:
    return np.bincount(cells, minlength=SEEDS * R).reshape(SEEDS, R).astype(float)


@pytest.mark.parametrize(
    ("kind", "values", "t", "low", "high"),
    [
        ("alike", 500, 0.1, 0.98, 1.02),
        ("alike", 500, 0.5, 0.99, 1.01),
        ("random", 500, 0.1, 0.88, 1.01),
        ("random", 500, 0.5, 0.88, 1.01),
        ("random", 3000, 0.1, 0.75, 0.88),  # two pairs a value: below the 0.88 of our notes
        ("random", 3000, 0.5, 0.82, 0.90),
        ("zipf", 3000, 0.1, 0.20, 0.30),
        ("zipf", 3000, 0.5, 0.60, 0.72),
    ],
)
@pytest.mark.simulation
def test_bias(kind: str, values: int, t: float, low: float, high: float) -> None:
    case = found(kind, values, t)
    assert low <= case.theta[0].mean() / case.truth <= high


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize(
    ("kind", "values"),
    [("alike", 100), ("alike", 500), ("random", 500), ("random", 3000), ("zipf", 3000)],
)
@pytest.mark.simulation
def test_no_end_is_wrong_more_often_than_said(kind: str, values: int, t: float) -> None:
    case = found(kind, values, t)
    np.testing.assert_array_equal(case.bounds.low, case.seen)
    assert (case.bounds.low <= case.truth).all()
    wrong = case.bounds.high < case.truth
    assert wrong.mean() <= 0.05


@pytest.mark.parametrize(("values", "t"), [(100, 0.5), (500, 0.5)])
@pytest.mark.simulation
def test_an_upper_end_is_given_where_values_are_alike(values: int, t: float) -> None:
    assert found("alike", values, t).bounds.known.mean() > 0.9


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.simulation
def test_skew_leaves_no_upper_end(t: float) -> None:
    case = found("zipf", 3000, t)
    assert case.skewed.all() and np.isnan(case.bounds.high).all()


def test_all_read_is_exact() -> None:
    seen, pairs = np.array([7.0]), np.full((1, 4), 5.0)
    theta = leave_one_out_distinct(seen, np.ones((1, 4)), pairs, np.full((5, 1), 20.0))
    exact = distinct_interval(seen, theta, 1.0, pairs, np.array([True]), 0.95)
    assert exact.low[0] == exact.high[0] == theta[0, 0] == 7.0


def test_frequency_variation_of_all_pairs_is_that_of_the_counts() -> None:
    counts = np.random.default_rng(1).integers(1, 30, 100).astype(float)
    repeats, total = (counts * (counts - 1)).sum(), counts.sum()
    found = frequency_variation(*map(np.array, (100.0, total, total, repeats)))
    assert found == pytest.approx(counts.var() / counts.mean() ** 2)
