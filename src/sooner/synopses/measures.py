"""The numbers that are summed: exact whole numbers for integers and decimals, floating ones otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.analysis.types import decimal_digits, is_floating, is_integral
from sooner.errors import InvalidArgument
from sooner.statistics.arrays import Booleans
from sooner.storage.arrow_types import arrow_type
from sooner.synopses.axes import DIGITS, fits_64_bits, whole_numbers


@dataclass(frozen=True)
class Measure:
    """A column of numbers that is aggregated: its name and its type in Spark's spelling."""

    name: str
    type: str

    def __post_init__(self) -> None:
        if is_floating(self.type) or is_integral(self.type) or fits_64_bits(self.type):
            return
        raise InvalidArgument(
            f"measure={self.name!r} is of type {self.type}: a measure is a column of numbers "
            f"(decimals of up to {DIGITS} digits)."
        )

    @property
    def is_whole(self) -> bool:
        """Whether it is kept exactly, as whole numbers of its last digit."""
        return not is_floating(self.type)

    @property
    def scale(self) -> int:
        """The digits after the point of the whole numbers that it is kept as."""
        digits = decimal_digits(self.type)
        return digits[1] if digits else 0

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
            return arrow_type(self.type)
        if not pa.types.is_decimal(arrow_type(self.type)):
            return pa.int64() if self.is_whole and function == "sum" else pa.float64()
        own = arrow_type(self.type)
        if function == "sum":
            return pa.decimal128(min(38, own.precision + 10), own.scale)
        return pa.decimal128(min(38, own.precision + 4), min(38, own.scale + 4))

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
