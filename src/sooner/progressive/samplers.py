"""Aggregates whose parts do not merge, and what a sample of rows must hold to estimate them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Item
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar

# The rows that a sample holds, of all groups together.
MOST_ROWS = 200_000


@dataclass(frozen=True)
class QuantileOf:
    """A quantile of a value, as Spark's ``percentile`` and ``median``."""

    name: str
    value: Scalar
    probability: float
    # Spark's percentile_approx depends on how the rows are split: only its own reading gives its value.
    is_repeatable: bool = True


@dataclass(frozen=True)
class FunctionOf:
    """A function of the user's over the values of each group, by its name."""

    name: str
    value: Scalar
    function: str
    is_repeatable: bool = True


Sampler = QuantileOf | FunctionOf


def sampler(item: Item) -> Sampler | None:
    """How to estimate an aggregate from the rows of a sample of keys; ``None`` if it is not known how.

    >>> import sqlglot
    >>> found = sampler(Item("m", sqlglot.parse_one("median(x) FILTER (WHERE o)", read="spark")))
    >>> found.probability, found.value.sql("spark")
    (0.5, 'CASE WHEN o THEN x END')
    """
    call = aggregate_call(item.scalar)
    if call is None or call.find(exp.Distinct):
        return None
    match call:
        case exp.Median():
            return QuantileOf(item.name, _value(item, call.this), 0.5)
        case exp.Quantile() | exp.ApproxQuantile():
            probability = call.args["quantile"]
            if not isinstance(probability, exp.Literal) or probability.is_string:
                return None
            exactly = isinstance(call, exp.Quantile)
            return QuantileOf(
                item.name, _value(item, call.this), float(probability.this), is_repeatable=exactly
            )
        case exp.AnonymousAggFunc() if len(call.expressions) == 1:
            return FunctionOf(item.name, _value(item, call.expressions[0]), call.name.lower())
    return None


def _value(item: Item, argument: Scalar) -> Scalar:
    """What an aggregate takes of a row; null, which it leaves out, where its FILTER does not hold."""
    if not isinstance(item.scalar, exp.Filter):
        return argument.copy()
    condition = item.scalar.expression.this
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())])
