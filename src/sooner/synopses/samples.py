"""Rows of every leaf, chosen by a hash of the row: what a leaf that a question cuts is estimated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Booleans
from sooner.synopses.axes import Codes
from sooner.synopses.totals import Ints


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

    def rows_of(self, leaves: Ints) -> Ints:
        """The places of the rows of some leaves, one leaf after another."""
        parts = [np.arange(self.starts[one], self.starts[one + 1]) for one in leaves]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


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
