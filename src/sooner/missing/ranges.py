"""The range of an aggregate over known and missing rows (Predicate-Constraints, §4.4.2).

A missing row of a cell counts in the aggregate, or it escapes: the cell reaches beyond the condition of the
query, or the row's value may be null. What it can bring is all that the program needs to know.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sooner.missing.program import Contradiction, Counts, Program
from sooner.statistics.arrays import Booleans, Floats


@dataclass(frozen=True)
class Reach:
    """Of each cell: whether its rows can count, whether they can escape, and what they can be worth."""

    counts: Booleans
    escapes: Booleans
    low: Floats
    high: Floats

    @property
    def negated(self) -> Reach:
        """The same with the sign of all values turned."""
        return replace(self, low=-self.high, high=-self.low)

    @property
    def must_count(self) -> Booleans:
        """The cells whose rows cannot escape."""
        return self.counts & ~self.escapes


@dataclass(frozen=True)
class Known:
    """The known rows that count: how many, their sum, and their least and largest value."""

    rows: int = 0
    total: float = 0.0
    least: float | None = None
    largest: float | None = None

    @property
    def negated(self) -> Known:
        """The same with the sign of all values turned."""
        least = None if self.largest is None else -self.largest
        return Known(self.rows, -self.total, least, None if self.least is None else -self.least)


@dataclass(frozen=True)
class Span:
    """The lowest and the highest value an aggregate can have, ``None`` if it is null whatever is missing."""

    low: float | None
    high: float | None
    may_be_null: bool = False

    @property
    def negated(self) -> Span:
        """The same with the sign turned."""
        if self.low is None or self.high is None:
            return self
        return Span(-self.high, -self.low, self.may_be_null)


_NULL = Span(None, None, may_be_null=True)


def count_range(program: Program, reach: Reach, known: Known) -> Span:
    """COUNT: the rows that must count, and all that can."""
    most = _weighed(program, reach.counts.astype(np.float64))
    fewest = -_weighed(program, -reach.must_count.astype(np.float64))
    return Span(known.rows + fewest, known.rows + most)


def sum_range(program: Program, reach: Reach, known: Known) -> Span:
    """SUM: null if no row has to count."""
    if not known.rows and not _some_can_count(program, reach):
        return _NULL
    null = _may_be_null(program, reach, known)
    high, low = (_highest_sum(program, one, null) for one in (reach, reach.negated))
    return Span(known.total - low, known.total + high, null)


def average_range(program: Program, reach: Reach, known: Known) -> Span:
    """AVG, each end by search over its value."""
    if not known.rows and not _some_can_count(program, reach):
        return _NULL
    high = _highest_average(program, reach, known)
    low = -_highest_average(program, reach.negated, known.negated)
    return Span(low, high, _may_be_null(program, reach, known))


def max_range(program: Program, reach: Reach, known: Known) -> Span:
    """MAX: at most what a cell that can hold a row reaches; at least what rows that must count have."""
    by_high = sorted(np.flatnonzero(reach.counts).tolist(), key=lambda n: -reach.high[n])
    best = next((reach.high[n] for n in by_high if program.can_hold(n)), None)
    ends = [one for one in (best, known.largest) if one is not None]
    if not ends:
        return _NULL
    null = _may_be_null(program, reach, known)
    low = _lowest_of_all(program, reach) if null else _lowest_forced(program, reach)
    low = max((one for one in (low, known.largest) if one is not None), default=None)
    return Span(low, float(max(ends)), null)


def min_range(program: Program, reach: Reach, known: Known) -> Span:
    """MIN, as MAX with the sign turned."""
    return max_range(program, reach.negated, known.negated).negated


RANGES: dict[str, Callable[[Program, Reach, Known], Span]] = {
    "count": count_range,
    "sum": sum_range,
    "avg": average_range,
    "min": min_range,
    "max": max_range,
}


def _worth(reach: Reach, beyond: float = 0.0) -> Floats:
    """The most that a row of each cell brings, if each that counts costs something."""
    worth = reach.high - beyond
    worth = np.where(reach.escapes, np.maximum(worth, 0.0), worth)
    return np.where(reach.counts, worth, 0.0)


def _highest_sum(program: Program, reach: Reach, may_be_null: bool) -> float:
    """The largest sum of missing rows; where no row has to count, that of one row at least."""
    worth = _worth(reach)
    found = _weighed(program, worth)
    if found > 0 or not may_be_null:
        return found
    best = -math.inf
    for n in sorted(np.flatnonzero(reach.counts).tolist(), key=lambda n: -reach.high[n]):
        if reach.high[n] <= best:
            break
        try:
            best = max(
                best, _weighed(program, worth, _one_in(program, n)) + reach.high[n] - worth[n]
            )
        except Contradiction:
            continue
    return best


def _one_in(program: Program, cell: int) -> Counts:
    one = np.zeros(len(program.limits), np.int64)
    one[cell] = 1
    return one


def _weighed(program: Program, weights: Floats, at_least: Counts | None = None) -> float:
    """The largest weight that rows can have in all."""
    endless = np.isposinf(weights)
    if any(program.can_hold(int(n)) for n in np.flatnonzero(endless)):
        return math.inf
    usable = ~endless if endless.any() else None
    rows = program.best(np.where(endless, 0.0, weights), usable, at_least)
    return math.inf if rows is None else _total(weights, rows)


def _total(weights: Floats, rows: Counts) -> float:
    held = rows > 0
    return math.fsum((weights[held] * rows[held]).tolist())


def _some_can_count(program: Program, reach: Reach) -> bool:
    return any(program.can_hold(int(n)) for n in np.flatnonzero(reach.counts))


def _able(program: Program, reach: Reach) -> int:
    """A cell that can hold a row that counts."""
    return next(int(n) for n in np.flatnonzero(reach.counts) if program.can_hold(int(n)))


def _may_be_null(program: Program, reach: Reach, known: Known) -> bool:
    """Whether there may be no row that counts."""
    return not known.rows and program.is_possible(~reach.must_count)


def _highest_average(program: Program, reach: Reach, known: Known) -> float:
    """Dinkelbach's search: the value at which no choice of rows gains anything over it."""
    endless = np.flatnonzero(reach.counts & np.isposinf(reach.high))
    if any(program.can_hold(int(n)) for n in endless):
        return math.inf
    # Without known rows some missing one must count, or there is no average.
    first = None if known.rows else _one_in(program, _able(program, reach))
    rows = program.best(np.zeros(len(reach.high)), at_least=first)
    assert rows is not None, "nothing to gain is no reason for endless rows"
    counting = rows if first is None else np.where(reach.escapes, first, rows)
    counting = np.where(reach.counts, counting, 0)
    value = (known.total + _total(reach.high, counting)) / (known.rows + int(counting.sum()))
    # With ever more rows of a cell the average comes as near to theirs as one likes.
    value = max(value, reach.high[reach.counts & np.isinf(program.limits)].max(initial=-math.inf))
    while True:
        gains = _worth(reach, value)
        rows = program.best(gains)
        assert rows is not None, "cells without a limit gain nothing over their own value"
        counting = np.where(reach.counts & ((gains > 0) | ~reach.escapes), rows, 0)
        number = known.rows + int(counting.sum())
        found = (known.total + _total(reach.high, counting)) / number if number else -math.inf
        if not found > value:
            return float(value)
        value = found


def _lowest_forced(program: Program, reach: Reach) -> float | None:
    """The least v so that all rows that must count can be at most v; ``None`` if none must."""
    must = reach.must_count
    if program.is_possible(~must):
        return None
    lows = np.unique(reach.low[must])
    first, last = 0, len(lows) - 1
    while first < last:
        middle = (first + last) // 2
        if program.is_possible(~must | (reach.low <= lows[middle])):
            last = middle
        else:
            first = middle + 1
    return float(lows[first])


def _lowest_of_all(program: Program, reach: Reach) -> float | None:
    """The least v so that some row counts, and all that must can be at most v."""
    for n in sorted(np.flatnonzero(reach.counts).tolist(), key=lambda n: reach.low[n]):
        if program.is_possible(
            ~reach.must_count | (reach.low <= reach.low[n]), _one_in(program, n)
        ):
            return float(reach.low[n])
    return None
