"""A synopsis at hand: a tree of exact totals over samples, and the answers it gives in a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.errors import CannotAnswer
from sooner.synopses.axes import NULL, Axis
from sooner.synopses.cells import Cell, average_cell, count_cell, extreme_cell, sum_cell
from sooner.synopses.definition import Definition
from sooner.synopses.measures import Measure
from sooner.synopses.question import Asked, Question
from sooner.synopses.samples import Samples
from sooner.synopses.spans import Spans, spans_of
from sooner.synopses.strata import Matching, covered, matching, strata
from sooner.synopses.tree import Frontier, Tree

METHOD = "synopsis"
_MOST_GROUPS = 10_000


@dataclass(frozen=True)
class Summary:
    """What is kept of a table: its definition, the tree and the samples."""

    definition: Definition
    tree: Tree
    samples: Samples

    @property
    def share(self) -> float:
        """The share of the rows that is stored."""
        return self.samples.count / max(1, int(self.tree.totals.rows.max()))

    def ask(self, question: Question, zone: tzinfo, confidence: float) -> Answer:
        """The answer to a question. Raises :class:`CannotAnswer` where it takes more than is kept."""
        start = perf_counter()
        box = question.box(self.definition.axes, zone)
        boxes = self._boxes(question, box)
        shown = [_typed(one, self.definition) for one in question.asked]
        looks = [self._look(one) for _, one in boxes]
        if question.groups:
            kept = [place for place, look in enumerate(looks) if look.is_sure]
            unseen = sum(look.is_possible and not look.is_sure for look in looks)
        else:
            kept, unseen = [0], 0
        columns = [
            _column(
                one,
                [boxes[place][0] for place in kept],
                [looks[place] for place in kept],
                confidence,
            )
            for one in shown
        ]
        read = sum(len(look.match.places) for look in looks)
        details: dict[str, Any] = {
            "synopsis": self.definition.name,
            "rows_read": read,
            "skipped": 1.0 - min(1.0, read / max(1, self.samples.count * len(boxes))),
        }
        if unseen:
            details["groups_not_seen"] = unseen
        return _answer(shown, columns, self, details, confidence, perf_counter() - start)

    def _look(self, box: Mapping[str, Spans]) -> _Look:
        frontier = self.tree.frontier(box)
        leaves = self.tree.leaf[frontier.partial]
        return _Look(self, frontier, matching(self.samples, leaves, box))

    def _boxes(
        self, question: Question, box: Mapping[str, Spans]
    ) -> list[tuple[dict[str, Any], Mapping[str, Spans]]]:
        """A box for every group there may be, with its values."""
        axes = [self._category(name) for name in question.groups]
        if not axes:
            return [({}, box)]
        choices = [_categories(axis, self.tree) for axis in axes]
        if np.prod([len(one) for one in choices], dtype=np.float64) > _MOST_GROUPS:
            raise CannotAnswer(f"it has more than {_MOST_GROUPS:,} groups.")
        found: list[tuple[dict[str, Any], Mapping[str, Spans]]] = []
        for chosen in product(*choices):
            own = dict(box)
            for axis, (code, _) in zip(axes, chosen, strict=True):
                point = spans_of([(code, code)])
                own[axis.name] = own[axis.name] & point if axis.name in own else point
            values = {axis.name: value for axis, (_, value) in zip(axes, chosen, strict=True)}
            found.append((values, own))
        return found

    def _category(self, name: str) -> Axis:
        axis = next((one for one in self.definition.over if one.name.lower() == name.lower()), None)
        if axis is None or axis.kind not in ("text", "boolean"):
            raise CannotAnswer(
                f"it groups by {name}: a synopsis knows all values of words and booleans that it is "
                "over, of nothing else."
            )
        return axis


@dataclass(frozen=True)
class _Look:
    """What one box touches."""

    summary: Summary
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

    def cell(self, asked: _Asked, confidence: float) -> Cell:
        """One number of the answer."""
        tree, samples = self.summary.tree, self.summary.samples
        measure = asked.measure.name if asked.measure else None
        known = covered(tree, self.frontier, measure)
        if asked.measure is None:
            rows = tree.totals.rows[self.frontier.partial]
            leaves = tree.leaf[self.frontier.partial]
            sampled = samples.starts[leaves + 1] - samples.starts[leaves]
            matched = np.zeros(len(leaves), np.int64)
            some = sampled > 0
            if some.any():
                passed = self.match.passed.astype(np.int64)
                matched[some] = np.add.reduceat(passed, self.match.starts[some])
            return count_cell(known.rows, rows, sampled, matched, np.zeros_like(rows), confidence)
        parts = strata(tree, samples, self.frontier, self.match, asked.measure.name)
        match asked.function:
            case "count":
                null = parts.rows - parts.totals.count
                return count_cell(
                    known.count, parts.rows, parts.sampled, parts.count,
                    null - (parts.sampled - parts.valued), confidence,
                )  # fmt: skip
            case "sum":
                return sum_cell(known, parts, confidence)
            case "avg":
                return average_cell(known, parts, confidence)
        return extreme_cell(known, parts, largest=asked.function == "max")


@dataclass(frozen=True)
class _Asked:
    """A column of the answer with its type."""

    name: str
    function: str | None
    of: str
    measure: Measure | None
    type: pa.DataType


def _typed(asked: Asked, definition: Definition) -> _Asked:
    if asked.function is None:
        assert asked.of is not None
        axis = definition.axes[asked.of.lower()]
        type_ = pa.bool_() if axis.kind == "boolean" else pa.string()
        return _Asked(asked.name, None, axis.name, None, type_)
    if asked.of is None:
        return _Asked(asked.name, "count", "*", None, pa.int64())
    measure = definition.measure(asked.of)
    if measure is None:
        known = ", ".join(one.name for one in definition.measures)
        raise CannotAnswer(f"it aggregates {asked.of!r}, and its measures are {known}.")
    return _Asked(asked.name, asked.function, asked.of, measure, measure.type_of(asked.function))


@dataclass(frozen=True)
class _Column:
    """A finished column: values, and what is known of them if they were computed."""

    values: list[Any]
    low: list[Any]
    high: list[Any]
    hard_low: list[Any]
    hard_high: list[Any]
    status: tuple[Status, ...]


def _column(
    asked: _Asked, groups: list[dict[str, Any]], looks: list[_Look], confidence: float
) -> _Column:
    if asked.function is None:
        values = [group[asked.of] for group in groups]
        return _Column(values, [], [], [], [], ())
    cells = [look.cell(asked, confidence) for look in looks]
    measure = asked.measure if asked.function != "count" else None

    def shown(numbers: list[Any]) -> list[Any]:
        if measure is None:
            return [None if one is None else round(one) for one in numbers]
        return [measure.shown(one, asked.type) for one in numbers]

    return _Column(
        shown([one.value for one in cells]),
        [_wide(one.low, measure) for one in cells],
        [_wide(one.high, measure) for one in cells],
        [_wide(one.hard_low, measure) for one in cells],
        [_wide(one.hard_high, measure) for one in cells],
        tuple(one.status for one in cells),
    )


def _wide(end: Any, measure: Measure | None) -> float | None:
    """An end of a range, in the units that users see; not rounded, which could shut the truth out."""
    if end is None:
        return None
    return float(end) / 10**measure.scale if measure is not None else float(end)


def _answer(
    shown: list[_Asked],
    columns: list[_Column],
    summary: Summary,
    details: dict[str, Any],
    confidence: float,
    elapsed: float,
) -> Answer:
    arrays = [pa.array(c.values, one.type) for one, c in zip(shown, columns, strict=True)]
    uncertain: dict[str, Uncertainty] = {}
    hard: dict[str, Bounds] = {}
    for one, column in zip(shown, columns, strict=True):
        if one.function is None:
            continue
        hard[one.name] = _bounds(column.hard_low, column.hard_high)
        if any(status is not Status.EXACT for status in column.status):
            uncertain[one.name] = Uncertainty(_bounds(column.low, column.high), column.status)
    return Answer(
        pa.Table.from_arrays(arrays, names=[one.name for one in shown]),
        METHOD,
        confidence=confidence if uncertain else 1.0,
        progress=summary.share if uncertain else 1.0,
        final=not uncertain,
        as_of={summary.definition.table: summary.definition.version},
        elapsed=elapsed,
        details=details,
        hard_bounds=hard,
        uncertain=uncertain,
    )


def _bounds(low: list[Any], high: list[Any]) -> Bounds:
    return Bounds(
        pa.chunked_array([pa.array(low, pa.float64())]),
        pa.chunked_array([pa.array(high, pa.float64())]),
    )


def _categories(axis: Axis, tree: Tree) -> list[tuple[int, Any]]:
    """The values a column of categories can have, with their numbers; null where it occurs."""
    root = int(np.flatnonzero(tree.parent < 0)[0])
    known: list[tuple[int, Any]] = (
        list(enumerate(axis.words)) if axis.kind == "text" else [(0, False), (1, True)]
    )
    null = [(NULL, None)] if tree.totals.low[axis.name][root] == NULL else []
    return null + known
