"""What a query asks of a join: tables with conditions of their own, and which columns are equal."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Filter, Join, JoinKind, Project, Relation
from sooner.algebra.scalar import (
    Scalar,
    columns_of,
    conjuncts,
    equality_sides,
    is_column,
    substitute,
)
from sooner.errors import NotSupported
from sooner.missing.asked import aggregate_of, column_of, rows_of
from sooner.synopses.question import Asked as Output


@dataclass(frozen=True)
class Side:
    """A table of a join and the conditions on it alone, in the table's own columns."""

    table: str
    where: tuple[Scalar, ...]


@dataclass(frozen=True)
class Joined:
    """Tables, the columns that are equal (each a table's place and a column), and what is asked.

    ``of`` is the place of the table that each output's column is from.
    """

    sides: tuple[Side, ...]
    equal: tuple[tuple[tuple[int, str], tuple[int, str]], ...]
    outputs: tuple[Output, ...]
    of: tuple[int | None, ...]


# What a column of a join is: the place of its table, and a scalar of the table's own columns.
_Columns = dict[str, tuple[int, Scalar]]


def joined_of(query: Relation) -> Joined:
    """What a plan asks of a join. Raises :class:`NotSupported` for what has no range yet."""
    plan, names = aggregate_of(query)
    if plan.keys:
        raise NotSupported(
            "Over joins there are ranges for COUNT(*) and SUM without GROUP BY only."
        )
    reading = _Reading([], [], [])
    columns = reading.read(plan.child)
    outputs: list[Output] = []
    places: list[int | None] = []
    aggregates = {item.name: item.scalar for item in plan.aggregates}
    for name, below in names.items():
        call = aggregates[below]
        if isinstance(call, exp.Count) and isinstance(call.this, exp.Star | exp.Literal):
            outputs.append(Output(name, "count", None))
            places.append(None)
        elif isinstance(call, exp.Sum) and is_column(call.this):
            place, scalar = _found(columns, call.this.name)
            outputs.append(Output(name, "sum", column_of(scalar)))
            places.append(place)
        else:
            raise NotSupported(f"Over joins there is no range for {call.sql('spark')} yet.")
    sides = zip(reading.tables, reading.where, strict=True)
    return Joined(
        tuple(Side(table, tuple(where)) for table, where in sides),
        tuple(reading.equal),
        tuple(outputs),
        tuple(places),
    )


@dataclass
class _Reading:
    tables: list[str]
    where: list[list[Scalar]]
    equal: list[tuple[tuple[int, str], tuple[int, str]]]

    def read(self, plan: Relation) -> _Columns:
        """The columns of a plan of inner joins."""
        if isinstance(plan, Join):
            if plan.kind is not JoinKind.INNER:
                raise NotSupported(
                    f"There are ranges over inner joins, not over {plan.kind.value} joins."
                )
            columns = {**self.read(plan.left), **self.read(plan.right)}
            self._add(conjuncts(plan.condition), columns)
            return columns
        if isinstance(plan, Filter) and isinstance(plan.child, Join | Filter | Project):
            columns = self.read(plan.child)
            self._add(conjuncts(plan.condition), columns)
            return columns
        if isinstance(plan, Project) and isinstance(plan.child, Join | Filter | Project):
            columns = self.read(plan.child)
            return {
                item.name: columns[item.scalar.name]
                for item in plan.items
                if is_column(item.scalar)
            }
        scan, where, names = rows_of(plan)
        place = len(self.tables)
        self.tables.append(scan.table)
        self.where.append(list(where))
        return {name: (place, scalar) for name, scalar in names.items()}

    def _add(self, conditions: tuple[Scalar, ...], columns: _Columns) -> None:
        for condition in conditions:
            places = {_found(columns, name)[0] for name in columns_of(condition)}
            if len(places) == 1:
                own = {name: columns[name][1] for name in columns_of(condition)}
                self.where[places.pop()].append(substitute(condition, own))
                continue
            sides = equality_sides(condition)
            if sides is None or not all(is_column(side) for side in sides):
                raise NotSupported(
                    f"There are ranges over joins by equal columns, not by {condition.sql('spark')}."
                )
            one, other = (columns[side.name] for side in sides)
            self.equal.append(((one[0], column_of(one[1])), (other[0], column_of(other[1]))))


def _found(columns: _Columns, name: str) -> tuple[int, Scalar]:
    if name not in columns:
        raise NotSupported(f"Over joins there are ranges for plain columns; {name} is computed.")
    return columns[name]
