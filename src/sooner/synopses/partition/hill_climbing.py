"""Boundaries that move as long as the worst leaf gets better: the baseline AQP++."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Floats, Integers
from sooner.synopses.partition.boundaries import boundaries_at
from sooner.synopses.partition.equal_depth import equal_cuts
from sooner.synopses.partition.items import Focus, Items, smallest_query
from sooner.synopses.partition.max_variance import MaxVariance, fast_max_variance


def hill_climbing(
    items: Items, leaves: int, focus: Focus, delta: float, rounds: int = 1000
) -> Integers:
    """From leaves of equal depth on, the worst leaf hands items to a neighbour (AQP++, Peng et al. 2018).

    It ends where no such move helps, after ``rounds`` moves at most: a local optimum, for a leaf among
    leaves that are as bad cannot move. PASS found it much like equal depth.

    >>> from sooner.synopses.partition import items_of
    >>> hill_climbing(items_of(np.arange(6), np.array([0, 0, 0, 5.0, 9.0, 9.0])), 2, "sum", 0.0)
    array([3])
    """
    if not len(items):
        return items.codes
    inside = fast_max_variance(items, focus, smallest_query(items.rows, delta))
    edges = np.concatenate([[0], equal_cuts(items, leaves), [len(items)]])
    variances = inside(edges[:-1], edges[1:] - 1)
    for _ in range(rounds):
        if not _move(inside, edges, variances):
            break
    return boundaries_at(items, edges)


def _move(inside: MaxVariance, edges: Integers, variances: Floats) -> bool:
    """Move one edge of the worst leaf inwards, in place, if that makes both its sides better than it was."""
    worst = int(variances.argmax())
    first, end = edges[worst], edges[worst + 1]
    # By one item, two, four, and so on.
    steps = 1 << np.arange(int(end - first).bit_length(), dtype=np.int64)
    steps = steps[steps < end - first]
    limit, best = variances[worst], None
    for edge, cuts in ((worst, first + steps), (worst + 1, end - steps)):
        if not len(steps) or not 0 < edge < len(edges) - 1:
            continue
        left = inside(np.full_like(cuts, edges[edge - 1]), cuts - 1)
        right = inside(cuts, np.full_like(cuts, edges[edge + 1] - 1))
        larger = np.maximum(left, right)
        place = int(larger.argmin())
        if larger[place] < limit:
            limit, best = larger[place], (edge, cuts[place], left[place], right[place])
    if best is None:
        return False
    edge, cut, *sides = best
    edges[edge] = cut
    variances[edge - 1 : edge + 1] = sides
    return True
