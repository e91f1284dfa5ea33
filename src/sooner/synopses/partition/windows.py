"""The shortest meaningful queries, and which of those in a run of items has the largest squares.

For AVG a query of 2·δ·m rows or more is no worse than one of its halves. So the worst query is short,
and two of the shortest cover it (PASS §2.4.3). Each item has two shortest queries, from it to the right
and from it to the left; if all items are single rows, they are the same. In order of their beginnings
they are in order of their ends too, so those inside a leaf are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sooner.statistics.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Windows:
    """Shortest queries, from item ``begins`` up to but not including ``ends``.

    ``from_`` is the first window that begins at a position or later, ``upto`` the last that ends there or
    earlier. Σt²/N_q² is an upper bound of a window's variance in any leaf; ``peaks[l, w]`` is the
    window where it is largest among the 2^l from w on.
    """

    begins: Integers
    ends: Integers
    from_: Integers
    upto: Integers
    bounds: Floats
    peaks: Integers
    levels: Integers

    def chosen(
        self, first: Integers, last: Integers, middle: Integers | None
    ) -> tuple[Integers, Integers]:
        """Where windows of each leaf begin and end: the outermost, and those with the largest bounds.

        The bound says little of a window that has most rows of its leaf. Such windows hold the ``middle``
        item, that of the leaf's median row: so those before it, after it and across it are looked at
        apart. If each item is one row, all windows are equally long, and there need be no middle.
        """
        low, high = self.from_[first], self.upto[last + 1]
        none = high < low
        low[none] = high[none] = 0
        numbers = np.stack([low, high, *self._peaks_in(low, high, middle)])
        begins, ends = self.begins.take(numbers), self.ends.take(numbers)
        # Leaves that are too small have no window, and another leaf's must not count.
        begins[:, none] = ends[:, none] = first[none]
        return begins, ends

    def _peaks_in(
        self, low: Integers, high: Integers, middle: Integers | None
    ) -> tuple[Integers, ...]:
        if middle is None:
            return (self._peak(low, high),)
        before, after = self.upto[middle], self.from_[middle + 1]
        across = np.clip(before + 1, low, high)
        return (
            self._peak(low, np.clip(before, low, high)),
            self._peak(np.clip(after, low, high), high),
            self._peak(across, np.clip(after - 1, across, high)),
        )

    def _peak(self, low: Integers, high: Integers) -> Integers:
        """The window with the largest bound from ``low`` to ``high``."""
        level = self.levels[high - low]
        one: Integers = self.peaks[level, low]
        other: Integers = self.peaks[level, high - (1 << level) + 1]
        return np.where(self.bounds[one] >= self.bounds[other], one, other)


def windows_of(totals: Floats, smallest: int) -> Windows:
    """The windows of items with such running totals (see :meth:`Items.totals`).

    >>> windows_of(np.array([[0.0, 1.0, 3.0, 4.0]] * 3), 2).ends
    array([2, 2, 3])
    """
    counts, _, squares = totals
    position = np.arange(len(counts))
    rightward = np.searchsorted(counts, counts + smallest)
    leftward = np.searchsorted(counts, counts - smallest, side="right") - 1
    fits, reaches = rightward < len(counts), leftward >= 0
    begins = np.concatenate([position[fits], leftward[reaches]])
    ends = np.concatenate([rightward[fits], position[reaches]])
    begins, ends = np.unique(np.stack([begins, ends]), axis=1)
    bounds = (squares[ends] - squares[begins]) / np.square(counts[ends] - counts[begins])
    return Windows(
        begins,
        ends,
        np.searchsorted(begins, position),
        np.searchsorted(ends, position, side="right") - 1,
        bounds,
        _peaks(bounds),
        np.frexp(np.arange(1, len(begins) + 1))[1].astype(np.int64) - 1,
    )


def _peaks(bounds: Floats) -> Integers:
    """A sparse table: the place of the maximum of 1, 2, 4, ... neighbours."""
    places = np.arange(len(bounds))
    levels = [places]
    step = 1
    while 2 * step <= len(bounds):
        further = levels[-1][np.minimum(places + step, len(bounds) - 1)]
        better = bounds[further] > bounds[levels[-1]]
        levels.append(np.where(better, further, levels[-1]))
        step *= 2
    return np.stack(levels)
