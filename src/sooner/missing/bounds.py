"""The answer to a query over known rows and rows that are missing: what is known, and the range of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from sooner.algebra.scalar import all_of
from sooner.algebra.schema import Schema
from sooner.answer import Answer, Status, Uncertainty
from sooner.errors import ConstraintViolation, InvalidArgument
from sooner.missing.asked import Asked
from sooner.missing.conflicts import conflicting, described
from sooner.missing.constraint import Constraint
from sooner.missing.groups import Group, Groups, codes_of, possible_groups, values_of
from sooner.missing.ranges import RANGES, Known, count_range
from sooner.missing.space import Space, space_of
from sooner.missing.typed import uncertainty
from sooner.missing.uncovered import uncovered
from sooner.missing.worlds import Split, Worlds, told, worlds
from sooner.synopses.axes import Axis
from sooner.synopses.conditions import Box
from sooner.synopses.question import Asked as Output
from sooner.synopses.spans import ALL, Spans

METHOD = "range over missing rows"
CLOSED = "every missing row is taken to fulfil one of the constraints"
_LOOSE = "constraints overlap too much to be taken apart: the range is wider than it had to be"
_OTHERS = "rows of groups that are not listed may be missing too"
_OPEN = "rows may be missing of which no constraint says anything"


@dataclass(frozen=True)
class Missing:
    """A question about a table of which rows are missing; constraints of other tables do not matter.

    ``schema`` are the columns of the table and ``contract`` those of the answer; with ``closed`` every
    missing row fulfils one of the constraints. Moments are read in ``zone``.
    """

    asked: Asked
    constraints: Sequence[Constraint]
    schema: Schema
    contract: pa.Schema
    zone: tzinfo
    closed: bool = True

    def answer(self, run: Callable[[str], pa.Table]) -> Answer:
        """What is known, and the range of all; ``run`` answers SQL over the known rows."""
        require_constraints(self.constraints)
        return self.over(run(self.asked.text))

    def over(self, known: pa.Table) -> Answer:
        """The same over an answer to :attr:`Asked.text`."""
        laid = self.laid(known)
        return self._answer(laid.table(known), laid.uncertain(known), laid)

    def laid(self, known: pa.Table, new: Sequence[Group] | None = None) -> Laid:
        """The worlds in which rows are missing, and the groups to list: known ones, then ``new`` ones.

        By default these are all that only missing rows make.
        """
        constraints = self._constraints
        space = self._space(known)
        where = _all_of(space, self.asked)
        keys = [space.axis(key) for key in self.asked.keys]
        groups = self.groups(known, keys)
        others = False
        if new is None:
            missing = Groups((), others=False)
            if keys:
                regions = told(space, constraints).regions
                rows = [box for region in regions for box in region.rows]
                missing = possible_groups(rows, where, keys)
            there = set(groups)
            new = [group for group in missing.codes if group not in there]
            others = missing.others
        questions = [_of_group(where, keys, group) for group in (*groups, *new)]
        found = worlds(space, constraints, questions, self.asked.measures, self.closed)
        if not found.program.is_possible():
            raise ConstraintViolation(described(conflicting(space, constraints)))
        listed = [
            n for n in range(len(questions)) if n < len(groups) or _can_be(found, questions[n])
        ]
        new = [new[n - len(groups)] for n in listed if n >= len(groups)]
        return Laid(self, space, found, [questions[n] for n in listed], len(groups), new, others)

    def groups(self, known: pa.Table, keys: Sequence[Axis]) -> list[Group]:
        """The groups of known rows, in order."""
        columns = [known.column(f"__key_{n}") for n in range(len(keys))]
        return codes_of(keys, columns) if keys else [()]

    def _space(self, known: pa.Table) -> Space:
        columns = [known.column(f"__key_{n}") for n in range(len(self.asked.keys))]
        texts = [one for one in columns if pa.types.is_string(one.type)]
        words = {word for one in texts for word in one.unique().to_pylist() if word is not None}
        return space_of(self.schema, self._constraints, self.asked.where, words, self.zone)

    @cached_property
    def _constraints(self) -> list[Constraint]:
        """Those about this table."""
        return [one for one in self.constraints if one.is_about(self.asked.table)]

    def _answer(self, table: pa.Table, uncertain: Mapping[str, Uncertainty], laid: Laid) -> Answer:
        details: dict[str, Any] = {}
        notes = laid.notes
        if not self.closed and isinstance(laid.worlds, Split) and laid.worlds.outside:
            details["uncovered"] = tuple(uncovered(laid.worlds, laid.space))
            notes.append(f"{_OPEN}: {', '.join(details['uncovered'])}")
        endless = [name for name, one in uncertain.items() if Status.UNKNOWN in one.status]
        notes += [f"{name} has no end on one side or both" for name in endless]
        return Answer(
            table,
            METHOD,
            details={"notes": tuple(notes), **details},
            hard_bounds={name: one.bounds for name, one in uncertain.items()},
            uncertain=uncertain,
        )


@dataclass(frozen=True)
class Laid:
    """The worlds of a question, and the groups it lists: the first ``known`` of them, then ``new`` ones."""

    missing: Missing
    space: Space
    worlds: Worlds
    questions: Sequence[tuple[Box, ...]]
    known: int
    new: Sequence[Group]
    others: bool

    @property
    def notes(self) -> list[str]:
        """What a user should know of the ranges."""
        return [
            *([CLOSED] if self.missing.closed else []),
            *([_LOOSE] if not self.worlds.is_split else []),
            *([_OTHERS] if self.others else []),
        ]

    @property
    def keys(self) -> list[Axis]:
        """The columns that the question groups by."""
        return [self.space.axis(key) for key in self.missing.asked.keys]

    def uncertain(self, known: pa.Table) -> dict[str, Uncertainty]:
        """The ranges of all aggregates, with these values of the known rows."""
        return {
            # In a plan names are unique, so that it may call a column something else.
            self.missing.contract.names[place]: self._uncertainty(known, place, one)
            for place, one in enumerate(self.missing.asked.outputs)
            if one.function is not None
        }

    def _uncertainty(self, known: pa.Table, place: int, one: Output) -> Uncertainty:
        function = one.function or ""
        measure = None if one.of is None else self.space.axis(one.of)
        ours = [self._known(known, n, one.of) for n in range(len(self.questions))]
        exact: list[Any] = [0] * len(ours)
        values = known.column(f"__{place}")
        if function == "sum" and values.type == self.missing.contract.types[place]:
            # As exact as it is known, whatever the digits.
            exact[: len(values)] = [value or 0 for value in values.to_pylist()]
            ours = [replace(rows, total=0.0) for rows in ours]
        reach = [self.worlds.reach(question, measure) for question in self.questions]
        pairs = zip(reach, ours, strict=True)
        spans = [RANGES[function](self.worlds.program, seen, rows) for seen, rows in pairs]
        return uncertainty(spans, self.missing.contract.types[place], function, measure, exact)

    def table(self, known: pa.Table) -> pa.Table:
        """What is known of each row of the answer; a group that only missing rows make is empty."""
        columns = []
        names = [axis.name.lower() for axis in self.keys]
        for place, one in enumerate(self.missing.asked.outputs):
            type_ = self.missing.contract.types[place]
            if one.function is None:
                at = names.index((one.of or "").lower())
                more = values_of(self.keys[at], [group[at] for group in self.new], type_)
            else:
                more = pa.array([0 if one.function == "count" else None] * len(self.new), type_)
            column = known.column(f"__{place}").cast(type_)
            columns.append(pa.chunked_array([*column.chunks, more], type_))
        return pa.Table.from_arrays(columns, schema=self.missing.contract)

    def _known(self, known: pa.Table, row: int, of: str | None) -> Known:
        if row >= self.known:
            return Known()
        if of is None:
            return Known(known.column("__rows")[row].as_py())
        n = self.missing.asked.measures.index(of)
        count, total, least, largest = (
            known.column(f"__{what}_{n}")[row].as_py()
            if f"__{what}_{n}" in known.column_names
            else None
            for what in ("count", "sum", "min", "max")
        )
        return Known(count or 0, _number(total) or 0.0, _number(least), _number(largest))


def require_constraints(given: Any) -> None:
    """Refuse anything but a list of constraints."""
    if not isinstance(given, Sequence) or not all(isinstance(one, Constraint) for one in given):
        raise InvalidArgument("bounds() takes a list of sooner.Constraint.")
    if not given:
        raise InvalidArgument(
            "Without a constraint there is no range: say what may be missing, as in "
            'sooner.Constraint(where="branch = \'Chicago\'", values={"price": (0, 150)}, rows=(0, 5)).'
        )


def _all_of(space: Space, asked: Asked) -> tuple[Box, ...]:
    """The condition of a query as alternatives of boxes."""
    condition = all_of(asked.where)
    return space.boxes(condition)


def _of_group(where: Sequence[Box], keys: Sequence[Axis], group: Group) -> tuple[Box, ...]:
    """The same, of one group."""
    found = []
    for box in where:
        both = dict(box)
        for axis, code in zip(keys, group, strict=True):
            both[axis.name] = both.get(axis.name, ALL) & Spans(((code, code),))
        if not any(spans.is_empty for spans in both.values()):
            found.append(both)
    return tuple(found)


def _can_be(found: Worlds, question: Sequence[Box]) -> bool:
    """Whether a row of a group can be missing."""
    high = count_range(found.program, found.reach(question, None), Known()).high
    return high is not None and high >= 1


def _number(value: Any) -> float | None:
    """A number, a day or a moment as the number that stands for it."""
    if value is None or isinstance(value, int | float | Decimal):
        return None if value is None else float(value)
    type_ = pa.scalar(value).type
    whole = pa.int32() if pa.types.is_date(type_) else pa.int64()
    moment = (
        pa.scalar(value) if pa.types.is_date(type_) else pa.scalar(value, pa.timestamp("us", "UTC"))
    )
    return float(moment.cast(whole).as_py())
