"""After ``JOIN … USING (a)`` the column is COALESCE of both sides: where rows meet, one of them is enough.

As a plain column it can be part of a key, and conditions on it reach the tables.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sooner.algebra.relation import Filter, Join, JoinKind, Project, Relation
from sooner.algebra.scalar import Item, Scalar, column, is_column, transform
from sooner.algebra.traversal import transform_up
from sooner.analysis.equal_columns import equal_columns
from sooner.analysis.types import is_floating


def plain_using(plan: Relation) -> Relation:
    """Put a column in the place of COALESCE of columns that a join has equal."""
    return transform_up(plan, _node)


def _node(node: Relation) -> Relation:
    if isinstance(node, Filter):
        chosen = _chosen(node.child)
        condition = _plain(node.condition, chosen)
        return node if condition is None else replace(node, condition=condition)
    if isinstance(node, Project):
        chosen = _chosen(node.child)
        items = [Item(item.name, _plain(item.scalar, chosen) or item.scalar) for item in node.items]
        same = all(a.scalar is b.scalar for a, b in zip(items, node.items, strict=True))
        return node if same else replace(node, items=tuple(items))
    return node


def _chosen(rows: Relation) -> dict[tuple[str, str], str]:
    """The column that stands for COALESCE of two."""
    while isinstance(rows, Filter):
        rows = rows.child
    if not isinstance(rows, Join):
        return {}
    pairs = equal_columns(rows)
    match rows.kind:
        case JoinKind.INNER:
            return {pair: pair[0] for one, other in pairs for pair in ((one, other), (other, one))}
        case JoinKind.LEFT:
            return {pair: pair[0] for pair in pairs}
        case JoinKind.RIGHT:  # 0.0 and -0.0 are equal, and not the same
            types = {one.name: one.type or "" for one in rows.right.schema}
            return {pair: pair[1] for pair in pairs if not is_floating(types[pair[1]])}
    return {}


def _plain(scalar: Scalar, chosen: dict[tuple[str, str], str]) -> Scalar | None:
    """The scalar with plain columns; ``None`` if nothing changes."""
    changed = False

    def replaced(node: Scalar) -> Scalar | None:
        nonlocal changed
        if not isinstance(node, exp.Coalesce):
            return None
        parts = [node.this, *node.expressions]
        if len(parts) != 2 or not all(is_column(part) for part in parts):
            return None
        name = chosen.get((parts[0].name, parts[1].name))
        changed |= name is not None
        return None if name is None else column(name)

    if not chosen:
        return None
    found = transform(scalar, replaced)
    return found if changed else None
