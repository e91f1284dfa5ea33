"""The leaves of a synopsis as constraints: each says where rows are, what values they have, how many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sooner.missing.constraint import Constraint, Range
from sooner.missing.space import written
from sooner.missing.with_nulls import with_nulls
from sooner.sql import quote
from sooner.storage.arrow_types import arrow_type
from sooner.synopses.axes import LEAST, NULL, Axis
from sooner.synopses.measures import Measure
from sooner.synopses.summary import Summary
from sooner.synopses.totals import MeasureTotals


def leaf_constraints(summary: Summary) -> list[Constraint]:
    """A constraint for each leaf with rows, and more for those in which a measure is null."""
    return list(_all(summary))


def _all(summary: Summary) -> Iterator[Constraint]:
    totals = summary.tree.totals
    for node in np.flatnonzero((summary.tree.leaf >= 0) & (totals.rows > 0)).tolist():
        where = [
            _between(axis, int(totals.low[axis.name][node]), int(totals.high[axis.name][node]))
            for axis in summary.definition.over
        ]
        rows = int(totals.rows[node])
        values: dict[str, Range] = {}
        nulls: dict[str, int | None] = {}
        for measure in summary.definition.measures:
            own = totals.measures[measure.name].take(np.array([node]))
            if own.nan[0]:  # not a number: no range holds it
                continue
            nulls[measure.name] = rows - int(own.count[0])
            if own.count[0]:
                values[measure.name] = _ends(measure, own)
        yield from with_nulls(where, values, nulls, (0, rows))


def _between(axis: Axis, low: int, high: int) -> str:
    name = quote(axis.name)
    if high == NULL:
        return f"{name} IS NULL"
    if low == NULL:  # the smallest value beside it is not known
        return f"({name} IS NULL OR {name} <= {written(axis, high)})"
    assert low >= LEAST
    if low == high:
        return f"{name} = {written(axis, low)}"
    return f"{name} BETWEEN {written(axis, low)} AND {written(axis, high)}"


def _ends(measure: Measure, own: MeasureTotals) -> Range:
    type_ = arrow_type(measure.type)
    if pa.types.is_floating(type_):
        return float(own.low[0]), float(own.high[0])
    return measure.shown(own.low[0], type_), measure.shown(own.high[0], type_)
