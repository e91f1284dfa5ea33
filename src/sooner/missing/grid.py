"""The space of possible rows, cut where any condition cuts it: conditions become sets of bits.

Along each axis the cuts leave atoms, spans of values that no condition tells apart. A part of the space is
the set of those combinations of atoms that lie in it, one bit each: both of two conditions is `&`, and a
part is possible if a bit is set. So whether a cell can hold a row is decided exactly, without a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np

from sooner.statistics.arrays import Booleans
from sooner.synopses.axes import MOST, NULL, Codes
from sooner.synopses.conditions import Box
from sooner.synopses.spans import Spans

Part = int


@dataclass(frozen=True)
class Grid:
    """Axes by name and where the atoms of each begin."""

    starts: Mapping[str, Codes]

    @property
    def size(self) -> int:
        """How many combinations of atoms there are."""
        return prod(len(one) for one in self.starts.values())

    @cached_property
    def whole(self) -> Part:
        """All of the space."""
        return (1 << self.size) - 1

    def part(self, boxes: Iterable[Box]) -> Part:
        """What lies in one of some boxes; axes that the grid does not have are left out of them."""
        found = np.zeros(tuple(len(one) for one in self.starts.values()), np.bool_)
        for box in boxes:
            found |= self._inside(box)
        return int.from_bytes(np.packbits(found.ravel(), bitorder="little").tobytes(), "little")

    def _inside(self, box: Box) -> Booleans:
        masks = [
            np.ones(len(starts), np.bool_) if name not in box else box[name].hold(starts)
            for name, starts in self.starts.items()
        ]
        return reduce(np.logical_and.outer, masks, np.ones((), np.bool_))

    def atoms(self, part: Part, axis: str) -> list[int]:
        """The atoms of an axis that a part touches."""
        return [n for n, slab in enumerate(self._slabs[axis]) if part & slab]

    def whole_atoms(self, part: Part, axis: str) -> list[int]:
        """The atoms of an axis that lie in a part whatever the other columns are."""
        return [n for n, slab in enumerate(self._slabs[axis]) if not slab & ~part]

    def slab(self, axis: str, atom: int) -> Part:
        """All of the space along an atom of an axis."""
        return self._slabs[axis][atom]

    def ends(self, axis: str, atom: int) -> tuple[int, int]:
        """The first and the last value of an atom."""
        starts = self.starts[axis]
        last = int(starts[atom + 1]) - 1 if atom + 1 < len(starts) else MOST
        return int(starts[atom]), last

    @cached_property
    def _slabs(self) -> dict[str, list[Part]]:
        return {
            axis: [
                self.part([{axis: Spans((self.ends(axis, atom),))}]) for atom in range(len(starts))
            ]
            for axis, starts in self.starts.items()
        }


def grid_of(axes: Sequence[str], boxes: Iterable[Box]) -> Grid:
    """The grid of some axes that all these boxes cut."""
    cuts: dict[str, set[int]] = {axis: {NULL, NULL + 1} for axis in axes}
    for box in boxes:
        for axis, spans in box.items():
            if axis in cuts:
                for low, high in spans.ends:
                    cuts[axis].add(low)
                    if high < MOST:
                        cuts[axis].add(high + 1)
    return Grid({axis: np.array(sorted(found), np.int64) for axis, found in cuts.items()})
