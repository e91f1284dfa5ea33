"""Which Parquet columns Arrow reads to the same values as Spark, so that either may do the reading."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from sooner.storage.footers import flat_columns

_NUMBERS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_UNITS = ("us", "ms")
# What Spark notes in a footer (its own keys), and the first version with today's calendar.
_SPARK_VERSION = b"org.apache.spark.version"
_OLD_CALENDAR = b"org.apache.spark.legacyDateTime"
_FIRST_WITH_NEW_CALENDAR = 3


def arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of a number, a boolean, a text or a day, from Spark's spelling.

    >>> arrow_type("decimal(12,2)"), arrow_type("int")
    (Decimal128Type(decimal128(12, 2)), DataType(int32))
    """
    if found := _DECIMAL.fullmatch(type_):
        return pa.decimal128(int(found[1]), int(found[2]))
    return {**_NUMBERS, "string": pa.string(), "date": pa.date32()}[type_]


def reads_alike(type_: str, arrow: pa.DataType) -> bool:
    """Whether what Arrow reads as one type is, cast, what Spark reads as the other.

    Unsigned numbers, which Spark widens, and anything nested are left to Spark.

    >>> reads_alike("timestamp", pa.timestamp("us", "UTC")), reads_alike("bigint", pa.uint32())
    (True, False)
    """
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if type_ in _NUMBERS:
        return bool(arrow == _NUMBERS[type_])
    if found := _DECIMAL.fullmatch(type_):
        return bool(arrow == pa.decimal128(int(found[1]), int(found[2])))
    match type_:
        case "string":
            return arrow in (pa.string(), pa.large_string(), pa.string_view())
        case "binary":
            return arrow in (pa.binary(), pa.large_binary(), pa.binary_view())
        case "date":
            return bool(arrow == pa.date32())
        case "timestamp" | "timestamp_ntz":
            with_zone = type_ == "timestamp"
            return (
                pa.types.is_timestamp(arrow)
                and arrow.unit in _UNITS
                and (arrow.tz is not None) == with_zone
            )
    return False


def is_of_calendar(type_: str) -> bool:
    """Whether values of the type are counted in days, so that it matters by which calendar."""
    return type_ in ("date", "timestamp", "timestamp_ntz")


def readable_columns(schema: pa.Schema, footer: Any) -> dict[str, pa.DataType]:
    """The flat columns of a file with their Arrow types, but none that Spark would shift in reading.

    Spark moves INT96 times by its own rules, and days that a Spark before 3 counted in another calendar.
    """
    shifts = _counts_in_old_calendar(footer.metadata or {})
    found = {}
    for name, number in flat_columns(footer).items():
        arrow = schema.field(name).type if schema.names.count(name) == 1 else None
        dated = arrow is not None and (pa.types.is_date(arrow) or pa.types.is_timestamp(arrow))
        is_int96 = footer.schema.column(number).physical_type == "INT96"
        if arrow is not None and not is_int96 and not (dated and shifts):
            found[name] = arrow
    return found


def _counts_in_old_calendar(notes: dict[bytes, bytes]) -> bool:
    version = re.match(rb"\d+", notes.get(_SPARK_VERSION, b""))
    return _OLD_CALENDAR in notes or (
        version is not None and int(version[0]) < _FIRST_WITH_NEW_CALENDAR
    )
