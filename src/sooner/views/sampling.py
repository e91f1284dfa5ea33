"""The hashing operator η: the rows of a view whose key hashes low, taken as deep in the plan as possible.

Stale View Cleaning, §4.4, Definition 3. As η is a condition on columns, it goes wherever such a condition may
go, and by equal columns of a join to both of its sides: a row that is left out on one side only ever met
rows that are left out on the other. Columns are equal for a hash only if they are of one type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sooner.algebra import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
)
from sooner.algebra.scalar import Scalar, column, columns_of, is_column
from sooner.algebra.scalar import substitute as substituted
from sooner.algebra.text import describe
from sooner.analysis.equal_columns import equal_columns

# A condition on some columns: that they hash low.
Condition = Callable[[Sequence[Scalar]], Scalar]


@dataclass(frozen=True)
class Sampled:
    """A plan with η in it: the tables that only sampled rows are read of, and what stopped it elsewhere.

    ``by`` says by which columns of its own a table is sampled, each time that it is.
    """

    plan: Relation
    tables: tuple[str, ...]
    blocked: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...] = ()


def sampled(plan: Relation, key: Sequence[str], condition: Condition) -> Sampled:
    """The rows of a plan whose ``key`` fulfils the condition, the same rows wherever it is looked at."""
    pushing = _Pushing(condition)
    found = pushing.push(plan, [column(name) for name in key])
    tables = tuple(dict.fromkeys(pushing.tables))
    return Sampled(found, tables, tuple(pushing.blocked), tuple(pushing.by))


class _Pushing:
    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self.tables: list[str] = []
        self.blocked: list[str] = []
        self.by: list[tuple[str, tuple[str, ...]]] = []

    def push(self, plan: Relation, key: Sequence[Scalar]) -> Relation:
        match plan:
            case Scan():
                self.tables.append(plan.table)
                sources = dict(zip(plan.names, plan.sources, strict=True))
                if all(is_column(one) for one in key):
                    self.by.append((plan.table, tuple(sources[one.name] for one in key)))
                return Filter(plan, self._condition(key))
            case Filter() | Sort():
                return plan.with_children(self.push(plan.child, key))
            case Project():
                items = {item.name: item.scalar for item in plan.items}
                return plan.with_children(
                    self.push(plan.child, [substituted(one, items) for one in key])
                )
            case Aggregate() if _used(key) <= set(plan.keys):
                return plan.with_children(self.push(plan.child, key))
            case Union() | Intersect() | Except() if self._is_typed(plan, key):
                return plan.with_children(
                    self.push(plan.left, key),
                    self.push(plan.right, _by_place(key, plan)),
                )
            case Join():
                return self._join(plan, key)
        return self._stopped(plan, key)

    def _stopped(self, plan: Relation, key: Sequence[Scalar]) -> Relation:
        self.blocked.append(describe(plan))
        return Filter(plan, self._condition(key))

    @staticmethod
    def _is_typed(plan: Relation, key: Sequence[Scalar]) -> bool:
        types = {one.name: one.type for one in plan.schema}
        return all(types[name] is not None for name in _used(key))

    def _join(self, plan: Join, key: Sequence[Scalar]) -> Relation:
        pairs = equal_columns(plan)
        to_left = {other: one for one, other in reversed(pairs)}
        to_right = dict(reversed(pairs))
        left, right = plan.left.name_set, plan.right.name_set
        match plan.kind:
            case JoinKind.INNER:
                sides = [_moved(key, left, to_left), _moved(key, right, to_right)]
            # Where a side may be missing, its columns say nothing of the rows that stay.
            case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
                own = _moved(key, left, {})
                sides = [own, own and _moved(own, right, to_right)]
            case JoinKind.RIGHT:
                own = _moved(key, right, {})
                sides = [own and _moved(own, left, to_left), own]
            case JoinKind.NULL_AWARE_ANTI:  # a null on the right meets every row
                sides = [_moved(key, left, {}), None]
            case _:
                sides = [None, None]
        if sides == [None, None]:
            return self._stopped(plan, key)
        children = []
        for child, own in zip(plan.children, sides, strict=True):
            if own is None:
                self.blocked.append(f"{describe(plan)}: no key for {describe(child)}")
            children.append(child if own is None else self.push(child, own))
        return plan.with_children(*children)


def _used(key: Sequence[Scalar]) -> set[str]:
    return {name for one in key for name in columns_of(one)}


def _by_place(key: Sequence[Scalar], plan: Relation) -> list[Scalar]:
    left, right = plan.children
    names = {n: column(other) for n, other in zip(left.names, right.names, strict=True)}
    return [substituted(one, names) for one in key]


def _moved(
    key: Sequence[Scalar], names: frozenset[str], equal: Mapping[str, str]
) -> list[Scalar] | None:
    """The key in the columns of a side; ``None`` if it has not all of it."""
    moved = [
        substituted(one, {n: column(equal[n]) for n in columns_of(one) if n in equal})
        for one in key
    ]
    return moved if _used(moved) <= names else None
