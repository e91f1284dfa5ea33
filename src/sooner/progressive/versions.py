"""Rows that wait, in R + 1 versions: which of them pass, and what they add to the sums of their groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.progressive.gates import Gate
from sooner.progressive.numbers import numbers
from sooner.progressive.partials import Scaling
from sooner.progressive.ranges import Values, compare
from sooner.statistics import all_but_one, scale_up
from sooner.statistics.arrays import Floats
from sooner.statistics.places import places
from sooner.storage.layout import REPLICATE


@dataclass(frozen=True)
class PartialSum:
    """A partial sum of each group: in R + 1 versions, by replicate, and what of it is certain."""

    left: Floats
    by_replicate: Floats
    certain: Floats
    seen: npt.NDArray[np.bool_]

    def scaled(self, scaling: Scaling) -> Floats:
        """The sum of all rows, as it looks from those read, in each version."""
        return self.left * scale_up(scaling.rows, scaling.total)[:, None]


@dataclass(frozen=True)
class Sums:
    """Where passed and waiting rows go, and in which versions the waiting ones pass."""

    passed: npt.NDArray[np.int64]
    passed_replicate: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    waiting_replicate: npt.NDArray[np.int64]
    versions: Sequence[npt.NDArray[np.bool_]]
    shape: tuple[int, int]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """The groups of which a row passes as it looks now."""
        found = np.zeros(self.shape[0], np.bool_)
        found[self.passed] = True
        found[self.waiting[self.versions[0]]] = True
        return found

    def of(self, passed: pa.ChunkedArray, waiting: pa.ChunkedArray) -> PartialSum:
        """What a partial of the passed and the waiting rows comes to."""
        count, replicates = self.shape
        sure, open_ = numbers(passed), numbers(waiting)
        by_replicate = self._by_replicate(self.passed, self.passed_replicate, sure)
        left = all_but_one(by_replicate)
        values = np.nan_to_num(open_)
        now = self.versions[0]
        for version in range(replicates + 1):
            passes = self.versions[min(version, len(self.versions) - 1)]
            kept = passes & (self.waiting_replicate != version - 1)
            left[version] += np.bincount(self.waiting[kept], values[kept], count)
        more = self._by_replicate(self.waiting[now], self.waiting_replicate[now], open_[now])
        seen = np.zeros(count, np.bool_)
        seen[self.passed[~np.isnan(sure)]] = True
        seen[self.waiting[now & ~np.isnan(open_)]] = True
        return PartialSum(left, by_replicate + more, by_replicate.sum(axis=1), seen)

    def _by_replicate(
        self, at: npt.NDArray[np.int64], replicate: npt.NDArray[np.int64], values: Floats
    ) -> Floats:
        count, replicates = self.shape
        flat = np.bincount(at * replicates + replicate, np.nan_to_num(values), count * replicates)
        return np.asarray(flat.reshape(count, replicates), np.float64)


def replicate_of(table: pa.Table) -> npt.NDArray[np.int64]:
    """The replicate of each row; one for all where they are not kept apart."""
    if REPLICATE not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    return np.asarray(table.column(REPLICATE).to_numpy(), np.int64)


def versions_of(
    gates: Sequence[Gate], values: Sequence[Values], rows: pa.Table
) -> Iterator[npt.NDArray[np.bool_]]:
    """Which rows pass, in each version there is of the values."""
    at = [
        places(one.keys, rows.select([ours for ours, _ in gate.keys]))
        for gate, one in zip(gates, values, strict=True)
    ]
    depth = max(len(one.versions(t)) for one in values for t in range(len(one.columns)))
    ours = {t.column: numbers(rows.column(t.column)) for gate in gates for t in gate.checks}
    for version in range(depth):
        passes = np.ones(rows.num_rows, np.bool_)
        for gate, one, place in zip(gates, values, at, strict=True):
            for number, check in enumerate(gate.checks):
                theta = one.versions(number)
                theirs = np.append(theta[min(version, len(theta) - 1)], np.nan)[place]
                passes &= compare(check.comparison, ours[check.column], theirs)
        yield passes
