"""Quantiles of a sample of keys, with the interval of Woodruff (1952).

Leaving replicates out does not give the error of a quantile itself, which moves in jumps. It does give
that of the share of rows below it, which is a ratio of totals; the interval of that share, read off
the sample's distribution, is the interval of the quantile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from sooner.statistics.arrays import Floats, Integers
from sooner.statistics.intervals import Interval
from sooner.statistics.replicates import all_but_one, effective_replicates, jackknife_error


@dataclass(frozen=True, eq=False)
class Sample:
    """Values ordered by group and size; ``weights`` says how often each occurs."""

    values: Floats
    groups: Integers
    replicates: Integers
    weights: Floats
    shape: tuple[int, int]

    @cached_property
    def ends(self) -> Floats:
        """The weight of all values up to each."""
        return np.cumsum(self.weights)

    @cached_property
    def rows(self) -> Floats:
        """The weight of each group and replicate."""
        return self.by_replicate(self.weights)

    def by_replicate(self, weights: Floats) -> Floats:
        """Sums of other weights by group and replicate."""
        sums = np.bincount(self._cells, weights, self.shape[0] * self.shape[1])
        return sums.astype(np.float64, copy=False).reshape(self.shape)

    @cached_property
    def _cells(self) -> Integers:
        return self.groups * self.shape[1] + self.replicates


def sample_of(
    values: Floats,
    groups: Integers,
    replicates: Integers,
    shape: tuple[int, int],
    weights: Floats | None = None,
) -> Sample:
    """A sample, from the group and the replicate of each value; ``shape`` is how many there are.

    What is not a number is left out, as SQL leaves out nulls.
    """
    weights = np.ones(len(values)) if weights is None else weights
    order = np.flatnonzero(~np.isnan(values) & (weights > 0))
    order = order[np.argsort(values[order])]
    # By size, then by group without disturbing that: groups of few bytes are not compared at all.
    narrow = groups[order].astype(np.min_scalar_type(shape[0]))
    order = order[np.argsort(narrow, kind="stable")]
    return Sample(values[order], groups[order], replicates[order], weights[order], shape)


def quantile(sample: Sample, probability: float | Floats) -> Floats:
    """The quantile of each group, between neighbours in proportion, as Spark's ``percentile``.

    >>> group, replicate = np.zeros(4, dtype=int), np.arange(4)
    >>> sample = sample_of(np.array([4.0, 1.0, 3.0, 2.0]), group, replicate, (1, 4))
    >>> quantile(sample, 0.5)
    array([2.5])
    """
    if not len(sample.values):
        return np.full(sample.shape[0], np.nan)
    totals = sample.rows.sum(axis=1)
    starts = np.concatenate([[0.0], np.cumsum(totals)[:-1]])
    position = np.clip(probability, 0.0, 1.0) * np.maximum(0.0, totals - 1.0)
    below = np.floor(position)
    low = _value_at(sample, starts + below)
    high = _value_at(sample, starts + np.minimum(below + 1.0, np.maximum(0.0, totals - 1.0)))
    between = low + (high - low) * (position - below)
    return np.where(totals > 0, between, np.nan)


def _value_at(sample: Sample, rank: Floats) -> Floats:
    place = np.searchsorted(sample.ends, rank, side="right")
    return sample.values[np.minimum(place, len(sample.ends) - 1)]


def quantile_interval(
    sample: Sample, probability: float, progress: float, confidence: float, fewest: int = 5
) -> Interval:
    """The interval of each group's quantile; an end is unknown where it lies beyond the sample.

    >>> values, group = np.arange(3200.0), np.zeros(3200, dtype=int)
    >>> sample = sample_of(values, group, np.arange(3200) % 32, (1, 32))
    >>> quantile_interval(sample, 0.5, 1.0, 0.95).low
    array([1599.5])
    """
    estimate = quantile(sample, probability)
    if progress >= 1.0:
        return Interval(estimate, estimate)
    rows, middle = sample.rows, estimate[sample.groups]
    below = sample.by_replicate(sample.weights * (sample.values < middle))
    equal = sample.by_replicate(sample.weights * (sample.values == middle))
    # Of rows equal to the estimate as many lie below it as make up the probability: with all of them
    # a value that many rows share would seem to be further up, where shares vary less.
    missing = probability * rows.sum(axis=1) - below.sum(axis=1)
    ties = equal.sum(axis=1)
    part = np.clip(np.divide(missing, ties, out=np.zeros_like(ties), where=ties > 0), 0.0, 1.0)
    parts = below + part[:, None] * equal
    # The side with fewer rows is the numerator of the share, and decides how much is known of it.
    support = effective_replicates(parts if probability < 0.5 else rows - parts)
    known = (support.non_empty >= fewest) & (support.freedom > 0)
    error = jackknife_error(_shares(parts, rows), progress)
    half = np.full_like(estimate, np.nan)
    np.multiply(stdtrit(support.freedom, 0.5 + confidence / 2.0), error, out=half, where=known)
    low, high = probability - half, probability + half
    return Interval(
        np.where(low > 0.0, quantile(sample, low), np.nan),
        np.where(high < 1.0, quantile(sample, high), np.nan),
    )


def _shares(parts: Floats, rows: Floats) -> Floats:
    """The share of rows below from all replicates and from all but one."""
    left, left_rows = all_but_one(parts), all_but_one(rows)
    shares = np.full_like(left, np.nan)
    return np.divide(left, left_rows, out=shares, where=left_rows > 0)
