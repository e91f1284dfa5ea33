"""Columns of an estimated answer on their way: values, and the ends of those that are estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra import Limit, Project, Relation, Sort
from sooner.algebra.scalar import SortKey
from sooner.statistics.arrays import Booleans, Floats
from sooner.views.calculation import Calculation
from sooner.views.estimates import Estimates


class Cells:
    """A table of so many rows; what is done with it is done with its intervals."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.values: dict[str, pa.Array | Floats] = {}
        self.ends: dict[str, tuple[Floats, Floats]] = {}
        self.corrected: dict[str, Any] = {}
        # How likely a row is beyond a minimum or maximum.
        self.beyond: dict[str, Floats] = {}
        # Whether estimates have chosen which rows are here: others may be the right ones.
        self.chosen = False
        # For every row, and for the end: whether the rows before it are so for certain, as they are ordered.
        self._sure: Booleans = np.ones(rows + 1, np.bool_)

    def put(self, name: str, found: Estimates) -> None:
        """Add a column of estimates."""
        self.values[name] = found.value
        self.ends[name] = (found.low, found.high)
        self.corrected[name] = found.corrected

    def turn(self, calculation: Calculation) -> None:
        """Add a column of what is calculated of one column of estimates."""
        (name,) = calculation.of
        values, ends = self.values[name], calculation.ends(*self.ends[name])
        found = (calculation.value({name: np.asarray(values)}), *ends)
        value, low, high = (calculation.rounded(each) for each in found)
        self.put(calculation.name, Estimates(value, low, high, self.corrected[name]))
        if name in self.beyond:
            self.beyond[calculation.name] = self.beyond[name]

    def take(self, places: Any) -> None:
        """Have these rows, in this order."""
        self.values = {
            name: one.take(pa.array(places)) if isinstance(one, pa.Array) else one[places]
            for name, one in self.values.items()
        }
        self.ends = {name: (low[places], high[places]) for name, (low, high) in self.ends.items()}
        self.corrected = {name: by[places] for name, by in self.corrected.items()}
        self.beyond = {name: one[places] for name, one in self.beyond.items()}
        self.rows = len(places)
        self._sure = np.ones(self.rows + 1, np.bool_)

    def forget_ends(self) -> None:
        """Take the intervals away."""
        nothing = np.full(self.rows, np.nan)
        self.ends = dict.fromkeys(self.ends, (nothing, nothing))

    def apply(self, node: Relation) -> None:
        """Do what a plan does after its aggregate: choose columns, order rows, leave some out."""
        match node:
            case Project():
                pairs = [(item.name, item.scalar.name) for item in node.items]
                self.values = {new: self.values[old] for new, old in pairs}
                self.ends = {new: self.ends[old] for new, old in pairs if old in self.ends}
                pairs = [(new, old) for new, old in pairs if old in self.corrected]
                self.corrected = {new: self.corrected[old] for new, old in pairs}
                self.beyond = {new: self.beyond[old] for new, old in pairs if old in self.beyond}
            case Limit():
                first = min(node.offset, self.rows)
                last = self.rows if node.count is None else min(first + node.count, self.rows)
                self.chosen |= not (self._sure[first] and self._sure[last])
                self.take(np.arange(first, last))
            case Sort():
                places = np.arange(self.rows)
                for key in reversed(
                    node.by
                ):  # equal ones stay as they are, so the first key is last
                    values = self.values[key.scalar.name]
                    array = values if isinstance(values, pa.Array) else _array(values)
                    places = places[_order(array.take(pa.array(places)), key)]
                self.take(places)
                self._sure = self._surely_before(node.by)

    def _surely_before(self, by: Sequence[SortKey]) -> Booleans:
        """For every row, and for the end, whether the rows before it come before it whatever is true."""
        sure = np.ones(self.rows + 1, np.bool_)
        if self.rows == 0 or not any(key.scalar.name in self.ends for key in by):
            return sure
        name = by[0].scalar.name
        if name in self.ends:
            low, high = self.ends[name]
            if not by[0].descending:
                low, high = -high, -low
            # Of ends that are not known it is never true.
            largest_after = np.maximum.accumulate(high[::-1])[::-1]
            sure[1:-1] = np.minimum.accumulate(low)[:-1] > largest_after[1:]
        else:  # of groups that are alike in the first key estimates decide
            place = np.asarray(pc.rank(self.values[name], tiebreaker="dense"))
            sure[1:-1] = np.diff(place.astype(np.int64)) != 0
        return sure


def _array(values: Floats) -> pa.Array:
    return pa.array(values, from_pandas=True)


def _order(values: pa.Array, key: SortKey) -> Any:
    """The places of values in order; equal ones stay as they are."""
    order = "descending" if key.descending else "ascending"
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    known, nulls = np.flatnonzero(~missing), np.flatnonzero(missing)
    ordered = known[np.asarray(pc.array_sort_indices(values.drop_null(), order=order))]
    if key.descending and pa.types.is_floating(values.type):
        # To Spark what is not a number is the largest one; Arrow has it last in either order.
        number = int(pc.sum(pc.is_nan(values)).as_py() or 0)
        ordered = np.roll(ordered, number)
    return np.concatenate([nulls, ordered] if key.nulls_first else [ordered, nulls])


def floats(values: pa.ChunkedArray) -> Floats:
    """A column of numbers, NaN where there is none."""
    return np.asarray(values.cast(pa.float64()).to_numpy(), np.float64)
