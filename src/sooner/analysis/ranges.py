"""Ranges of values as numbers, to tell how much of one a comparison leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Range:
    """All values from ``low`` to ``high``, both included.

    ``kind`` says what the numbers stand for: themselves, days since year 1, or the first letters of
    a text as the digits of a fraction. ``whole`` ranges hold whole numbers or dates only.
    """

    low: float
    high: float
    kind: str = "number"
    whole: bool = False

    @property
    def size(self) -> float:
        """How many values a whole range has; how wide any other is."""
        return self.high - self.low + 1.0 if self.whole else self.high - self.low

    def number(self, value: Any) -> float | None:
        """A value as a number of this range; ``None`` if it is not comparable."""
        return _number(value, self.kind)

    def part(self, low: float | None, high: float | None) -> Range | None:
        """What lies between two values, both included; ``None`` if nothing does."""
        new_low = self.low if low is None else max(self.low, low)
        new_high = self.high if high is None else min(self.high, high)
        if self.whole:
            new_low, new_high = math.ceil(new_low), math.floor(new_high)
        return replace(self, low=new_low, high=new_high) if new_low <= new_high else None

    def share(self, low: float | None, high: float | None) -> float | None:
        """The share of evenly spread values in a part; ``None`` if the range is too narrow."""
        part = self.part(low, high)
        if part is None:
            return 0.0
        if part == self:
            return 1.0
        if self.size <= 0 or (self.kind == "text" and self.size < 1e-9):
            return None
        return min(1.0, part.size / self.size)


def range_of(minimum: Any, maximum: Any) -> Range | None:
    """The range between two values of a column; ``None`` if they are unknown or not ordered.

    >>> range_of(1, 100).share(11, 20)
    0.1
    """
    kind = _kind(minimum)
    if kind is None or kind != _kind(maximum):
        return None
    low, high = _number(minimum, kind), _number(maximum, kind)
    if low is None or high is None or low > high:
        return None
    return Range(low, high, kind, _is_whole(minimum) and _is_whole(maximum))


def _kind(value: Any) -> str | None:
    if isinstance(value, bool | int | float | Decimal):
        return "number"
    if isinstance(value, date):
        return "time"
    return "text" if isinstance(value, str) else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, date) and not isinstance(value, datetime))


def _number(value: Any, kind: str) -> float | None:
    try:
        if kind == "number" and isinstance(value, bool | int | float | Decimal | str):
            number = float(value)
            return number if math.isfinite(number) else None
        if kind == "time":
            return _days(value)
        if kind == "text" and isinstance(value, str):
            # Seven letters are all that a double tells apart.
            return sum(min(ord(c), 255) / 256.0 ** (i + 1) for i, c in enumerate(value[:7]))
    except (ValueError, OverflowError):
        return None
    return None


def _days(value: Any) -> float | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC)
        seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        return float(value.toordinal() + seconds / _SECONDS_A_DAY)
    return float(value.toordinal()) if isinstance(value, date) else None
