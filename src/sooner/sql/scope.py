"""Which names a piece of SQL may use, and what the plan calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sooner.algebra.relation import Relation
from sooner.algebra.scalar import Scalar, column, transform
from sooner.sql.untranslatable import Untranslatable


class Names:
    """Hands out column names that are unique in the whole plan, so that no scalar is ambiguous."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """The wanted name, or the name with the first free number behind it."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class WithQuery:
    """A WITH entry and the WITH entries that it can itself refer to."""

    query: exp.Query
    visible: Mapping[str, WithQuery]


@dataclass
class Scope:
    """The sources of one SELECT by alias, each with its columns; then those of the query around it."""

    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    outer: Scope | None = None

    def resolve(self, alias: str, name: str) -> str | None:
        """The plan's name of a qualified column, from the innermost query that knows the alias."""
        if alias in self.sources:
            return self.sources[alias].get(name)
        return None if self.outer is None else self.outer.resolve(alias, name)


@dataclass
class Frame:
    """A SELECT while it is being translated: the relation so far grows as subqueries are joined to it."""

    relation: Relation
    scope: Scope
    visible: Mapping[str, WithQuery]
    # The types of all stored columns of the query, by the plan's name; computed ones are not in it.
    types: Mapping[str, str | None]

    def named(self, scalar: Scalar, outputs: Mapping[str, str] | None = None) -> Scalar:
        """A copy with SQL's columns replaced by the plan's; subqueries inside keep their own names.

        ``outputs`` are the names that ORDER BY may use without a table.
        """

        def replace(node: Scalar) -> Scalar | None:
            if isinstance(node, exp.Query):
                return node
            if not isinstance(node, exp.Column):
                return None
            name = (
                self.scope.resolve(node.table, node.name)
                if node.table
                else (outputs or {}).get(node.name)
            )
            if name is None:
                raise Untranslatable(f"the column {node.sql('spark')}, which cannot be resolved")
            return column(name)

        return transform(scalar, replace)


@dataclass(frozen=True)
class Block:
    """A translated query: its relation, its output columns as (label, name) and the conjuncts of its
    WHERE that refer to the query around it."""

    relation: Relation
    outputs: tuple[tuple[str, str], ...]
    correlated: tuple[Scalar, ...] = ()
