"""What one box touches: nodes it covers, leaves it cuts, sampled rows that pass; and the numbers of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sooner.synopses.cells import Cell, average_cell, count_cell, extreme_cell, sum_cell
from sooner.synopses.question import Function
from sooner.synopses.samples import Samples
from sooner.synopses.spans import Spans
from sooner.synopses.strata import Covered, Matching, Strata, covered, matching, strata
from sooner.synopses.tree import Frontier, Tree


@dataclass(frozen=True)
class Look:
    """A box in a tree and its samples."""

    tree: Tree
    samples: Samples
    frontier: Frontier
    match: Matching

    @property
    def is_sure(self) -> bool:
        """Whether a row passes for certain."""
        return bool(len(self.frontier.covered) or self.match.passed.any())

    @property
    def is_possible(self) -> bool:
        """Whether a row may pass."""
        return bool(len(self.frontier.covered) or len(self.frontier.partial))

    @property
    def read(self) -> int:
        """How many sampled rows were looked at."""
        return len(self.match.places)

    def cell(self, function: Function, measure: str | None, confidence: float) -> Cell:
        """A number: an aggregate of a measure, or COUNT(*) without one."""
        found = self._cells.get((function, measure))
        if found is None:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is unknown
                found = self._cells[function, measure] = self._cell(function, measure)
        return found.at(confidence)

    @cached_property
    def _cells(self) -> dict[tuple[Function, str | None], Cell]:
        """The numbers that were asked for, at any confidence."""
        return {}

    @cached_property
    def _parts(self) -> dict[str, tuple[Covered, Strata]]:
        """What is known of each measure that was asked for: all functions of it go by that."""
        return {}

    def _cell(self, function: Function, measure: str | None) -> Cell:
        if measure is None:
            known = covered(self.tree, self.frontier, None)
            rows = self.tree.totals.rows[self.frontier.partial]
            none = np.zeros_like(rows)
            return count_cell(known.rows, rows, self.match.sampled, self.match.matched, none)
        if measure not in self._parts:
            self._parts[measure] = (
                covered(self.tree, self.frontier, measure),
                strata(self.tree, self.samples, self.frontier, self.match, measure),
            )
        known, parts = self._parts[measure]
        match function:
            case "count":
                null = parts.rows - parts.totals.count - (parts.sampled - parts.valued)
                return count_cell(known.count, parts.rows, parts.sampled, parts.count, null)
            case "sum":
                return sum_cell(known, parts)
            case "avg":
                return average_cell(known, parts)
        return extreme_cell(known, parts, largest=function == "max")


def look(tree: Tree, samples: Samples, box: Mapping[str, Spans]) -> Look:
    """Look at a box."""
    frontier = tree.frontier(box)
    return Look(tree, samples, frontier, matching(samples, tree.leaf[frontier.partial], box))
