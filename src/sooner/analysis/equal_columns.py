"""Columns that a join has equal."""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra import Join
from sooner.algebra.scalar import bare, conjuncts, is_column


def equal_columns(plan: Join) -> list[tuple[str, str]]:
    """Pairs of a left and a right column, both known to be of one type, that are equal where rows meet."""
    types = {one.name: one.type for side in plan.children for one in side.schema}
    found = []
    for part in conjuncts(plan.condition):
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        sides = [bare(part.left), bare(part.right)]
        if not all(is_column(side) for side in sides):
            continue
        one, other = (side.name for side in sides)
        if one in plan.right.name_set:
            one, other = other, one
        same = types[one] is not None and types[one] == types[other]
        if same and one in plan.left.name_set and other in plan.right.name_set:
            found.append((one, other))
    return found
