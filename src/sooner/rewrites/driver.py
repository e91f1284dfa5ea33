"""Applies the rules and checks every one of them: the driver owns order, timing and trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import perf_counter

from sooner.algebra.relation import Relation
from sooner.errors import InvalidArgument, SoonerError, nearest
from sooner.rewrites.rule import Rule
from sooner.rewrites.rules import RULES


class RewriteError(SoonerError):
    """A rule broke the plan: a bug in Sooner, with the rule's name and how to go on without it."""


@dataclass(frozen=True)
class Step:
    """What one rule did: how long it took and whether it changed anything."""

    rule: str
    seconds: float
    changed: bool


@dataclass(frozen=True)
class Rewritten:
    """The plan after all rules, and a step for each rule that ran."""

    plan: Relation
    steps: tuple[Step, ...]


def rewrite(
    plan: Relation, without: Collection[str] = (), rules: Sequence[Rule] = RULES
) -> Rewritten:
    """Apply the rules in order, leaving out those named in ``without``."""
    known = [rule.name for rule in rules]
    for name in without:
        if name not in known:
            raise InvalidArgument(f"There is no rewrite rule {name!r}.{nearest(name, known)}")
    steps = []
    for rule in rules:
        if rule.name in without:
            continue
        start = perf_counter()
        new = _apply(rule, plan)
        steps.append(Step(rule.name, perf_counter() - start, new is not plan))
        plan = new
    return Rewritten(plan, tuple(steps))


def _apply(rule: Rule, plan: Relation) -> Relation:
    advice = f"Please report this query; without=[{rule.name!r}] switches the rule off."
    try:
        new = rule.apply(plan)
    except (ValueError, KeyError, AssertionError) as error:
        raise RewriteError(f"The rewrite rule {rule.name} failed: {error}. {advice}") from error
    if new.names != plan.names:
        raise RewriteError(
            f"The rewrite rule {rule.name} changed the columns from {', '.join(plan.names)} "
            f"to {', '.join(new.names)}. {advice}"
        )
    return new
