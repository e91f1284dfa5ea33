"""Rows on the way: columns that are what they are, and columns of which there are R + 1 versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.statistics import distinct_interval, effective_replicates, interval
from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.intervals import Interval


@dataclass(frozen=True)
class Varying:
    """A column of estimates: ``theta`` has the estimate in row 0 and R leave-one-out ones after it.

    ``contributions`` says how much each replicate brings to each cell; see ``statistics.interval``.
    ``growth`` is what to multiply totals of groups with that are shown one by one; see there.
    """

    theta: Floats
    contributions: Floats
    positive: bool = False
    certain_low: Floats | None = None
    fewest: int = 5
    growth: Floats | None = None

    def take(self, places: npt.NDArray[np.int64]) -> Varying:
        """The cells at these places."""
        return replace(
            self,
            theta=self.theta[:, places],
            contributions=self.contributions[places],
            certain_low=None if self.certain_low is None else self.certain_low[places],
            growth=None if self.growth is None else self.growth[places],
        )

    @property
    def grown(self) -> Varying:
        """The cells as they are shown one by one: not to be summed."""
        if self.growth is None:
            return self
        return replace(self, theta=self.theta * self.growth, growth=None)

    def interval(self, progress: float, confidence: float) -> Interval:
        """The interval of each cell; unknown without replicates."""
        if len(self.theta) <= 2:
            nothing = np.full(self.theta.shape[1], np.nan)
            return Interval(nothing, nothing)
        return interval(
            self.theta,
            progress,
            self.contributions,
            confidence,
            positive=self.positive,
            certain_low=self.certain_low,
            fewest=self.fewest,
        )


@dataclass(frozen=True, kw_only=True)
class DistinctCount(Varying):
    """A column of distinct counts: what was seen is certain, the upper end unknown where ``skewed``.

    Nothing that is computed from a skewed cell has an interval: its ``contributions`` are zero.
    """

    certain_low: Floats
    skewed: Booleans

    def take(self, places: npt.NDArray[np.int64]) -> DistinctCount:
        """The cells at these places."""
        return replace(
            self,
            theta=self.theta[:, places],
            contributions=self.contributions[places],
            certain_low=self.certain_low[places],
            skewed=self.skewed[places],
        )

    def interval(self, progress: float, confidence: float) -> Interval:
        """From the values seen to the upper end, where there is one."""
        if len(self.theta) <= 2:
            return Interval(self.certain_low, np.full(self.theta.shape[1], np.nan))
        return distinct_interval(
            self.certain_low, self.theta, progress, self.contributions, self.skewed, confidence
        )


@dataclass(frozen=True)
class Extreme:
    """A MIN or MAX so far: the true one can only be further out."""

    values: pa.ChunkedArray
    least: bool

    def take(self, places: npt.NDArray[np.int64]) -> Extreme:
        """The cells at these places."""
        return replace(self, values=self.values.take(pa.array(places)))


@dataclass(frozen=True)
class Guess:
    """Values as they look now, of which nothing more can be said."""

    values: pa.ChunkedArray

    def take(self, places: npt.NDArray[np.int64]) -> Guess:
        """The cells at these places."""
        return Guess(self.values.take(pa.array(places)))


@dataclass(frozen=True)
class Deferred:
    """Values that are looked up by ``keys`` when somebody wants to see them."""

    keys: pa.ChunkedArray
    look_up: Callable[[pa.ChunkedArray], pa.ChunkedArray]

    def take(self, places: npt.NDArray[np.int64]) -> Deferred:
        """The cells at these places."""
        return replace(self, keys=self.keys.take(pa.array(places)))

    @property
    def values(self) -> pa.ChunkedArray:
        """The values themselves."""
        return self.look_up(self.keys)


Column: TypeAlias = pa.ChunkedArray | Varying | Extreme | Guess | Deferred


@dataclass(frozen=True)
class Rows:
    """Rows of columns that are certain (Arrow) or not.

    ``chosen`` marks rows that an estimate chose: another may still take their place, or they go.
    """

    columns: Mapping[str, Column]
    chosen: npt.NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.chosen)

    def take(self, places: npt.NDArray[np.int64]) -> Rows:
        """The rows at these places, in this order."""
        columns = {
            name: column.take(places)
            if isinstance(column, Varying | Extreme | Guess | Deferred)
            else column.take(pa.array(places))
            for name, column in self.columns.items()
        }
        return Rows(columns, self.chosen[places])

    @property
    def grown(self) -> Rows:
        """The rows as they are shown one by one: their totals are not to be summed."""
        columns = {
            name: column.grown if isinstance(column, Varying) else column
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)

    @property
    def without_intervals(self) -> Rows:
        """The rows, of whose estimates nothing can be said yet."""
        columns = {
            name: replace(column, contributions=np.zeros_like(column.contributions))
            if isinstance(column, Varying)
            else column
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)

    def also_chosen(self, chosen: npt.NDArray[np.bool_] | bool) -> Rows:
        """The same rows, more of them marked."""
        return replace(self, chosen=self.chosen | chosen)


def certain_rows(columns: Mapping[str, Column], count: int) -> Rows:
    """Rows none of which an estimate chose."""
    return Rows(columns, np.zeros(count, np.bool_))


def weaker(one: Floats, other: Floats) -> Floats:
    """Cell by cell the contributions that rest on fewer replicates."""
    better = effective_replicates(one).freedom <= effective_replicates(other).freedom
    return np.where(better[:, None], one, other)
