"""What is known exactly of every node of a tree: rows, and of each measure counts, sums and ends.

Accumulate (a batch of rows by leaf), merge (batches, and children into parents): both are sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Booleans, Floats

Ints = npt.NDArray[np.int64]
Exact = npt.NDArray[Any]  # Python's whole numbers where a measure is whole, else floating ones


@dataclass(frozen=True)
class MeasureTotals:
    """Of each node: values that are not null, their sum, those of positive and negative ones, squares, ends.

    ``sum`` is what adding up gives, NaN included; the other sums are of finite values. ``low`` and
    ``high`` leave NaN out, which is counted. Ends of no value are +∞ and −∞.
    """

    count: Ints
    sum: Exact
    positive: Exact
    negative: Exact
    squares: Floats
    low: Exact
    high: Exact
    nan: Ints

    def take(self, nodes: Ints) -> MeasureTotals:
        """Those of some nodes."""
        return MeasureTotals(
            self.count[nodes],
            self.sum[nodes],
            self.positive[nodes],
            self.negative[nodes],
            self.squares[nodes],
            self.low[nodes],
            self.high[nodes],
            self.nan[nodes],
        )


@dataclass(frozen=True)
class Totals:
    """The rows of each node, the ends of each axis (in its numbers), and the totals of each measure."""

    rows: Ints
    low: Mapping[str, Ints]
    high: Mapping[str, Ints]
    measures: Mapping[str, MeasureTotals]


def totals_of(
    leaf: Ints,
    leaves: int,
    axes: Mapping[str, Ints],
    measures: Mapping[str, tuple[npt.NDArray[Any], Booleans]],
) -> Totals:
    """The totals of a batch of rows, each in its leaf."""
    # Numbers of 16 bits are sorted by counting, many times faster than others.
    small = leaf.astype(np.int16) if leaves < 2**15 else leaf
    order = np.argsort(small, kind="stable")
    found, starts = np.unique(leaf[order], return_index=True)
    rows = np.bincount(leaf, minlength=leaves).astype(np.int64)
    low, high = {}, {}
    for name, codes in axes.items():
        ends = codes[order]
        low[name] = _spread(
            np.minimum.reduceat(ends, starts), found, leaves, np.iinfo(np.int64).max
        )
        high[name] = _spread(
            np.maximum.reduceat(ends, starts), found, leaves, np.iinfo(np.int64).min
        )
    kept = {
        name: _measure_totals(values[order], there[order], found, starts, leaves)
        for name, (values, there) in measures.items()
    }
    return Totals(rows, low, high, kept)


def _spread(values: npt.NDArray[Any], at: Ints, leaves: int, empty: Any) -> npt.NDArray[Any]:
    full = np.full(leaves, empty, dtype=object if isinstance(empty, float) else values.dtype)
    full[at] = values
    return full


def _measure_totals(
    values: npt.NDArray[Any], there: Booleans, found: Ints, starts: Ints, leaves: int
) -> MeasureTotals:
    whole = values.dtype == np.int64
    if (
        whole
        and len(values)
        and float(np.abs(values, dtype=np.float64).max()) * len(values) >= 2**62
    ):
        values = values.astype(object)  # sums that 64 bits do not hold
    floats = values.astype(np.float64)
    finite = np.isfinite(floats)
    plain = values if finite.all() else np.where(finite, values, 0)

    def summed(of: npt.NDArray[Any]) -> npt.NDArray[Any]:
        sums = np.zeros(leaves, dtype=object if whole else np.float64)
        sums[found] = np.add.reduceat(of, starts)
        return sums

    def counted(of: Booleans) -> Ints:
        return summed(of.astype(np.int64)).astype(np.int64)

    nan = np.isnan(floats)
    seen = there & ~nan
    with np.errstate(invalid="ignore", over="ignore"):
        total = summed(values)
        squares = _floating(summed(np.square(np.where(finite, floats, 0.0))))
    return MeasureTotals(
        counted(there),
        total,
        summed(np.maximum(plain, 0)),
        summed(np.minimum(plain, 0)),
        squares,
        _end(np.minimum, floats if not whole else values, seen, found, starts, leaves),
        _end(np.maximum, floats if not whole else values, seen, found, starts, leaves),
        counted(nan),
    )


def exact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values whose sums are right: as Python's whole numbers if 64 bits might not hold them."""
    if values.dtype != np.int64 or not len(values):
        return values
    furthest = max(abs(int(values.min())), abs(int(values.max())))
    return values.astype(object) if furthest * len(values) >= 2**62 else values


def _floating(values: npt.NDArray[Any]) -> Floats:
    return values.astype(np.float64)


def _end(
    choose: np.ufunc,
    values: npt.NDArray[Any],
    seen: Booleans,
    found: Ints,
    starts: Ints,
    leaves: int,
) -> npt.NDArray[Any]:
    """The smallest or largest value of each leaf, of those that are there; infinite where none is."""
    worst = np.inf if choose is np.minimum else -np.inf
    ends = np.full(leaves, worst, dtype=object if values.dtype != np.float64 else np.float64)
    if values.dtype == np.float64:
        ends[found] = choose.reduceat(np.where(seen, values, worst), starts)
        return ends
    extreme = 2**63 - 1 if choose is np.minimum else -(2**63)
    best = choose.reduceat(np.where(seen, values, extreme), starts)
    some = np.logical_or.reduceat(seen, starts)
    ends[found[some]] = [int(one) for one in best[some]]
    return ends


def merged(parts: Sequence[Totals]) -> Totals:
    """The totals of all parts, which have the same leaves."""
    first = parts[0]
    return Totals(
        sum((one.rows for one in parts[1:]), first.rows),
        {n: np.minimum.reduce([one.low[n] for one in parts]) for n in first.low},
        {n: np.maximum.reduce([one.high[n] for one in parts]) for n in first.high},
        {n: _merged([one.measures[n] for one in parts]) for n in first.measures},
    )


def _merged(parts: Sequence[MeasureTotals]) -> MeasureTotals:
    def added(name: str) -> Any:
        return sum((getattr(one, name) for one in parts[1:]), getattr(parts[0], name))

    return MeasureTotals(
        added("count"),
        added("sum"),
        added("positive"),
        added("negative"),
        added("squares"),
        np.minimum.reduce([one.low for one in parts]),
        np.maximum.reduce([one.high for one in parts]),
        added("nan"),
    )
