"""A partitioning whose worst query is nearly best, by trying errors: the algorithm of JanusAQP."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from sooner.statistics.arrays import Integers
from sooner.synopses.partition.boundaries import boundaries_at
from sooner.synopses.partition.items import Focus, Items, smallest_query
from sooner.synopses.partition.max_variance import MaxVariance, fast_max_variance
from sooner.synopses.partition.spare_leaves import use_spare_leaves

# Errors that are smaller against the largest one are lost in rounding: variances are their squares.
_SMALLEST = 2.0**-26
# So many ends of a leaf are tried at once.
_TRIED = 32


def binary_search(
    items: Items, leaves: int, focus: Focus, delta: float, rho: float = 1.1
) -> Integers:
    """Boundaries with the smallest error of {ρ^t} ∪ {0} that suffices (JanusAQP §3.5.2).

    The variance of §3.5.2 is divided by the length of the bucket, from its first item on (Algorithm 2
    misprints that). Here it is not, because V as in PASS §2.4.2 is divided by it already. Nor is there
    a smallest length η: leaves of fewer than δ·m rows have no variance.

    >>> from sooner.synopses.partition import items_of
    >>> binary_search(items_of(np.arange(6), np.array([0, 0, 0, 0, 5.0, 9.0])), 3, "sum", 0.0)
    array([3, 4])
    """
    if not len(items):
        return items.codes
    smallest = smallest_query(items.rows, delta)
    inside = fast_max_variance(items, focus, smallest)
    # No query has more, so the largest error surely suffices.
    largest = items.totals(focus)[2, -1] / (smallest**2 if focus == "avg" else 1)
    powers = np.arange(ceil(log(_SMALLEST) / log(1.0 / rho)) + 1)
    allowed = np.append(largest * rho ** (-2.0 * powers), 0.0)
    enough, too_little = 0, len(allowed)
    found = _greedy(inside, len(items), leaves, largest)
    assert found is not None
    while too_little - enough > 1:
        middle = (enough + too_little) // 2
        cuts = _greedy(inside, len(items), leaves, allowed[middle])
        if cuts is None:
            too_little = middle
        else:
            enough, found = middle, cuts
    return boundaries_at(items, use_spare_leaves(items, found, leaves, focus))


def _greedy(inside: MaxVariance, size: int, leaves: int, allowed: float) -> Integers | None:
    """Where leaves end that are as long as their variance allows; nothing if there are too many."""
    cuts = [0]
    while cuts[-1] < size:
        cuts.append(_farthest(inside, cuts[-1], size, allowed))
        if len(cuts) - 1 > leaves or cuts[-1] == cuts[-2]:
            return None
    return np.array(cuts, np.int64)


def _farthest(inside: MaxVariance, first: int, size: int, allowed: float) -> int:
    """An end of the leaf that is allowed while the next one is not; ``first`` itself if there is none."""
    fits, fails = first, size + 1
    while fails - fits > 1:
        ends = np.unique(np.linspace(fits, fails, _TRIED + 2).astype(np.int64))
        ends = ends[(ends > fits) & (ends < fails)]
        over = np.flatnonzero(inside(np.full_like(ends, first), ends - 1) > allowed)
        if len(over):
            fails = int(ends[over[0]])
            fits = int(ends[over[0] - 1]) if over[0] else fits
        else:
            fits = int(ends[-1])
    return fits
