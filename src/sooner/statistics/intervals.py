"""Intervals around estimates, and where there are none: unknown is not a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.replicates import effective_replicates, jackknife_error


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A low and a high end for each cell; NaN where an end is unknown."""

    low: Floats
    high: Floats

    @property
    def known(self) -> Booleans:
        """The cells of which both ends are known."""
        return ~(np.isnan(self.low) | np.isnan(self.high))

    def holds(self, value: float | Floats) -> Booleans:
        """The cells whose interval has this value in it."""
        return np.asarray((self.low <= value) & (value <= self.high))


def interval(
    theta: Floats,
    progress: float | Floats,
    contributions: Floats,
    confidence: float,
    positive: bool = False,
    certain_low: Floats | None = None,
    fewest: int = 5,
) -> Interval:
    """The interval of each cell from its R + 1 values (see :func:`leave_one_out`).

    ``contributions`` says how much each replicate brings to a cell, a row for each cell: the
    magnitude of its partial sum, or its rows. ``positive`` is for totals and averages of values that
    are never negative: their interval is symmetric on the log scale. Such a total only grows, and is
    cut at ``certain_low``, the sum so far. Unknown are cells of fewer than ``fewest`` replicates, those of
    which nothing was seen, and those that rest on a single replicate in effect.

    >>> sums = np.array([[4.0, 5.0, 6.0, 5.0, 4.0, 6.0]])
    >>> theta = np.array([[300.0], [312.0], [300.0], [288.0], [300.0], [312.0], [288.0]])
    >>> interval(theta, 0.1, sums, 0.95).low.round(1)
    array([246.1])
    >>> interval(theta, 1.0, sums, 0.95).high
    array([300.])
    """
    support = effective_replicates(contributions)
    enough = (support.non_empty >= fewest) & (support.non_empty > 0)
    freedom = np.where(enough, support.freedom, np.nan)
    error = jackknife_error(theta, progress)
    log_error = _log_error(theta, progress) if positive else None
    found = student_interval(theta[0], error, freedom, confidence, log_error)
    return cut(found, theta[0], progress, certain_low)


def _log_error(theta: Floats, progress: float | Floats) -> Floats:
    """The error of the logarithms; NaN where a value has none.

    Not se/θ: where one replicate carries much of a total, its logarithm moves further when that one
    is left out. On lognormal values that is worth one to two points of coverage.
    """
    positive = np.all(theta > 0, axis=0)
    return np.where(
        positive, jackknife_error(np.log(np.where(positive, theta, 1.0)), progress), np.nan
    )


def student_interval(
    estimate: Floats,
    error: Floats,
    freedom: Floats,
    confidence: float,
    log_error: Floats | None = None,
) -> Interval:
    """Student's t around estimates with known standard errors, on the log scale where that has one.

    Without degrees of freedom (NaN, zero or less) there is no interval.
    """
    known = (freedom > 0) & np.isfinite(estimate) & np.isfinite(error)
    steps = np.full_like(estimate, np.nan)
    np.copyto(steps, stdtrit(freedom, 0.5 + confidence / 2.0), where=known)
    low, high = estimate - steps * error, estimate + steps * error
    if log_error is not None:
        on_logs = known & np.isfinite(log_error)
        with np.errstate(over="ignore"):
            factor = np.exp(np.where(on_logs, steps * log_error, 0.0))
            low = np.where(on_logs, estimate / factor, low)
            high = np.where(on_logs, estimate * factor, high)
    finite = np.isfinite(low) & np.isfinite(high)
    return Interval(np.where(finite, low, np.nan), np.where(finite, high, np.nan))


def cut(
    found: Interval, estimate: Floats, progress: float | Floats, certain_low: Floats | None
) -> Interval:
    """The interval above what is certain; without width where all has been read."""
    low, high = found.low, found.high
    if certain_low is not None:
        low, high = (np.where(end < certain_low, certain_low, end) for end in (low, high))
    complete = np.asarray(progress) >= 1.0
    return Interval(np.where(complete, estimate, low), np.where(complete, estimate, high))


def simultaneous(confidence: float, cells: int) -> float:
    """The confidence that each of so many cells needs, for all to be right at once (Šidák).

    >>> round(simultaneous(0.95, 25), 5)
    0.99795
    """
    return float(confidence ** (1.0 / max(1, cells)))
