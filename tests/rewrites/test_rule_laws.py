"""What holds of every rule on every query: it mutates nothing, keeps the columns, and is done at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest
from rewrite_cases import QUERIES, planned
from sqlglot import exp

from sooner.algebra import Item, Relation, SortKey, plan_text, walk
from sooner.rewrites import RULES
from sooner.sql import render


def scalars(plan: Relation) -> Iterator[exp.Expr]:
    for node in walk(plan):
        for field in fields(node):  # type: ignore[arg-type]
            value = getattr(node, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, exp.Expr):
                    yield part
                elif isinstance(part, Item | SortKey):
                    yield part.scalar


def looks(plan: Relation) -> tuple[object, ...]:
    """All that can be seen of a plan, its scalars' hashes and texts included."""
    held = list(scalars(plan))
    assert all(scalar.parent is None for scalar in held)
    # sqlglot keeps a hash that it has computed: the copy's is of what is there now.
    now = [hash(scalar.copy()) for scalar in held]
    assert [hash(scalar) for scalar in held] == now
    return hash(plan), render(plan), now


@pytest.mark.parametrize("name", QUERIES)
def test_rules_are_pure_and_done_at_once(name: str) -> None:
    text, schemas = QUERIES[name]
    plan = planned(text, schemas)
    before = looks(plan)
    plan_text(plan)
    assert looks(plan) == before, "writing a plan changed it"
    for rule in RULES:
        new = rule.apply(plan)
        assert looks(plan) == before, rule.name
        assert new.names == plan.names, rule.name
        assert (new is plan) == (new == plan), f"{rule.name} rebuilt an equal plan"
        assert rule.apply(new) is new, f"{rule.name} is not done the first time"
        if new is not plan:
            plan, before = new, looks(new)
