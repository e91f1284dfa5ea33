"""Budgets instead of knobs: how long building and asking may take, and how much may be stored."""

from __future__ import annotations

import re
from dataclasses import replace

from sooner.errors import InvalidArgument
from sooner.synopses.definition import Knobs

# Measured on two cores: see docs/benchmarks.md. A question costs a start and so much for every row it reads.
_ASK_SECONDS, _ASK_ROW_SECONDS = 4e-4, 3e-8
# The fast program: for every leaf and every row of the optimizer's sample.
_LEAF_ROW_SECONDS = 1.5e-6
_FILL_ROW_SECONDS = 4e-7
_STORED_COLUMN_BYTES = 6
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_MOST_LEAVES = 1024
_LEAST_LEAVES = 4


def within_budgets(
    knobs: Knobs,
    rows: int,
    columns: int,
    build_within: float | None = None,
    query_within: float | None = None,
    size: int | str | None = None,
) -> Knobs:
    """Knobs that keep to the budgets: as many leaves as there is time for, as many rows as may be kept."""
    if build_within is not None:
        left = _positive("build_within", build_within) - rows * _FILL_ROW_SECONDS
        leaves = int(left / (_LEAF_ROW_SECONDS * knobs.optimizer))
        if left <= 0 or leaves < _LEAST_LEAVES:
            least = rows * _FILL_ROW_SECONDS + _LEAST_LEAVES * _LEAF_ROW_SECONDS * knobs.optimizer
            raise InvalidArgument(
                f"build_within={build_within}: reading {rows:,} rows takes about {least:.1f} s or more."
            )
        knobs = replace(knobs, leaves=min(_MOST_LEAVES, leaves))
    stored: list[int] = []
    if query_within is not None:
        read = int((_positive("query_within", query_within) - _ASK_SECONDS) / _ASK_ROW_SECONDS)
        if read < 2:
            raise InvalidArgument(
                f"query_within={query_within}: an answer takes at least {1000 * _ASK_SECONDS} ms."
            )
        stored.append(read * knobs.leaves // 2)
    if size is not None:
        bytes_ = parse_size(size)
        stored.append(bytes_ // (8 + columns * _STORED_COLUMN_BYTES))
    if stored:
        share = min(1.0, min(stored) / max(1, rows))
        if min(stored) < 2:
            raise InvalidArgument(f"size={size!r} is too small for a sample.")
        knobs = replace(knobs, sample=share, effective=None)
    return knobs


def parse_size(size: int | str) -> int:
    """A number of bytes, or a text such as '10MB'.

    >>> parse_size("1.5MB")
    1500000
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?b?)", str(size).strip().lower())
    if found:
        unit = found[2] if not found[2] or found[2].endswith("b") else found[2] + "b"
        number = float(found[1]) * _UNITS.get(unit, 1)
        if number >= 1:
            return int(number)
    raise InvalidArgument(f"size={size!r}: give bytes, or a text such as '10MB'.")


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidArgument(f"{name}={value!r}: give seconds above 0.")
    return float(value)
