"""Constants in a condition as numbers of an axis: the last one below and the first one at or above."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation

import numpy as np
from sqlglot import exp

from sooner.errors import CannotAnswer
from sooner.synopses.axes import LEAST, MOST, Axis, float_codes

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENTS = ("date", "timestamp", "timestamptz", "timestampltz", "timestampntz")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def position(scalar: exp.Expr, axis: Axis, zone: tzinfo) -> tuple[int, bool]:
    """The number of a constant on an axis, and whether it is a value there.

    If it is not, the number is that of the next larger value: nothing lies between both. Moments
    without a zone are read in ``zone``, as Spark does in that of its session.
    """
    match axis.kind:
        case "text":
            place, there = axis.word_at(_text(scalar, axis))
            return place, there
        case "boolean":
            if isinstance(scalar, exp.Boolean):
                return int(scalar.this), True
        case "floating":
            return int(float_codes(np.array([_number(scalar, axis)], np.float64))[0]), True
        case "whole" | "decimal":
            return _rounded_up(_number(scalar, axis).scaleb(axis.scale))
        case "date":
            return (_moment(scalar, axis, UTC) - _EPOCH) // timedelta(days=1), True
        case "moment":
            own = UTC if axis.type == "timestamp_ntz" else zone
            return (_moment(scalar, axis, own) - _EPOCH) // _MICROSECOND, True
    raise _not_fitting(scalar, axis)


def _rounded_up(number: Decimal) -> tuple[int, bool]:
    up = math.ceil(number)
    return min(max(up, LEAST), MOST), up == number and LEAST <= up <= MOST


def _number(scalar: exp.Expr, axis: Axis) -> Decimal:
    if isinstance(scalar, exp.Neg):
        return -_number(scalar.this, axis)
    if isinstance(scalar, exp.Literal) and not scalar.is_string:
        try:
            return Decimal(scalar.this)
        except InvalidOperation:
            pass
    raise _not_fitting(scalar, axis)


def _text(scalar: exp.Expr, axis: Axis) -> str:
    if isinstance(scalar, exp.Literal) and scalar.is_string:
        return str(scalar.this)
    raise _not_fitting(scalar, axis)


def _moment(scalar: exp.Expr, axis: Axis, zone: tzinfo) -> datetime:
    """A date or a moment as written: '2004-03-05', DATE '…', TIMESTAMP '…'."""
    inner = scalar
    is_day = False
    if isinstance(inner, exp.Cast) and inner.to.is_type(*_MOMENTS):
        is_day = inner.to.is_type("date")
        inner = inner.this
    written = _text(inner, axis).strip()
    # Python reads other forms that Spark does not; of a moment beside a date Spark takes the day.
    if not _DAY.match(written) or (axis.kind == "date" and not is_day and len(written) > 10):
        raise _not_fitting(scalar, axis)
    try:
        day = date.fromisoformat(written[:10])
        if is_day or len(written) == 10:
            return datetime.combine(day, time(), zone)
        found = datetime.fromisoformat(written)
    except ValueError:
        raise _not_fitting(scalar, axis) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _not_fitting(scalar: exp.Expr, axis: Axis) -> CannotAnswer:
    return CannotAnswer(
        f"{axis.name} is of type {axis.type} and is compared with {scalar.sql('spark')}: only "
        "plain constants of that type can be compared with it."
    )
