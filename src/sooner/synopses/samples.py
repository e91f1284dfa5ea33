"""Rows of every leaf, chosen by a hash of the row: what a leaf that a question cuts is estimated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Booleans, Floats
from sooner.synopses.axes import Codes
from sooner.synopses.totals import Ints, exact


@dataclass(frozen=True)
class SampledMeasure:
    """A measure of all sampled rows, its squares, and what they come to in each leaf, asked or not.

    ``valued`` counts those with a value; the sums are of positive and negative ones, and of squares.
    """

    values: npt.NDArray[Any]
    there: Booleans
    squares: Floats
    valued: Ints
    positive: npt.NDArray[Any]
    negative: npt.NDArray[Any]
    leaf_squares: Floats


@dataclass(frozen=True)
class Samples:
    """The rows of leaf i are those from ``starts[i]`` to ``starts[i + 1]``, by ascending hash.

    ``axes`` are their columns as numbers, ``values`` their measures (zero where ``there`` is false).
    """

    starts: Ints
    hashes: Codes
    axes: Mapping[str, Codes]
    values: Mapping[str, npt.NDArray[Any]]
    there: Mapping[str, Booleans]

    @property
    def count(self) -> int:
        """All sampled rows."""
        return len(self.hashes)

    @cached_property
    def measures(self) -> dict[str, SampledMeasure]:
        """The measures, summed once for all questions."""
        return {name: self._measure(name) for name in self.values}

    def _measure(self, name: str) -> SampledMeasure:
        values, there = exact(self.values[name]), self.there[name]
        with np.errstate(over="ignore"):
            squares = np.square(values.astype(np.float64))
        return SampledMeasure(
            values,
            there,
            squares,
            self._by_leaf(there.astype(np.int64)),
            _unbounded(self._by_leaf(np.maximum(values, 0))),
            _unbounded(self._by_leaf(np.minimum(values, 0))),
            self._by_leaf(squares),
        )

    def _by_leaf(self, of: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return by_part(of, self.starts[:-1], np.diff(self.starts))

    def rows_of(self, leaves: Ints) -> Ints:
        """The places of the rows of some leaves, one leaf after another."""
        parts = [np.arange(self.starts[one], self.starts[one + 1]) for one in leaves]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _unbounded(sums: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sums of whole numbers as Python's, which no further sum is too large for."""
    return sums.astype(object) if sums.dtype == np.int64 else sums


def by_part(of: npt.NDArray[Any], starts: Ints, counts: Ints) -> npt.NDArray[Any]:
    """The sums over parts that lie one after another; some may have no rows."""
    found = np.zeros(len(counts), dtype=of.dtype)
    if len(of):
        some = counts > 0
        found[some] = np.add.reduceat(of, starts[some])
    return found


def sorted_samples(
    leaf: Ints,
    hashes: Codes,
    axes: Mapping[str, Codes],
    values: Mapping[str, npt.NDArray[Any]],
    there: Mapping[str, Booleans],
    most: Ints,
) -> Samples:
    """Candidates in any order as samples: of each leaf the ``most`` with the smallest hashes."""
    order = np.lexsort((hashes, leaf))
    counts = np.bincount(leaf, minlength=len(most))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    order = order[rank < most[leaf[order]]]
    starts = np.concatenate([[0], np.cumsum(np.minimum(counts, most))]).astype(np.int64)
    return Samples(
        starts,
        hashes[order],
        {name: codes[order] for name, codes in axes.items()},
        {name: one[order] for name, one in values.items()},
        {name: one[order] for name, one in there.items()},
    )
