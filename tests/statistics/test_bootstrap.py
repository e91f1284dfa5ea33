from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from populations import assert_covers, clustered, coverage, keys_read, skewed

from sooner.statistics import percentile_interval, poisson_weights


def hashes(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count)


def test_weights_are_poisson() -> None:
    weights = poisson_weights(hashes(20_000), 10)
    shares = np.bincount(weights.ravel(), minlength=6)[:6] / weights.size
    expected = np.exp(-1) / np.array([1, 1, 2, 6, 24, 120])
    np.testing.assert_allclose(shares, expected, atol=0.005)
    assert weights.mean() == pytest.approx(1.0, abs=0.01)


def test_weights_depend_on_hash_and_replicate_only() -> None:
    keys = hashes(100)
    weights = poisson_weights(keys, 5)
    np.testing.assert_array_equal(poisson_weights(keys[::-1], 3), weights[:3, ::-1])
    np.testing.assert_array_equal(poisson_weights(keys.view(np.uint64), 5), weights)


def test_neighbouring_hashes_and_replicates_have_nothing_in_common() -> None:
    """A block of a scramble is a narrow range of hashes."""
    weights = poisson_weights(np.arange(20_000) + 2**40, 8).astype(float)
    assert np.abs(np.corrcoef(weights) - np.eye(8)).max() < 0.03
    assert abs(np.corrcoef(weights[0, 1:], weights[0, :-1])[0, 1]) < 0.03
    np.testing.assert_allclose(weights.mean(axis=1), 1.0, atol=0.03)


@cache
def resampled(keys: int, t: float, seeds: int = 1000) -> tuple[np.ndarray, ...]:
    """Weights by (replicate, key read) after a row of ones, the keys read, and where a seed begins."""
    rng = np.random.default_rng(2)
    read = keys_read(rng, t, keys, seeds)
    weights = poisson_weights(rng.integers(-(2**63), 2**63 - 1, read.size), 100)
    weights = np.concatenate([np.ones_like(weights[:1]), weights])
    return weights, read % keys, np.searchsorted(read, np.arange(seeds) * keys)


@pytest.mark.parametrize(
    ("kind", "keys", "t", "short"),
    [
        ("clustered", 1500, 0.02, None),
        ("clustered", 300, 0.1, None),
        ("clustered", 60, 0.5, None),
        # 30 lognormal keys: percentiles know nothing of the tail that was not drawn.
        ("skewed", 1500, 0.02, 0.900),
        ("skewed", 300, 0.1, 0.875),
        ("skewed", 60, 0.5, 0.909),
    ],
)
@pytest.mark.simulation
def test_coverage_of_an_average(kind: str, keys: int, t: float, short: float | None) -> None:
    rows, values = clustered(keys) if kind == "clustered" else skewed(keys)
    weights, read, starts = resampled(keys, t)
    above, below = (np.add.reduceat(weights * c[read], starts, axis=1) for c in (values, rows))
    theta, truth = above / below, values.sum() / rows.sum()
    counts = np.diff(starts, append=read.size).astype(float)
    assert theta[0].mean() == pytest.approx(truth, rel=0.02)
    assert_covers(coverage(percentile_interval(theta, t, 0.95, counts), truth), short)


def test_few_keys_and_values_that_are_not_numbers_are_unknown() -> None:
    theta = np.random.default_rng(1).normal(size=(101, 3))
    theta[5, 2] = np.nan
    found = percentile_interval(theta, 0.1, 0.95, np.array([4.0, 5.0, 50.0]))
    assert found.known.tolist() == [False, True, False]


def test_no_width_when_all_has_been_read() -> None:
    theta = np.random.default_rng(1).normal(size=(101, 2))
    found = percentile_interval(theta, 1.0, 0.95, np.array([1.0, 100.0]))
    np.testing.assert_array_equal(found.low, theta[0])
    np.testing.assert_array_equal(found.high, theta[0])


def test_fewer_keys_and_less_progress_are_wider() -> None:
    theta = np.random.default_rng(1).normal(size=(5001, 1)) * np.ones((1, 2))
    theta[0] = 0.0
    few, many = percentile_interval(theta, 0.0, 0.95, np.array([8.0, 1e6])).high
    assert few > many == pytest.approx(1.96, abs=0.06)
    assert percentile_interval(theta, 0.75, 0.95, np.array([8.0, 1e6])).high[1] == pytest.approx(
        many / 2
    )
