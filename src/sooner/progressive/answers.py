"""Rows on the way as an Answer: values of the promised types, intervals, and a status for every cell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.display import is_number
from sooner.progressive.estimates import (
    Column,
    Deferred,
    Extreme,
    Guess,
    Rows,
    Varying,
    certain_rows,
)
from sooner.statistics import simultaneous
from sooner.statistics.arrays import Floats, in_type
from sooner.statistics.intervals import Interval

METHOD = "progressive"
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Moment:
    """What an answer on the way is told: how far the reading is and what is promised."""

    schema: pa.Schema
    progress: float
    confidence: float
    elapsed: float
    as_of: Mapping[str, int]
    details: Mapping[str, Any]


def answer_of(rows: Rows, moment: Moment) -> Answer:
    """The answer that these rows make."""
    values: list[pa.ChunkedArray] = []
    uncertain: dict[str, Uncertainty] = {}
    for field, column in zip(moment.schema, rows.columns.values(), strict=True):
        values.append(_values(column, field.type))
        found = _uncertainty(column, values[-1], rows.chosen, moment)
        if found is not None:
            uncertain[field.name] = found
    return Answer(
        pa.Table.from_arrays(values, schema=moment.schema),
        METHOD,
        confidence=moment.confidence,
        progress=moment.progress,
        final=False,
        as_of=moment.as_of,
        elapsed=moment.elapsed,
        details=moment.details,
        uncertain=uncertain,
    )


def unknown_answer(
    table: pa.Table, open_columns: Collection[int], chosen: bool, moment: Moment
) -> Answer:
    """An answer of which some columns are guesses that nothing can be said about."""
    columns: dict[str, Column] = {
        str(place): Guess(values) if place in open_columns else values  # names may be equal
        for place, values in enumerate(table.columns)
    }
    return answer_of(certain_rows(columns, table.num_rows).also_chosen(chosen), moment)


def widest(rows: Rows, progress: float, confidence: float) -> float | None:
    """The widest relative half-width, all cells right at once; ``None`` while one is unknown.

    Without estimates it is a list, to which rows still come: that is not right to any share before the end.
    """
    varying = [column for column in rows.columns.values() if isinstance(column, Varying)]
    guessed = any(isinstance(column, Extreme | Guess) for column in rows.columns.values())
    cells = sum(column.theta.shape[1] for column in varying)
    if rows.chosen.any() or guessed or not cells:
        return None
    worst = 0.0
    for column in varying:
        found = column.interval(progress, simultaneous(confidence, cells))
        if not found.known.all():
            return None
        half, value = (found.high - found.low) / 2, np.abs(column.theta[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(half == 0, 0.0, half / value)
        worst = max(worst, float(relative.max(initial=0.0)))
    return worst


def _values(column: Column, type_: pa.DataType) -> pa.ChunkedArray:
    if isinstance(column, Extreme | Guess | Deferred):
        return column.values.cast(type_)
    if not isinstance(column, Varying):
        return column.cast(type_)
    return pa.chunked_array([in_type(column.theta[0], type_)])


def _uncertainty(
    column: Column, values: pa.ChunkedArray, chosen: npt.NDArray[np.bool_], moment: Moment
) -> Uncertainty | None:
    if isinstance(column, Extreme):
        nothing = _nothing(values)
        bounds = Bounds(nothing, values) if column.least else Bounds(values, nothing)
        return Uncertainty(bounds, (Status.UNKNOWN,) * len(values))
    if isinstance(column, Guess):
        nothing = _nothing(values)
        return Uncertainty(Bounds(nothing, nothing), (Status.UNKNOWN,) * len(values))
    if isinstance(column, Varying):
        found = column.interval(moment.progress, moment.confidence)
        return Uncertainty(
            _bounds(found, column.theta[0]), _statuses(found.known, chosen, Status.ESTIMATE)
        )
    if chosen.any():
        known = np.ones(len(values), np.bool_)
        ends = values if is_number(values.type) else _nothing(values)
        return Uncertainty(Bounds(ends, ends), _statuses(known, chosen, Status.EXACT))
    return None


def _nothing(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(values), values.type)])


def _statuses(
    known: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_], otherwise: Status
) -> tuple[Status, ...]:
    return tuple(
        Status.UNKNOWN if not sure else Status.SELECTED if picked else otherwise
        for sure, picked in zip(known, chosen, strict=True)
    )


def _bounds(found: Interval, estimate: Floats) -> Bounds:
    # A width that is only rounding (of a count that needs no scaling) is none.
    rounding = _ROUNDING * np.abs(estimate)
    exact = (found.high - found.low) / 2 <= rounding
    low, high = (
        pa.chunked_array([pa.array(ends, from_pandas=True)])  # one end may be known alone
        for ends in (
            np.where(exact, np.maximum(found.low, estimate), found.low),
            np.where(exact, np.minimum(found.high, estimate), found.high),
        )
    )
    return Bounds(low, high)
