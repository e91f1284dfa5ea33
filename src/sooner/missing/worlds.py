"""All ways in which rows may be missing under some constraints, and what a question sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property, lru_cache, reduce
from operator import and_
from typing import Protocol, TypeAlias

import numpy as np

from sooner.missing.boxes import Boxes, boxes_of
from sooner.missing.cells import Cell, Cells, decompose
from sooner.missing.constraint import Constraint
from sooner.missing.grid import Grid, Part, grid_of
from sooner.missing.program import Program, infinite
from sooner.missing.ranges import Reach
from sooner.missing.space import Space, numbers_of
from sooner.statistics.arrays import Booleans, Floats
from sooner.synopses.axes import LEAST, MOST, NULL, Axis, Codes
from sooner.synopses.conditions import Box
from sooner.synopses.spans import ALL, Spans

# Beyond so many cells, or so many atoms of space, nothing is split further: the range is wider then.
MOST_CELLS = 3000
MOST_ATOMS = 2_000_000


# Whether rows of a cell can count, whether they can escape, and their first and last value.
_Seen: TypeAlias = tuple[bool, bool, int, int]


class Worlds(Protocol):
    """Cells that missing rows can be in, and a program of how many rows they hold."""

    program: Program
    is_split: bool

    def reach(self, question: Sequence[Box], measure: Axis | None) -> Reach:
        """What rows of each cell are to a question: alternatives of boxes, and what it aggregates."""


@dataclass(frozen=True)
class Region:
    """What one constraint says: where its rows are, and the values they have there."""

    where: tuple[Box, ...]
    values: Box

    @cached_property
    def rows(self) -> list[Box]:
        """All that its rows can be."""
        return [
            {n: box.get(n, ALL) & self.values.get(n, ALL) for n in {*box, *self.values}}
            for box in self.where
        ]


class Told:
    """What constraints say, in the columns of a table."""

    def __init__(self, space: Space, constraints: Sequence[Constraint]) -> None:
        self.regions = [Region(space.boxes(one.where), space.ranges(one)) for one in constraints]
        self.fewest = np.array([one.rows[0] for one in constraints], np.float64)
        self.most = infinite([one.rows[1] for one in constraints])

    @cached_property
    def separate(self) -> Separate | None:
        """Their worlds, if no two of them have anything in common."""
        boxes = _separate(self.regions)
        return None if boxes is None else Separate(boxes, self.fewest, self.most)


def told(space: Space, constraints: Iterable[Constraint]) -> Told:
    """What constraints say; to read thousands of them takes longer than to ask them, so it is kept."""
    return _told(tuple(space.axes.values()), space.zone, tuple(constraints))


@lru_cache(maxsize=16)
def _told(axes: tuple[Axis, ...], zone: tzinfo, constraints: tuple[Constraint, ...]) -> Told:
    return Told(Space({axis.name.lower(): axis for axis in axes}, zone), constraints)


def worlds(
    space: Space,
    constraints: Sequence[Constraint],
    questions: Sequence[Sequence[Box]] = (),
    measures: Iterable[str] = (),
    closed: bool = True,
) -> Worlds:
    """The cells of some constraints; all ``questions`` will be asked of columns among ``measures``.

    With ``closed=False`` rows may also be missing where no constraint says anything.
    """
    read = told(space, constraints)
    boxes = [box for question in questions for box in question]
    plain = all(len(question) == 1 for question in questions) and all(
        len(box[name].ends) == 1 for box in boxes for name in measures if name in box
    )
    if closed and plain and read.separate is not None:
        return read.separate
    return Split(read.regions, boxes, read.fewest, read.most, closed)


def _separate(regions: Sequence[Region]) -> Boxes | None:
    """The rows of constraints as boxes, if no two of these have anything in common."""
    if any(len(region.where) != 1 for region in regions):
        return None
    predicates = boxes_of([region.where[0] for region in regions])
    if predicates is None or not predicates.are_alone.all():
        return None
    return boxes_of([region.rows[0] for region in regions])


class Separate:
    """Constraints that have nothing in common: each is a cell, all compared with a question at once."""

    is_split = True

    def __init__(self, boxes: Boxes, fewest: Floats, most: Floats) -> None:
        there = np.flatnonzero(~boxes.are_empty)
        self._boxes = boxes.take(there.tolist())
        cells = tuple(Cell(0, (int(n),)) for n in there)
        self.program = Program(Cells(cells, len(fewest), 0), fewest, most)

    def reach(self, question: Sequence[Box], measure: Axis | None) -> Reach:
        """See :class:`Worlds`."""
        (asked,) = question
        counts, escapes = self._boxes.meet(asked), ~self._boxes.within(asked)
        if measure is None:
            return _counted(counts, escapes)
        low, high = self._boxes.ends(measure.name)
        first, last = asked.get(measure.name, ALL).ends[0]
        return _reach(counts, escapes, np.maximum(low, first), np.minimum(high, last), measure)


class Split:
    """Constraints that may overlap: the space is cut into the cells in which the same ones hold.

    Where it would be cut into too many atoms, only the first constraints cut it, and each of the others
    stands for rows of its own: wider, and still right.
    """

    def __init__(
        self,
        regions: Sequence[Region],
        questions: Sequence[Box],
        fewest: Floats,
        most: Floats,
        closed: bool,
        most_cells: int = MOST_CELLS,
        most_atoms: int = MOST_ATOMS,
    ) -> None:
        self._regions = list(regions)
        cutting = len(regions)
        while (grid := _grid(regions[:cutting], questions)).size > most_atoms and cutting:
            cutting = cutting * 3 // 4
        self.grid = grid
        allowed = grid.whole
        predicates = []
        for region in regions[:cutting]:
            predicates.append(grid.part(region.where))
            allowed &= ~(predicates[-1] & ~grid.part([region.values]))
        found = decompose(allowed, predicates, most_cells)
        self.is_split = found.split == len(regions)
        self.outside = found.outside
        cells = [cell for cell in found.cells if self._is_possible(cell)]
        cells += [Cell(0, (number,)) for number in range(cutting, len(regions))]
        if not closed and found.outside:
            cells.append(Cell(found.outside, (len(regions),)))
            self._regions.append(Region(({},), {}))
            fewest, most = np.append(fewest, 0.0), np.append(most, np.inf)
        self._cells = cells
        self.program = Program(Cells(tuple(cells), found.split, found.outside), fewest, most)

    def _is_possible(self, cell: Cell) -> bool:
        """Whether the constraints of a cell leave its rows a value in every column."""
        named = {name for number in cell.inside for name in self._regions[number].values}
        return not any(self._values(cell, name).is_empty for name in named)

    def _values(self, cell: Cell, name: str) -> Spans:
        values = (self._regions[number].values.get(name, ALL) for number in cell.inside)
        return reduce(and_, values, ALL)

    def reach(self, question: Sequence[Box], measure: Axis | None) -> Reach:
        """See :class:`Worlds`."""
        asked = self.grid.part(question)
        seen = [
            self._seen(cell, asked, measure)
            if cell.part
            else _seen_alone(self._regions[cell.inside[0]].rows, question, measure)
            for cell in self._cells
        ]
        counts, escapes, low, high = zip(*seen, strict=True) if seen else ((), (), (), ())
        flags = np.array(counts, np.bool_), np.array(escapes, np.bool_)
        if measure is None:
            return _counted(*flags)
        return _reach(*flags, np.array(low, np.int64), np.array(high, np.int64), measure)

    def _seen(self, cell: Cell, asked: Part, measure: Axis | None) -> _Seen:
        inside = cell.part & asked
        counts, escapes = bool(inside), inside != cell.part
        if measure is None or not inside:
            return counts, escapes, 0, 0
        if measure.name not in self.grid.starts:
            spans = self._values(cell, measure.name).ends
            return counts, escapes, spans[0][0], spans[-1][1]
        atoms = self.grid.atoms(inside, measure.name)
        low, _ = self.grid.ends(measure.name, atoms[0])
        _, high = self.grid.ends(measure.name, atoms[-1])
        return counts, escapes, low, high


def _seen_alone(rows: Sequence[Box], question: Sequence[Box], measure: Axis | None) -> _Seen:
    """What rows of some boxes are to a question, the space not being cut along them."""
    low, high, counts = MOST, NULL, False
    for box in rows:
        for asked in question:
            names = {*box, *asked}
            both = {name: box.get(name, ALL) & asked.get(name, ALL) for name in names}
            if any(spans.is_empty for spans in both.values()):
                continue
            values = ALL if measure is None else both.get(measure.name, ALL)
            low, high = min(low, values.ends[0][0]), max(high, values.ends[-1][1])
            counts = True
    stays = all(
        any(
            all(box.get(name, ALL) & spans == box.get(name, ALL) for name, spans in asked.items())
            for asked in question
        )
        for box in rows
    )
    return counts, not stays, low, high


def _counted(counts: Booleans, escapes: Booleans) -> Reach:
    ones = np.ones(len(counts))
    return Reach(counts, escapes, ones, ones)


def _reach(counts: Booleans, escapes: Booleans, low: Codes, high: Codes, measure: Axis) -> Reach:
    """Null is the first of all values: a row that can have it need not count."""
    low_number = numbers_of(measure, np.maximum(low, LEAST))
    has_value = counts & (high >= LEAST)
    return Reach(has_value, escapes | (low == NULL), low_number, numbers_of(measure, high))


def _grid(regions: Sequence[Region], questions: Sequence[Box]) -> Grid:
    """The space that predicates and questions speak of; values that nobody asks about are no axis of it."""
    asked = [*questions, *(box for region in regions for box in region.where)]
    axes = sorted({axis for box in asked for axis in box})
    return grid_of(axes, [*asked, *(region.values for region in regions)])
