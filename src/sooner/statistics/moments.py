"""Counts, means and squared deviations that merge without losing digits, and errors from them.

Sums of squares lose a small variance around a large mean; (n, mean, M2) and the formula of Chan,
Golub and LeVeque (1979) do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sooner.statistics.arrays import Floats
from sooner.statistics.intervals import Interval, cut, student_interval


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """How many values, their mean, and the sum of their squared deviations from it.

    The mean of no values may be anything: it has no weight.
    """

    n: Floats
    mean: Floats
    m2: Floats

    def variance(self, ddof: int = 1) -> Floats:
        """M2/(n − ddof), not a number where n is not above ``ddof``."""
        result = np.full_like(self.m2, np.nan)
        return np.divide(self.m2, self.n - ddof, out=result, where=self.n > ddof)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """The moments of the values of both.

    >>> both = merge_moments(Moments(*map(np.array, (2.0, 1.5, 0.5))),
    ...                      Moments(*map(np.array, (1.0, 6.0, 0.0))))
    >>> float(both.n), float(both.mean), float(both.m2)
    (3.0, 3.0, 14.0)
    """
    n = a.n + b.n
    share = np.divide(b.n, n, out=np.zeros_like(n), where=n > 0)
    mean_a = np.where(a.n > 0, a.mean, 0.0)
    apart = np.where(b.n > 0, b.mean, 0.0) - mean_a
    return Moments(n, mean_a + apart * share, a.m2 + b.m2 + np.square(apart) * a.n * share)


def reduce_moments(moments: Moments, axis: int = -1) -> Moments:
    """The moments of all values along an axis: Chan's formula for many sets at once."""
    n = moments.n.sum(axis=axis, keepdims=True)
    means = np.where(moments.n > 0, moments.mean, 0.0)
    # A mean of means first: weights of deviations from it add up without losing digits.
    shares = np.divide(moments.n, n, out=np.zeros_like(moments.n), where=n > 0)
    start = (shares * means).sum(axis=axis, keepdims=True)
    mean = start + (shares * (means - start)).sum(axis=axis, keepdims=True)
    m2 = (moments.m2 + moments.n * np.square(means - mean)).sum(axis=axis)
    return Moments(n.squeeze(axis), mean.squeeze(axis), m2)


def leave_one_out_moments(moments: Moments) -> Moments:
    """Moments of all replicates (row 0) and of all but the r-th (row r + 1), for each group.

    The given ones have a row for each group and a column for each replicate. What is before a
    replicate is merged with what is after it: taking one off the whole would lose digits.
    """
    parts = [_column(moments, r) for r in range(moments.n.shape[1])]
    none = Moments(*(np.zeros(len(moments.n)) for _ in range(3)))
    before, after = [none], [none]
    for part, mirrored in zip(parts, reversed(parts), strict=True):
        before.append(merge_moments(before[-1], part))
        after.append(merge_moments(mirrored, after[-1]))
    after.reverse()
    left = [merge_moments(before[r], after[r + 1]) for r in range(len(parts))]
    rows = [before[-1], *left]
    return Moments(
        *(np.stack([getattr(row, name) for row in rows]) for name in ("n", "mean", "m2"))
    )


def _column(moments: Moments, r: int) -> Moments:
    return Moments(moments.n[:, r], moments.mean[:, r], moments.m2[:, r])


def leave_one_out_variance(moments: Moments, ddof: int = 1) -> Floats:
    """Variances from all replicates and from all but one, as :func:`interval` takes them.

    >>> parts = Moments(np.ones((1, 3)), np.array([[1.0, 2.0, 6.0]]), np.zeros((1, 3)))
    >>> leave_one_out_variance(parts).ravel().tolist()
    [7.0, 8.0, 12.5, 0.5]
    """
    return leave_one_out_moments(moments).variance(ddof)


def deviations(moments: Moments) -> Floats:
    """What each replicate brings to the squared deviations of its group: its part of a variance.

    Few replicates carry most of it where values have long tails, long before they carry most rows.
    """
    mean = reduce_moments(moments).mean[..., None]
    return moments.m2 + moments.n * np.square(np.where(moments.n > 0, moments.mean - mean, 0.0))


def many_groups_error(
    keys: Floats,
    total: Floats,
    squares: Floats,
    progress: float,
    confidence: float,
    positive: bool = False,
    fewest: int = 5,
) -> Interval:
    """Intervals of totals where groups are too many to keep replicates of each (over 50,000).

    Each group has the number of its keys read so far, and the sum and the sum of squares of what
    each key brings. A key is read with chance t: Var(y/t) is estimated by (1 − t)/t²·Σy_k². Student's
    t has keys − 1 degrees of freedom, fewer where few keys carry most of the sum; groups of fewer
    than ``fewest`` keys are unknown. For ``positive`` totals see :func:`interval`.

    >>> keys, total, squares = (np.array([few, 100.0]) for few in (4.0, 8.0, 16.0))
    >>> many_groups_error(keys, total, squares, 0.5, 0.95).low.round(1)
    array([  nan, 171.9])
    """
    estimate = total / progress
    error = np.sqrt((1.0 - progress) * squares) / progress
    freedom = _freedom(keys, total, squares, fewest)
    log_error = _relative(error, estimate) if positive else None
    found = student_interval(estimate, error, freedom, confidence, log_error)
    return cut(found, estimate, progress, total if positive else None)


def many_groups_ratio(
    keys: Floats,
    above: tuple[Floats, Floats],
    below: tuple[Floats, Floats],
    products: Floats,
    progress: float,
    confidence: float,
    positive: bool = False,
    fewest: int = 5,
) -> Interval:
    """Intervals of ratios of totals, such as averages, as in :func:`many_groups_error`.

    ``above`` and ``below`` are the sum and the sum of squares of what keys bring to the numerator and
    to the denominator, ``products`` the sum of the products of both. The error is that of the
    residuals y_k − ratio·x_k.
    """
    ratio = np.full_like(above[0], np.nan)
    np.divide(above[0], below[0], out=ratio, where=below[0] != 0)
    residual = np.maximum(0.0, above[1] - 2.0 * ratio * products + np.square(ratio) * below[1])
    spread = np.sqrt((1.0 - progress) * residual * keys / np.maximum(1.0, keys - 1.0))
    error = np.full_like(ratio, np.nan)
    np.divide(spread, np.abs(below[0]), out=error, where=below[0] != 0)
    log_error = _relative(error, ratio) if positive else None
    found = student_interval(ratio, error, _freedom(keys, *above, fewest), confidence, log_error)
    return cut(found, ratio, progress, None)


def _freedom(keys: Floats, total: Floats, squares: Floats, fewest: int) -> Floats:
    # Keys − 1 alone covers 85% for 12 to 30 lognormal keys (σ = 1.5), this 89 to 92%.
    effective = np.divide(np.square(total), squares, out=keys.astype(np.float64), where=squares > 0)
    return np.where(keys >= max(1, fewest), np.minimum(keys, effective) - 1.0, np.nan)


def _relative(error: Floats, estimate: Floats) -> Floats:
    return np.divide(error, estimate, out=np.full_like(error, np.nan), where=estimate > 0)
