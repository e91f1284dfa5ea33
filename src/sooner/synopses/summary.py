"""A synopsis at hand: a tree of exact totals over samples, and the answers it gives in a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from itertools import product
from typing import Any

import numpy as np

from sooner.answer import Answer
from sooner.errors import CannotAnswer
from sooner.synopses.axes import NULL, Axis
from sooner.synopses.definition import Definition
from sooner.synopses.look import Look, look
from sooner.synopses.question import Question
from sooner.synopses.samples import Samples
from sooner.synopses.shown import Group, shown
from sooner.synopses.spans import Spans, spans_of
from sooner.synopses.tree import Tree

_MOST_GROUPS = 10_000
_FIRST_DAY = date(1970, 1, 1)


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

    def look(self, box: Mapping[str, Spans]) -> Look:
        """What a box touches."""
        return look(self.tree, self.samples, box)

    def ask(self, question: Question, zone: tzinfo, confidence: float) -> Answer:
        """The answer to a question. Raises :class:`CannotAnswer` where it takes more than is kept."""
        boxes = self._boxes(question, question.box(self.definition.axes, zone))
        groups = [Group(values, self.look(box)) for values, box in boxes]
        read = sum(one.look.read for one in groups)
        details: dict[str, Any] = {
            "synopsis": self.definition.name,
            "rows_read": read,
            "skipped": 1.0 - min(1.0, read / max(1, self.samples.count * len(groups))),
        }
        if question.groups:
            sure = [one for one in groups if one.look.is_sure]
            unseen = sum(one.look.is_possible for one in groups) - len(sure)
            if unseen:
                details["groups_not_seen"] = unseen
            groups = sure
        return shown(question.asked, groups, self.definition, self.share, details, confidence)

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
        if axis is None or axis.kind not in ("text", "boolean", "whole", "date"):
            raise CannotAnswer(
                f"it groups by {name}: a synopsis groups by words, booleans, whole numbers and dates that "
                "it is over, by nothing else."
            )
        return axis


def _categories(axis: Axis, tree: Tree) -> list[tuple[int, Any]]:
    """The values a column of categories can have, with their numbers; null where it occurs.

    Of whole numbers and dates these are all between the first and the last: most groups that do not exist
    touch no leaf.
    """
    root = int(np.flatnonzero(tree.parent < 0)[0])
    low, high = int(tree.totals.low[axis.name][root]), int(tree.totals.high[axis.name][root])
    null: list[tuple[int, Any]] = [(NULL, None)] if low == NULL else []
    if axis.kind == "text":
        return [*null, *enumerate(axis.words)]
    if axis.kind == "boolean":
        return [*null, (0, False), (1, True)]
    if null:
        raise CannotAnswer(f"it groups by {axis.name}, which has nulls.")
    if high - low >= _MOST_GROUPS:
        raise CannotAnswer(
            f"it groups by {axis.name}, which may have over {_MOST_GROUPS:,} values."
        )
    if axis.kind == "date":
        return [(code, _FIRST_DAY + timedelta(code)) for code in range(low, high + 1)]
    return [(code, code) for code in range(low, high + 1)]
