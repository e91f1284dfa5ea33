"""A predicate-constraint: what is known of rows that are missing (Predicate-Constraints, §4.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeAlias

from sooner.errors import InvalidArgument

# Beyond, floating numbers leave out whole ones, and a range would not be sure to hold.
_MOST_ROWS = 2**53

Value: TypeAlias = int | float | Decimal | str | date | datetime | None
Range: TypeAlias = tuple[Value, Value]


@dataclass(frozen=True)
class Constraint:
    """At least and at most so many missing rows are ``where``, and their values lie in these ranges.

    ``where`` is a condition in SQL, all missing rows if not given. ``values`` gives the lowest and the
    highest value of columns, ``None`` for an end that is open: such a column is not null in these rows.
    ``rows`` are the fewest and the most rows, ``None`` where nobody knows the most. With several tables,
    ``table`` says which one the rows are missing from.

    >>> Constraint("branch = 'Chicago'", {"price": (0, 149.99)}, (0, 5)).label
    "branch = 'Chicago'"
    >>> Constraint(values={"price": (10, 5)})
    Traceback (most recent call last):
    sooner.errors.InvalidArgument: The values of price go from 10 to 5. Give the lower one first.
    """

    where: str | None = None
    values: Mapping[str, Range] = field(default_factory=dict)
    rows: tuple[int, int | None] = (0, None)
    name: str | None = None
    table: str | None = None
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if self.where is not None and not isinstance(self.where, str):
            raise InvalidArgument("where= takes a condition as text, as in \"branch = 'Chicago'\".")
        object.__setattr__(self, "rows", _rows(self.rows))
        if not isinstance(self.values, Mapping):
            raise InvalidArgument('values= takes ranges by column, as in {"price": (0, 149.99)}.')
        ranges = {column: _range(column, ends) for column, ends in self.values.items()}
        object.__setattr__(self, "values", MappingProxyType(ranges))
        parts = (self.where, tuple(ranges.items()), self.rows, self.name, self.table)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        # Thousands of them are looked up at once for what was read of them before.
        return self._hash

    @property
    def label(self) -> str:
        """What to call it: its name, else its condition."""
        return self.name or self.where or "all missing rows"

    def is_about(self, table: str) -> bool:
        """Whether it speaks of rows of this table."""
        return self.table is None or self.table.lower() == table.lower()


def _rows(given: Any) -> tuple[int, int | None]:
    example = "rows= takes the fewest and the most rows, as in (0, 5)"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidArgument(f"{example}, not {given!r}.")
    fewest, most = given
    for one in (fewest, most):
        whole = isinstance(one, Integral) and not isinstance(one, bool)
        if not whole and not (one is None and most is None):
            raise InvalidArgument(f"{example}: whole numbers, not {given!r}.")
        if whole and one > _MOST_ROWS:
            raise InvalidArgument(f"rows={given!r}: nobody counts so many. None is no limit.")
        if whole and one < 0:
            raise InvalidArgument(f"rows={given!r}: there cannot be fewer than no rows.")
    if most is not None and fewest > most:
        raise InvalidArgument(f"rows go from {fewest} to {most}. Give the lower number first.")
    return int(fewest), None if most is None else int(most)


def _range(column: Any, given: Any) -> Range:
    if not isinstance(column, str):
        raise InvalidArgument(f"values= has {column!r} where a column's name should be.")
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidArgument(
            f"The values of {column} are a lowest and a highest one, as in (0, 149.99), not {given!r}."
        )
    low, high = given
    try:
        upside_down = low is not None and high is not None and low > high
        unordered = any(isinstance(one, float) and math.isnan(one) for one in (low, high))
    except TypeError:
        raise InvalidArgument(
            f"The values of {column} go from {low!r} to {high!r}, which have no order."
        ) from None
    if unordered:
        raise InvalidArgument(f"The values of {column} have an end that is not a number.")
    if upside_down:
        raise InvalidArgument(
            f"The values of {column} go from {low} to {high}. Give the lower one first."
        )
    return low, high
