"""Filters move down to the scans, and into inner joins as their conditions."""

from __future__ import annotations

from collections.abc import Iterable

from sooner.algebra.relation import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Relation,
    Sort,
    Union,
)
from sooner.algebra.scalar import Scalar, all_of, column, columns_of, conjuncts, substitute

_KEEPS_LEFT_ROWS_AS_THEY_ARE = (
    JoinKind.INNER,
    JoinKind.LEFT,
    JoinKind.SEMI,
    JoinKind.ANTI,
    JoinKind.NULL_AWARE_ANTI,
)
_KEEPS_RIGHT_ROWS_AS_THEY_ARE = (JoinKind.INNER, JoinKind.RIGHT)


def push_down_filters(plan: Relation) -> Relation:
    """Apply every conjunct as early as it can be applied."""
    return _push(plan, ())


def _push(plan: Relation, pending: tuple[Scalar, ...]) -> Relation:
    """The plan with the pending conjuncts (over its output) applied in it or on top of it."""
    match plan:
        case Filter():
            new = _push(plan.child, conjuncts(plan.condition) + pending)
            return plan if not pending and _unchanged(plan, new) else new
        case Project():
            replacements = {item.name: item.scalar for item in plan.items}
            moved = tuple(substitute(part, replacements) for part in pending)
            return plan.with_children(_push(plan.child, moved))
        case Aggregate():
            # On keys only: an aggregate without keys has a row even where no input row is left.
            below, above = _split(pending, plan.keys if plan.keys else ())
            return _filtered(plan.with_children(_push(plan.child, below)), above)
        case Sort():
            return plan.with_children(_push(plan.child, pending))
        case Union():
            below, above = _split(pending, _alike(plan))
            left = dict(zip(plan.names, map(column, plan.left.names), strict=True))
            right = dict(zip(plan.names, map(column, plan.right.names), strict=True))
            both = plan.with_children(
                _push(plan.left, tuple(substitute(part, left) for part in below)),
                _push(plan.right, tuple(substitute(part, right) for part in below)),
            )
            return _filtered(both, above)
        case Intersect() | Except():
            # Equal rows pass a filter together: filtering the left decides for both.
            below, above = _split(pending, _alike(plan))
            return _filtered(
                plan.with_children(_push(plan.left, below), _push(plan.right, ())), above
            )
        case Join():
            return _push_join(plan, pending)
    children = tuple(_push(child, ()) for child in plan.children)
    return _filtered(plan.with_children(*children), pending)


def _push_join(join: Join, pending: tuple[Scalar, ...]) -> Relation:
    left: tuple[Scalar, ...] = ()
    right: tuple[Scalar, ...] = ()
    if join.kind in _KEEPS_LEFT_ROWS_AS_THEY_ARE:
        left, pending = _split(pending, join.left.names)
    if join.kind in _KEEPS_RIGHT_ROWS_AS_THEY_ARE:
        right, pending = _split(pending, join.right.names)
    on = conjuncts(join.condition)
    if join.kind is JoinKind.INNER:
        on, pending = on + pending, ()
    # A row that fails its own part of the condition has no partner: dropped early, unless it must
    # be kept for want of a partner.
    if join.kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI):
        more, on = _split(on, join.left.names)
        left += more
    if join.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
        more, on = _split(on, join.right.names)
        right += more
    condition = join.condition if on == conjuncts(join.condition) else all_of(on)
    new_left, new_right = _push(join.left, left), _push(join.right, right)
    if condition is join.condition:
        return _filtered(join.with_children(new_left, new_right), pending)
    return _filtered(Join(new_left, new_right, join.kind, condition), pending)


def _alike(plan: Union | Intersect | Except) -> tuple[str, ...]:
    """Columns of one known type on both sides: elsewhere Spark casts before it compares."""
    return tuple(column.name for column in plan.schema if column.type is not None)


def _split(
    parts: Iterable[Scalar], names: Iterable[str]
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The parts that read some of these columns and no others, and the rest."""
    known = frozenset(names)
    parts = tuple(parts)
    inside = tuple(part for part in parts if columns_of(part) and columns_of(part) <= known)
    return inside, tuple(part for part in parts if part not in inside)


def _filtered(plan: Relation, parts: tuple[Scalar, ...]) -> Relation:
    condition = all_of(parts)
    return plan if condition is None else Filter(plan, condition)


def _unchanged(old: Filter, new: Relation) -> bool:
    return isinstance(new, Filter) and new.child is old.child and new.condition == old.condition
