"""How many rows each cell holds at the best: an integer program, solved by HiGHS (§4.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sooner.missing.cells import Cells
from sooner.statistics.arrays import Booleans, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Counts = npt.NDArray[np.int64]


class Contradiction(Exception):
    """No rows fulfil all constraints."""


@dataclass(frozen=True)
class Program:
    """Of each constraint: the fewest and the most rows in the cells it holds in; ``most`` may be infinite."""

    cells: Cells
    fewest: Floats
    most: Floats

    @cached_property
    def limits(self) -> Floats:
        """The most rows of each cell."""
        return np.array([min(self.most[list(cell.inside)]) for cell in self.cells.cells])

    @cached_property
    def is_disjoint(self) -> bool:
        """Whether every cell is that of one constraint, so that each is decided on its own."""
        return all(len(cell.inside) == 1 for cell in self.cells.cells)

    @cached_property
    def own(self) -> npt.NDArray[np.int64]:
        """Where it is disjoint: the constraint of each cell."""
        return np.array([cell.inside[0] for cell in self.cells.cells], np.int64)

    @cached_property
    def _required(self) -> Floats:
        """Constraints that split nothing ask for no rows: theirs may be in other cells."""
        split = np.arange(len(self.fewest)) < self.cells.split
        return np.where(split, self.fewest, 0.0)

    @cached_property
    def _member(self) -> csr_array:
        from scipy.sparse import csr_array

        pairs = [(j, n) for n, cell in enumerate(self.cells.cells) for j in cell.inside]
        rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
        shape = (len(self.fewest), len(self.cells.cells))
        return csr_array((np.ones(len(pairs)), (rows, columns)), shape)

    def best(
        self,
        weights: Floats,
        allowed: Booleans | None = None,
        at_least: Counts | None = None,
    ) -> Counts | None:
        """The rows of each cell with the largest weight in all; ``None`` if there is no largest.

        Only ``allowed`` cells hold rows, and each ``at_least`` so many. Raises :class:`Contradiction`.
        """
        limits = self.limits if allowed is None else np.where(allowed, self.limits, 0.0)
        floor = np.zeros(len(limits)) if at_least is None else at_least.astype(np.float64)
        if (floor > limits).any():
            raise Contradiction
        if self.is_disjoint:
            return self._one_by_one(weights, limits, floor)
        if (np.isinf(limits) & (weights > 0)).any() and self._is_unbounded(weights, limits, floor):
            return None
        asked = (weights.tobytes(), limits.tobytes(), floor.tobytes())
        if asked not in self._solved:
            self._solved[asked] = self._solution(weights, limits, floor)
        rows = self._solved[asked]
        if rows is None:
            raise Contradiction
        return rows

    @cached_property
    def _solved(self) -> dict[tuple[bytes, bytes, bytes], Counts | None]:
        """What was solved already: the aggregates of a query ask much the same."""
        return {}

    def _solution(self, weights: Floats, limits: Floats, floor: Floats) -> Counts | None:
        # Half a second of imports that only overlapping constraints need.
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            -weights,
            integrality=np.ones(len(weights)),
            bounds=Bounds(floor, limits),
            constraints=LinearConstraint(self._member, self._required, self.most),
            options={"mip_rel_gap": 0.0},
        )
        rows: Counts | None = None if found.x is None else np.rint(found.x).astype(np.int64)
        return rows

    def _one_by_one(self, weights: Floats, limits: Floats, floor: Floats) -> Counts | None:
        fewest = np.maximum(self._required[self.own], floor)
        held = np.zeros(len(self.fewest), np.bool_)
        held[self.own] = True
        if (fewest > limits).any() or (self._required[~held] > 0).any():
            raise Contradiction
        if (np.isinf(limits) & (weights > 0)).any():
            return None
        rows: Counts = np.where(weights > 0, limits, fewest).astype(np.int64)
        return rows

    def _is_unbounded(self, weights: Floats, limits: Floats, floor: Floats) -> bool:
        """Whether there are solutions with any weight: rows in a cell whose constraints have no most."""
        self.best(
            np.zeros(len(weights)), limits > 0, floor.astype(np.int64)
        )  # else a contradiction
        return True

    def can_hold(self, cell: int) -> bool:
        """Whether a cell can hold a row at all."""
        if self.is_disjoint:
            return bool(self.limits[cell] >= 1) and self.is_possible()
        one = np.zeros(len(self.limits), np.int64)
        one[cell] = 1
        return self.is_possible(at_least=one)

    def is_possible(self, allowed: Booleans | None = None, at_least: Counts | None = None) -> bool:
        """Whether some rows fulfil the constraints."""
        try:
            self.best(np.zeros(len(self.limits)), allowed, at_least)
        except Contradiction:
            return False
        return True


def infinite(most: Sequence[int | None]) -> Floats:
    """Most rows as numbers, where nobody knows the most infinite."""
    return np.array([np.inf if one is None else float(one) for one in most])
