"""SQL text to a plan, or the reason why Spark should answer the text as it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra.relation import Map, Relation
from sooner.algebra.schema import Schema
from sooner.sql.parse import parse
from sooner.sql.qualify import qualify
from sooner.sql.translate import translate
from sooner.sql.untranslatable import Untranslatable
from sooner.sql.user_functions import unknown_functions
from sooner.sql.within_group import as_percentiles


@dataclass(frozen=True)
class Verbatim:
    """A query that goes to Spark as it is, and why."""

    reason: str


def plan_query(
    text: str, schemas: Mapping[str, Schema], maps: Mapping[str, Map] | None = None
) -> Relation | Verbatim:
    """The plan of a query over tables with the given schemas (by lower-cased name).

    >>> from sooner.algebra import Column, plan_text
    >>> plan = plan_query("SELECT a FROM t WHERE b > 1", {"t": (Column("a"), Column("b"))})
    >>> print(plan_text(plan))
    Project [a]
      Filter b > 1
        Scan t [a, b]
    """
    try:
        return plan_tree(parse(text), schemas, maps)
    except Untranslatable as obstacle:
        return Verbatim(str(obstacle))


def plan_tree(
    tree: exp.Query,
    schemas: Mapping[str, Schema],
    maps: Mapping[str, Map] | None = None,
    functions: Collection[str] = (),
) -> Relation:
    """Like :func:`plan_query`, of a parsed query; raises ``Untranslatable``.

    ``functions`` are the user's, in lower case: they take single values and always give the same.
    """
    maps = maps or {}
    for name in unknown_functions(tree):
        if name not in functions:
            raise Untranslatable(f"the function {name}")
    known = {**schemas, **{name: node.columns for name, node in maps.items()}}
    try:
        return translate(qualify(as_percentiles(tree), known), schemas, maps).plan
    except ValueError as error:
        # A plan that its own checks refuse: a bug here, but no reason to leave the user without answer.
        raise Untranslatable(f"something that Sooner's plan cannot hold ({error})") from error
