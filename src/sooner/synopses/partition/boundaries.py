"""Boundaries between leaves: the upper code of every leaf but the last.

The algorithms think in cuts, numbers of items to the left of a boundary; codes are for the data.
"""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Integers
from sooner.synopses.partition.items import Items


def boundaries_at(items: Items, cuts: Integers) -> Integers:
    """The codes of boundaries with so many items to their left; cuts that separate nothing are left out.

    >>> from sooner.synopses.partition import items_of
    >>> boundaries_at(items_of(np.array([3, 5, 9]), np.zeros(3)), np.array([0, 1, 1, 3]))
    array([3])
    """
    inner = np.unique(cuts[(cuts > 0) & (cuts < len(items))])
    return items.codes[inner - 1]


def leaves_between(items: Items, boundaries: Integers) -> tuple[Integers, Integers]:
    """The first and the last item of each leaf that has any.

    >>> from sooner.synopses.partition import items_of
    >>> leaves_between(items_of(np.array([3, 5, 9]), np.zeros(3)), np.array([1, 5]))
    (array([0, 2]), array([1, 2]))
    """
    cuts = np.searchsorted(items.codes, boundaries, side="right")
    edges = np.unique(np.concatenate([[0], cuts, [len(items)]])).astype(np.int64)
    return edges[:-1], edges[1:] - 1


def nearest_cut(items: Items, rows: float, first: int, end: int) -> int:
    """The cut with as close to so many rows to its left as can be, between cuts ``first`` and ``end``."""
    cut = int(np.searchsorted(items.counts, rows))
    if items.counts[cut] - rows > rows - items.counts[cut - 1]:
        cut -= 1
    return min(max(cut, first + 1), end - 1)
