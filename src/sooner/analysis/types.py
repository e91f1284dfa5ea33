"""When two columns that compare equal also group together: a question about their types.

Spark compares unlike types after casting them to a common one, and such a cast can make different
values equal: both ``'1'`` and ``'01'`` equal 1, and two neighbouring bigints are the same double.
"""

from __future__ import annotations

import re

_INTEGRAL = {"tinyint": 3, "smallint": 5, "int": 10, "integer": 10, "bigint": 20, "long": 20}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_WIDEST_DECIMAL = 38
_PLAIN = {"boolean", "string", "date", "timestamp", "timestamp_ntz", "binary"}


def is_integral(type_: str | None) -> bool:
    """Whether the type holds whole numbers only."""
    return type_ is not None and type_.lower() in _INTEGRAL


def is_floating(type_: str | None) -> bool:
    """Whether the type is a binary fraction."""
    return type_ is not None and type_.lower() in ("float", "double")


def same_values(left: str | None, right: str | None) -> bool:
    """Whether ``a = b`` between these types says that each value determines the other.

    >>> same_values("int", "bigint"), same_values("string", "int"), same_values(None, None)
    (True, False, False)
    """
    if left is None or right is None:
        return False
    if left.lower() == right.lower():
        return True
    return fit_one_decimal(decimal_digits(left), decimal_digits(right))


def decimal_digits(type_: str) -> tuple[int, int] | None:
    """Digits before and after the point for whole numbers and decimals, ``None`` for others."""
    lowered = type_.lower()
    if lowered in _INTEGRAL:
        return _INTEGRAL[lowered], 0
    match = _DECIMAL.fullmatch(lowered)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    return precision - scale, scale


def fit_one_decimal(left: tuple[int, int] | None, right: tuple[int, int] | None) -> bool:
    """Whether one decimal type holds both exactly; wider ones are rounded when compared."""
    if left is None or right is None:
        return False
    return max(left[0], right[0]) + max(left[1], right[1]) <= _WIDEST_DECIMAL


def is_plain(type_: str | None) -> bool:
    """Whether values that group together are the same to every function.

    Not so for floating numbers (0.0 and -0.0 are one group and two texts) and collated strings.
    """
    if type_ is None:
        return False
    lowered = type_.lower()
    return lowered in _PLAIN or decimal_digits(lowered) is not None


def hashed_as(type_: str | None) -> str | None:
    """The canonical type a scramble hashes a column of this type as; ``None`` where unknown."""
    return "bigint" if is_integral(type_) else type_ and type_.lower()
