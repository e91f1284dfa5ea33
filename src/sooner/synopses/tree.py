"""A tree of boxes with exact totals: which nodes a question covers whole, and which leaves it cuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Booleans
from sooner.synopses.spans import Spans
from sooner.synopses.totals import Ints, MeasureTotals, Totals


@dataclass(frozen=True)
class Frontier:
    """The minimal coverage frontier (PASS §2.3.2): nodes that pass whole, and leaves that may in part."""

    covered: Ints
    partial: Ints


@dataclass(frozen=True)
class Tree:
    """Nodes with the number of their parent (−1 for the root) and of their leaf (−1 for inner nodes).

    The boxes of ``totals`` are those of the rows that are there, tighter than those of the partitioning.
    """

    parent: Ints
    leaf: Ints
    totals: Totals

    @cached_property
    def _is_leaf(self) -> Booleans:
        return self.leaf >= 0

    @cached_property
    def _has_parent(self) -> Booleans:
        return self.parent >= 0

    @cached_property
    def _has_rows(self) -> Booleans:
        return self.totals.rows > 0

    def frontier(self, box: Mapping[str, Spans]) -> Frontier:
        """Algorithm 1 of the paper, for all nodes at once: a node stands for those below it."""
        totals = self.totals
        inside = meets = self._has_rows
        for name, spans in box.items():
            if name not in totals.low:
                inside = np.zeros_like(inside)  # only samples tell
                continue
            low, high = totals.low[name], totals.high[name]
            meets = meets & spans.meet(low, high)
            inside = inside & spans.contain(low, high)
        above = inside[self.parent] & self._has_parent
        covered = np.flatnonzero(inside & ~above)
        partial = np.flatnonzero(self._is_leaf & meets & ~inside)
        return Frontier(covered, partial)


def grown(parent: Ints, leaf: Ints, leaves: Totals) -> Tree:
    """The tree over leaves whose totals are known: those of inner nodes are their children's together."""
    nodes = len(parent)
    at = np.flatnonzero(leaf >= 0)
    order = _deepest_first(parent)

    def up(values: npt.NDArray[Any], empty: Any, merge: np.ufunc) -> npt.NDArray[Any]:
        full = np.full(nodes, empty, dtype=values.dtype)
        full[at] = values[leaf[at]]
        for level in order:
            merge.at(full, parent[level], full[level])
        return full

    def summed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return up(values, 0, np.add)

    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return Tree(
        parent,
        leaf,
        Totals(
            summed(leaves.rows),
            {name: up(low, most, np.minimum) for name, low in leaves.low.items()},
            {name: up(high, least, np.maximum) for name, high in leaves.high.items()},
            {
                name: MeasureTotals(
                    summed(one.count),
                    summed(one.sum),
                    summed(one.positive),
                    summed(one.negative),
                    summed(one.squares),
                    up(one.low, np.inf, np.minimum),
                    up(one.high, -np.inf, np.maximum),
                    summed(one.nan),
                )
                for name, one in leaves.measures.items()
            },
        ),
    )


def _deepest_first(parent: Ints) -> list[Ints]:
    """The nodes that have a parent, level by level, from the deepest up."""
    depth = np.zeros(len(parent), np.int64)
    above = parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return [np.flatnonzero(depth == level) for level in range(int(depth.max(initial=0)), 0, -1)]
