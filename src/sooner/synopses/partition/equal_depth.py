"""Leaves of equally many rows."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Integers
from sooner.synopses.partition.boundaries import boundaries_at, nearest_cut
from sooner.synopses.partition.items import Items


def equal_depth(items: Items, leaves: int) -> Integers:
    """Boundaries of leaves with equally many rows; if codes are distinct, the best for COUNT (PASS §2.4.3).

    A code that many rows share may fill a leaf and more; the leaves after it share what is left.

    >>> from sooner.synopses.partition import items_of
    >>> equal_depth(items_of(np.arange(8), np.zeros(8)), 4)
    array([1, 3, 5])
    """
    return boundaries_at(items, equal_cuts(items, leaves))


def equal_cuts(items: Items, leaves: int) -> Integers:
    """The same as numbers of items to the left of each boundary."""
    leaves = min(leaves, len(items))
    cuts = np.zeros(max(leaves, 1), np.int64)
    for leaf in range(1, leaves):
        before, left = cuts[leaf - 1], leaves - leaf + 1
        rows = items.counts[before] + (items.rows - items.counts[before]) / left
        # Each leaf has an item, and so has each leaf to come.
        cuts[leaf] = nearest_cut(items, rows, before, len(items) - left + 2)
    return cuts[1:]
