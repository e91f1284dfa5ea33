"""Columns that nothing reads are not read."""

from __future__ import annotations

from collections.abc import Iterable

from sooner.algebra.relation import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    Limit,
    Map,
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
)
from sooner.algebra.scalar import Item, Scalar, column, columns_of, is_column


def prune_columns(plan: Relation) -> Relation:
    """Keep only what the output needs, node by node, from the top."""
    pruned = _exactly(plan, plan.names)
    return plan if pruned == plan else pruned


def _exactly(plan: Relation, names: tuple[str, ...]) -> Relation:
    """The pruned plan with just these columns in this order, for parents that go by position."""
    if isinstance(plan, Limit) or (
        isinstance(plan, Sort) and _read(key.scalar for key in plan.by) <= set(names)
    ):
        return plan.with_children(_exactly(plan.child, names))  # sort narrow rows, not wide ones
    pruned = _prune(plan, frozenset(names))
    if pruned.names == names:
        return pruned
    return Project(pruned, tuple(Item(name, column(name)) for name in names))


def _prune(plan: Relation, needed: frozenset[str]) -> Relation:
    """The plan with at least the needed columns and few others."""
    match plan:
        case Scan():
            return _scan(plan, needed)
        case Filter():
            return plan.with_children(_prune(plan.child, needed | columns_of(plan.condition)))
        case Project():
            return _project(plan, needed)
        case Join():
            used = needed | (columns_of(plan.condition) if plan.condition is not None else set())
            sides = [_prune(side, used & side.name_set) for side in plan.children]
            if sides[0].name_set & sides[1].name_set:  # columns that nothing needs, of one name
                sides = [
                    _exactly(side, tuple(name for name in side.names if name in used))
                    for side in plan.children
                ]
            return plan.with_children(*sides)
        case Aggregate():
            return _aggregate(plan, needed)
        case Union():
            places = [i for i, name in enumerate(plan.names) if name in needed] or [0]
            return plan.with_children(
                *(_exactly(c, tuple(c.names[i] for i in places)) for c in plan.children)
            )
        case Opaque():
            return plan.with_children(*(_prune(child, child.name_set) for child in plan.children))
        case Intersect() | Except() | Map():
            return plan.with_children(*(_exactly(child, child.names) for child in plan.children))
        case Sort():
            return plan.with_children(
                _prune(plan.child, needed | _read(key.scalar for key in plan.by))
            )
        case Limit():
            return plan.with_children(_prune(plan.child, needed))
    raise AssertionError(f"no pruning for {type(plan).__name__}")


def _scan(scan: Scan, needed: frozenset[str]) -> Scan:
    kept = [i for i, name in enumerate(scan.names) if name in needed]
    if len(kept) == len(scan.columns):
        return scan
    return Scan(
        scan.table, tuple(scan.sources[i] for i in kept), tuple(scan.columns[i] for i in kept)
    )


def _project(project: Project, needed: frozenset[str]) -> Relation:
    items = tuple(item for item in project.items if item.name in needed)
    child = _prune(project.child, _read(item.scalar for item in items))
    if all(is_column(item.scalar) and item.scalar.name == item.name for item in items):
        return child  # it only passes columns on
    if child is project.child and len(items) == len(project.items):
        return project
    return Project(child, items)


def _aggregate(aggregate: Aggregate, needed: frozenset[str]) -> Aggregate:
    items = tuple(item for item in aggregate.aggregates if item.name in needed)
    if not aggregate.keys and not items:
        items = aggregate.aggregates[:1]  # its one row must remain
    child = _prune(aggregate.child, frozenset(aggregate.keys) | _read(i.scalar for i in items))
    if child is aggregate.child and len(items) == len(aggregate.aggregates):
        return aggregate
    return Aggregate(child, aggregate.keys, items)


def _read(scalars: Iterable[Scalar]) -> frozenset[str]:
    return frozenset().union(*(columns_of(scalar) for scalar in scalars))
