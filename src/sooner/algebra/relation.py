"""What a query means: frozen relational nodes, validated when they are built.

Every column of a plan has a name that is unique within its relation; scalars refer to the names of
the input, without a table. A node's ``schema`` lists its output, its ``children`` its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from sqlglot import exp

from sooner.algebra.scalar import (
    Item,
    Scalar,
    SortKey,
    is_column,
    to_sql,
)
from sooner.algebra.schema import Column, Schema, names
from sooner.algebra.validation import require, require_scalar, require_unique

Self = TypeVar("Self", bound="Relation")
UnaryNode = TypeVar("UnaryNode", bound="_Unary")
BinaryNode = TypeVar("BinaryNode", bound="_Binary")


class Relation:
    """A node of a plan. Subclasses are frozen dataclasses; equal plans compare equal."""

    @cached_property
    def schema(self) -> Schema:
        """The output columns."""
        raise AssertionError(f"{type(self).__name__} has no schema")

    @property
    def children(self) -> tuple[Relation, ...]:
        """The inputs, left to right."""
        return ()

    def with_children(self: Self, *children: Relation) -> Self:
        """The same node over other inputs; the very same object if the inputs are the same."""
        assert not children, f"{type(self).__name__} has no inputs"
        return self

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the output columns."""
        return names(self.schema)

    @cached_property
    def name_set(self) -> frozenset[str]:
        """The names of the output columns as a set."""
        return frozenset(self.names)


@dataclass(frozen=True)
class Scan(Relation):
    """The rows of a registered table. ``sources`` are its columns' names, ``columns`` our names for them."""

    table: str
    sources: tuple[str, ...]
    columns: Schema

    def __post_init__(self) -> None:
        require(len(self.sources) == len(self.columns), "a Scan names each of its columns once")
        require_unique(self.columns)

    @cached_property
    def schema(self) -> Schema:
        return self.columns


@dataclass(frozen=True)
class _Unary(Relation):
    child: Relation

    @cached_property
    def schema(self) -> Schema:
        return self.child.schema

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child,)

    def with_children(self: UnaryNode, *children: Relation) -> UnaryNode:
        (child,) = children
        return self if child is self.child else replace(self, child=child)


@dataclass(frozen=True)
class _Binary(Relation):
    left: Relation
    right: Relation

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_children(self: BinaryNode, *children: Relation) -> BinaryNode:
        left, right = children
        same = left is self.left and right is self.right
        return self if same else replace(self, left=left, right=right)


@dataclass(frozen=True)
class Filter(_Unary):
    """The rows for which the condition is true."""

    condition: Scalar

    def __post_init__(self) -> None:
        require_scalar(self.condition, self.child.name_set)


@dataclass(frozen=True)
class Project(_Unary):
    """One output row per input row; each column a scalar of the input."""

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        for item in self.items:
            require_scalar(item.scalar, self.child.name_set)
        require_unique(self.schema)

    @cached_property
    def schema(self) -> Schema:
        types = {column.name: column.type for column in self.child.schema}
        return tuple(
            Column(item.name, types[item.scalar.name] if is_column(item.scalar) else None)
            for item in self.items
        )


class JoinKind(Enum):
    """How a join treats rows without a partner."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    # NOT IN: a left row stays if the condition is *false* (not merely unknown) for every right row.
    NULL_AWARE_ANTI = "null-aware anti"

    @property
    def keeps_right(self) -> bool:
        """Whether the right columns are part of the output."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.NULL_AWARE_ANTI)


@dataclass(frozen=True)
class Join(_Binary):
    """Pairs of rows for which the condition is true; a condition of ``None`` means all pairs."""

    kind: JoinKind
    condition: Scalar | None = None

    def __post_init__(self) -> None:
        shared = self.left.name_set & self.right.name_set
        require(not shared, f"both sides of a join have {sorted(shared)}")
        if self.condition is not None:
            require_scalar(self.condition, self.left.name_set | self.right.name_set)

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema + (self.right.schema if self.kind.keeps_right else ())


