"""Corrected percentiles of many groups, each helped by the others.

A tenth of a small group's rows says little of how far its percentile moved; all groups together say more. A
correction, as a share of the stale value, is taken for a draw around that of its group, and these for draws
around one of all groups, which are spread by what corrections differ beyond the chance in each (DerSimonian
and Laird 1986). Groups that may well have moved alike so move almost alike, and where they differ by more
than chance each keeps its own. Of four groups or more the squared errors become smaller by this (Efron and
Morris 1973). No group is moved much further than chance would, so that one which went a way of its own is
not lost among many that did not (the same, 1972).

Ends stay those of a group's own sample, and its value stays between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from sooner.statistics.arrays import Floats
from sooner.statistics.intervals import Interval

FEWEST_GROUPS = 4
# No group is moved by more of its deviations: as far as chance parts 19 of 20 from where they all went. With
# 1.5, one in seven groups that moved alike keeps some of its chance; with more than 2, one that moved alone
# is lost.
_FURTHEST = 2.0


def pooled(stale: Floats, corrected: Floats, deviations: Floats, ends: Interval) -> Floats:
    """The corrected values, each moved towards the common correction as far as chance may have parted them.

    Where the deviation is not above 0 or not known, a value stays what it is, and no other goes by it.

    >>> stale, ends = np.full(4, 100.0), Interval(np.full(4, 90.0), np.full(4, 130.0))
    >>> pooled(stale, np.array([108.0, 104.0, 116.0, 112.0]), np.full(4, 10.0), ends).tolist()
    [110.0, 110.0, 110.0, 110.0]
    >>> pooled(stale, np.array([108.0, 104.0, 116.0, 112.0]), np.full(4, 0.1), ends).round(1).tolist()
    [108.0, 104.0, 116.0, 112.0]
    """
    # Groups of any size move by like shares; where values have either sign, a share means nothing.
    scale = np.abs(stale) if np.all(stale > 0) or np.all(stale < 0) else np.ones_like(stale)
    moved, chance = (corrected - stale) / scale, (deviations / scale) ** 2
    some = np.isfinite(moved) & np.isfinite(chance) & (chance > 0)
    if some.sum() < FEWEST_GROUPS:
        return corrected
    spread = _beyond_chance(moved[some], chance[some])
    common = np.average(moved[some], weights=1 / (chance[some] + spread))
    together = moved + (common - moved) * chance / (chance + spread)
    lowest = np.maximum(ends.low, corrected - _FURTHEST * deviations)
    highest = np.minimum(ends.high, corrected + _FURTHEST * deviations)
    return np.where(some, np.clip(stale + scale * together, lowest, highest), corrected)


def _beyond_chance(moved: Floats, chance: Floats) -> float:
    """The variance of what groups moved by, without the chance in each."""
    weights = 1 / chance
    common = np.average(moved, weights=weights)
    differ = float((weights * (moved - common) ** 2).sum())
    worth = float(weights.sum() - (weights**2).sum() / weights.sum())
    return max(0.0, (differ - (len(moved) - 1)) / worth)


def deviations(share: float, pairs: Sequence[tuple[Floats, Floats]], ratio: float) -> Floats:
    """How far the correction of each group's percentile is off by chance; not a number if that is not known.

    ``pairs`` are what the sampled keys of each had before and have after. A key whose row passed the
    percentile moves it by a rank, and so many ranks of the sample before are so much. How many keys did is
    taken from all groups: by its own a group that moved far would seem a vague one, and the others, which
    moved less, would be believed more. As in the bootstrap, one more up and one more down may be missing.
    """
    passed = sum(_passed(share, *pair) for pair in pairs) + 2.0
    keys = max(1, sum(len(dirty) for dirty, _ in pairs))
    variance = (1.0 - ratio) * passed / keys
    return np.array([_worth(share, dirty, sqrt(variance * len(dirty))) for dirty, _ in pairs])


def _passed(share: float, dirty: Floats, clean: Floats) -> float:
    """By how many ranks sampled keys moved the percentile, squared, of all keys together."""
    old, new = (_influences(share, values) for values in (dirty, clean))
    return float(((new - old) ** 2).sum())


def _influences(share: float, values: Floats) -> Floats:
    """By how many ranks each key has the percentile move down."""
    there = ~np.isnan(values)
    if not there.any():
        return np.zeros_like(values)
    ordered = np.sort(values[there])
    percentile = _at(ordered, share * (len(ordered) - 1))
    return np.where(there, (values <= percentile) - share, 0.0)


def _worth(share: float, values: Floats, ranks: float) -> float:
    """What so many ranks next to the percentile are.

    Distances of neighbours are chance: they are looked at over √n ranks at least. Where values come in steps
    it is not known, as it depends on which side of a step one stands.
    """
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return np.nan
    place, around = share * (len(ordered) - 1), max(ranks, sqrt(len(ordered)) / 2)
    low, high = _at(ordered, place - around), _at(ordered, place + around)
    near = ordered[np.searchsorted(ordered, low) : np.searchsorted(ordered, high, "right")]
    if 2 * len(np.unique(near)) < len(near):
        return np.nan
    return (high - low) / 2 * ranks / around


def _at(ordered: Floats, place: float) -> float:
    """The value in a place among those in order, between neighbours and not beyond the ends."""
    return float(np.interp(place, np.arange(len(ordered)), ordered))
