"""(a AND b) OR (a AND c) becomes a AND (b OR c), so that a can be a join condition (TPC-H Q19)."""

from __future__ import annotations

from sooner.algebra.relation import Filter, Join, JoinKind, Relation
from sooner.algebra.scalar import Scalar, all_of, any_of, conjuncts, disjuncts
from sooner.algebra.traversal import transform_up


def factor_disjunctions(plan: Relation) -> Relation:
    """Pull the conjuncts that all parts of a disjunction share out of it."""
    return transform_up(plan, _node)


def _node(node: Relation) -> Relation:
    if isinstance(node, Filter):
        factored = _factored(node.condition)
        return node if factored is None else Filter(node.child, factored)
    # A null-aware anti join asks whether its condition is false or unknown: left as it is.
    if isinstance(node, Join) and node.condition and node.kind is not JoinKind.NULL_AWARE_ANTI:
        factored = _factored(node.condition)
        if factored is not None:
            return Join(node.left, node.right, node.kind, factored)
    return node


def _factored(condition: Scalar) -> Scalar | None:
    """The factored condition, or ``None`` if nothing is shared."""
    changed = False
    result: list[Scalar] = []
    for part in conjuncts(condition):
        branches = [conjuncts(branch) for branch in disjuncts(part)]
        shared = [c for c in branches[0] if all(c in branch for branch in branches[1:])]
        if len(branches) == 1 or not shared:
            result.append(part)
            continue
        changed = True
        result += shared
        rests = [all_of(c for c in branch if c not in shared) for branch in branches]
        # A branch that is nothing but the shared part makes the rest of the disjunction idle.
        if all(rest is not None for rest in rests):
            rest = any_of(rest for rest in rests if rest is not None)
            assert rest is not None
            result.append(rest)
    return all_of(result) if changed else None
