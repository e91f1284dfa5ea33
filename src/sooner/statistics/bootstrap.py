"""The Poisson bootstrap over keys, for aggregates that are not smooth functions of sums.

In each replicate a key counts Poisson(1) times. The number comes from the key's hash, so that it is
the same in every batch and in every table of the key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, pdtr, stdtrit

from sooner.statistics.arrays import Floats, Integers
from sooner.statistics.intervals import Interval

_CHANCES = pdtr(np.arange(20), 1.0)
# Weights by the first 16 bits of a chance, where these decide: a search for each would be most of the time.
_UNSURE = 255
_EDGES = np.arange((1 << 16) + 1) / (1 << 16)
_LEAST = np.searchsorted(_CHANCES, _EDGES[:-1], side="right")
_MOST = np.searchsorted(_CHANCES, _EDGES[1:], side="left")
_WEIGHTS: NDArray[np.uint8] = np.where(_LEAST == _MOST, _LEAST, _UNSURE).astype(np.uint8)
_STEP = np.uint64(0x9E3779B97F4A7C15)


def poisson_weights(hashes: Integers | NDArray[np.uint64], replicates: int) -> NDArray[np.uint8]:
    """How often each key counts: a row for each replicate, a column for each 64-bit hash.

    >>> poisson_weights(np.array([1, 2, 3, 4, 5, 6]), 2)
    array([[1, 0, 1, 0, 1, 2],
           [0, 0, 2, 0, 1, 1]], dtype=uint8)
    """
    keys = np.atleast_1d(hashes).astype(np.uint64, copy=False)
    streams = _mixed(np.arange(1, replicates + 1, dtype=np.uint64) * _STEP)
    mixed = _mixed(keys[None, :] ^ streams[:, None])
    weights = _WEIGHTS.take((mixed >> np.uint64(48)).astype(np.intp))
    unsure = weights == _UNSURE
    chance = (mixed[unsure] >> np.uint64(11)) * 2.0**-53
    weights[unsure] = np.searchsorted(_CHANCES, chance, side="right")
    return weights


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def percentile_interval(
    theta: Floats,
    progress: float,
    confidence: float,
    keys: Floats,
    fewest: int = 5,
) -> Interval:
    """The middle part of the bootstrap values of each cell; row 0 of ``theta`` is the estimate.

    Percentiles are too narrow where keys are few; they are taken further out, by as much as Student's
    t with keys − 1 is wider than the normal (Hesterberg 2015, expanded percentiles). Distances from
    the estimate shrink by √(1 − t), the finite-population correction. Unknown: fewer than ``fewest``
    keys, or a bootstrap value that is not a number.

    >>> theta = np.linspace(-1.0, 1.0, 2001)[:, None]
    >>> theta[0] = 0.0
    >>> percentile_interval(theta, 0.0, 0.9, np.array([1e9])).high.round(2)
    array([0.9])
    """
    estimate, values = theta[0], np.sort(theta[1:], axis=0)
    # In order, what is not finite comes first or last.
    finite = np.isfinite(values[0]) & np.isfinite(values[-1]) & np.isfinite(estimate)
    enough = (keys >= max(2, fewest)) & finite
    n = np.where(enough, keys, 2.0)
    tail = ndtr(-np.sqrt(n / (n - 1.0)) * stdtrit(n - 1.0, 0.5 + confidence / 2.0))
    shrink = np.sqrt(max(0.0, 1.0 - progress))
    ends = _at(values, np.stack([tail, 1.0 - tail]))
    low, high = np.where(enough, estimate + shrink * (ends - estimate), np.nan)
    if progress >= 1.0:
        return Interval(estimate, estimate)
    return Interval(np.minimum(low, estimate), np.maximum(high, estimate))


def _at(ordered: Floats, level: Floats) -> Floats:
    """Quantiles of each column, at levels of its own: the k-th of B values is at k/(B + 1)."""
    position = np.clip(level * (len(ordered) + 1) - 1.0, 0.0, len(ordered) - 1.0)
    below = np.floor(position).astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    low, high = ordered[below, columns], ordered[above, columns]
    return np.asarray(low + (high - low) * (position - below))
