"""What a rewrite rule is: a named pure function from plan to plan with the same answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sooner.algebra.relation import Relation


@dataclass(frozen=True)
class Rule:
    """A rule returns the very same object when it has nothing to change."""

    name: str
    apply: Callable[[Relation], Relation]
