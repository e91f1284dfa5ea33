"""Constraints that no rows can fulfil together: which of them disagree."""

from __future__ import annotations

from collections.abc import Sequence

from sooner.missing.constraint import Constraint
from sooner.missing.space import Space
from sooner.missing.worlds import worlds


def agree(space: Space, constraints: Sequence[Constraint]) -> bool:
    """Whether some rows fulfil all constraints."""
    return worlds(space, constraints).program.is_possible()


def conflicting(space: Space, constraints: Sequence[Constraint]) -> list[Constraint]:
    """As few constraints as possible that disagree: without any one of them the others agree."""
    left = list(constraints)
    if agree(space, left):
        return []
    for one in constraints:
        without = [other for other in left if other is not one]
        if not agree(space, without):
            left = without
    return left


def described(constraints: Sequence[Constraint]) -> str:
    """What disagrees, and what to do."""
    lines = [
        f"  {one.label}: {_rows(one)}"
        + "".join(f", {name} from {low} to {high}" for name, (low, high) in one.values.items())
        for one in constraints
    ]
    what = "This constraint cannot" if len(lines) == 1 else "These constraints cannot all"
    return f"{what} be fulfilled, whatever rows are missing. Correct one of them:\n" + "\n".join(
        lines
    )


def _rows(one: Constraint) -> str:
    fewest, most = one.rows
    return f"at least {fewest:,} rows" if most is None else f"{fewest:,} to {most:,} rows"
