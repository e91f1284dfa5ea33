"""What is known of a question: exactly of the nodes it covers, and by samples of the leaves it cuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sooner.statistics.arrays import Booleans, Floats
from sooner.synopses.samples import Samples, by_part
from sooner.synopses.spans import Spans
from sooner.synopses.totals import Exact, Ints, MeasureTotals
from sooner.synopses.tree import Frontier, Tree


@dataclass(frozen=True)
class Covered:
    """Rows that pass for certain, and the totals of a measure over them; ends are ``None`` without one."""

    rows: int
    count: int
    sum: Any
    low: Any
    high: Any
    nan: int


@dataclass(frozen=True)
class Strata:
    """Leaves of which some rows may pass: all rows, sampled rows, and sampled rows that pass.

    ``totals`` are those of the whole leaves; the rest is of sampled rows: with a value, passing with a
    value, their sums and squares (all, and passing), and the values that pass.
    """

    rows: Ints
    sampled: Ints
    matched: Ints
    totals: MeasureTotals
    valued: Ints
    count: Ints
    sampled_positive: Exact
    sampled_negative: Exact
    sampled_squares: Floats
    sum: Exact
    squares: Floats
    seen: Exact

    @property
    def low(self) -> Any:
        """The smallest of the sampled values that pass, if any do."""
        return self.seen.min() if len(self.seen) else None

    @property
    def high(self) -> Any:
        """The largest of them."""
        return self.seen.max() if len(self.seen) else None

    @property
    def is_whole(self) -> Booleans:
        """Leaves all of whose rows are in the sample: nothing is left to estimate."""
        return self.sampled >= self.rows

    @property
    def is_odd(self) -> bool:
        """Whether NaN or infinite values may be among the rows that pass."""
        if self.totals.sum.dtype == object:  # whole numbers are neither
            return False
        some = self.totals.count > self.totals.nan
        infinite = np.isinf(self.totals.low[some]).any() or np.isinf(self.totals.high[some]).any()
        return bool(infinite or self.totals.nan.any())


@dataclass(frozen=True)
class Matching:
    """The sampled rows of the leaves that are cut, which of them pass, and where each leaf's begin."""

    places: Ints
    passed: Booleans
    starts: Ints
    sampled: Ints

    def by_leaf(self, of: Any) -> Any:
        """The sums over each leaf's rows."""
        return by_part(of, self.starts, self.sampled)

    @cached_property
    def matched(self) -> Ints:
        """How many sampled rows of each leaf pass."""
        counts: Ints = self.by_leaf(self.passed.astype(np.int64))
        return counts


def matching(samples: Samples, leaves: Ints, box: Mapping[str, Spans]) -> Matching:
    """Which sampled rows of some leaves pass."""
    places = samples.rows_of(leaves)
    passed = np.ones(len(places), np.bool_)
    for name, spans in box.items():
        passed &= spans.hold(samples.axes[name][places])
    counts = samples.starts[leaves + 1] - samples.starts[leaves]
    return Matching(places, passed, np.cumsum(counts) - counts, counts)


def covered(tree: Tree, frontier: Frontier, measure: str | None) -> Covered:
    """The totals of all covered nodes together."""
    rows = int(tree.totals.rows[frontier.covered].sum())
    if measure is None:
        return Covered(rows, rows, 0, None, None, 0)
    totals, at = tree.totals.measures[measure], frontier.covered
    count, nan = int(totals.count[at].sum()), int(totals.nan[at].sum())
    some = count > nan
    return Covered(
        rows,
        count,
        totals.sum[at].sum() if len(at) else 0,
        totals.low[at].min() if some else None,
        totals.high[at].max() if some else None,
        nan,
    )


def strata(
    tree: Tree, samples: Samples, frontier: Frontier, match: Matching, measure: str
) -> Strata:
    """What is known of a measure in the leaves that are cut."""
    leaves = tree.leaf[frontier.partial]
    sampled = samples.measures[measure]
    values, squares = sampled.values[match.places], sampled.squares[match.places]
    passed = match.passed & sampled.there[match.places]
    return Strata(
        tree.totals.rows[frontier.partial],
        match.sampled,
        match.matched,
        tree.totals.measures[measure].take(frontier.partial),
        sampled.valued[leaves],
        match.by_leaf(passed.astype(np.int64)),
        sampled.positive[leaves],
        sampled.negative[leaves],
        sampled.leaf_squares[leaves],
        match.by_leaf(np.where(passed, values, 0)),
        match.by_leaf(np.where(passed, squares, 0.0)),
        values[passed],
    )
