"""SQL text to a plan, or the reason why Spark should answer the text as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sooner.algebra.relation import Map, Relation
from sooner.algebra.schema import Schema
from sooner.sql.parse import parse
from sooner.sql.qualify import qualify
from sooner.sql.translate import translate
from sooner.sql.untranslatable import Untranslatable


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
    maps = maps or {}
    known = {**schemas, **{name: node.columns for name, node in maps.items()}}
    try:
        return translate(qualify(parse(text), known), schemas, maps).plan
    except Untranslatable as obstacle:
        return Verbatim(str(obstacle))
