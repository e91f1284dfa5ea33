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
from sooner.progressive.estimates import Column, Extreme, Rows, Varying, certain_rows
from sooner.statistics import simultaneous
from sooner.statistics.arrays import Floats
from sooner.statistics.intervals import Interval

METHOD = "progressive"


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


def unknown_answer(table: pa.Table, open_columns: Collection[int], moment: Moment) -> Answer:
    """An answer of which some columns are guesses that nothing can be said about."""
    columns: dict[str, Column] = {}
    for place, values in enumerate(table.columns):
        name = str(place)  # the names of an answer may be equal
        columns[name] = values
        if place in open_columns and is_number(values.type):
            floating = values.cast(pa.float64(), safe=False)
            numbers = np.asarray(floating.to_numpy(zero_copy_only=False))
            columns[name] = Varying(numbers[None, :], np.zeros((len(numbers), 1)))
    return answer_of(certain_rows(columns, table.num_rows), moment)


def widest(rows: Rows, progress: float, confidence: float) -> float | None:
    """The widest relative half-width, all cells right at once; ``None`` while one is unknown."""
    varying = [column for column in rows.columns.values() if isinstance(column, Varying)]
    if rows.chosen.any() or any(isinstance(column, Extreme) for column in rows.columns.values()):
        return None
    cells = sum(column.theta.shape[1] for column in varying)
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
    if isinstance(column, Extreme):
        return column.values.cast(type_)
    if not isinstance(column, Varying):
        return column.cast(type_)
    return pa.chunked_array([_typed(column.theta[0], type_)])


def _typed(values: Floats, type_: pa.DataType) -> pa.Array:
    """Estimates in the type that the exact answer will have."""
    if pa.types.is_integer(type_):
        values = np.rint(values)
    return pa.array(values, from_pandas=True).cast(type_, safe=False)


def _uncertainty(
    column: Column, values: pa.ChunkedArray, chosen: npt.NDArray[np.bool_], moment: Moment
) -> Uncertainty | None:
    if isinstance(column, Extreme):
        nothing = _nothing(values)
        bounds = Bounds(nothing, values) if column.least else Bounds(values, nothing)
        return Uncertainty(bounds, (Status.UNKNOWN,) * len(values))
    if isinstance(column, Varying):
        found = column.interval(moment.progress, moment.confidence)
        return Uncertainty(_bounds(found), _statuses(found.known, chosen, Status.ESTIMATE))
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


def _bounds(found: Interval) -> Bounds:
    low = np.where(found.known, found.low, np.nan)
    high = np.where(found.known, found.high, np.nan)
    return Bounds(
        pa.chunked_array([pa.array(low, from_pandas=True)]),
        pa.chunked_array([pa.array(high, from_pandas=True)]),
    )
