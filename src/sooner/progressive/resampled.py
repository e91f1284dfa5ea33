"""A column of a user's function over a sample, with an interval from resampling keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.progressive.estimates import Varying
from sooner.statistics import Interval, percentile_interval, poisson_weights, student_interval
from sooner.statistics.arrays import Floats

RESAMPLES = 100
# Calls of the function for one answer; with more groups there is no interval, or no estimate.
_MOST_CALLS = 100_000
_FEWEST_KEYS = 12


@dataclass(frozen=True)
class Resampled(Varying):
    """Values of a function, and in ``resamples`` those of the sample drawn again and again.

    ``keys`` is how many keys at least a cell rests on; ``share`` how much of what was read the sample
    still holds.
    """

    resamples: Floats | None = None
    keys: Floats | None = None
    share: float = 1.0

    def take(self, places: npt.NDArray[np.int64]) -> Resampled:
        """The cells at these places."""
        assert self.resamples is not None and self.keys is not None
        return replace(
            self,
            theta=self.theta[:, places],
            contributions=self.contributions[places],
            resamples=self.resamples[:, places],
            keys=self.keys[places],
        )

    def interval(self, progress: float, confidence: float) -> Interval:
        """The interval of each cell; see :func:`resampled_interval`."""
        assert self.resamples is not None and self.keys is not None
        read = progress * self.share
        return resampled_interval(self.theta, self.resamples, self.keys, read, confidence)


def resampled_interval(
    theta: Floats, resamples: Floats, keys: Floats, progress: float, confidence: float
) -> Interval:
    """The wider of percentiles and Student's t, from row 0 of ``theta`` and the resamples of each cell.

    A hundred resamples have no percentiles further out than 1%, and those of few keys from a skewed
    population are too narrow. Student's t is taken on logarithms where all values are positive, as for
    sums: it lifts the spread of lognormal values by 190 keys from 81% to 84% of coverage.
    """
    if not len(resamples):
        nothing = np.full(theta.shape[1], np.nan)
        return Interval(nothing, nothing)
    values = np.concatenate([theta[:1], resamples])
    middle = percentile_interval(values, progress, confidence, keys, _FEWEST_KEYS)
    unread = np.sqrt(max(0.0, 1.0 - progress))
    positive = (values > 0).all(axis=0)
    error = unread * _deviation(resamples)
    log_error = np.where(
        positive, unread * _deviation(np.log(np.where(positive, resamples, 1.0))), np.nan
    )
    around = student_interval(theta[0], error, keys - 1.0, confidence, log_error)
    known = middle.known & around.known
    return Interval(
        np.where(known, np.minimum(middle.low, around.low), np.nan),
        np.where(known, np.maximum(middle.high, around.high), np.nan),
    )


def _deviation(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=0, ddof=1))


def resampled(
    function: Callable[[Any], Any],
    values: pa.Array,
    groups: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
    shape: tuple[int, int],
    share: float,
) -> Resampled:
    """A function of the values of each group, with resamples of the parts they came in.

    A part is a set of keys: it counts as a whole, Poisson(1) times in each resample. ``shape`` is the
    number of groups and of replicates.
    """
    count, _ = shape
    order = np.argsort(groups, kind="stable")
    data = values.to_numpy(zero_copy_only=False)[order]
    groups, parts = groups[order], parts[order]
    ids, part = np.unique(parts, return_inverse=True)
    found = (
        _by_group(function, data, np.bincount(groups, minlength=count))
        if count <= _MOST_CALLS
        else np.full(count, np.nan)
    )
    again = np.empty((0, count))
    if count * RESAMPLES <= _MOST_CALLS and len(ids):
        again = np.empty((RESAMPLES, count))
        for number, weights in enumerate(poisson_weights(ids, RESAMPLES)):
            times = weights[part]
            sizes = np.bincount(groups, times, minlength=count).astype(np.int64)
            again[number] = _by_group(function, np.repeat(data, times), sizes)
    pairs = np.unique(groups * len(ids) + part) if len(ids) else np.empty(0, np.int64)
    keys = np.bincount(pairs // max(1, len(ids)), minlength=count).astype(np.float64)
    return Resampled(
        theta=found[None, :],
        contributions=np.zeros(shape),
        resamples=again,
        keys=keys,
        share=share,
    )


def _by_group(
    function: Callable[[Any], Any], data: npt.NDArray[Any], sizes: npt.NDArray[np.int64]
) -> Floats:
    """The function of each group's values, which lie together; not a number where there are none."""
    import pandas as pd  # a quarter of a second to load, and only functions of the user's need it

    found = np.full(len(sizes), np.nan)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    for group in np.flatnonzero(sizes):
        values = pd.Series(data[starts[group] : ends[group]])
        try:
            found[group] = float(function(values))
        except Exception:
            # What works on all rows need not on some of them: the exact answer will tell.
            continue
    return np.where(np.isfinite(found), found, np.nan)
