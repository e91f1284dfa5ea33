"""The numbers that are summed: exact whole numbers for integers and decimals, floating ones otherwise."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.errors import InvalidArgument
from sooner.statistics.arrays import Booleans
from sooner.synopses.axes import whole_numbers

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DIGITS = 18


@dataclass(frozen=True)
class Measure:
    """A column of numbers that is aggregated: its name and its type in Spark's spelling."""

    name: str
    type: str

    def __post_init__(self) -> None:
        found = _DECIMAL.fullmatch(self.type)
        if self.type in (*_WHOLE, "float", "double") or (found and int(found[1]) <= _DIGITS):
            return
        raise InvalidArgument(
            f"measure={self.name!r} is of type {self.type}: a measure is a column of numbers "
            f"(decimals of up to {_DIGITS} digits)."
        )

    @property
    def is_whole(self) -> bool:
        """Whether it is kept exactly, as whole numbers of its last digit."""
        return self.type not in ("float", "double")

    @property
    def _digits(self) -> tuple[int, int] | None:
        found = _DECIMAL.fullmatch(self.type)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def scale(self) -> int:
        """The digits after the point of the whole numbers that it is kept as."""
        return self._digits[1] if self._digits else 0

    def values(self, column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], Booleans]:
        """The numbers, zero where there is none, and where there are some."""
        there = pc.is_valid(column).to_numpy()
        if not self.is_whole:
            numbers = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()
            return np.asarray(numbers, np.float64), there
        whole = whole_numbers(column)
        return (whole if there.all() else np.where(there, whole, 0)), there

    def type_of(self, function: str) -> pa.DataType:
        """The type that Spark gives an aggregate of it."""
        if function == "count":
            return pa.int64()
        if function in ("min", "max"):
            return self.arrow
        digits = self._digits
        if digits is None:
            return pa.int64() if self.is_whole and function == "sum" else pa.float64()
        precision, scale = digits
        if function == "sum":
            return pa.decimal128(min(38, precision + 10), scale)
        return pa.decimal128(min(38, precision + 4), min(38, scale + 4))

    @property
    def arrow(self) -> pa.DataType:
        """Its own type."""
        if self._digits is not None:
            return pa.decimal128(*self._digits)
        widths = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32()}
        others = {"bigint": pa.int64(), "float": pa.float32(), "double": pa.float64()}
        return {**widths, **others}[self.type]

    def shown(self, number: Any, type_: pa.DataType) -> Any:
        """A number that this is kept as, in the units and the type that users see."""
        if number is None or (isinstance(number, float) and self.is_whole and math.isnan(number)):
            return None
        if isinstance(number, np.integer):
            number = int(number)
        if pa.types.is_decimal(type_):
            return _decimal(Fraction(number) / 10**self.scale, type_.scale)
        if pa.types.is_integer(type_):
            return round(number)
        return float(number) / 10**self.scale if self.scale else float(number)


def _decimal(number: Fraction, scale: int) -> Decimal:
    """Rounded half up, away from zero, as Spark does."""
    shifted = number * 10**scale
    whole = (2 * abs(shifted.numerator) + shifted.denominator) // (2 * shifted.denominator)
    return Decimal(whole if shifted >= 0 else -whole).scaleb(-scale)
