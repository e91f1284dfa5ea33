"""Cell decomposition (Predicate-Constraints, §4.4.1): the parts in which the same constraints hold.

Constraint by constraint every cell so far is split into what is in and what is not; what is empty is
dropped at once (optimization 2), and a cell that a constraint does not touch is not looked at for its
complement (optimization 3). When there would be too many cells, the constraints that are left split
nothing: they only say what rows outside all others look like. That range is wider, and still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sooner.missing.grid import Part


@dataclass(frozen=True)
class Cell:
    """A part of the space and the numbers of the constraints that hold in it."""

    part: Part
    inside: tuple[int, ...]


@dataclass(frozen=True)
class Cells:
    """The cells that can hold a row; ``split`` constraints were split by, the rest was not.

    ``outside`` is the part in which no constraint holds.
    """

    cells: tuple[Cell, ...]
    split: int
    outside: Part


def decompose(whole: Part, predicates: Sequence[Part], most: int) -> Cells:
    """The cells of some predicates within a part of the space, no more than about ``most``."""
    found: list[Cell] = []
    outside = whole
    for number, predicate in enumerate(predicates):
        fresh = outside & predicate
        met = [(cell, cell.part & predicate) for cell in found]
        cut = sum(bool(inside) and inside != cell.part for cell, inside in met)
        if len(found) + cut + bool(fresh) > most:
            return _unsplit(found, predicates, number, outside)
        next_: list[Cell] = []
        for cell, inside in met:
            if not inside:
                next_.append(cell)
                continue
            next_.append(Cell(inside, (*cell.inside, number)))
            if inside != cell.part:
                next_.append(Cell(cell.part & ~predicate, cell.inside))
        if fresh:
            next_.append(Cell(fresh, (number,)))
            outside &= ~predicate
        found = next_
    return Cells(tuple(found), len(predicates), outside)


def _unsplit(found: list[Cell], predicates: Sequence[Part], split: int, outside: Part) -> Cells:
    """Rows outside the constraints so far, for each of the others on its own."""
    others = []
    left = outside
    for number in range(split, len(predicates)):
        if outside & predicates[number]:
            others.append(Cell(outside & predicates[number], (number,)))
        left &= ~predicates[number]
    return Cells((*found, *others), split, left)
