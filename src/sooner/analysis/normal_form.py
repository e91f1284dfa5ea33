"""Plans without the names of their columns: equal forms say that two plans give the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sooner.algebra import Aggregate, Filter, Join, Project, Relation, Scalar, Scan, Union
from sooner.algebra.scalar import column, conjuncts, substitute
from sooner.analysis.deterministic import is_deterministic, is_deterministic_aggregate

Form: TypeAlias = tuple[object, ...]


def normal_form(plan: Relation) -> Form | None:
    """The plan with the places of columns for their names; ``None`` if its rows may vary.

    Plans of one form give the same rows with their columns in the same order. Rows may vary from one
    reading to the next below ``rand()``, a LIMIT or a function of the user's.
    """
    below = tuple(normal_form(child) for child in plan.children)
    own = None if None in below else _own(plan)
    return None if own is None else (type(plan), *own, *below)


def _own(plan: Relation) -> Form | None:
    """What a node adds to the forms of its inputs."""
    match plan:
        case Scan():
            return plan.table, plan.sources, tuple(column.type for column in plan.columns)
        case Filter():
            return _settled(plan, conjuncts(plan.condition))
        case Project():
            return _settled(plan, (item.scalar for item in plan.items))
        case Join():
            condition = _settled(plan, conjuncts(plan.condition))
            return None if condition is None else (plan.kind, condition)
        case Aggregate():
            if not all(is_deterministic_aggregate(item.scalar) for item in plan.aggregates):
                return None
            keys = tuple(map(plan.child.names.index, plan.keys))
            return keys, _placed(plan, (item.scalar for item in plan.aggregates))
        case Union():
            return ()
    return None


def _settled(plan: Relation, scalars: Iterable[Scalar]) -> Form | None:
    scalars = tuple(scalars)
    return _placed(plan, scalars) if all(map(is_deterministic, scalars)) else None


def _placed(plan: Relation, scalars: Iterable[Scalar]) -> Form:
    """The scalars over the places of the input's columns."""
    names = (name for child in plan.children for name in child.names)
    places = {name: column(str(place)) for place, name in enumerate(names)}
    return tuple(substitute(scalar, places) for scalar in scalars)
