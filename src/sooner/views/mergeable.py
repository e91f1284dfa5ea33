"""Aggregates that changes can be added to: what to keep of each, how it merges, how its value comes of it.

Counts and sums of whole numbers and decimals can be added to and taken from. A floating sum can only be added
to: taking 1e20 away again would leave nothing of the 1 beside it. A minimum can be lowered, but whether it
goes up when it is taken away only the rows can say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar
from sooner.analysis.types import decimal_digits, is_floating, is_integral

Merge: TypeAlias = Literal["sum", "min", "max"]
_WIDEST = 38  # digits of a decimal in Spark
_COUNT = 12  # as many digits as the rows of a group may have
_TO_ROUND_BY = 6


@dataclass(frozen=True)
class Kept:
    """An aggregate that is kept for another's sake, and what brings two of it together.

    ``changes`` is what is asked of rows that came or went, whose sum may be too large for the type.
    """

    call: Scalar
    merge: Merge
    changes: Scalar


def keep(call: Scalar, merge: Merge, changes: Scalar | None = None) -> Kept:
    """What to keep, asked alike of all rows and of changes if nothing else is said."""
    return Kept(call.copy(), merge, (changes or call).copy())


@dataclass(frozen=True)
class Mergeable:
    """What is kept of an aggregate, its value of that, and whether rows can be taken away again."""

    kept: tuple[Kept, ...]
    value: Callable[[Sequence[Scalar]], Scalar]
    takes_away: bool = True


def argument(aggregate: Scalar) -> Scalar | None:
    """What an aggregate is of; ``None`` for ``count(*)`` and for more than one."""
    call = aggregate_call(aggregate)
    inner = call.this if call is not None else None
    if not isinstance(inner, exp.Expr) or isinstance(inner, exp.Star | exp.Distinct):
        return None
    return inner.copy()


def mergeable(aggregate: Scalar, type_: str | None) -> Mergeable | None:
    """How an aggregate of an argument of some type merges; ``None`` if only its rows can say."""
    call = aggregate_call(aggregate)
    if call is None or call.find(exp.Distinct) or len(call.args.get("expressions") or ()) > 0:
        return None
    if isinstance(call, exp.Count):
        return Mergeable((keep(aggregate, "sum"),), lambda kept: kept[0].copy())
    if isinstance(call, exp.Min | exp.Max):
        merge: Merge = "min" if isinstance(call, exp.Min) else "max"
        return Mergeable((keep(aggregate, merge),), lambda kept: kept[0].copy())
    if not isinstance(call, exp.Sum | exp.Avg):
        return None
    digits = decimal_digits(type_ or "")
    if digits is None and not is_floating(type_):
        return None
    total = _again(aggregate, exp.Sum(this=_widened(call.this, type_)))
    count = _again(aggregate, exp.Count(this=call.this.copy(), big_int=True))
    if isinstance(call, exp.Sum):
        wide = type_ is not None and type_.lower() == "bigint"
        parts = (keep(aggregate, "sum", total if wide else None), keep(count, "sum"))
        return Mergeable(parts, _total, digits is not None)
    parts = (keep(total, "sum"), keep(count, "sum"))
    if is_floating(type_) or is_integral(type_):
        return Mergeable(parts, _average, digits is not None)
    assert digits is not None
    average = _decimal_average(*digits)
    return None if average is None else Mergeable(parts, average)


def _widened(scalar: Scalar, type_: str | None) -> Scalar:
    """The average of whole numbers may be where their sum is too large for Spark."""
    if not is_integral(type_):
        return scalar.copy()
    return exp.Cast(this=scalar.copy(), to=exp.DataType.build("decimal(20, 0)"))


def _again(aggregate: Scalar, call: Scalar) -> Scalar:
    if isinstance(aggregate, exp.Filter):
        return exp.Filter(this=call, expression=aggregate.expression.copy())
    return call


def _if_any(count: Scalar, value: Scalar) -> Scalar:
    some = exp.GT(this=count.copy(), expression=exp.convert(0))
    return exp.Case(ifs=[exp.If(this=some, true=value)])


def _total(kept: Sequence[Scalar]) -> Scalar:
    total, count = kept
    return _if_any(count, total.copy())


def _average(kept: Sequence[Scalar]) -> Scalar:
    total, count = kept
    whole = exp.Cast(this=total.copy(), to=exp.DataType.build("double"))
    return _if_any(count, exp.Div(this=whole, expression=count.copy()))


def _decimal_average(before: int, after: int) -> Callable[[Sequence[Scalar]], Scalar] | None:
    """Spark's average of decimals, which has four more digits before and after the point.

    Spark's / has fewer digits after the point the more there may be before it: the whole part is divided on
    its own, and the rest, which is smaller than the count, has room for all of them and some to round by.
    ``None`` where it has not.
    """
    scale = after + 4
    if before + scale > _WIDEST - 2 or scale + _TO_ROUND_BY > _WIDEST - _COUNT:
        return None
    type_ = exp.DataType.build(f"decimal({before + scale}, {scale})")
    number_type = exp.DataType.build(f"decimal({_COUNT}, 0)")
    rest_type = exp.DataType.build(f"decimal({_COUNT + after}, {after})")
    whole_type = exp.DataType.build(f"decimal({_WIDEST - 1 - scale}, 0)")
    part_type = exp.DataType.build(f"decimal({scale + 1}, {scale})")

    def average(kept: Sequence[Scalar]) -> Scalar:
        total, count = kept
        number = exp.Cast(this=count.copy(), to=number_type.copy())
        rest = exp.Mod(this=total.copy(), expression=number.copy())
        whole = exp.Div(
            this=exp.Paren(this=exp.Sub(this=total.copy(), expression=rest.copy())),
            expression=number.copy(),
        )
        part = exp.Div(this=exp.Cast(this=rest, to=rest_type.copy()), expression=number)
        both = exp.Add(
            this=exp.Cast(this=whole, to=whole_type.copy()),
            expression=exp.Cast(this=part, to=part_type.copy()),
        )
        return _if_any(count, exp.Cast(this=both, to=type_.copy()))

    return average
