"""How bad a partitioning is at worst: its largest error, and the query that has it."""

from __future__ import annotations

from math import sqrt

from sooner.statistics.arrays import Integers
from sooner.synopses.partition.boundaries import leaves_between
from sooner.synopses.partition.items import Focus, Items, smallest_query
from sooner.synopses.partition.max_variance import (
    MaxVariance,
    exact_max_variance,
    fast_max_variance,
)


def worst_error(
    items: Items, boundaries: Integers, focus: Focus, delta: float, exact: bool = True
) -> float:
    """√V of the worst meaningful query inside one leaf.

    >>> import numpy as np
    >>> from sooner.synopses.partition import items_of
    >>> worst_error(items_of(np.arange(4), np.array([0, 0, 4.0, 4.0])), np.array([1]), "sum", 0.0)
    2.8284271247461903
    """
    first, last = leaves_between(items, boundaries)
    found = _oracle(items, focus, delta, exact)(first, last)
    return sqrt(found.max(initial=0.0))


def worst_interval(
    items: Items, boundaries: Integers, focus: Focus, delta: float, exact: bool = True
) -> tuple[int, int]:
    """The first and the last code of that query: a challenging one (PASS §2.5).

    >>> import numpy as np
    >>> from sooner.synopses.partition import items_of
    >>> worst_interval(items_of(np.arange(4), np.array([0, 0, 4.0, 4.0])), np.array([1]), "sum", 0.0)
    (2, 2)
    """
    first, last = leaves_between(items, boundaries)
    if not len(first):
        raise ValueError("a sample without rows has no queries")
    oracle = _oracle(items, focus, delta, exact)
    leaf = int(oracle(first, last).argmax())
    begin, end = oracle.worst_query(int(first[leaf]), int(last[leaf]))
    return int(items.codes[begin]), int(items.codes[end])


def _oracle(items: Items, focus: Focus, delta: float, exact: bool) -> MaxVariance:
    make = exact_max_variance if exact else fast_max_variance
    return make(items, focus, smallest_query(items.rows, delta))
