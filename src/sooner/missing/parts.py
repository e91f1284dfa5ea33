"""Rows in parts of equally many, cut along columns so that values are close together in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Floats
from sooner.synopses.axes import Codes


@dataclass(frozen=True)
class Cut:
    """A column, where it is cut, and what lies below and from there on."""

    column: str
    at: int
    below: Tree
    above: Tree


Tree: TypeAlias = Cut | int  # the number of a part

# Values of a column in so many equal parts tell how much of the measure goes with it.
_PARTS = 64
_COLUMNS = 2
# Where a part may be cut, as shares of its rows.
_PLACES = np.linspace(0, 1, 17)[1:-1]


class Parts:
    """Rows cut in two again and again, where most rows have values that are far apart first.

    Each cut is along the column and at the place that leaves values closest together.
    """

    def __init__(self, codes: Mapping[str, Codes], values: Floats, count: int) -> None:
        self._codes, self._values = codes, values
        self._cuts: dict[int, tuple[str, int, int, int]] = {}
        everything = np.arange(len(values))
        heap = [(0.0, 0, everything)]
        whole = {}  # parts that cannot be cut
        made = 1
        while heap and len(self._cuts) + 1 < count:
            _, number, rows = heappop(heap)
            found = self._best(rows)
            if found is None:
                whole[number] = rows
                continue
            name, at = found
            above = codes[name][rows] >= at
            self._cuts[number] = (name, at, made, made + 1)
            for side in (rows[~above], rows[above]):
                apart = len(side) * float(np.ptp(values[side]))
                heappush(heap, (-apart, made, side))
                made += 1
        self._held = {number: rows for _, number, rows in heap} | whole
        # The rows of each part, by its number.
        self.rows: list[npt.NDArray[np.int64]] = []
        self.tree = self._tree(0)

    def _best(self, rows: npt.NDArray[np.int64]) -> tuple[str, int] | None:
        best: tuple[float, str, int] | None = None
        for name, codes in self._codes.items():
            order = np.argsort(codes[rows], kind="stable")
            own, values = codes[rows][order], self._values[rows][order]
            starts = np.flatnonzero(np.diff(own)) + 1
            if not len(starts):
                continue
            wanted = (len(own) * _PLACES).astype(np.int64)
            places = np.unique(starts[np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)])
            below = _spread_so_far(values)[places - 1] * places
            above = _spread_so_far(values[::-1])[::-1][places] * (len(own) - places)
            place = int(np.argmin(below + above))
            spread = float((below + above)[place])
            if best is None or spread < best[0]:
                best = (spread, name, int(own[places[place]]))
        return None if best is None else best[1:]

    def _tree(self, number: int) -> Tree:
        if number not in self._cuts:
            self.rows.append(self._held[number])
            return len(self.rows) - 1
        name, at, below, above = self._cuts[number]
        return Cut(name, at, self._tree(below), self._tree(above))


def _spread_so_far(values: Floats) -> Floats:
    """How far apart the values up to each place are."""
    found: Floats = np.maximum.accumulate(values) - np.minimum.accumulate(values)
    return found


def correlated_columns(codes: Mapping[str, Codes], values: Floats) -> list[str]:
    """The columns that tell most about the measure: its variance between equal parts of their values."""
    explained = {}
    for name, one in codes.items():
        cuts = np.unique(np.quantile(one, np.linspace(0, 1, _PARTS + 1)[1:-1], method="nearest"))
        part = np.searchsorted(cuts, one, side="right")
        number = np.bincount(part)
        mean = np.bincount(part, weights=values) / np.maximum(number, 1)
        explained[name] = float(number @ (mean - values.mean()) ** 2)
    best = sorted(explained, key=lambda name: -explained[name])[:_COLUMNS]
    return [name for name in best if explained[name] > 0]
