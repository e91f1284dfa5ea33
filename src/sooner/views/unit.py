"""What a view is sampled by: columns, and the hash that decides which of their values are in a sample.

It is the hash of a scramble, so that the sample of a table that is scrambled by these columns is its first
blocks. Nulls hash like a value of their own: all rows without a value are in the sample, or none is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from sqlglot import exp

from sooner.algebra.scalar import Scalar, all_of, column, to_sql
from sooner.statistics.arrays import Booleans, Integers

HASH = "__sooner_hash"

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_AS_TEXT = ("string", "varchar", "char", "date", "decimal", "boolean")
_LEAST, _SPAN = -(2**63), 2**64


@dataclass(frozen=True)
class Unit:
    """Columns of a view whose values are in a sample together, their types, and the salt of the hash."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    salt: int = 0

    def hash(self, scalars: Sequence[Scalar]) -> Scalar:
        """A number between the least and the greatest bigint, evenly, of some scalars of these types."""
        values = [_canonical(one, kind) for one, kind in zip(scalars, self.types, strict=True)]
        hashed = exp.Anonymous(this="xxhash64", expressions=[_bigint(self.salt), *values])
        flip = exp.Anonymous(this="shiftleft", expressions=[_bigint(1), exp.convert(63)])
        return exp.Paren(this=exp.BitwiseXor(this=hashed, expression=flip))

    @property
    def sql(self) -> str:
        """The hash of the view's own columns."""
        return to_sql(self.hash([column(name) for name in self.columns]))

    def picks(self, portion: Portion, scalars: Sequence[Scalar]) -> Scalar:
        """Whether the hash of some scalars is in a portion."""
        found = portion.of(self.hash(scalars))
        return exp.true() if found is None else found


@dataclass(frozen=True)
class Portion:
    """Hashes in a part of their range, given as shares of it; ``only`` some of them, or ``without`` some."""

    low: float = 0.0
    high: float = 1.0
    only: tuple[int, ...] | None = None
    without: tuple[int, ...] = ()

    def of(self, hashed: Scalar) -> Scalar | None:
        """Whether a hash is one of them; ``None`` if all are."""
        found: list[Scalar] = []
        if self.low > 0:
            found.append(exp.GTE(this=hashed.copy(), expression=_bound(self.low)))
        if self.high < 1:
            found.append(exp.LT(this=hashed.copy(), expression=_bound(self.high)))
        if self.only is not None:
            found.append(is_one_of(hashed, self.only))
        if self.without:
            found.append(exp.Not(this=is_one_of(hashed, self.without)))
        return all_of(found)

    @property
    def stored(self) -> Scalar | None:
        """The same of the hash that a view's rows keep."""
        return self.of(column(HASH))

    def blocks(self, number: int) -> tuple[int, ...]:
        """Blocks, of so many, outside of which none of these hashes is."""
        if self.only is not None:
            return tuple(sorted({(one - _LEAST) * number // _SPAN for one in self.only}))
        return tuple(range(int(self.low * number), ceil(self.high * number)))

    def holds(self, hashed: int) -> bool:
        """Whether a hash, as it is stored, is one of them."""
        place = (hashed - _LEAST) / _SPAN
        among = (self.only is None or hashed in self.only) and hashed not in self.without
        return self.low <= place < self.high and among

    def holds_each(self, hashes: Integers) -> Booleans:
        """The same of many, their part of the range alone."""
        places = (hashes.astype(np.float64) - _LEAST) / _SPAN
        return (self.low <= places) & (places < self.high)


def is_one_of(hashed: Scalar, hashes: Sequence[int]) -> Scalar:
    """Whether a hash is among some; of none it is not."""
    if not hashes:
        return exp.false()
    return exp.In(this=hashed.copy(), expressions=[_bigint(one) for one in hashes])


def _bound(share: float) -> Scalar:
    at = _LEAST + int(_SPAN * share)
    # The least bigint cannot be written as a number; no hash is below it anyway.
    return _bigint(max(at, _LEAST + 1))


def _bigint(value: int) -> Scalar:
    number: Scalar = exp.Literal.number(abs(value))
    if value < 0:
        number = exp.Neg(this=number)
    return exp.Cast(this=number, to=exp.DataType.build("bigint"))


def _canonical(value: Scalar, kind: str) -> Scalar:
    if kind == "timestamp":
        return exp.Anonymous(this="unix_micros", expressions=[value.copy()])
    to = "bigint" if kind in _WHOLE else "string"
    return exp.Cast(this=value.copy(), to=exp.DataType.build(to))


def can_hash(type_: str | None) -> bool:
    """Whether equal values of a type have one hash.

    Not floating numbers, as 0.0 and -0.0 are equal, and not texts that are equal to a collation.
    """
    known = str(type_)
    if "collate" in known.lower():
        return False
    return known in _WHOLE or known == "timestamp" or known.startswith(_AS_TEXT)


def unit_of(names: Sequence[str], types: Mapping[str, str], salt: int = 0) -> Unit | None:
    """Columns to sample by; ``None`` if one of them cannot be hashed, or there are none."""
    if not names or not all(can_hash(types.get(name)) for name in names):
        return None
    return Unit(tuple(names), tuple(types[name] for name in names), salt)
