"""The driver applies the rules in order, says what each did, and names the one that breaks a plan."""

from __future__ import annotations

import pytest
from rewrite_cases import planned, sql

from sooner.algebra import Filter, Item, Project, Relation
from sooner.algebra.scalar import column
from sooner.errors import InvalidArgument, SoonerError
from sooner.rewrites import RULES, RewriteError, Rule, rewrite

PLAN = planned("SELECT a FROM t WHERE b > 1")


def test_every_rule_leaves_a_step() -> None:
    done = rewrite(PLAN)
    assert [step.rule for step in done.steps] == [rule.name for rule in RULES]
    changed = {step.rule for step in done.steps if step.changed}
    assert changed == {"prune_columns"}
    assert all(step.seconds >= 0 for step in done.steps)


def test_rules_run_in_order_on_what_the_one_before_left() -> None:
    seen: list[Relation] = []

    def first(plan: Relation) -> Relation:
        seen.append(plan)
        return Filter(plan, sql("a > 2"))

    def second(plan: Relation) -> Relation:
        seen.append(plan)
        return plan

    done = rewrite(PLAN, rules=[Rule("first", first), Rule("second", second)])
    assert seen == [PLAN, Filter(PLAN, sql("a > 2"))]
    assert [step.changed for step in done.steps] == [True, False]


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_each_rule_can_be_switched_off(rule: str) -> None:
    done = rewrite(PLAN, without=[rule])
    assert rule not in [step.rule for step in done.steps]
    assert len(done.steps) == len(RULES) - 1


def test_all_rules_can_be_switched_off() -> None:
    done = rewrite(PLAN, without=[rule.name for rule in RULES])
    assert done.plan is PLAN
    assert done.steps == ()


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidArgument, match="Did you mean 'prune_columns'"):
        rewrite(PLAN, without=["prune_column"])


def renames(plan: Relation) -> Relation:
    return Project(plan, (Item("other", column("a")),))


def adds_a_column(plan: Relation) -> Relation:
    return Project(plan, (Item("a", column("a")), Item("more", column("a"))))


@pytest.mark.parametrize("broken", [renames, adds_a_column])
def test_a_rule_that_changes_the_columns_is_named(broken: object) -> None:
    with pytest.raises(RewriteError, match="rule culprit changed the columns from a to") as caught:
        rewrite(PLAN, rules=[Rule("fine", lambda plan: plan), Rule("culprit", broken)])  # type: ignore[arg-type]
    assert "without=['culprit']" in str(caught.value)
    assert isinstance(caught.value, SoonerError)


def test_a_rule_that_builds_a_broken_plan_is_named() -> None:
    def broken(plan: Relation) -> Relation:
        return Filter(plan, sql("nowhere = 1"))

    with pytest.raises(RewriteError, match=r"culprit failed: .*nowhere.* without=\['culprit'\]"):
        rewrite(PLAN, rules=[Rule("culprit", broken)])
