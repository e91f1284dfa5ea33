"""Ranges in the types of an answer: rounded outwards where the type is coarser than the range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import pyarrow as pa

from sooner.answer import Bounds, Status, Uncertainty
from sooner.missing.groups import values_of
from sooner.missing.ranges import Span
from sooner.synopses.axes import Axis


def uncertainty(
    spans: Sequence[Span],
    type_: pa.DataType,
    function: str = "avg",
    measure: Axis | None = None,
    exact: Sequence[Any] = (),
) -> Uncertainty:
    """Ranges in the type of the answer; ``exact`` is what is to be added to sums."""
    added = exact if function == "sum" else [0] * len(spans)
    spans = [_held(one, type_, more) for one, more in zip(spans, added, strict=True)]
    sides = []
    for up in (False, True):
        typed = [
            # What is one value is that value: nothing to round outwards.
            _end(
                one.high if up else one.low,
                type_,
                "min" if one.low == one.high else function,
                measure,
                up,
            )
            for one in spans
        ]
        if function == "sum":
            pairs = zip(typed, added, strict=True)
            typed = [one if one is None else one + more for one, more in pairs]
        sides.append(pa.chunked_array([pa.array(typed, type_)]))
    return Uncertainty(Bounds(*sides), tuple(_status(one) for one in spans))


def _held(span: Span, type_: pa.DataType, more: Any) -> Span:
    """The same with open ends where the type of the answer holds no such value: Spark has none there."""
    if span.low is None or span.high is None:
        return span
    if pa.types.is_integer(type_):
        most = 2.0 ** (type_.bit_width - 1)
    elif pa.types.is_decimal(type_):
        most = 10.0 ** (type_.precision - type_.scale)
    else:
        return span
    low = span.low if abs(span.low + float(more)) < most else -math.inf
    high = span.high if abs(span.high + float(more)) < most else math.inf
    return replace(span, low=low, high=high)


def _status(span: Span) -> Status:
    if span.low is None or span.high is None:
        return Status.EXACT  # null, whatever is missing
    if math.isinf(span.low) or math.isinf(span.high):
        return Status.UNKNOWN
    return Status.EXACT if span.low == span.high and not span.may_be_null else Status.RANGE


def _end(
    value: float | None, type_: pa.DataType, function: str, measure: Axis | None, up: bool
) -> Any:
    """An end of a range in the type of the answer; null where there is none."""
    if value is None or (math.isinf(value) and not pa.types.is_floating(type_)):
        return None
    if pa.types.is_temporal(type_):
        assert measure is not None
        return values_of(measure, [int(value)], type_)[0].as_py()
    if pa.types.is_decimal(type_):
        # Sums of decimals are decimals: the nearest one is it. Others are rounded outwards.
        nearest = ROUND_HALF_EVEN if function != "avg" else ROUND_CEILING if up else ROUND_FLOOR
        return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-type_.scale), nearest)
    if pa.types.is_integer(type_):
        return math.ceil(value) if up else math.floor(value)
    # Adding floating numbers in another order gives another last digit.
    slip = 0.0 if function in ("min", "max") else abs(value) * 1e-14
    return (value + slip if up else value - slip) + 0.0  # nobody wants to read -0
