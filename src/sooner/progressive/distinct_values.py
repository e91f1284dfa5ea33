"""The distinct counts of an aggregate, apart from its other aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Aggregate, Item
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar, column


@dataclass(frozen=True)
class DistinctValues:
    """What is counted, a scalar or several, and the names of the aggregates that count it."""

    values: tuple[Item, ...]
    names: tuple[str, ...]

    @property
    def counts(self) -> tuple[Item, ...]:
        """The aggregates over rows that have every value once: rows with a null are not counted."""
        first, *rest = (column(item.name) for item in self.values)
        count = exp.Count(this=first, expressions=rest, big_int=True)
        return tuple(Item(name, count.copy()) for name in self.names)


def distinct_values(plan: Aggregate) -> tuple[tuple[Item, ...], tuple[DistinctValues, ...]]:
    """The aggregates that are not distinct counts, and what the distinct counts count."""
    others: list[Item] = []
    found: dict[str, DistinctValues] = {}
    for item in plan.aggregates:
        values = _counted(item.scalar)
        if values is None:
            others.append(item)
            continue
        text = ", ".join(value.sql("spark") for value in values)
        named = tuple(Item(f"__value_{place}", value) for place, value in enumerate(values))
        before = found.get(text, DistinctValues(named, ()))
        found[text] = DistinctValues(before.values, (*before.names, item.name))
    return tuple(others), tuple(found.values())


def _counted(scalar: Scalar) -> list[Scalar] | None:
    call = aggregate_call(scalar)
    if not isinstance(call, exp.Count) or not isinstance(call.this, exp.Distinct):
        return None
    values = [value.copy() for value in call.this.expressions]
    if any(isinstance(value, exp.Star | exp.Tuple) for value in values):
        return None
    if isinstance(scalar, exp.Filter):
        # Rows that the filter leaves out have a null there, which is not counted.
        condition = scalar.expression.this
        values = [exp.Case(ifs=[exp.If(this=condition.copy(), true=v)]) for v in values]
    return values
