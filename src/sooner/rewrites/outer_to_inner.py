"""A left join becomes an inner join where a filter above it drops the rows without a partner."""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra.relation import Filter, Join, JoinKind, Relation
from sooner.algebra.scalar import Scalar, bare, columns_of, conjuncts
from sooner.algebra.traversal import transform_up

# NULL in, NULL out: a comparison of these with a padded column is never true.
_STRICT = (exp.Column, exp.Literal, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PARTS = (*_STRICT, *_COMPARISONS, exp.Identifier)


def outer_to_inner(plan: Relation) -> Relation:
    """Use inner joins where an outer one cannot make a difference."""
    return transform_up(plan, _node)


def _node(node: Relation) -> Relation:
    if not isinstance(node, Filter):
        return node
    child = _inner(node.child, conjuncts(node.condition))
    return node.with_children(child)


def _inner(plan: Relation, conditions: tuple[Scalar, ...]) -> Relation:
    if isinstance(plan, Filter):
        return plan.with_children(_inner(plan.child, conditions))
    if isinstance(plan, Join) and plan.kind is JoinKind.LEFT:
        padded = plan.right.name_set
        if any(rejects_null(condition, padded) for condition in conditions):
            return Join(plan.left, plan.right, JoinKind.INNER, plan.condition)
    return plan


def rejects_null(condition: Scalar, columns: frozenset[str]) -> bool:
    """Whether the condition cannot be true where all the given columns are NULL."""
    condition = bare(condition)
    if not columns_of(condition) & columns:
        return False
    if isinstance(condition, exp.Not):
        inner = bare(condition.this)
        is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
        return is_null and isinstance(bare(inner.this), exp.Column)
    return isinstance(condition, _COMPARISONS) and all(
        isinstance(node, _PARTS) for node in condition.walk()
    )
