"""What the type of a column follows from, where only Spark can tell the type itself."""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Filter,
    Item,
    Join,
    Limit,
    Project,
    Relation,
    Scalar,
    Sort,
    Union,
)
from sooner.algebra.scalar import column, columns_of, substitute

_LARGEST_INT = 2**31 - 1


def type_term(scalar: Scalar, plan: Relation) -> Scalar | None:
    """The scalar over types in place of columns; ``None`` where a type is not known.

    Scalars with equal terms have one type, whatever it is. The price less a discount, in two places:
    `decimal(15,2)` * (1 - `decimal(15,2)`) in both.
    """
    if isinstance(scalar, exp.Literal):
        # On its own its value does not matter; within a scalar 2 is narrower than 1000.
        if scalar.is_string:
            return column("string")
        if scalar.name.isdigit() and int(scalar.name) <= _LARGEST_INT:
            return column("int")
        return None
    types: dict[str, Scalar] = {}
    for name in columns_of(scalar):
        term = _of_column(name, plan)
        if term is None:
            return None
        types[name] = term
    return substitute(scalar, types)


def _of_column(name: str, plan: Relation) -> Scalar | None:
    known = plan.schema[plan.names.index(name)].type
    if known is not None:
        return column(known.lower())
    match plan:
        case Project():
            return type_term(_named(name, plan.items), plan.child)
        case Aggregate() if name not in plan.keys:
            return type_term(_named(name, plan.aggregates), plan.child)
        case Filter() | Sort() | Limit() | Aggregate():
            return _of_column(name, plan.child)
        case Join():
            return _of_column(name, plan.left if name in plan.left.name_set else plan.right)
        case Union():
            place = plan.names.index(name)
            left, right = (_of_column(side.names[place], side) for side in plan.children)
            return left if left == right else None
    return None


def _named(name: str, items: tuple[Item, ...]) -> Scalar:
    return next(item.scalar for item in items if item.name == name)
