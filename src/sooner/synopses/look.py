"""What one box touches: nodes it covers, leaves it cuts, sampled rows that pass; and the numbers of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sooner.synopses.cells import Cell, average_cell, count_cell, extreme_cell, sum_cell
from sooner.synopses.question import Function
from sooner.synopses.samples import Samples
from sooner.synopses.spans import Spans
from sooner.synopses.strata import Matching, covered, matching, strata
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
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is unknown
            return self._cell(function, measure, confidence)

    def _cell(self, function: Function, measure: str | None, confidence: float) -> Cell:
        known = covered(self.tree, self.frontier, measure)
        if measure is None:
            rows = self.tree.totals.rows[self.frontier.partial]
            none = np.zeros_like(rows)
            return count_cell(
                known.rows, rows, self.match.sampled, self.match.matched, none, confidence
            )
        parts = strata(self.tree, self.samples, self.frontier, self.match, measure)
        match function:
            case "count":
                null = parts.rows - parts.totals.count - (parts.sampled - parts.valued)
                return count_cell(
                    known.count, parts.rows, parts.sampled, parts.count, null, confidence
                )
            case "sum":
                return sum_cell(known, parts, confidence)
            case "avg":
                return average_cell(known, parts, confidence)
        return extreme_cell(known, parts, largest=function == "max")


def look(tree: Tree, samples: Samples, box: Mapping[str, Spans]) -> Look:
    """Look at a box."""
    frontier = tree.frontier(box)
    return Look(tree, samples, frontier, matching(samples, tree.leaf[frontier.partial], box))
