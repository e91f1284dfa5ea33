"""Aggregates as partial results that can be merged: what a batch computes and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Item
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar
from sooner.progressive.variances import (
    Spread,
    merge_spreads,
    spread,
    spread_contributions,
    spread_parts,
)
from sooner.statistics import leave_one_out
from sooner.statistics.arrays import Floats

_MOST = 0.8


@dataclass(frozen=True)
class Scaling:
    """Rows read of the table that is counted, by replicate, and in all.

    An interval takes ``fewest`` replicates that are not empty, or most of those that were read.
    """

    rows: Floats
    total: float
    fewest: int = 5

    @property
    def together(self) -> Scaling:
        """All replicates as one."""
        return replace(self, rows=self.rows.sum(keepdims=True))

    @property
    def fewest_now(self) -> int:
        """How many replicates an interval takes, as many were read."""
        return min(self.fewest, round(_MOST * np.count_nonzero(self.rows)))


# From the merged partials of each group (Arrow) to the exact value.
Exact = Callable[[Sequence[pa.ChunkedArray], pa.DataType], Any]
# From the partials by group and replicate (NumPy, empty is 0) to the R + 1 estimates of each group.
Estimates = Callable[[Sequence[Floats], Scaling], Floats]
# The same from the R + 1 scaled sums of each partial.
Combine = Callable[[Sequence[Floats]], Floats]
# From the number of each row's group, how many groups there are, and the rows' partials (Arrow) to
# those of the groups.
MergeTogether = Callable[
    [npt.NDArray[np.int64], int, Sequence[pa.ChunkedArray]], Sequence[pa.Array]
]
# From the partials by group and replicate to what each replicate brings; see ``statistics.interval``.
Contributions = Callable[[Sequence[Floats]], Floats]

# Ratios of sparse numerators need more replicates than totals (progressive.md §4), and so do variances.
_FEWEST_FOR_SPREAD = 12


def _last(parts: Sequence[Floats]) -> Floats:
    return np.abs(parts[-1])


@dataclass(frozen=True)
class Accumulator:
    """How one aggregate is kept: its partial columns, how they merge, and what they are worth.

    ``merge`` names an Arrow aggregation for each partial, or is empty where partials ``merge_together``.
    A MIN or MAX ``is_extreme``: it is shown as it is, not scaled. What ``is_count`` can only grow, and
    like a sum it ``is_total``.
    An interval takes ``fewest`` replicates that are not empty.
    """

    name: str
    partials: tuple[Item, ...]
    merge: tuple[str, ...]
    exact: Exact
    estimates: Estimates
    is_extreme: bool = False
    is_count: bool = False
    is_total: bool = False
    combine: Combine | None = None
    merge_together: MergeTogether | None = None
    contributions: Contributions = _last
    fewest: int = 5


def accumulator(item: Item, type_: pa.DataType | None = None) -> Accumulator | None:
    """The accumulator of an aggregate; ``None`` for one whose parts cannot be merged exactly.

    ``type_`` is the aggregate's own type, where it is known already.
    """
    call = aggregate_call(item.scalar)
    if call is None or isinstance(call.this, exp.Distinct):
        return None
    condition = item.scalar.expression if isinstance(item.scalar, exp.Filter) else None

    def part(number: int, function: Scalar) -> Item:
        filtered = function
        if condition is not None:
            filtered = exp.Filter(this=function, expression=condition.copy())
        return Item(f"{item.name}__{number}", filtered)

    of = call.this
    match call:
        case exp.Count():
            return Accumulator(
                item.name,
                (part(0, call.copy()),),
                ("sum",),
                _count,
                _total,
                is_count=True,
                is_total=True,
                combine=_first,
            )
        case exp.Sum():
            return Accumulator(
                item.name,
                (part(0, call.copy()),),
                ("sum",),
                _cast,
                _total,
                is_total=True,
                combine=_first,
            )
        case exp.Avg():
            # Spark averages whole numbers as floating ones: their sum may be too large for a whole one.
            floating = type_ is not None and pa.types.is_floating(type_)
            summed = exp.cast(of.copy(), "double", dialect="spark") if floating else of.copy()
            # Of the summed values: where Spark is not strict, a text that is no number becomes NULL.
            total, count = exp.Sum(this=summed), exp.Count(this=summed.copy(), big_int=True)
            both = (part(0, total), part(1, count))
            return Accumulator(item.name, both, ("sum", "sum"), _average, _ratio, combine=_quotient)
        case exp.Min() | exp.Max() if len(call.args.get("expressions") or ()) == 0:
            merge = "min" if isinstance(call, exp.Min) else "max"
            return Accumulator(
                item.name, (part(0, call.copy()),), (merge,), _cast, _raw, is_extreme=True
            )
    wanted = spread(call)
    if wanted is not None:
        parts = tuple(part(number, one) for number, one in enumerate(spread_parts(of)))
        return Accumulator(
            item.name,
            parts,
            (),
            wanted.exact,
            partial(_spread, wanted),
            merge_together=merge_spreads,
            contributions=spread_contributions,
            fewest=_FEWEST_FOR_SPREAD,
        )
    return None


def _cast(parts: Sequence[pa.ChunkedArray], type_: pa.DataType) -> pa.ChunkedArray:
    return parts[0].cast(type_)


def _count(parts: Sequence[pa.ChunkedArray], type_: pa.DataType) -> pa.ChunkedArray:
    return pc.fill_null(parts[0], 0).cast(type_)


def _average(parts: Sequence[pa.ChunkedArray], type_: pa.DataType) -> pa.Array:
    total, count = parts
    if not pa.types.is_decimal(type_):
        counted = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
        return pc.divide(
            total.cast(pa.float64(), safe=False), counted.cast(pa.float64(), safe=False)
        ).cast(type_)
    # As Spark does: to 38 decimals, then to those of the type, half up both times.
    averages = [
        None if one is None or not number else _half_up_average(one, number, type_.scale)
        for one, number in zip(total.to_pylist(), count.to_pylist(), strict=True)
    ]
    return pa.array(averages, type_)


def _half_up_average(total: Decimal, count: int, scale: int) -> Decimal:
    sign, digits, exponent = total.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)) or "0")
    precise = _divide_half_up(unscaled * 10 ** (38 + exponent), count)
    rounded = _divide_half_up(precise, 10 ** (38 - scale))
    return Decimal((sign, tuple(map(int, str(rounded))), -scale))


def _divide_half_up(number: int, by: int) -> int:
    return (2 * number + by) // (2 * by)


def _total(parts: Sequence[Floats], scaling: Scaling) -> Floats:
    return leave_one_out(parts[0], scaling.rows, scaling.total)


def _ratio(parts: Sequence[Floats], scaling: Scaling) -> Floats:
    return _quotient([leave_one_out(part, scaling.rows, scaling.total) for part in parts])


def _first(scaled: Sequence[Floats]) -> Floats:
    return scaled[0]


def _quotient(scaled: Sequence[Floats]) -> Floats:
    above, below = scaled
    found = np.full_like(above, np.nan)
    np.divide(above, below, out=found, where=below != 0)
    return found


def _spread(wanted: Spread, parts: Sequence[Floats], scaling: Scaling) -> Floats:
    return wanted.estimates(parts, leave_one_out(parts[0], scaling.rows, scaling.total))


def _raw(parts: Sequence[Floats], scaling: Scaling) -> Floats:
    raise AssertionError("an extreme is shown as it is")
