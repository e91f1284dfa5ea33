"""The answer to a query over known rows and rows that are missing: what is known, and the range of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import pyarrow as pa

from sooner.algebra.scalar import all_of
from sooner.algebra.schema import Schema
from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.errors import ConstraintViolation, InvalidArgument
from sooner.missing.asked import Asked
from sooner.missing.conflicts import conflicting, described
from sooner.missing.constraint import Constraint
from sooner.missing.groups import Groups, codes_of, possible_groups, values_of
from sooner.missing.ranges import RANGES, Known, Span, count_range
from sooner.missing.space import Space, space_of
from sooner.missing.uncovered import uncovered
from sooner.missing.worlds import Split, Worlds, regions_of, worlds
from sooner.synopses.axes import Axis
from sooner.synopses.conditions import Box
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
        known = run(self.asked.text)
        constraints = self._constraints
        space = self._space(known)
        where = _all_of(space, self.asked)
        keys = [space.axis(key) for key in self.asked.keys]
        columns = [known.column(f"__key_{n}") for n in range(len(keys))]
        groups = codes_of(keys, columns) if keys else [()]
        rows = [box for region in regions_of(space, constraints) for box in region.rows]
        missing = possible_groups(rows, where, keys) if keys else Groups((), others=False)
        there = set(groups)
        new = [group for group in missing.codes if group not in there]
        questions = [_of_group(where, keys, group) for group in (*groups, *new)]
        found = worlds(space, constraints, questions, self.asked.measures, self.closed)
        if not found.program.is_possible():
            raise ConstraintViolation(described(conflicting(space, constraints)))
        listed = [
            n for n in range(len(questions)) if n < len(groups) or _can_be(found, questions[n])
        ]
        table = self._known_values(
            known, keys, [new[n - len(groups)] for n in listed if n >= len(groups)]
        )
        uncertain = {}
        for place, one in enumerate(self.asked.outputs):
            if one.function is None:
                continue
            measure = None if one.of is None else space.axis(one.of)
            reach = [found.reach(questions[n], measure) for n in listed]
            ours = [self._known(known, n if n < len(groups) else None, one.of) for n in listed]
            exact = [0] * len(listed)
            if one.function == "sum":  # as exact as it is known, whatever the digits
                exact = [value or 0 for value in table.column(place).to_pylist()]
                ours = [replace(rows, total=0.0) for rows in ours]
            pairs = zip(reach, ours, strict=True)
            spans = [RANGES[one.function](found.program, seen, rows) for seen, rows in pairs]
            type_ = table.schema.types[place]
            # In a plan names are unique, so that it may call a column something else.
            name = self.contract.names[place]
            uncertain[name] = uncertainty(spans, type_, one.function, measure, exact)
        return self._answer(table, uncertain, found, space, missing.others)

    def _space(self, known: pa.Table) -> Space:
        columns = [known.column(f"__key_{n}") for n in range(len(self.asked.keys))]
        texts = [one for one in columns if pa.types.is_string(one.type)]
        words = {word for one in texts for word in one.unique().to_pylist() if word is not None}
        return space_of(self.schema, self._constraints, self.asked.where, words, self.zone)

    @property
    def _constraints(self) -> list[Constraint]:
        """Those about this table."""
        return [one for one in self.constraints if one.is_about(self.asked.table)]

    def _known_values(
        self, known: pa.Table, keys: Sequence[Axis], new: Sequence[tuple[int, ...]]
    ) -> pa.Table:
        """What is known of each row of the answer; a group that only missing rows make is empty."""
        columns = []
        names = [axis.name.lower() for axis in keys]
        for place, one in enumerate(self.asked.outputs):
            type_ = self.contract.types[place]
            if one.function is None:
                at = names.index((one.of or "").lower())
                more = values_of(keys[at], [group[at] for group in new], type_)
            else:
                more = pa.array([0 if one.function == "count" else None] * len(new), type_)
            column = known.column(f"__{place}").cast(type_)
            columns.append(pa.chunked_array([*column.chunks, more], type_))
        return pa.Table.from_arrays(columns, schema=self.contract)

    def _known(self, known: pa.Table, row: int | None, of: str | None) -> Known:
        if row is None:
            return Known()
        if of is None:
            return Known(known.column("__rows")[row].as_py())
        n = self.asked.measures.index(of)
        count, total, least, largest = (
            known.column(f"__{what}_{n}")[row].as_py()
            if f"__{what}_{n}" in known.column_names
            else None
            for what in ("count", "sum", "min", "max")
        )
        return Known(count or 0, _number(total) or 0.0, _number(least), _number(largest))

    def _answer(
        self,
        table: pa.Table,
        uncertain: dict[str, Uncertainty],
        found: Worlds,
        space: Space,
        others: bool,
    ) -> Answer:
        notes, details = [CLOSED] if self.closed else [], {}
        if not self.closed and isinstance(found, Split) and found.outside:
            details["uncovered"] = tuple(uncovered(found, space))
            notes.append(f"{_OPEN}: {', '.join(details['uncovered'])}")
        notes += [_LOOSE] if not found.is_split else []
        notes += [_OTHERS] if others else []
        endless = [name for name, one in uncertain.items() if Status.UNKNOWN in one.status]
        notes += [f"{name} has no end on one side or both" for name in endless]
        return Answer(
            table,
            METHOD,
            details={"notes": tuple(notes), **details},
            hard_bounds={name: one.bounds for name, one in uncertain.items()},
            uncertain=uncertain,
        )


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


def _of_group(where: Sequence[Box], keys: Sequence[Axis], group: Sequence[int]) -> tuple[Box, ...]:
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


def uncertainty(
    spans: Sequence[Span],
    type_: pa.DataType,
    function: str = "avg",
    measure: Axis | None = None,
    exact: Sequence[Any] = (),
) -> Uncertainty:
    """Ranges in the type of the answer; ``exact`` is what is to be added to sums."""
    sides = []
    for up in (False, True):
        typed = [
            # What is one value is that value: nothing to round outwards.
            _end(
                one.high if up else one.low,
                type_,
                "min" if one.low == one.high else function,
                measure,
                up,
            )
            for one in spans
        ]
        if function == "sum":
            pairs = zip(typed, exact, strict=True)
            typed = [one if one is None else one + more for one, more in pairs]
        sides.append(pa.chunked_array([pa.array(typed, type_)]))
    return Uncertainty(Bounds(*sides), tuple(_status(one) for one in spans))


def _status(span: Span) -> Status:
    if span.low is None or span.high is None:
        return Status.EXACT  # null, whatever is missing
    if math.isinf(span.low) or math.isinf(span.high):
        return Status.UNKNOWN
    return Status.EXACT if span.low == span.high and not span.may_be_null else Status.RANGE


def _end(
    value: float | None, type_: pa.DataType, function: str, measure: Axis | None, up: bool
) -> Any:
    """An end of a range in the type of the answer; null where there is none."""
    if value is None or (math.isinf(value) and not pa.types.is_floating(type_)):
        return None
    if pa.types.is_temporal(type_):
        assert measure is not None
        return values_of(measure, [int(value)], type_)[0].as_py()
    if pa.types.is_decimal(type_):
        # Sums of decimals are decimals: the nearest one is it. Others are rounded outwards.
        nearest = ROUND_HALF_EVEN if function != "avg" else ROUND_CEILING if up else ROUND_FLOOR
        return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-type_.scale), nearest)
    if pa.types.is_integer(type_):
        return math.ceil(value) if up else math.floor(value)
    # Adding floating numbers in another order gives another last digit.
    slip = 0.0 if function in ("min", "max") else abs(value) * 1e-14
    return value + slip if up else value - slip
