"""Columns as whole numbers in the order of their values, so that every condition becomes spans of numbers.

Null is the smallest number and NaN the largest (as Spark orders it); floating numbers go by their bits,
dates by days, moments by microseconds, decimals by their last digit, words by their place in a dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.analysis.types import decimal_digits, is_integral
from sooner.errors import NotSupported

Codes: TypeAlias = npt.NDArray[np.int64]
Kind: TypeAlias = Literal["whole", "floating", "decimal", "date", "moment", "text", "boolean"]

NULL = -(2**63)
LEAST = NULL + 1
MOST = 2**63 - 1

DIGITS = 18  # as many as 64 bits surely hold


@dataclass(frozen=True)
class Axis:
    """A column that conditions go by: its name, its type in Spark's spelling, its words if it has any.

    ``words`` are all there are, in Spark's order (by bytes); while they are collected, some.
    """

    name: str
    type: str
    words: tuple[str, ...] = field(default=(), repr=False)

    @property
    def kind(self) -> Kind:
        """How its values become numbers. Raises :class:`NotSupported` for types that do not."""
        match self.type:
            case "float" | "double":
                return "floating"
            case "date":
                return "date"
            case "timestamp" | "timestamp_ntz":
                return "moment"
            case "string":
                return "text"
            case "boolean":
                return "boolean"
        if is_integral(self.type):
            return "whole"
        if fits_64_bits(self.type):
            return "decimal"
        raise NotSupported(
            f"Conditions cannot go by {self.name}, which is of type {self.type}. They take numbers "
            f"(decimals of up to {DIGITS} digits), dates, timestamps, booleans and strings."
        )

    @property
    def scale(self) -> int:
        """The digits of a decimal after the point; 0 for others."""
        digits = decimal_digits(self.type)
        return digits[1] if digits else 0

    def codes(self, values: pa.ChunkedArray) -> Codes:
        """The numbers of a column's values. A word that is not known gets that of the next known one."""
        kind = self.kind
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if kind == "text":
            return self._word_codes(values)
        null = pc.is_null(values).to_numpy() if values.null_count else None
        whole = _floats(values) if kind == "floating" else whole_numbers(values)
        if kind == "whole" and (whole == NULL).any():
            raise NotSupported(f"{self.name} holds {NULL}, which stands for null in a synopsis.")
        return whole if null is None else np.where(null, NULL, whole)

    def _word_codes(self, values: pa.ChunkedArray) -> Codes:
        encoded = values.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        places = np.searchsorted(
            self._bytes, [word.encode() for word in encoded.dictionary.to_pylist()]
        )
        indices = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        codes: Codes = np.append(places.astype(np.int64), NULL)[indices]
        return codes

    @cached_property
    def _bytes(self) -> npt.NDArray[np.object_]:
        return np.array([*(word.encode() for word in self.words)], dtype=object)

    def word_at(self, word: str) -> tuple[int, bool]:
        """Where a word is or would be in the order, and whether it is there."""
        place = int(np.searchsorted(self._bytes, word.encode()))
        return place, place < len(self.words) and self.words[place] == word

    def with_words(self, words: set[str]) -> Axis:
        """The same with all of its words."""
        return replace(self, words=tuple(sorted(words, key=str.encode)))


def fits_64_bits(type_: str) -> bool:
    """Whether all decimals of a type are whole numbers of 64 bits without their point."""
    digits = decimal_digits(type_)
    return digits is not None and sum(digits) <= DIGITS


def whole_numbers(values: pa.ChunkedArray) -> Codes:
    """Values that are whole numbers underneath, as these; what stands for null is anything."""
    type_ = values.type
    if pa.types.is_decimal(type_):
        return _unscaled(values)
    if pa.types.is_timestamp(type_):
        values = values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
    elif pa.types.is_date(type_):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_boolean(type_):
        values = values.cast(pa.int8())
    return np.asarray(pc.fill_null(values, 0).to_numpy(), np.int64)


def _unscaled(values: pa.ChunkedArray) -> Codes:
    """Decimals of up to 18 digits without their point: the low half of 128 bits."""
    parts = []
    for chunk in values.chunks:
        low = np.frombuffer(chunk.buffers()[1], np.int64)[::2]
        parts.append(low[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _floats(values: pa.ChunkedArray) -> Codes:
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy()
    return float_codes(np.asarray(numbers, np.float64))


def float_codes(numbers: npt.NDArray[np.float64]) -> Codes:
    """Whole numbers in the order of floating ones; NaN is the largest, and 0.0 is −0.0.

    >>> codes = float_codes(np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan]))
    >>> bool((np.diff(codes) > 0)[[0, 1, 3, 4, 5]].all()), bool(codes[2] == codes[3])
    (True, True)
    """
    plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = plain.view(np.int64)
    return np.where(np.isnan(plain), MOST, bits ^ ((bits >> 63) & MOST))


def floats_of(codes: Codes) -> npt.NDArray[np.float64]:
    """The floating numbers that codes stand for."""
    bits = codes ^ ((codes >> 63) & MOST)
    return np.where(codes == MOST, np.nan, bits.view(np.float64))
