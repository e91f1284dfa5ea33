"""Columns of which the last digits go by the order in which rows are added up: floating sums and their like.

Brought up to date, what a view was is found by its values again. These come out otherwise when they are
computed once more, as soon as the files are read in other pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Except,
    Intersect,
    Item,
    Join,
    Project,
    Relation,
    Union,
    aggregate_call,
    walk,
)
from sooner.algebra.scalar import columns_of
from sooner.analysis.equal_columns import equal_columns
from sooner.analysis.types import is_floating
from sooner.views.mergeable import argument

# The types of a plan's columns by name.
_TypesOf = Callable[[Relation], Mapping[str, str]]


def goes_by_rounded(plan: Relation, types_of: _TypesOf) -> bool:
    """Whether rows are grouped, compared or joined by such columns."""
    if not any(isinstance(node, Aggregate) and node.aggregates for node in walk(plan)):
        return False
    return any(_by(node) & _inputs(node, types_of) for node in walk(plan))


def _by(plan: Relation) -> set[str]:
    match plan:
        case Aggregate():
            return set(plan.keys)
        case Intersect() | Except():
            return {*plan.left.names, *plan.right.names}
        case Join():
            return {name for pair in equal_columns(plan) for name in pair}
    return set()


def _inputs(plan: Relation, types_of: _TypesOf) -> set[str]:
    return {name for child in plan.children for name in _rounded(child, types_of)}


def _rounded(plan: Relation, types_of: _TypesOf) -> set[str]:
    """Such columns of a plan."""
    below = _inputs(plan, types_of)
    match plan:
        case Project():
            return {one.name for one in plan.items if columns_of(one.scalar) & below}
        case Aggregate():
            own = {one.name for one in plan.aggregates if columns_of(one.scalar) & below}
            return own | (below & set(plan.keys)) | _summed(plan, types_of)
        case Union() | Intersect() | Except():
            sides = zip(*(child.names for child in plan.children), strict=True)
            return {n for n, pair in zip(plan.names, sides, strict=True) if below & set(pair)}
    return below & plan.name_set


def _summed(plan: Aggregate, types_of: _TypesOf) -> set[str]:
    """Aggregates that begin to be such: sums and averages of floating numbers, and spreads of any."""
    arguments = {one.name: argument(one.scalar) for one in plan.aggregates}
    known = [Item(name, one) for name, one in arguments.items() if one is not None]
    types = types_of(Project(plan.child, tuple(known))) if known else {}
    return {
        one.name
        for one in plan.aggregates
        if not _is_exact(aggregate_call(one.scalar), types.get(one.name))
    }


def _is_exact(call: exp.AggFunc | None, type_: str | None) -> bool:
    if isinstance(call, exp.Sum | exp.Avg):
        return not is_floating(type_)
    return isinstance(call, exp.Count | exp.Min | exp.Max)
