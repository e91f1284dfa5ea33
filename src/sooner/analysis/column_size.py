"""Estimates for one column: of a table, of a scalar over other columns, of an aggregate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from sqlglot import exp

from sooner.algebra import Item, Scalar, aggregate_call
from sooner.algebra.scalar import columns_of, is_column
from sooner.analysis.constant_value import constant_value
from sooner.analysis.facts import ColumnFacts
from sooner.analysis.ranges import Range, range_of
from sooner.analysis.types import decimal_digits

# A text of which only the type is known: names, codes and short comments.
TEXT_BYTES = 20.0
# Anything else (arrays, structs, results whose type only Spark knows): one machine word.
UNKNOWN_BYTES = 8.0
_BYTES = {"boolean": 1.0, "tinyint": 1.0, "smallint": 2.0, "int": 4.0, "float": 4.0, "date": 4.0}


@dataclass(frozen=True, slots=True)
class ColumnSize:
    """An estimate for a column: distinct values that are not null, share of nulls, range, width.

    ``width`` is in bytes, as Spark holds the value in memory.
    """

    distinct: float
    null_share: float = 0.0
    range: Range | None = None
    width: float = 8.0

    @property
    def present(self) -> float:
        """The share of values that are not null."""
        return 1.0 - self.null_share

    def at_most(self, rows: float) -> ColumnSize:
        """The column of so few rows: it cannot have more values than there are rows."""
        return self if self.distinct <= rows else replace(self, distinct=rows)

    def only(self, share: float, range_: Range | None) -> ColumnSize:
        """Without nulls, with that share of its values."""
        distinct = max(min(1.0, self.distinct), self.distinct * share)
        return replace(self, distinct=distinct, null_share=0.0, range=range_)


def combinations(columns: Iterable[ColumnSize]) -> float:
    """Groups by some columns; a null makes one more."""
    return math.prod(column.distinct + (column.null_share > 0) for column in columns)


def scanned_column(
    rows: float, facts: ColumnFacts, type_: str | None, width: float, is_key: bool
) -> ColumnSize:
    """A column of a table; ``is_key`` if it is the table's key by itself."""
    null_share = min(1.0, facts.nulls / rows) if facts.nulls is not None and rows > 0 else 0.0
    range_ = range_of(facts.minimum, facts.maximum)
    if facts.distinct is not None:
        distinct = float(facts.distinct)
    elif is_key:
        distinct = rows
    else:
        distinct = unknown_column(rows, type_).distinct
        if range_ is not None and range_.whole:
            distinct = min(distinct, range_.size)
    return ColumnSize(min(distinct, rows * (1.0 - null_share)), null_share, range_, width)


def unknown_column(rows: float, type_: str | None) -> ColumnSize:
    """A column of so many rows of which only the type is known, if that."""
    # Half way, by orders of magnitude, between one value and a key.
    distinct = 2.0 if type_ == "boolean" else math.sqrt(rows)
    return ColumnSize(distinct, width=type_bytes(type_, TEXT_BYTES))


def type_bytes(type_: str | None, text_bytes: float) -> float:
    """How many bytes Spark needs for a value of the type."""
    if type_ is None:
        return UNKNOWN_BYTES
    kind = type_.lower()
    if kind.startswith(("string", "varchar", "char", "binary")):
        return text_bytes
    digits = decimal_digits(kind)
    if kind.startswith("decimal") and digits is not None and sum(digits) > 18:
        return 16.0  # Spark holds longer decimals as a Java BigInteger
    return _BYTES.get(kind, UNKNOWN_BYTES)


def computed_column(scalar: Scalar, columns: Mapping[str, ColumnSize]) -> ColumnSize:
    """A column of a projection."""
    if is_column(scalar):
        return columns[scalar.name]
    value = constant_value(scalar)
    if value is not None:
        return ColumnSize(1.0, range=range_of(value, value), width=_value_width(value))
    if isinstance(scalar, exp.Year | exp.Month | exp.Extract):
        return _date_part(scalar, columns)
    if isinstance(scalar, exp.Case):
        results = [branch.args["true"] for branch in scalar.args["ifs"]]
        results.append(scalar.args.get("default") or exp.null())
        if all(isinstance(result, exp.Literal | exp.Null) for result in results):
            return ColumnSize(float(len({result.sql() for result in results})))
    if isinstance(scalar, exp.Predicate | exp.Connector | exp.Not):
        return ColumnSize(2.0, width=1.0)
    # A function of its inputs has at most as many values as they have combinations.
    return ColumnSize(combinations(columns[name] for name in columns_of(scalar)))


def _value_width(value: object) -> float:
    return float(len(value)) if isinstance(value, str) else UNKNOWN_BYTES


def _date_part(scalar: Scalar, columns: Mapping[str, ColumnSize]) -> ColumnSize:
    inputs = [columns[name] for name in columns_of(scalar)]
    unit = scalar.this.name if isinstance(scalar, exp.Extract) else type(scalar).__name__
    most = combinations(inputs)
    if unit.lower() == "month":
        return ColumnSize(min(12.0, most), range=Range(1.0, 12.0, whole=True), width=4.0)
    days = inputs[0].range if len(inputs) == 1 else None
    if unit.lower() == "year" and days is not None and days.kind == "time":
        low, high = (float(date.fromordinal(int(day)).year) for day in (days.low, days.high))
        years = Range(low, high, whole=True)
        return ColumnSize(min(years.size, most), range=years, width=4.0)
    return ColumnSize(most, width=4.0)


def aggregated_column(item: Item, columns: Mapping[str, ColumnSize], rows: float) -> ColumnSize:
    """A column of an aggregate's results, in so many groups."""
    call = aggregate_call(item.scalar)
    inputs = [columns[name] for name in columns_of(item.scalar)]
    if isinstance(call, exp.Min | exp.Max | exp.Avg) and len(inputs) == 1:
        # The least, the greatest and the mean lie within the range of what is aggregated.
        range_ = inputs[0].range if is_column(call.this) else None
        if not isinstance(call, exp.Avg):
            distinct = min(rows, inputs[0].distinct)
            return ColumnSize(distinct, range=range_, width=inputs[0].width)
        return ColumnSize(rows, range=range_ and replace(range_, whole=False))
    return ColumnSize(rows)
