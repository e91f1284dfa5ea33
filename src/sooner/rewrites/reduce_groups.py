"""Groups that nobody asks for are not made: rows of keys that a filter beside them leaves out go first.

In ``part JOIN (SELECT l_partkey, avg(l_quantity) … FROM lineitem GROUP BY l_partkey)`` with a filter on part
only its parts' groups are read. A subquery that compares a row with others of its kind becomes such a
join, and Spark groups all of lineitem for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sooner.algebra.relation import Aggregate, Filter, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import (
    Item,
    Scalar,
    all_of,
    column,
    columns_of,
    conjuncts,
    is_column,
    substitute,
)
from sooner.algebra.schema import Column
from sooner.algebra.traversal import tables, transform_up, walk
from sooner.analysis.equal_columns import equal_columns

LEFT, RIGHT = 0, 1
# The sides of which a row counts only where it meets one of the other side.
_ASKED = {
    JoinKind.INNER: (LEFT, RIGHT),
    JoinKind.LEFT: (RIGHT,),
    JoinKind.SEMI: (RIGHT,),
    JoinKind.ANTI: (RIGHT,),
    JoinKind.RIGHT: (LEFT,),
}
# The side whose rows make up the result, each at most with values of the other beside it.
_SHOWN = {
    JoinKind.INNER: (LEFT, RIGHT),
    JoinKind.LEFT: (LEFT,),
    JoinKind.SEMI: (LEFT,),
    JoinKind.ANTI: (LEFT,),
    JoinKind.RIGHT: (RIGHT,),
}
# Conditions that few rows can be expected to meet; of `<` and `>` nobody knows.
_CHOOSES_FEW = (exp.EQ, exp.In, exp.Like)

_Reduce = Callable[[Relation, str], Relation]


def reduce_groups(plan: Relation) -> Relation:
    """Leave out the rows of groups that a join with a filtered table does not ask for."""
    used = {name for node in walk(plan) for name in node.names}
    return transform_up(plan, lambda node: _node(node, used))


def _node(node: Relation, used: set[str]) -> Relation:
    if not isinstance(node, Join):
        return node
    # Where NULL meets NULL, a reduction by plain equality would lose the group of NULL.
    plain = all_of(part for part in conjuncts(node.condition) if isinstance(part, exp.EQ))
    sides = list(node.children)
    for pair in equal_columns(replace(node, condition=plain)):
        for place in _ASKED.get(node.kind, ()):
            read = tables(sides[place])
            asking = [
                (rows, name)
                for rows, name in _filtered(node.children[1 - place], pair[1 - place])
                if not {*tables(rows)} & {*read}  # to read a large table twice is no gain
            ]
            if asking:
                rows, name = asking[0]
                reduce = partial(_meeting, rows=rows, name=name, used=used)
                sides[place] = _groups(sides[place], pair[place], reduce)
    return node.with_children(*sides)


def _filtered(plan: Relation, name: str) -> Iterator[tuple[Relation, str]]:
    """Filtered tables that have every value of a plan's column, NULL left aside, with their name for it."""
    match plan:
        case Filter(child=Scan()):
            if any(_chooses_few(part) for part in conjuncts(plan.condition)):
                yield plan, name
        case Filter():
            yield from _filtered(plan.child, name)
        case Project():
            source = _source(plan, name)
            if source is not None:
                yield from _filtered(plan.child, source)
        case Aggregate() if name in plan.keys:
            yield from _filtered(plan.child, name)
        case Join():
            for place in _SHOWN.get(plan.kind, ()):
                if name in plan.children[place].name_set:
                    yield from _filtered(plan.children[place], name)
            if plan.kind in (JoinKind.INNER, JoinKind.SEMI):
                for pair in equal_columns(plan):
                    if name in pair:
                        other = 1 - pair.index(name)
                        yield from _filtered(plan.children[other], pair[other])


def _chooses_few(part: Scalar) -> bool:
    return isinstance(part, _CHOOSES_FEW) and len(columns_of(part)) == 1


def _source(plan: Project, name: str) -> str | None:
    """The column below that a column is; ``None`` if it is computed."""
    scalar = next(item.scalar for item in plan.items if item.name == name)
    return scalar.name if is_column(scalar) else None


def _groups(plan: Relation, name: str, reduce: _Reduce) -> Relation:
    """The plan with the rows reduced that are grouped by a column; the same if none are."""
    match plan:
        case Filter():
            return plan.with_children(_groups(plan.child, name, reduce))
        case Project():
            source = _source(plan, name)
            return (
                plan if source is None else plan.with_children(_groups(plan.child, source, reduce))
            )
        case Aggregate() if name in plan.keys:
            return plan.with_children(_lowest(plan.child, name, reduce))
    return plan


def _lowest(plan: Relation, name: str, reduce: _Reduce) -> Relation:
    """The plan reduced as far down as its rows come from one table by this column."""
    match plan:
        case Filter() if not isinstance(plan.child, Scan):
            return plan.with_children(_lowest(plan.child, name, reduce))
        case Project():
            source = _source(plan, name)
            if source is not None:
                return plan.with_children(_lowest(plan.child, source, reduce))
        case Aggregate() if name in plan.keys:
            return plan.with_children(_lowest(plan.child, name, reduce))
        case Join():
            if plan.kind is JoinKind.SEMI and _compares(plan.condition, name):
                return plan  # it is reduced already
            for place in _SHOWN.get(plan.kind, ()):
                if name in plan.children[place].name_set:
                    sides = list(plan.children)
                    sides[place] = _lowest(sides[place], name, reduce)
                    return plan.with_children(*sides)
    return reduce(plan, name)


def _compares(condition: Scalar | None, name: str) -> bool:
    return condition is not None and name in columns_of(condition)


def _meeting(plan: Relation, key: str, rows: Relation, name: str, used: set[str]) -> Relation:
    """The rows of a plan whose key is among the names of a filtered table, which is read under new names."""
    assert isinstance(rows, Filter) and isinstance(rows.child, Scan)
    new = {old: _fresh(old, used) for old in rows.names}
    columns = tuple(Column(new[one.name], one.type) for one in rows.schema)
    condition = substitute(rows.condition, {old: column(one) for old, one in new.items()})
    again = Filter(replace(rows.child, columns=columns), condition)
    keys = Project(again, (Item(new[name], column(new[name])),))
    equal = exp.EQ(this=column(key), expression=column(new[name]))
    return Join(plan, keys, JoinKind.SEMI, equal)


def _fresh(name: str, used: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in used:
        number += 1
    used.add(f"{name}_{number}")
    return f"{name}_{number}"
