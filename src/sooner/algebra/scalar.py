"""Scalars are detached copies of sqlglot expressions over the column names of a relation's input.

sqlglot nodes are mutable, remember their parent and are silently re-parented when they are put into
another tree. So a plan holds only copies without a parent, and builds new ones with the helpers here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import Dialect, exp

Scalar: TypeAlias = exp.Expr

_SPARK = Dialect.get_or_raise("spark")  # by name it would be looked up for every scalar


@dataclass(frozen=True, slots=True)
class Item:
    """A named scalar: one output column of a Project or one aggregate of an Aggregate."""

    name: str
    scalar: Scalar

    def __post_init__(self) -> None:
        assert_detached(self.scalar)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a Sort."""

    scalar: Scalar
    descending: bool = False
    nulls_first: bool = True

    def __post_init__(self) -> None:
        assert_detached(self.scalar)


def assert_detached(scalar: Scalar) -> None:
    """Refuse a scalar that still belongs to another tree."""
    if scalar.parent is not None:
        raise ValueError(f"scalar is part of another tree, copy it first: {to_sql(scalar)}")


def column(name: str) -> Scalar:
    """A reference to a column of the input.

    >>> column("l_quantity").sql("spark")
    '`l_quantity`'
    """
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def columns_of(scalar: Scalar) -> frozenset[str]:
    """The names of the columns a scalar reads."""
    return frozenset(node.name for node in scalar.find_all(exp.Column))


def conjuncts(scalar: Scalar | None) -> tuple[Scalar, ...]:
    """The parts of a conjunction, detached, in the order they are written."""
    if scalar is None:
        return ()
    if isinstance(scalar, exp.Paren):
        return conjuncts(scalar.this)
    if isinstance(scalar, exp.And):
        return conjuncts(scalar.left) + conjuncts(scalar.right)
    return (scalar.copy(),)


def disjuncts(scalar: Scalar) -> tuple[Scalar, ...]:
    """The parts of a disjunction, detached, in the order they are written."""
    if isinstance(scalar, exp.Paren) and isinstance(scalar.this, exp.Or | exp.Paren):
        return disjuncts(scalar.this)
    if isinstance(scalar, exp.Or):
        return disjuncts(scalar.left) + disjuncts(scalar.right)
    return (scalar.copy(),)


def all_of(parts: Iterable[Scalar]) -> Scalar | None:
    """The conjunction of the parts; ``None`` if there are none."""
    return _fold(parts, exp.And, exp.Or)


def any_of(parts: Iterable[Scalar]) -> Scalar | None:
    """The disjunction of the parts; ``None`` if there are none."""
    return _fold(parts, exp.Or, exp.And)


def _fold(
    parts: Iterable[Scalar], connective: type[exp.Connector], weaker: type[exp.Connector]
) -> Scalar | None:
    result: Scalar | None = None
    for part in parts:
        operand = exp.Paren(this=part.copy()) if isinstance(part, weaker) else part.copy()
        result = operand if result is None else connective(this=result, expression=operand)
    return result


def substitute(scalar: Scalar, replacements: Mapping[str, Scalar]) -> Scalar:
    """A copy of the scalar in which columns are replaced by other scalars, by name."""

    def replace(node: Scalar) -> Scalar | None:
        if isinstance(node, exp.Column) and node.name in replacements:
            return parenthesized(replacements[node.name])
        return None

    return transform(scalar, replace)


def parenthesized(scalar: Scalar) -> Scalar:
    """A copy that can stand inside any other scalar without changing its meaning."""
    compound = exp.Binary | exp.Unary | exp.Between | exp.In | exp.Interval
    if isinstance(scalar, compound) and not isinstance(scalar, exp.Paren):
        return exp.Paren(this=scalar.copy())
    return scalar.copy()


def transform(scalar: Scalar, replace: Callable[[Scalar], Scalar | None]) -> Scalar:
    """A rewritten copy. ``replace`` sees every node from the top: what it returns stands as it is,
    ``None`` means to go on with the node's own parts.
    """

    def visit(node: Scalar) -> Scalar:
        new = replace(node)
        if new is not None:
            return new
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, visit(value))
            elif isinstance(value, list):
                node.set(key, [visit(v) if isinstance(v, exp.Expr) else v for v in value])
        return node

    result = visit(scalar.copy())
    return result.copy() if result.parent is not None else result


def equality_sides(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of ``a = b``, detached; ``None`` for any other scalar."""
    if isinstance(scalar, exp.EQ):
        return bare(scalar.left), bare(scalar.right)
    return None


def bare(scalar: Scalar) -> Scalar:
    """A copy without the parentheses around it."""
    while isinstance(scalar, exp.Paren):
        scalar = scalar.this
    return scalar.copy()


def is_column(scalar: Scalar) -> bool:
    """Whether the scalar is nothing but a column."""
    return isinstance(scalar, exp.Column)


def to_sql(scalar: Scalar) -> str:
    """The scalar in Spark's SQL."""
    return _SPARK.generate(scalar)


def list_sql(scalars: Sequence[Scalar]) -> str:
    """Scalars in Spark's SQL, separated by commas."""
    return ", ".join(to_sql(scalar) for scalar in scalars)
