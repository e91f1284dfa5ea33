"""The range of COUNT and SUM over inner joins of tables of which rows are missing (§4.5).

Known rows joined with known rows are exact. All other pairs have a missing row: there are no more of them
than in the Cartesian product, and of all pairs no more than the fractional edge cover allows. The tighter
bound counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cache, cached_property, partial

import numpy as np
import pyarrow as pa

from sooner.algebra.scalar import all_of
from sooner.algebra.schema import Schema
from sooner.answer import Answer
from sooner.errors import ConstraintViolation, InvalidArgument
from sooner.missing.bounds import CLOSED, METHOD, require_constraints
from sooner.missing.conflicts import conflicting, described
from sooner.missing.constraint import Constraint
from sooner.missing.cover import cover_bound
from sooner.missing.joined import Joined
from sooner.missing.ranges import Known, Span, count_range, sum_range
from sooner.missing.space import Space, space_of
from sooner.missing.typed import uncertainty
from sooner.missing.worlds import worlds
from sooner.sql import quote

_KEYS = "the keys that were declared hold for missing rows too"


@dataclass(frozen=True)
class Declared:
    """What is declared of a table: its columns, and its key if it has one."""

    schema: Schema
    key: tuple[str, ...]


@dataclass(frozen=True)
class _Size:
    """Of one side of a join: known rows, and with those that can be missing; and so the sums of a column.

    ``gains`` and ``losses`` are sums of positive and of negative values, both as positive numbers.
    """

    known: float
    all: float
    gains: tuple[float, float] = (0.0, 0.0)
    losses: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class MissingJoin:
    """A question about a join; constraints name the table they are about."""

    asked: Joined
    constraints: Sequence[Constraint]
    tables: Mapping[str, Declared]
    zone: tzinfo

    def answer(self, exact: Callable[[], pa.Table], run: Callable[[str], pa.Table]) -> Answer:
        """``exact`` is the answer over the known rows, ``run`` answers SQL over them."""
        require_constraints(self.constraints)
        named = {side.table.lower() for side in self.asked.sides}
        if len(named) > 1 and any(one.table is None for one in self.constraints):
            raise InvalidArgument(
                "With several tables each constraint says which one its rows are missing from: "
                'sooner.Constraint(…, table="sales").'
            )
        known = exact()
        size = cache(partial(self._size, run))
        uncertain = {}
        for place, (output, of) in enumerate(zip(self.asked.outputs, self.asked.of, strict=True)):
            sides = range(len(self.asked.sides))
            sizes = [size(n, output.of if n == of else None) for n in sides]
            span = self._span(sizes, of, known.column(place)[0].as_py())
            field = known.schema.field(place)
            uncertain[field.name] = uncertainty([span], field.type)
        return Answer(
            known,
            METHOD,
            details={"notes": (CLOSED, _KEYS)},
            hard_bounds={name: one.bounds for name, one in uncertain.items()},
            uncertain=uncertain,
        )

    def _span(self, sizes: Sequence[_Size], of: int | None, value: float | None) -> Span:
        known = float(value or 0)
        everything = [one.all for one in sizes]
        if of is None:
            new = _product(everything) - _product([one.known for one in sizes])
            most = min(known + new, cover_bound(self._columns, everything))
            return Span(known, max(known, float(math.floor(most * (1 + 1e-12)))))
        ends = []
        for before, after in (sizes[of].gains, sizes[of].losses):
            others = [one for n, one in enumerate(sizes) if n != of]
            new = _product([after, *(one.all for one in others)])
            new -= _product([before, *(one.known for one in others)])
            whole = [after if n == of else size for n, size in enumerate(everything)]
            ends.append((new, cover_bound(self._columns, whole, of)))
        (gained, most), (lost, least) = ends
        high, low = min(known + gained, most), max(known - lost, -least)
        return Span(min(low, known), max(high, known), value is None)

    @cached_property
    def _columns(self) -> list[set[str]]:
        """The columns of each table as the cover sees them: equal ones are one, and keys tell rows apart."""
        name = {
            place: f"{place[0]}.{place[1].lower()}" for pair in self.asked.equal for place in pair
        }
        for one, other in self.asked.equal:
            old, new = name[other], name[one]
            name = {place: new if label == old else label for place, label in name.items()}
        found = []
        for n, side in enumerate(self.asked.sides):
            joined = {place[1].lower(): label for place, label in name.items() if place[0] == n}
            key = [column.lower() for column in self.tables[side.table.lower()].key]
            apart = (
                {f"{n}.{column}" for column in key if column not in joined} if key else {f"{n}.*"}
            )
            found.append({*joined.values(), *apart})
        return found

    def _size(self, run: Callable[[str], pa.Table], place: int, measure: str | None) -> _Size:
        side = self.asked.sides[place]
        table = self.tables[side.table.lower()]
        items = ["count(*) AS n"]
        if measure is not None:
            of = quote(measure)
            items += [f"sum(greatest({of}, 0)) AS gains", f"sum(least({of}, 0)) AS losses"]
        condition = all_of(side.where)
        where = "" if condition is None else f" WHERE {condition.sql('spark')}"
        (known,) = run(f"SELECT {', '.join(items)} FROM {quote(side.table)}{where}").to_pylist()
        number = float(known["n"])
        gains, losses = (abs(float(known.get(name) or 0)) for name in ("gains", "losses"))
        mine = [one for one in self.constraints if one.is_about(side.table)]
        if not mine:
            return _Size(number, number, (gains, gains), (losses, losses))
        space: Space = space_of(table.schema, mine, side.where, [], self.zone)
        question = space.boxes(condition)
        found = worlds(space, mine, [question], [measure] if measure else [])
        if not found.program.is_possible():
            raise ConstraintViolation(described(conflicting(space, mine)))
        most = count_range(found.program, found.reach(question, None), Known()).high or 0.0
        if measure is None:
            return _Size(number, number + most)
        reach = found.reach(question, space.axis(measure))
        # Of a sum of positive values no row needs to be part.
        free = replace(reach, escapes=np.ones(len(reach.escapes), np.bool_))
        more, less = (
            sum_range(found.program, one, Known(1)).high or 0.0 for one in (free, free.negated)
        )
        return _Size(number, number + most, (gains, gains + more), (losses, losses + less))


def _product(sizes: Sequence[float]) -> float:
    """No rows with however many others are no rows."""
    return 0.0 if 0 in sizes else math.prod(sizes)
