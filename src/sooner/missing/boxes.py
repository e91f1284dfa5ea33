"""Constraints as boxes in arrays: which of them meet a question, all at once.

A constraint whose rows lie in one box, and in no box of another, is a cell by itself. Thousands of
those are compared with a question in NumPy, without cutting the space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sooner.statistics.arrays import Booleans
from sooner.synopses.axes import MOST, NULL, Codes
from sooner.synopses.conditions import Box

# Pairs of boxes that are compared at a time.
_PAIRS = 4_000_000


@dataclass(frozen=True)
class Boxes:
    """The first and the last value of each box along each axis that one of them names."""

    low: Mapping[str, Codes]
    high: Mapping[str, Codes]
    count: int

    def ends(self, axis: str) -> tuple[Codes, Codes]:
        """The ends of all boxes along an axis; everything where it is not named, null too."""
        if axis in self.low:
            return self.low[axis], self.high[axis]
        return np.full(self.count, NULL), np.full(self.count, MOST)

    @property
    def are_empty(self) -> Booleans:
        """Which boxes hold nothing."""
        found = np.zeros(self.count, np.bool_)
        for axis in self.low:
            found |= self.low[axis] > self.high[axis]
        return found

    def meet(self, box: Box) -> Booleans:
        """Which boxes have something in common with another."""
        found = ~self.are_empty
        for axis, spans in box.items():
            found &= spans.meet(*self.ends(axis))
        return found

    def within(self, box: Box) -> Booleans:
        """Which boxes lie in another whole."""
        found = np.ones(self.count, np.bool_)
        for axis, spans in box.items():
            found &= spans.contain(*self.ends(axis))
        return found

    def take(self, places: Sequence[int]) -> Boxes:
        """Some of the boxes."""
        at = np.asarray(places, np.int64)
        low = {axis: ends[at] for axis, ends in self.low.items()}
        return Boxes(low, {axis: ends[at] for axis, ends in self.high.items()}, len(at))

    @property
    def are_alone(self) -> Booleans:
        """Which boxes have nothing in common with any other."""
        found = np.ones(self.count, np.bool_)
        step = max(1, _PAIRS // max(1, self.count))
        for start in range(0, self.count, step):
            rows = slice(start, start + step)
            common = np.ones((len(range(*rows.indices(self.count))), self.count), np.bool_)
            for axis in self.low:
                low, high = self.low[axis], self.high[axis]
                common &= (low[rows, None] <= high) & (low <= high[rows, None])
            found[rows] = common.sum(axis=1) <= 1
        return found


def boxes_of(given: Sequence[Box]) -> Boxes | None:
    """Boxes in arrays, if each has one span along each axis."""
    axes = sorted({axis for box in given for axis in box})
    low = {axis: np.full(len(given), NULL) for axis in axes}
    high = {axis: np.full(len(given), MOST) for axis in axes}
    for place, box in enumerate(given):
        for axis, spans in box.items():
            if len(spans.ends) > 1:
                return None
            low[axis][place], high[axis][place] = spans.ends[0] if spans.ends else (0, -1)
    return Boxes(low, high, len(given))
