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


@pytest.mark.parametrize("name", QUERIES)
def test_rules_are_pure_and_done_at_once(name: str) -> None:
    text, schemas = QUERIES[name]
    plan = planned(text, schemas)
    for rule in RULES:
        held = [(scalar, hash(scalar), scalar.sql("spark")) for scalar in scalars(plan)]
        before, hashed, rendered = plan_text(plan), hash(plan), render(plan)
        new = rule.apply(plan)
        for scalar, known, written in held:
            assert scalar.parent is None, rule.name
            # sqlglot keeps a hash that it has computed: the copy's is of what is there now.
            assert hash(scalar) == hash(scalar.copy()) == known, rule.name
            assert scalar.sql("spark") == written, rule.name
        assert (plan_text(plan), hash(plan), render(plan)) == (before, hashed, rendered), rule.name
        assert all(scalar.parent is None for scalar in scalars(new)), rule.name
        assert new.names == plan.names, rule.name
        assert (new is plan) == (new == plan), f"{rule.name} rebuilt an equal plan"
        assert rule.apply(new) is new, f"{rule.name} is not done the first time"
        plan = new


@pytest.mark.parametrize("name", QUERIES)
def test_rendering_mutates_nothing(name: str) -> None:
    text, schemas = QUERIES[name]
    plan = planned(text, schemas)
    held = [(scalar, hash(scalar)) for scalar in scalars(plan)]
    assert render(plan) == render(plan)
    for scalar, known in held:
        assert scalar.parent is None
        assert hash(scalar.copy()) == known
