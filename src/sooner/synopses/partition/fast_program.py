"""A partitioning whose worst query is nearly best, by the approximate dynamic program of PASS."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Floats, Integers
from sooner.synopses.partition.boundaries import boundaries_at
from sooner.synopses.partition.exact_program import trace
from sooner.synopses.partition.items import Focus, Items, smallest_query
from sooner.synopses.partition.max_variance import MaxVariance, fast_max_variance
from sooner.synopses.partition.spare_leaves import use_spare_leaves


def fast_program(items: Items, leaves: int, focus: Focus, delta: float) -> Integers:
    """Boundaries by the program over samples with discretized queries (PASS §2.4.3, marked ** there).

    In A[i, j] = min over h of max(A[h, j−1], M([h+1, i])) the left grows with h and the right falls, so
    a binary search finds where they cross, for all i at once. M is the fast oracle, which is not quite
    monotone. That does no harm: it never exceeds the exact one, which is, and so neither does the
    value found exceed that of the exact program; the worst error is larger by what the oracle misses.

    >>> from sooner.synopses.partition import items_of
    >>> fast_program(items_of(np.arange(6), np.array([0, 0, 0, 0, 5.0, 9.0])), 3, "sum", 0.0)
    array([3, 4])
    """
    if not len(items):
        return items.codes
    inside = fast_max_variance(items, focus, smallest_query(items.rows, delta))
    ends = np.arange(1, len(items) + 1)
    # One leaf holds all: the cut is before the first item.
    low, beyond = np.zeros(len(ends), np.int64), inside(np.zeros_like(ends), ends - 1)
    best = np.concatenate([[0.0], beyond])
    choices = []
    reach = len(items)
    for _ in range(1, min(leaves, len(items))):
        before = low.copy()
        high = _cross(inside, best, low, beyond, reach)
        reach = int(np.median(low - before)) + 1
        # At ``high`` the leaves before it decide, at ``low`` the last one; or it stays empty.
        values = np.stack([best[1:], best[high], beyond])
        chosen = values.argmin(axis=0)
        choices.append(np.concatenate([[0], np.choose(chosen, [ends, high, low])]))
        best = np.concatenate([[0.0], values.min(axis=0)])
        if best[-1] == 0.0:
            break
    return boundaries_at(items, use_spare_leaves(items, trace(choices, len(items)), leaves, focus))


def _cross(
    inside: MaxVariance, best: Floats, low: Integers, beyond: Floats, reach: int
) -> Integers:
    """The smallest cut seen where the leaves before it decide; ``low`` moves up to the cut before that.

    ``beyond`` is M of the last leaf if cut at ``low``. With more leaves ``best`` only falls, so cuts
    where the last leaf decided need not be looked at again: both are kept from layer to layer, and
    change in place. They move little, so the search begins with steps of ``reach``, then twice that.
    """
    high = np.arange(1, len(low) + 1)
    # What has no variance yet cannot be improved.
    open_ = np.flatnonzero((best[1:] > 0.0) & (high - low > 1))
    here, there = low[open_], high[open_]
    while len(open_):
        middle = np.minimum(here + reach, (here + there) >> 1)
        last = inside(middle, open_)
        before = best.take(middle) >= last
        after = ~before
        np.copyto(there, middle, where=before)
        np.copyto(here, middle, where=after)
        beyond[open_[after]] = last[after]
        further = there - here > 1
        if not further.all():
            low[open_], high[open_] = here, there
            open_, here, there = open_[further], here[further], there[further]
        reach *= 2
    return high
