"""The largest variance of a query inside a leaf: the oracle M of PASS (§2.4.2 and §2.4.3).

A query meets N_q of the N sampled rows of a leaf. Estimating its SUM from that sample has the variance
V = (1/N)·[N·Σt² − (Σt)²], with sums over the rows it meets; COUNT is SUM with t = 1, and AVG divides by N_q²
once more. Only meaningful queries count, those that meet at least δ·m of all m sampled rows. A leaf
of fewer rows has none, and variance 0: so δ·m must be small against the leaves that are wanted, or
leaves just too small to be asked about look perfect.

The fast oracle looks at a few queries only, so it never finds more than the exact one. It finds at
least a quarter if each row has its own code and the leaf has 2·δ·m rows or more (PASS §2.4.3). For rows
that share codes, and for smaller leaves, the paper has no argument; more queries are looked at there,
and less than a quarter was not found by searching for it (see the tests).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sooner.statistics.arrays import Floats, Integers
from sooner.synopses.partition.items import Focus, Items
from sooner.synopses.partition.windows import windows_of

# So many queries are looked at at once.
_AT_ONCE = 1 << 20


class MaxVariance(Protocol):
    """The largest variance in leaves from item ``first`` to item ``last``, both included."""

    def __call__(self, first: Integers, last: Integers) -> Floats:
        """The variance, for many leaves at once."""

    def worst_query(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last item of a query of one leaf that has this variance."""


@dataclass(frozen=True, eq=False)
class ExactMaxVariance:
    """All meaningful queries, quadratic in the items of a leaf: for small inputs and for tests."""

    totals: Floats
    smallest: int
    mean: bool

    def __call__(self, first: Integers, last: Integers) -> Floats:
        """The variance, for many leaves at once."""
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        return np.array([self._largest(*pair)[0] for pair in pairs], np.float64)

    def worst_query(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last item of a query of one leaf that has this variance."""
        _, begin, end = self._largest(first, last)
        return begin, end - 1

    def _largest(self, first: int, last: int) -> tuple[float, int, int]:
        """The variance, and the query from one position to another that has it."""
        largest = (0.0, first, last + 1)
        rows = self.totals[0, last + 1] - self.totals[0, first]
        step = max(1, _AT_ONCE // (last + 1 - first))
        for begin in range(first, last + 1, step):
            begins = self.totals[:, begin : min(begin + step, last + 1), None]
            inside = self.totals[:, None, begin + 1 : last + 2] - begins
            found = _variance(inside, rows, self.smallest, self.mean)
            place = int(found.argmax())
            more, further = divmod(place, found.shape[1])
            if found.flat[place] > largest[0]:
                largest = (float(found.flat[place]), begin + more, begin + 1 + further)
        return largest


@dataclass(frozen=True, eq=False)
class FastMaxVariance:
    """Some queries of each leaf: ``positions`` in it, and between which of them the ``queries`` lie.

    The first two positions are the ends of the leaf, and the first query is the whole leaf.
    """

    totals: Floats
    smallest: int
    mean: bool
    positions: Callable[[Integers, Integers], Integers]
    queries: tuple[tuple[int, int], ...]

    def __call__(self, first: Integers, last: Integers) -> Floats:
        """The variance, for many leaves at once."""
        # Rounding may leave a little less than nothing.
        found: Floats = self._variances(self.positions(first, last)).max(axis=0, initial=0.0)
        return found

    def worst_query(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last item of a query of one leaf that has this variance."""
        places = self.positions(np.array([first]), np.array([last]))
        begin, end = self.queries[int(self._variances(places).argmax())]
        return int(places[begin, 0]), int(places[end, 0]) - 1

    @cached_property
    def _ends(self) -> tuple[Integers, Integers]:
        """At which positions queries begin and end."""
        begins, ends = zip(*self.queries, strict=True)
        return np.array(begins), np.array(ends)

    def _variances(self, places: Integers) -> Floats:
        at = self.totals.take(places, axis=1)
        begins, ends = self._ends
        inside = at.take(ends, axis=1)
        inside -= at.take(begins, axis=1)
        return _variance(inside, inside[0, 0], self.smallest, self.mean)


def _variance(inside: Floats, rows: Floats | np.float64, smallest: int, mean: bool) -> Floats:
    """V of queries with such totals in leaves of so many rows; 0 for those that are not meaningful."""
    met, sums, squares = inside
    found: Floats = squares - sums * sums / rows
    if mean:
        found /= np.maximum(met * met, 1.0)
    found *= met >= smallest
    return found


def exact_max_variance(items: Items, focus: Focus, smallest: int) -> ExactMaxVariance:
    """The oracle that looks at all queries of at least ``smallest`` rows; see :func:`smallest_query`.

    >>> from sooner.synopses.partition import items_of
    >>> items = items_of(np.arange(4), np.array([0.0, 0.0, 1.0, 3.0]))
    >>> exact_max_variance(items, "sum", 1)(np.array([0, 2]), np.array([3, 3]))
    array([6.75, 4.5 ])
    """
    return ExactMaxVariance(items.totals(focus), smallest, focus == "avg")


def fast_max_variance(items: Items, focus: Focus, smallest: int) -> FastMaxVariance:
    """The oracle that looks at a few queries of at least ``smallest`` rows; see :func:`smallest_query`.

    >>> from sooner.synopses.partition import items_of
    >>> items = items_of(np.arange(4), np.array([0.0, 0.0, 1.0, 3.0]))
    >>> fast_max_variance(items, "sum", 1)(np.array([0, 2]), np.array([3, 3]))
    array([6. , 4.5])
    """
    totals = items.totals(focus)
    # Where there are no meaningful queries at all, halves say so too.
    if focus == "avg" and items.rows >= smallest:
        return _by_windows(items, totals, smallest)
    return _by_halves(items, totals, smallest)


def _by_halves(items: Items, totals: Floats, smallest: int) -> FastMaxVariance:
    """SUM and COUNT: what lies to both sides of the median, with and without its own item.

    Halves of a leaf of fewer than 2·δ·m rows are too short to be meaningful: they are taken longer.
    """
    row_items = np.repeat(np.arange(len(items)), np.diff(items.counts))

    def positions(first: Integers, last: Integers) -> Integers:
        found = np.empty((4, len(first)), np.int64)
        found[0] = first
        np.add(last, 1, out=found[1])
        start, end = items.counts.take(found[0]), items.counts.take(found[1])
        rows = end - start
        half = np.minimum(np.maximum((rows + 1) >> 1, smallest), rows)
        found[2] = row_items.take(end - half)
        np.add(row_items.take(start + half - 1), 1, out=found[3])
        return found

    return FastMaxVariance(
        totals, smallest, False, positions, ((0, 1), (0, 3), (2, 1), (0, 2), (3, 1))
    )


def _by_windows(items: Items, totals: Floats, smallest: int) -> FastMaxVariance:
    """AVG: some of the shortest meaningful queries."""
    windows = windows_of(totals, smallest)
    row_items = np.repeat(np.arange(len(items)), np.diff(items.counts))
    single = len(items) == items.rows

    def positions(first: Integers, last: Integers) -> Integers:
        median = (items.counts[first] + items.counts[last + 1] - 1) >> 1
        begins, ends = windows.chosen(first, last, None if single else row_items[median])
        return np.concatenate([[first, last + 1], begins, ends])

    chosen = 3 if single else 5
    queries = ((0, 1), *((2 + each, 2 + chosen + each) for each in range(chosen)))
    return FastMaxVariance(totals, smallest, True, positions, queries)
