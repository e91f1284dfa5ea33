"""The partitioning whose worst query is best, by the dynamic program of PASS with the exact oracle."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Floats, Integers
from sooner.synopses.partition.boundaries import boundaries_at
from sooner.synopses.partition.items import Focus, Items, smallest_query
from sooner.synopses.partition.max_variance import exact_max_variance
from sooner.synopses.partition.spare_leaves import use_spare_leaves


def exact_program(items: Items, leaves: int, focus: Focus, delta: float) -> Integers:
    """The best boundaries: A[i, j] = min over h of max(A[h, j−1], M([h+1, i])) (PASS §2.4.3).

    For a few hundred items at most: all queries of all leaves are looked at.

    >>> from sooner.synopses.partition import items_of
    >>> exact_program(items_of(np.arange(6), np.array([0, 0, 0, 0, 5.0, 9.0])), 3, "sum", 0.0)
    array([3, 4])
    """
    if not len(items):
        return items.codes
    inside = _leaves(items, focus, smallest_query(items.rows, delta))
    best = inside[0]
    choices = []
    for _ in range(1, leaves):
        through = np.maximum(best[:, None], inside)
        choices.append(through.argmin(axis=0))
        best = through.min(axis=0)
    cuts = trace(choices, len(items))
    return boundaries_at(items, use_spare_leaves(items, cuts, leaves, focus))


def _leaves(items: Items, focus: Focus, smallest: int) -> Floats:
    """M of the leaf from item h up to but not including item i; 0 where it is empty."""
    size = len(items)
    first, last = np.triu_indices(size)
    inside = np.full((size + 1, size + 1), np.inf)
    np.fill_diagonal(inside, 0.0)
    inside[first, last + 1] = exact_max_variance(items, focus, smallest)(first, last)
    return inside


def trace(choices: list[Integers], size: int) -> Integers:
    """The cuts, from what was chosen for each number of items with two leaves, three, and so on."""
    cuts = []
    for choice in reversed(choices):
        size = int(choice[size])
        cuts.append(size)
    return np.array(cuts[::-1], np.int64)
