"""Which numbers of an axis a condition lets through: closed spans that neither touch nor overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sooner.statistics.arrays import Booleans
from sooner.synopses.axes import LEAST, MOST, NULL, Codes


@dataclass(frozen=True)
class Spans:
    """Closed spans of whole numbers, in order.

    >>> spans_of([(1, 3), (4, 6), (9, 8)]).ends
    ((1, 6),)
    >>> spans_of([(1, 6)]).without_null(negated=True).ends[-1] == (7, MOST)
    True
    """

    ends: tuple[tuple[int, int], ...]

    def __and__(self, other: Spans) -> Spans:
        """What both let through."""
        met = (
            (max(low, first), min(high, last))
            for low, high in self.ends
            for first, last in other.ends
        )
        return spans_of(met)

    def __or__(self, other: Spans) -> Spans:
        """What one of both lets through."""
        return spans_of((*self.ends, *other.ends))

    def without_null(self, negated: bool) -> Spans:
        """The same, or all other values; null is neither."""
        if not negated:
            return self & VALUES
        gaps, first = [], LEAST
        for low, high in self.ends:
            gaps.append((first, low - 1))
            first = max(first, high + 1)
        return spans_of([*gaps, (first, MOST)])

    @property
    def is_empty(self) -> bool:
        """Whether nothing passes."""
        return not self.ends

    @cached_property
    def _arrays(self) -> tuple[Codes, Codes]:
        table = np.array(self.ends, np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def hold(self, codes: Codes) -> Booleans:
        """Which numbers pass."""
        if len(self.ends) == 1:
            low, high = self.ends[0]
            return (codes >= low) & (codes <= high)
        return self.meet(codes, codes)

    def meet(self, low: Codes, high: Codes) -> Booleans:
        """Which boxes from low to high have a number that passes, as far as their ends tell."""
        if len(self.ends) == 1:
            ((first, last),) = self.ends
            return (high >= first) & (low <= last)
        begins, place, there = self._next(low)
        return there & (begins <= high) if place is not None else there

    def contain(self, low: Codes, high: Codes) -> Booleans:
        """Which boxes from low to high pass whole."""
        if len(self.ends) == 1:
            ((first, last),) = self.ends
            return (low >= first) & (high <= last)
        begins, place, there = self._next(low)
        if place is None:
            return there
        return there & (begins <= low) & (high <= self._arrays[1][place])

    def _next(self, low: Codes) -> tuple[Codes, Codes | None, Booleans]:
        """The first span that does not end below: where it begins, its place, and whether there is one."""
        first, last = self._arrays
        if not len(first):
            return first, None, np.zeros(len(low), np.bool_)
        place = np.searchsorted(last, low)
        there = place < len(last)
        place = np.where(there, place, 0)
        return first[place], place, there


def spans_of(ends: Iterable[tuple[int, int]]) -> Spans:
    """Spans in order; those that are empty are left out, those that touch become one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(one for one in ends if one[0] <= one[1]):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return Spans(tuple(found))


VALUES = Spans(((LEAST, MOST),))
NULLS = Spans(((NULL, NULL),))
ALL = Spans(((NULL, MOST),))
