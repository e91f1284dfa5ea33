"""The columns of a synopsis' answer: numbers in the units and types that users see, as an Answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.errors import CannotAnswer
from sooner.storage.arrow_types import arrow_type
from sooner.synopses.cells import Cell
from sooner.synopses.definition import Definition
from sooner.synopses.look import Look
from sooner.synopses.measures import Measure
from sooner.synopses.question import Asked

METHOD = "synopsis"


@dataclass(frozen=True)
class Group:
    """One row of the answer: the values of its groups, and what its box touches."""

    values: Mapping[str, Any]
    look: Look


def shown(
    asked: Sequence[Asked],
    groups: Sequence[Group],
    definition: Definition,
    share: float,
    details: Mapping[str, Any],
    confidence: float,
) -> Answer:
    """The answer that groups make; it rests on a ``share`` of the rows where it is not exact."""
    names, arrays = [], []
    uncertain: dict[str, Uncertainty] = {}
    hard: dict[str, Bounds] = {}
    for one in asked:
        names.append(one.name)
        if one.function is None:
            arrays.append(_categories(one, groups, definition))
            continue
        measure = _measure(one, definition)
        of = measure.name if measure else None
        cells = [group.look.cell(one.function, of, confidence) for group in groups]
        own = None if one.function == "count" else measure
        type_ = own.type_of(one.function) if own else pa.int64()
        arrays.append(pa.array([_value(cell.value, own, type_) for cell in cells], type_))
        hard[one.name] = _ends([(c.hard_low, c.hard_high) for c in cells], cells, own)
        if any(cell.status is not Status.EXACT for cell in cells):
            ends = _ends([(c.low, c.high) for c in cells], cells, own)
            uncertain[one.name] = Uncertainty(ends, tuple(cell.status for cell in cells))
    return Answer(
        pa.Table.from_arrays(arrays, names=names),
        METHOD,
        confidence=confidence if uncertain else 1.0,
        progress=share if uncertain else 1.0,
        final=not uncertain,
        as_of={definition.table: definition.version},
        details=details,
        hard_bounds=hard,
        uncertain=uncertain,
    )


def _categories(asked: Asked, groups: Sequence[Group], definition: Definition) -> pa.Array:
    assert asked.of is not None
    axis = definition.axes[asked.of.lower()]
    return pa.array([group.values[axis.name] for group in groups], arrow_type(axis.type))


def _measure(asked: Asked, definition: Definition) -> Measure | None:
    if asked.of is None:
        return None
    measure = definition.measure(asked.of)
    if measure is None:
        known = ", ".join(one.name for one in definition.measures)
        raise CannotAnswer(f"it aggregates {asked.of!r}, and its measures are {known}.")
    return measure


def _value(number: Any, measure: Measure | None, type_: pa.DataType) -> Any:
    value = measure.shown(number, type_) if measure is not None else number
    if value is None or not pa.types.is_integer(type_):
        return value
    if not -(2**63) <= value < 2**63:
        raise CannotAnswer(
            "a sum is too large for its type, bigint; Spark would refuse it as well."
        )
    return round(value)


def _ends(
    pairs: Sequence[tuple[Any, Any]], cells: Sequence[Cell], measure: Measure | None
) -> Bounds:
    low, high = [], []
    for (first, last), cell in zip(pairs, cells, strict=True):
        exact = cell.status is Status.EXACT
        low.append(_end(first, measure, False, exact))
        high.append(_end(last, measure, not exact, exact))
    # One array cut in two: to make another would take longer than the ends themselves.
    both, rows = pa.array(low + high, pa.float64()), len(cells)
    return Bounds(pa.chunked_array([both[:rows]]), pa.chunked_array([both[rows:]]))


def _end(end: Any, measure: Measure | None, up: bool, exact: bool) -> float | None:
    """An end as users see it. Where rounding would shut the truth out, it gives way."""
    if end is None:
        return None
    plain = measure is None or not measure.is_whole or (measure.scale == 0 and abs(end) < 2**53)
    if plain or (isinstance(end, float) and not math.isfinite(end)):
        return float(end)
    assert measure is not None
    right = Fraction(end if isinstance(end, float | Fraction) else int(end)) / 10**measure.scale
    rounded = float(right)
    if exact or Fraction(rounded) == right or (Fraction(rounded) > right) == up:
        return rounded
    return math.nextafter(rounded, math.inf if up else -math.inf)
