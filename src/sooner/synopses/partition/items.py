"""What the algorithms of one dimension see of the data: a sample, ordered by the code that conditions go by.

Rows of one code are one item, for no boundary can come between them. Sums over any run of items are
differences of running totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from sooner.statistics.arrays import Floats, Integers

Focus: TypeAlias = Literal["sum", "count", "avg"]

# Squares of larger values overflow. Such a value makes its leaf the worst one either way.
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Items:
    """Distinct codes in order, and running totals before each of them and after the last.

    ``counts`` are rows, ``sums`` and ``squares`` those of values t. The lifted ones are of t less the
    smallest t: that the worst query for AVG is short (PASS §2.4.3) holds only if no t is negative.
    SUM and COUNT need no such thing, and lifting values would change which leaf is worst.

    >>> items_of(np.array([7, 3, 7]), np.array([1.0, 5.0, 2.0])).sums
    array([0., 5., 8.])
    """

    codes: Integers
    counts: Integers
    sums: Floats
    squares: Floats
    lifted_sums: Floats
    lifted_squares: Floats

    def __len__(self) -> int:
        """How many distinct codes there are."""
        return len(self.codes)

    @property
    def rows(self) -> int:
        """How many rows the sample has."""
        return int(self.counts[-1])

    def totals(self, focus: Focus) -> Floats:
        """Running totals of rows, t and t², one below the other, where t is what ``focus`` adds up."""
        counts = self.counts.astype(np.float64)
        if focus == "count":
            return np.stack([counts, counts, counts])
        if focus == "avg":
            return np.stack([counts, self.lifted_sums, self.lifted_squares])
        return np.stack([counts, self.sums, self.squares])


def items_of(codes: Integers, values: Floats, lowest: float | None = None) -> Items:
    """The items of sampled rows. A value that is no finite number counts as 0.

    ``lowest`` is the smallest value there is, if these are not all rows.

    >>> items = items_of(np.array([7, 3, 7]), np.array([1.0, np.nan, 2.0]))
    >>> items.codes, items.counts, items.squares
    (array([3, 7]), array([0, 1, 3]), array([0., 0., 5.]))
    """
    order = np.argsort(codes, kind="stable")
    t = finite(values)[order]
    distinct, starts = np.unique(codes[order], return_index=True)
    ends = np.append(starts, len(t)).astype(np.int64)
    lifted = t - (t.min(initial=np.inf) if lowest is None else lowest)
    return Items(
        distinct.astype(np.int64),
        ends,
        *(_running(each)[ends] for each in (t, t * t, lifted, lifted * lifted)),
    )


def finite(values: Floats) -> Floats:
    """The values that are counted with."""
    return np.clip(np.where(np.isfinite(values), values, 0.0), -_LARGEST, _LARGEST)


def _running(each: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(each)])


def smallest_query(rows: int, delta: float) -> int:
    """How many of a sample's rows a query must meet to be meaningful: δ·m (PASS §2.4.2), at least one.

    >>> smallest_query(100, 0.07), smallest_query(100, 0.0)
    (7, 1)
    """
    # 0.07·100 is a little more than 7 in binary.
    return max(1, ceil(delta * rows - 1e-9))
