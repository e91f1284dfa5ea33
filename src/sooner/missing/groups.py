"""Groups that only missing rows could make: values that constraints name, as far as they can be listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sooner.synopses.axes import NULL, Axis, Codes, floats_of
from sooner.synopses.conditions import Box
from sooner.synopses.spans import ALL

MOST_GROUPS = 10_000
# A value of each column that is grouped by, as its number.
Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Groups:
    """Combinations of values; ``others`` says whether there may be more than can be listed."""

    codes: tuple[Group, ...]
    others: bool


def possible_groups(rows: Iterable[Box], question: Sequence[Box], keys: Sequence[Axis]) -> Groups:
    """The groups that rows of some boxes can fall into, if a question asks about them."""
    found: dict[Group, None] = {}
    others = False
    for box, asked in product(rows, question):
        names = {*box, *asked}
        both = {name: box.get(name, ALL) & asked.get(name, ALL) for name in names}
        if any(spans.is_empty for spans in both.values()):
            continue
        listed = [_listed(axis, both.get(axis.name, ALL).ends) for axis in keys]
        others |= any(not complete for _, complete in listed)
        sizes = np.prod([float(len(codes)) for codes, _ in listed])
        if sizes + len(found) > MOST_GROUPS:
            others = True
            continue
        found.update(dict.fromkeys(product(*(codes for codes, _ in listed))))
    return Groups(tuple(found), others)


def _listed(axis: Axis, ends: Sequence[tuple[int, int]]) -> tuple[list[int], bool]:
    """The single values in some spans, and whether these are all."""
    found: list[int] = []
    complete = True
    for low, high in ends:
        first = low
        if first == NULL:
            found.append(NULL)
            first += 1
        if axis.kind == "text":
            last = min(high, 2 * len(axis.words))
            numbers = range(max(first, 0), last + 1)
            found += [code for code in numbers if code % 2]
            complete &= not any(code % 2 == 0 for code in numbers)
        elif axis.kind == "boolean":
            found += [code for code in (0, 1) if first <= code <= high]
        elif first <= high and (
            high - first >= MOST_GROUPS or (axis.kind == "floating" and high > first)
        ):
            complete = False
        else:
            found += range(first, high + 1)
    return found, complete


def values_of(axis: Axis, codes: Sequence[int], type_: pa.DataType) -> pa.Array:
    """The values that codes stand for, as a column of a type."""
    return pa.array([None if code == NULL else value_of(axis, code) for code in codes]).cast(type_)


def value_of(axis: Axis, code: int) -> Any:
    """The value that a code stands for."""
    match axis.kind:
        case "text":
            return axis.words[(code - 1) // 2]
        case "floating":
            return float(floats_of(np.array([code], np.int64))[0])
        case "boolean":
            return bool(code)
        case "date":
            return pa.scalar(code, pa.int32()).cast(pa.date32()).as_py()
        case "moment":
            return pa.scalar(code, pa.timestamp("us", "UTC")).as_py()
        case "decimal":
            return (
                pa.scalar(code, pa.int64()).cast(pa.decimal128(38, 0)).as_py().scaleb(-axis.scale)
            )
    return code


def codes_of(axes: Sequence[Axis], columns: Sequence[pa.ChunkedArray]) -> list[tuple[int, ...]]:
    """The codes of rows of some columns."""
    if not axes:
        return []
    found: list[Codes] = [axis.codes(column) for axis, column in zip(axes, columns, strict=True)]
    return [tuple(int(code) for code in row) for row in zip(*found, strict=True)]
