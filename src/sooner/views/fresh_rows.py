"""Rows that a condition picks of a stale view, corrected as far as its cleaned sample goes (§12.1.2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra.scalar import to_sql
from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.engine.view_totals import selected_rows
from sooner.sql import sort_keys
from sooner.statistics.arrays import Booleans
from sooner.views.cleaned_sample import CHANGES, WHOLE, CleanedSample
from sooner.views.deltas import SIGN
from sooner.views.estimates import Drawn, estimates, powers_of
from sooner.views.question import Question, carried, carrying
from sooner.views.unit import HASH

_TOLD = {
    "updated": "rows have other values by now",
    "added": "rows have come that are picked",
    "deleted": "rows are no longer picked",
}


def fresh_rows(
    question: Question, sample: CleanedSample, schema: pa.Schema, confidence: float
) -> Answer:
    """The rows, those of the sample put right; how many others are not is estimated in the details."""
    key, sampled = sample.upkeep.table.key, sample.is_in(sample.ratio)
    certain = sample.is_certain(True)
    found = selected_rows(
        sample.spark,
        carrying(question.rows, WHOLE, (*key, HASH)),
        carrying(question.rows, CHANGES, (*key, HASH, SIGN)),
        [carried(name) for name in key],
        HASH,
        SIGN,
        "true" if sampled is None else to_sql(sampled),
        "false" if certain is None else to_sql(certain),
        sort_keys(question.order),
        sample.frames(),
    )
    counts = {name: _estimated(sums, sample, confidence) for name, sums in found.counts.items()}
    notes = [_told(name, *counts[name]) for name in _TOLD]
    *columns, is_sampled = found.rows.columns
    arrays = [values.cast(field.type) for values, field in zip(columns, schema, strict=True)]
    whole = sample.ratio >= 1
    # Of the others nobody has looked whether they have changed.
    status = tuple(Status.EXACT if one else Status.SELECTED for one in is_sampled.to_pylist())
    sure = np.array([one is Status.EXACT for one in status], bool)
    return Answer(
        pa.Table.from_arrays(arrays, schema=schema),
        sample.method([True]),
        confidence=confidence,
        progress=sample.ratio,
        final=whole,
        as_of=sample.as_of,
        details={"sample": sample.ratio, "counts": counts, "notes": [] if whole else notes},
        uncertain={}
        if whole
        else {
            field.name: Uncertainty(_where(sure, values), status)
            for field, values in zip(schema, arrays, strict=True)
        },
    )


def _where(sure: Booleans, values: pa.ChunkedArray) -> Bounds:
    """A value is its own interval where it is sure; elsewhere there is none."""
    known = pc.if_else(pa.array(sure), values, pa.scalar(None, values.type))
    return Bounds(known, known)


def _estimated(
    sums: tuple[float, float, float, float, float], sample: CleanedSample, confidence: float
) -> tuple[float | None, ...]:
    """How many rows of the whole view there are, and between what and what."""
    number, total, squares, fourth, certain = sums
    powers = {power: np.zeros(1) for power in powers_of(False)}
    powers |= {(2, 0, 0): np.array([squares]), (4, 0, 0): np.array([fourth])}
    drawn = Drawn(np.array([[total], [0.0], [0.0]]), powers, np.array([number]))
    known = np.array([[certain], [0.0], [0.0]]), drawn
    one = estimates("count", known, known, sample.ratio, confidence, "aqp")
    value, low, high = (
        None if np.isnan(end[0]) else max(certain + total, float(end[0]))
        for end in (one.value, one.low, one.high)
    )
    return (value, None, None) if sample.is_uneven else (value, low, high)


def _told(
    name: str, value: float | None = None, low: float | None = None, high: float | None = None
) -> str:
    if low is None or high is None:
        return f"about {value or 0:,.0f} {_TOLD[name]}, those of the sample already put right"
    return f"{low:,.0f} to {high:,.0f} {_TOLD[name]}, those of the sample already put right"
