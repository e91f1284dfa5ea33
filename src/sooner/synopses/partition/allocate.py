"""How many rows of a sample each leaf gets."""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, TypeAlias

import numpy as np

from sooner.statistics.arrays import Floats, Integers

Allocation: TypeAlias = Literal["proportional", "equal", "neyman"]


def allocate(total: int, rows: Integers, spreads: Floats, how: Allocation) -> Integers:
    """Sampled rows for leaves of so many ``rows``, whose values deviate by ``spreads``.

    In proportion to the rows, equally, or to rows times deviation (Neyman 1934), which makes the variance
    of a total smallest. A leaf never gets more rows than it has; what it cannot take the others share.
    Every leaf gets two rows, the fewest that show a deviation, if it has them and ``total`` is enough
    for that; otherwise one, or what there is. In all they are ``total``, or all rows if these are fewer.

    >>> allocate(20, np.array([1000, 100, 5]), np.array([1.0, 30.0, 0.0]), "neyman")
    array([ 5, 13,  2])
    """
    total = max(0, min(total, int(rows.sum())))
    least = np.zeros_like(rows)
    for few in (1, 2):
        if np.minimum(rows, few).sum() <= total:
            least = np.minimum(rows, few)
    weights = _weights(rows, spreads, how)
    shares = _shares(total, weights, least, rows)
    # When leaves that have a weight are full, those without come next, by their rows.
    shares = _shares(total, np.where(weights > 0.0, 0.0, rows), shares, rows)
    return _whole(total, shares, rows)


def _weights(rows: Integers, spreads: Floats, how: Allocation) -> Floats:
    if how == "equal":
        return np.ones(len(rows))
    if how == "proportional":
        return rows.astype(np.float64)
    known = np.where(np.isfinite(spreads), np.maximum(spreads, 0.0), 0.0)
    weights: Floats = rows * (known / known.max(initial=1e-300))
    return weights


def _shares(total: int, weights: Floats, least: Integers | Floats, most: Integers) -> Floats:
    """Shares λ·weight, where λ is such that they make up the total once they are kept within bounds.

    They grow with λ, in a line between the places where one of them meets a bound.
    """
    shares = least.astype(np.float64)
    some = np.flatnonzero(weights > 0.0)
    if not len(some):
        return shares
    low, high, weight = shares[some], most[some], weights[some]
    rest = total - (shares.sum() - low.sum())
    with np.errstate(over="ignore"):  # a weight may be so small that its bounds are never met
        starts, ends = low / weight, high / weight
    bends = np.sort(np.concatenate([starts, ends]))

    def used(bend: float) -> float:
        return float(np.clip(bend * weight, low, high).sum())

    place = max(bisect_right(bends, rest, key=used) - 1, 0)
    scale = bends[place]
    growing = (starts <= scale) & (scale < ends)
    if growing.any():
        scale += max(0.0, rest - used(scale)) / weight[growing].sum()
    shares[some] = np.clip(scale * weight, low, high)
    return shares


def _whole(total: int, shares: Floats, rows: Integers) -> Integers:
    """Whole numbers next to the shares: the largest fractions are rounded up."""
    # A share that rounding left just below a whole number is that number.
    whole = np.floor(shares + 1e-9).astype(np.int64)
    more = np.flatnonzero(whole < rows)
    order = more[np.argsort(whole[more] - shares[more], kind="stable")]
    whole[order[: max(0, total - int(whole.sum()))]] += 1
    return whole
