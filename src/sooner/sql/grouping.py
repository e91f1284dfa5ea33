"""GROUP BY and aggregates of one SELECT: what stands below the Aggregate, in it, and above it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sooner.algebra.relation import Aggregate, Project, aggregate_call
from sooner.algebra.scalar import (
    Item,
    Scalar,
    bare,
    column,
    columns_of,
    equality_sides,
    is_column,
    transform,
)
from sooner.sql.functions import ZERO_FOR_NO_ROWS
from sooner.sql.scope import Frame, Names
from sooner.sql.untranslatable import Untranslatable

_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})


def has_aggregate(*scalars: exp.Expr) -> bool:
    """Whether any of the scalars aggregates, its subqueries apart."""
    return any(_calls(scalar) for scalar in scalars)


class Grouping:
    """Collects keys and aggregates of a frame, replaces its relation by the Aggregate, and rewrites
    the scalars that stand above it."""

    def __init__(self, names: Names, frame: Frame, keys: Sequence[exp.Expr]) -> None:
        self._names = names
        self._frame = frame
        self._keys: list[tuple[Scalar, str]] = []
        self._computed: list[Item] = []
        self._aggregates: dict[Scalar, str] = {}
        for key in keys:
            if key.find(exp.Query):
                raise Untranslatable("a subquery in GROUP BY")
            self._add_key(bare(frame.named(key)))

    def _add_key(self, scalar: Scalar) -> str:
        if not columns_of(scalar) <= self._frame.relation.name_set:
            raise Untranslatable("GROUP BY a column of the query around it")
        for known, name in self._keys:
            if known == scalar:
                return name
        if is_column(scalar):
            name = scalar.name
        else:
            name = self._names.fresh("key")
            self._computed.append(Item(name, scalar))
        self._keys.append((scalar, name))
        return name

    def add_correlated(self, condition: Scalar) -> Scalar:
        """Group by the inner side of a correlated equality too; returns it over the grouped column."""
        inner, outer = split_equality(condition, self._frame)
        return exp.EQ(this=column(self._add_key(inner)), expression=outer)

    def build(self, consumers: Sequence[exp.Expr]) -> None:
        """Put the Aggregate into the frame, with every aggregate that the consumers mention."""
        for consumer in consumers:
            for call in _calls(consumer):
                if call.find(exp.Query):
                    raise Untranslatable("a subquery inside an aggregate")
                scalar = self._frame.named(call)
                if has_aggregate(*(node for node in _arguments(scalar))):
                    raise Untranslatable("an aggregate of an aggregate")
                alone = isinstance(consumer, exp.Alias) and consumer.this is call
                label = consumer.alias if alone else (aggregate_call(call) or call).key
                if scalar not in self._aggregates:
                    self._aggregates[scalar] = self._names.fresh(label)
        child = self._frame.relation
        if not all(columns_of(scalar) <= child.name_set for scalar in self._aggregates):
            raise Untranslatable("an aggregate over a column of the query around it")
        if not self._keys and not self._aggregates:
            raise Untranslatable("HAVING without an aggregate")
        if self._computed:
            kept = tuple(Item(name, column(name)) for name in child.names)
            child = Project(child, kept + tuple(self._computed))
        keys = tuple(dict.fromkeys(name for _, name in self._keys))
        items = tuple(Item(name, scalar) for scalar, name in self._aggregates.items())
        self._frame.relation = Aggregate(child, keys, items)

    def after(self, scalar: Scalar, may_be_empty: bool = False) -> Scalar:
        """A named scalar as it reads above the Aggregate.

        With ``may_be_empty`` the Aggregate's row may be absent (a left join padded it with nulls):
        counts are then zero, as SQL's aggregate of no rows is.
        """

        def replace(node: Scalar) -> Scalar | None:
            if isinstance(node, exp.Query):
                return node
            if aggregate_call(node) is not None:
                result = column(self._aggregates[node])
                if may_be_empty and isinstance(aggregate_call(node), ZERO_FOR_NO_ROWS):
                    zero = exp.Literal.number(0)
                    return exp.Coalesce(this=result, expressions=[zero])
                return result
            for known, name in self._keys:
                # A constant stays: round(x, 1) takes no column for the 1.
                if node == known and columns_of(known):
                    return column(name)
            return None

        return transform(scalar, replace)


def split_equality(condition: Scalar, frame: Frame) -> tuple[Scalar, Scalar]:
    """A correlated conjunct as (side of the frame's own columns, side of the query around it).

    Both must be of types that compare without collapsing values: grouping by the inner side would
    otherwise split what the equality holds together.
    """
    sides = equality_sides(condition)
    own = frame.relation.name_set
    if sides is not None:
        inner, outer = sides if columns_of(sides[0]) <= own else sides[::-1]
        if columns_of(inner) and columns_of(inner) <= own and not columns_of(outer) & own:
            types = frame.types
            plain = is_column(inner) and is_column(outer)
            if plain and _group_alike(types.get(inner.name), types.get(outer.name)):
                return inner, outer
            raise Untranslatable("a correlated subquery that compares unlike or computed columns")
    raise Untranslatable("a correlated subquery with an aggregate that does not compare by =")


def _group_alike(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return False
    return one == other or {one, other} <= _WHOLE_NUMBERS


def _calls(scalar: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregate calls of a scalar, its subqueries apart."""
    if isinstance(scalar, exp.Query):
        return []
    if aggregate_call(scalar) is not None:
        return [scalar]
    return [call for child in scalar.iter_expressions() for call in _calls(child)]


def _arguments(call: Scalar) -> list[exp.Expr]:
    function = aggregate_call(call)
    assert function is not None
    arguments = list(function.iter_expressions())
    return arguments + ([call.expression] if isinstance(call, exp.Filter) else [])
