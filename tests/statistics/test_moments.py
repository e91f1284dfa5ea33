from __future__ import annotations

import numpy as np
import pytest
from populations import PROGRESS, R, assert_covers, coverage, keys_read, sample

from sooner.statistics import (
    Interval,
    Moments,
    deviations,
    interval,
    leave_one_out_moments,
    leave_one_out_variance,
    many_groups_error,
    many_groups_ratio,
    merge_moments,
    reduce_moments,
)


def moments_of(values: np.ndarray) -> Moments:
    """Of values along the last axis, those that are NaN left out."""
    n = (~np.isnan(values)).sum(axis=-1).astype(float)
    mean = np.nansum(values, axis=-1) / np.maximum(n, 1.0)
    return Moments(n, mean, np.nansum(np.square(values - mean[..., None]), axis=-1))


def some(shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.where(rng.random(shape) < 0.6, rng.normal(1e6, 1.0, shape), np.nan)


def assert_same(a: Moments, b: Moments) -> None:
    np.testing.assert_array_equal(a.n, b.n)
    np.testing.assert_allclose(a.mean[a.n > 0], b.mean[b.n > 0], rtol=1e-12)
    np.testing.assert_allclose(a.m2, b.m2, rtol=1e-7, atol=1e-6)


def test_merging_is_as_taking_all_values_together() -> None:
    values = some((50, 7))
    a, b, c = moments_of(values[:, :3]), moments_of(values[:, 3:4]), moments_of(values[:, 4:])
    whole = moments_of(values)
    assert_same(merge_moments(merge_moments(a, b), c), whole)
    assert_same(merge_moments(a, merge_moments(b, c)), whole)
    assert_same(merge_moments(c, merge_moments(b, a)), whole)


def test_nothing_is_neutral_whatever_its_mean() -> None:
    a = moments_of(some((20, 5)))
    nothing = Moments(np.zeros(20), np.full(20, np.nan), np.zeros(20))
    for merged in (merge_moments(a, nothing), merge_moments(nothing, a)):
        assert_same(merged, a)
    assert np.isnan(nothing.variance()).all()


def test_reducing_is_merging() -> None:
    values = some((10, 6, 4))
    assert_same(reduce_moments(moments_of(values)), moments_of(values.reshape(10, 24)))
    by_first = reduce_moments(moments_of(values), axis=0)
    assert_same(by_first, moments_of(values.transpose(1, 0, 2).reshape(6, 40)))


def test_a_small_variance_around_a_large_mean_is_kept() -> None:
    values = 1e9 + np.random.default_rng(1).random((1, R, 1000))
    assert reduce_moments(moments_of(values)).variance()[0] == pytest.approx(1 / 12, rel=0.02)
    assert leave_one_out_variance(moments_of(values))[:, 0] == pytest.approx(1 / 12, rel=0.02)


def test_leaving_out_is_not_having_had() -> None:
    values = some((5, 6, 4))
    left = leave_one_out_moments(moments_of(values))
    assert left.n.shape == (7, 5)
    assert_same(Moments(left.n[0], left.mean[0], left.m2[0]), reduce_moments(moments_of(values)))
    for r in range(6):
        rest = moments_of(np.delete(values, r, axis=1).reshape(5, 20))
        assert_same(Moments(left.n[r + 1], left.mean[r + 1], left.m2[r + 1]), rest)


def test_deviations_add_up_to_those_of_the_group() -> None:
    moments = moments_of(some((5, 6, 4)))
    np.testing.assert_allclose(deviations(moments).sum(axis=1), reduce_moments(moments).m2)


# A variance rests on fourth moments: long tails are not covered, whatever is done.
SHORT = {("skewed", 0.02): 0.840, ("skewed", 0.1): 0.827, ("skewed", 0.5): 0.811}


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.simulation
def test_variance_of_clusters(kind: str, t: float) -> None:
    """All rows of a key have its mean value here."""
    keys, (rows, values, squares, _, _) = sample(kind, t)
    mean = values / np.maximum(rows, 1.0)
    moments = Moments(rows, mean, np.maximum(0.0, squares - values * mean))
    theta = leave_one_out_variance(moments)
    n, total, square = keys.sum(axis=1)[:3]
    truth = (square - total**2 / n) / (n - 1)
    assert abs(theta[0].mean() / truth - 1) < 0.02
    found = interval(theta, t, deviations(moments), 0.95, positive=True)
    assert_covers(coverage(found, truth), SHORT.get((kind, t)))


def groups(
    t: float, expected: int, sigma: float
) -> tuple[Interval, Interval, np.ndarray, np.ndarray]:
    """Intervals of totals and averages, and the truth, of 2,000 groups with so many keys read."""
    rng = np.random.default_rng(4)
    shape = (2000, int(expected / t))
    rows = rng.integers(1, 8, shape).astype(float)
    each = rng.lognormal(0.0, sigma, shape) if sigma else rng.normal(50.0, 15.0, shape)
    values = rows * each
    read = keys_read(rng, t, shape[1], shape[0])
    a, b = values.ravel()[read], rows.ravel()[read]
    keys, y, yy, x, xx, xy = (
        np.bincount(read // shape[1], column, shape[0])
        for column in (np.ones(read.size), a, a**2, b, b**2, a * b)
    )
    total = many_groups_error(keys, y, yy, t, 0.95, positive=True)
    average = many_groups_ratio(keys, (y, yy), (x, xx), xy, t, 0.95, positive=True)
    truth = values.sum(axis=1)
    return total, average, truth, truth / rows.sum(axis=1)


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.simulation
def test_many_groups(t: float) -> None:
    total, average, truth, mean = groups(t, 30, 0.0)
    assert_covers(coverage(total, truth))
    assert_covers(coverage(average, mean))


@pytest.mark.parametrize(
    ("sigma", "of_total", "of_average"), [(1.0, 0.948, 0.909), (1.5, 0.896, 0.854)]
)
def test_many_groups_with_long_tails_fall_short(
    sigma: float, of_total: float, of_average: float
) -> None:
    total, average, truth, mean = groups(0.1, 30, sigma)
    assert_covers(coverage(total, truth), of_total)
    assert_covers(coverage(average, mean), of_average)


def test_many_groups_are_unknown_below_five_keys() -> None:
    keys = np.array([0.0, 1.0, 4.0, 5.0])
    total, squares = keys * 2, keys * 4
    found = many_groups_error(keys, total, squares, 0.5, 0.95)
    assert found.known.tolist() == [False, False, False, True]
    ratio = many_groups_ratio(keys, (total, squares), (keys, keys), total, 0.5, 0.95)
    assert ratio.known.tolist() == [False, False, False, True]
    assert ratio.low[3] == ratio.high[3] == 2.0
    complete = many_groups_error(keys, total, squares, 1.0, 0.95)
    np.testing.assert_array_equal(complete.low, total)
    np.testing.assert_array_equal(complete.high, total)
