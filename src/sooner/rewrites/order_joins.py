"""Inner joins in an order in which each has a condition: FROM a, b, c need not start with a × b."""

from __future__ import annotations

from sooner.algebra.relation import Join, JoinKind, Project, Relation
from sooner.algebra.scalar import Item, Scalar, all_of, column, columns_of, conjuncts


def order_joins(plan: Relation) -> Relation:
    """Reorder trees of inner joins that contain a pair of inputs without a condition."""
    if not _is_inner(plan):
        return plan.with_children(*(order_joins(child) for child in plan.children))
    inputs: list[Relation] = []
    conditions: list[Scalar] = []
    crossed = _flatten(plan, inputs, conditions)
    if not crossed or len(inputs) < 3:
        return plan.with_children(*(order_joins(child) for child in plan.children))
    joined = _connected([order_joins(relation) for relation in inputs], conditions)
    if joined.names == plan.names:
        return plan if joined == plan else joined
    return Project(joined, tuple(Item(name, column(name)) for name in plan.names))


def _is_inner(plan: Relation) -> bool:
    return isinstance(plan, Join) and plan.kind is JoinKind.INNER


def _flatten(plan: Relation, inputs: list[Relation], conditions: list[Scalar]) -> bool:
    """Collect inputs and conjuncts of a tree of inner joins; whether any of them has no condition."""
    if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER):
        inputs.append(plan)
        return False
    conditions += conjuncts(plan.condition)
    left = _flatten(plan.left, inputs, conditions)
    right = _flatten(plan.right, inputs, conditions)
    return left or right or plan.condition is None


def _connected(inputs: list[Relation], conditions: list[Scalar]) -> Relation:
    """Join the inputs in the written order, preferring the first that some condition connects."""
    result, *rest = inputs
    open_conditions = list(conditions)
    while rest:
        following = next(
            (r for r in rest if any(_connects(c, result, r) for c in open_conditions)), rest[0]
        )
        rest.remove(following)
        known = result.name_set | following.name_set
        on = [c for c in open_conditions if columns_of(c) <= known]
        open_conditions = [c for c in open_conditions if not columns_of(c) <= known]
        result = Join(result, following, JoinKind.INNER, all_of(on))
    return result


def _connects(condition: Scalar, left: Relation, right: Relation) -> bool:
    used = columns_of(condition)
    reaches_both = bool(used & left.name_set) and bool(used & right.name_set)
    return reaches_both and used <= left.name_set | right.name_set