@dataclass(frozen=True)
class Aggregate(_Unary):
    """One row per distinct combination of the keys (columns of the input); one row if there are none.

    Without aggregates it is DISTINCT.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Item, ...] = ()

    def __post_init__(self) -> None:
        require(bool(self.keys or self.aggregates), "an Aggregate needs a key or an aggregate")
        missing = set(self.keys) - self.child.name_set
        require(not missing, f"unknown grouping columns {sorted(missing)}")
        for item in self.aggregates:
            call = aggregate_call(item.scalar)
            if call is None:
                raise ValueError(f"not one aggregate: {to_sql(item.scalar)}")
            require_scalar(item.scalar, self.child.name_set, aggregate=True)
        require_unique(self.schema)

    @cached_property
    def schema(self) -> Schema:
        types = {column.name: column.type for column in self.child.schema}
        return tuple(Column(key, types[key]) for key in self.keys) + tuple(
            Column(item.name) for item in self.aggregates
        )


@dataclass(frozen=True)
class _SetOperation(_Binary):
    def __post_init__(self) -> None:
        left, right = len(self.left.schema), len(self.right.schema)
        require(left == right, f"a set operation of {left} and {right} columns")

    @cached_property
    def schema(self) -> Schema:
        # Spark widens unlike types; where both sides agree the type is known.
        return tuple(
            Column(a.name, a.type if a.type == b.type else None)
            for a, b in zip(self.left.schema, self.right.schema, strict=True)
        )


@dataclass(frozen=True)
class Union(_SetOperation):
    """All rows of both inputs (UNION ALL); columns by position, names of the left."""


@dataclass(frozen=True)
class Intersect(_SetOperation):
    """Rows in both inputs; once each, or as often as in both if ``all``."""

    all: bool = False


@dataclass(frozen=True)
class Except(_SetOperation):
    """Rows of the left that are not in the right; once each, or minus their count if ``all``."""

    all: bool = False


@dataclass(frozen=True)
class Sort(_Unary):
    """The rows in order."""

    by: tuple[SortKey, ...]

    def __post_init__(self) -> None:
        require(bool(self.by), "a Sort needs a key")
        for key in self.by:
            require_scalar(key.scalar, self.child.name_set)


@dataclass(frozen=True)
class Limit(_Unary):
    """The first ``count`` rows (all of them if ``None``) after skipping ``offset``."""

    count: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        require(self.count is None or self.count >= 0, "a Limit of a negative count")
        require(self.offset >= 0, "a Limit with a negative offset")


@dataclass(frozen=True)
class Map(_Unary):
    """A user's function over parts of the rows; ``sources`` are the names the function sees.

    With ``by``, all rows that agree on those columns reach the function in one call. It does not see
    the column ``apart``: rows that differ in it come in different calls, and what a call gives has it.
    """

    function: Callable[[Any], Any]
    sources: tuple[str, ...]
    columns: Schema
    by: tuple[str, ...] = ()
    apart: str | None = None

    def __post_init__(self) -> None:
        require(len(self.sources) == len(self.seen), "a Map names each input column")
        require(all(column.type for column in self.columns), "a Map declares its types")
        require(set(self.by) <= self.child.name_set, f"unknown columns in {self.by}")
        require(self.apart in (None, *self.child.names), f"no column {self.apart}")
        require_unique(self.schema)

    @cached_property
    def seen(self) -> tuple[str, ...]:
        """The columns of the input that the function is given."""
        return tuple(name for name in self.child.names if name != self.apart)

    @cached_property
    def schema(self) -> Schema:
        aside = tuple(column for column in self.child.schema if column.name == self.apart)
        return self.columns + aside


@dataclass(frozen=True)
class Opaque(Relation):
    """A query that the algebra cannot express: Spark answers its text as it stands.

    ``reason`` says why, ``reads`` which tables it reads, ``maps`` which Maps its text refers to by name.
    """

    text: str
    columns: Schema
    reason: str
    reads: tuple[str, ...] = ()
    maps: tuple[tuple[str, Map], ...] = ()

    def __post_init__(self) -> None:
        require_unique(self.columns)

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @property
    def children(self) -> tuple[Relation, ...]:
        return tuple(node for _, node in self.maps)

    def with_children(self, *children: Relation) -> Opaque:
        if _same(children, self.children):
            return self
        maps = []
        for (name, _), child in zip(self.maps, children, strict=True):
            assert isinstance(child, Map)
            maps.append((name, child))
        return Opaque(self.text, self.columns, self.reason, self.reads, tuple(maps))


def aggregate_call(scalar: Scalar) -> exp.AggFunc | None:
    """The aggregate function of ``sum(x)`` or ``sum(x) FILTER (WHERE …)``; ``None`` for anything else."""
    inner = scalar.this if isinstance(scalar, exp.Filter) else scalar
    return inner if isinstance(inner, exp.AggFunc) else None


def _same(new: tuple[Relation, ...], old: tuple[Relation, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
