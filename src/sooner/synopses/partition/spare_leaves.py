"""What to do with leaves that an algorithm has no use for."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np

from sooner.statistics.arrays import Integers
from sooner.synopses.partition.boundaries import nearest_cut
from sooner.synopses.partition.items import Focus, Items
from sooner.synopses.partition.max_variance import fast_max_variance


def use_spare_leaves(items: Items, cuts: Integers, leaves: int, focus: Focus) -> Integers:
    """More cuts, through the middle of the worst leaves, until there are as many leaves as asked for.

    Leaves are left over if queries shorter than δ·m are all that still has variance. A part of a leaf is
    never worse than the leaf (PASS §2.4.3), so the rest goes where short queries are worst, and where
    the values have no variance at all to the fullest leaves. For AVG that is decided as for SUM: a
    single row is its worst short query, and stays so in whatever part.
    """
    edges = np.unique(np.concatenate([[0], cuts, [len(items)]])).tolist()
    if len(edges) > leaves:
        return np.array(edges[1:-1], np.int64)
    inside = fast_max_variance(items, "count" if focus == "count" else "sum", smallest=1)
    worst: list[tuple[float, int, int, int]] = []

    def wait(pairs: list[tuple[int, int]]) -> None:
        wide = [(first, end) for first, end in pairs if end - first > 1]
        first, end = np.array(wide, np.int64).reshape(-1, 2).T
        variances, rows = inside(first, end - 1), items.counts[end] - items.counts[first]
        for pair, variance, many in zip(wide, variances.tolist(), rows.tolist(), strict=True):
            heapq.heappush(worst, (-variance, -many, *pair))

    wait(list(pairwise(edges)))
    while worst and len(edges) <= leaves:
        *_, first, end = heapq.heappop(worst)
        cut = nearest_cut(items, (items.counts[first] + items.counts[end]) / 2.0, first, end)
        edges.append(cut)
        wait([(first, cut), (cut, end)])
    return np.array(sorted(edges)[1:-1], np.int64)
