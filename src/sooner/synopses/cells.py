"""One number of an answer: its estimate, its interval, and the range that cannot be wrong.

Exact parts of covered nodes plus stratified estimates of the leaves that are cut (PASS §2.3.3), with
finite-population correction. An average is an estimated sum over an estimated count: the paper's weights
N_i/N_q are biased where leaves are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from sooner.answer import Status
from sooner.statistics.arrays import Floats
from sooner.synopses.strata import Covered, Strata
from sooner.synopses.totals import Ints, MeasureTotals

# Fewer sampled rows that pass say too little where nothing is known exactly.
_FEWEST = 5
_FEWEST_TO_REGRESS = 10
_MANY = 30
# Sums of floating numbers depend on their order: as much of all that was added may be rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Spread:
    """An estimate with its standard error and the degrees of freedom it rests on."""

    value: float
    error: float
    freedom: float

    def ends(self, confidence: float) -> tuple[float, float]:
        """The interval around the estimate."""
        wide = _student(self.freedom, 0.5 + confidence / 2) * self.error
        return self.value - wide, self.value + wide


@dataclass(frozen=True)
class Cell:
    """A value with its interval and hard range, in the units of the measure; ``None`` where unknown.

    One with a ``spread`` has its interval once a confidence is given.
    """

    value: Any
    low: Any
    high: Any
    hard_low: Any
    hard_high: Any
    status: Status
    spread: Spread | None = None

    def at(self, confidence: float) -> Cell:
        """The same with its interval at a confidence."""
        if self.spread is None:
            return self
        low, high = self.spread.ends(confidence)
        low, high = max(low, self.hard_low), min(high, self.hard_high)
        return Cell(self.value, low, high, self.hard_low, self.hard_high, self.status)


def _student(freedom: float, tail: float) -> float:
    """The quantile of Student's t. Beyond 30 degrees of freedom by its series, to five digits: SciPy's
    own search takes longer than the rest of an answer."""
    if freedom <= _MANY:
        return float(stdtrit(freedom, tail))
    z = float(ndtri(tail))
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom * freedom)
    return z + (z**3 + z) / (4 * freedom) + second


def count_cell(known: int, rows: Ints, sampled: Ints, matched: Ints, certain_not: Ints) -> Cell:
    """How many rows pass: ``known`` for certain, and of each leaf that is cut a share.

    ``certain_not`` are rows of a leaf that do not count, whether sampled or not (nulls, for COUNT(x)).
    """
    passed = int(matched.sum())
    fewest = known + passed
    most = known + int((rows - certain_not - (sampled - matched)).sum())
    if fewest == most:
        return Cell(fewest, fewest, fewest, fewest, fewest, Status.EXACT)
    variance = _variances(matched, matched.astype(np.float64), sampled)
    flat = _flat(matched, sampled)
    variance = np.where(flat, _smoothed(matched, sampled), variance)
    spread = _spread(known, rows, sampled, matched.astype(np.float64), variance)
    return _estimate(spread, fewest, most, known, passed, _thin(rows, sampled))


def sum_cell(known: Covered, leaves: Strata) -> Cell:
    """The sum of what passes; null if nothing does."""
    least, most = known.count + int(leaves.count.sum()), _most(known, leaves)
    if most == 0:
        return Cell(None, None, None, None, None, Status.EXACT)
    if least == most:
        total = _certain(known, leaves)
        return Cell(total, total, total, total, total, Status.EXACT)
    if leaves.is_odd or known.nan or _is_infinite(known.sum):
        return _odd(known.sum + _scaled(leaves).sum())
    certain = _certain(known, leaves)
    more = (leaves.totals.positive - leaves.sampled_positive).sum()
    less = (leaves.totals.negative - leaves.sampled_negative).sum()
    if more == less == 0 and least > 0:  # what may pass or not adds nothing
        return Cell(certain, certain, certain, certain, certain, Status.EXACT)
    slack = _slack(known, leaves)
    spread = _regressed(leaves, 0.0, float(known.sum))
    return _estimate(
        spread,
        certain + less - slack,
        certain + more + slack,
        known.count,
        int(leaves.count.sum()),
        _thin(leaves.rows, leaves.sampled),
    )


def average_cell(known: Covered, leaves: Strata) -> Cell:
    """The average of what passes; null if nothing does."""
    least, most = known.count + int(leaves.count.sum()), _most(known, leaves)
    if most == 0:
        return Cell(None, None, None, None, None, Status.EXACT)
    certain = _certain(known, leaves)
    if least == most:
        exact = _ratio(certain, least)
        return Cell(exact, exact, exact, exact, exact, Status.EXACT)
    sums = _scaled(leaves)
    counts = leaves.rows * leaves.count / np.maximum(1, leaves.sampled)
    total, count = float(known.sum + sums.sum()), float(known.count + counts.sum())
    value = total / count if count > 0 else None
    if leaves.is_odd or known.nan or _is_infinite(known.sum):
        return _odd(value)
    hard = _average_range(certain, least, leaves, _slack(known, leaves))
    if hard[0] == hard[1] and least > 0:  # all touched values are one
        return Cell(*(hard[0],) * 5, Status.EXACT)
    if value is None:
        return Cell(None, None, None, *hard, Status.UNKNOWN)
    spread = _regressed(leaves, value, float(known.sum) - value * known.count)
    # Deviations from the average add up to nothing, but for what the leaves' totals correct.
    ratio = Spread(value + spread.value / count, spread.error / count, spread.freedom)
    return _estimate(
        ratio,
        *hard,
        known.count,
        int(leaves.count.sum()),
        _thin(leaves.rows, leaves.sampled),
    )


def extreme_cell(known: Covered, leaves: Strata, largest: bool) -> Cell:
    """The smallest or largest value of what passes: its range is certain, not a matter of chance."""
    least, most = known.count + int(leaves.count.sum()), _most(known, leaves)
    if most == 0:
        return Cell(None, None, None, None, None, Status.EXACT)
    if leaves.totals.nan.any() or known.nan:
        # NaN is the largest number there is: it may be the answer, or all there is.
        sure = least == most and largest
        value = float("nan") if sure else None
        return Cell(value, None, None, None, None, Status.EXACT if sure else Status.UNKNOWN)
    choose = max if largest else min
    seen = [
        one
        for one in ((known.high, leaves.high) if largest else (known.low, leaves.low))
        if one is not None
    ]
    rest = leaves.totals.count - leaves.valued > 0
    outside = list((leaves.totals.high if largest else leaves.totals.low)[rest])
    furthest = choose([*seen, *outside])
    value = choose(seen) if seen else None
    if not seen:  # some value of some leaf, if any
        inside = list((leaves.totals.low if largest else leaves.totals.high)[rest])
        nearest_end = (min if largest else max)(inside)
        ends = (nearest_end, furthest) if largest else (furthest, nearest_end)
        return Cell(None, *ends, *ends, Status.UNKNOWN)
    ends = (value, furthest) if largest else (furthest, value)
    status = Status.EXACT if ends[0] == ends[1] else Status.ESTIMATE
    return Cell(value, *ends, *ends, status)


def _certain(known: Covered, leaves: Strata) -> Any:
    """The sum of what passes for certain: of covered nodes and of sampled rows."""
    sampled = leaves.sum.sum()
    return known.sum + (sampled if isinstance(sampled, float) else int(sampled))


def _most(known: Covered, leaves: Strata) -> int:
    """The most rows with a value that can pass: unsampled rows may all do."""
    return known.count + int((leaves.totals.count - leaves.valued + leaves.count).sum())


def _scaled(leaves: Strata) -> Floats:
    sums = leaves.sum.astype(np.float64)
    scaled: Floats = np.where(
        leaves.is_whole, sums, leaves.rows * sums / np.maximum(1, leaves.sampled)
    )
    return scaled


def _regressed(leaves: Strata, around: float, known: float) -> Spread:
    """The total of what passes, of deviations of values from ``around``, with the leaves' own totals in use.

    All of a leaf is known exactly. If the sampled rows of a leaf are too high on the whole, those that
    pass likely are, too: the regression of the one on the other corrects that (Cochran, Sampling
    Techniques, ch. 7). It takes up to a third off the error, most where most of a leaf passes.
    """
    kept, rows = np.maximum(1, leaves.sampled), leaves.rows
    others, square = kept - 1, around * around
    sums = leaves.sum.astype(np.float64)
    passing = sums - around * leaves.count
    squares = leaves.squares - 2 * around * sums + square * leaves.count
    everything = (leaves.sampled_positive + leaves.sampled_negative).astype(np.float64)
    together = leaves.squares - around * sums - passing * everything / kept
    alone = leaves.sampled_squares - np.square(everything) / kept
    use = (leaves.sampled >= _FEWEST_TO_REGRESS) & (alone > 0)
    slope = np.divide(together, alone, out=np.zeros_like(alone), where=use)
    slope = np.minimum(np.maximum(slope, 0.0), 1.0)
    corrected = slope * (leaves.totals.sum.astype(np.float64) - rows * everything / kept)
    explained = (2 * slope * together - np.square(slope) * alone) / np.maximum(1, others)
    variance = _variances(passing, np.maximum(squares, 0.0), leaves.sampled) - explained
    variance = np.maximum(variance, 0.0) * others / np.maximum(1, others - use)
    # The squares of all of a leaf are known, too. A sample that missed a long tail has too small ones, and
    # a variance that is too small by about as much.
    of_leaf = _mean_square(leaves.totals, around)
    of_sample = (
        leaves.sampled_squares - 2 * around * everything + square * leaves.valued
    ) / np.maximum(1, leaves.valued)
    missed = np.divide(of_leaf, of_sample, out=np.ones_like(of_leaf), where=of_sample > 0)
    variance = variance * np.maximum(missed, 1.0)
    # Where none (or all) of the sampled rows pass, that shows no spread: as if one more had, or not.
    flat = _flat(leaves.count, leaves.sampled)
    variance = variance + np.where(flat, _smoothed(leaves.count, leaves.sampled) * of_leaf, 0.0)
    plain = _spread(known, rows, leaves.sampled, passing, variance)
    return Spread(plain.value + float(corrected.sum()), plain.error, plain.freedom)


def _mean_square(totals: MeasureTotals, around: float) -> Floats:
    """The mean of squared deviations from ``around`` in each leaf."""
    squares = (
        totals.squares
        - 2 * around * totals.sum.astype(np.float64)
        + np.square(around) * totals.count
    )
    mean: Floats = np.maximum(squares, 0.0) / np.maximum(1, totals.count)
    return mean


def _spread(known: float, rows: Ints, sampled: Ints, sums: Floats, variance: Floats) -> Spread:
    """A total: what is known and N·mean of every leaf, with the variance of a sample without replacement."""
    kept = np.maximum(1, sampled)
    value = known + float((rows * sums / kept).sum())
    parts = np.square(rows, dtype=np.float64) * (1.0 - sampled / rows) * variance / kept
    whole = float(parts.sum())
    # Welch's and Satterthwaite's degrees of freedom for a sum of leaves.
    squares = float((np.square(parts) / np.maximum(1, sampled - 1)).sum())
    freedom = whole * whole / squares if squares > 0 else np.inf
    return Spread(value, float(np.sqrt(whole)), freedom)


def _variances(sums: Any, squares: Floats, sampled: Ints) -> Floats:
    """The variance of the rows of each leaf, those that do not pass being zero."""
    plain = squares - np.square(np.asarray(sums, np.float64)) / np.maximum(1, sampled)
    return np.maximum(plain, 0.0) / np.maximum(1, sampled - 1)


def _thin(rows: Ints, sampled: Ints) -> bool:
    return bool(((sampled < 2) & (sampled < rows)).any())


def _flat(matched: Ints, sampled: Ints) -> Any:
    return (matched == 0) | (matched == sampled)


def _smoothed(matched: Ints, sampled: Ints) -> Floats:
    """p(1 − p) with one row more that passes and one that does not."""
    share = (matched + 1.0) / (sampled + 2.0)
    return share * (1.0 - share)


def _estimate(
    spread: Spread, hard_low: Any, hard_high: Any, known: int, matched: int, thin: bool
) -> Cell:
    """``thin`` where a leaf has too few sampled rows to show a spread."""
    if not np.isfinite(spread.value):  # squares of huge numbers
        return Cell(None, None, None, hard_low, hard_high, Status.UNKNOWN)
    value = min(max(spread.value, hard_low), hard_high)
    if (known == 0 and matched < _FEWEST) or thin or not np.isfinite(spread.error):
        return Cell(value, None, None, hard_low, hard_high, Status.UNKNOWN)
    return Cell(value, None, None, hard_low, hard_high, Status.ESTIMATE, spread)


def _odd(value: Any) -> Cell:
    """Where NaN or infinity is or may be among the values nothing can be said of their sum."""
    return Cell(value, None, None, None, None, Status.UNKNOWN)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def _ratio(total: Any, count: int) -> Any:
    return total / count if isinstance(total, float) else Fraction(int(total), count)


def _slack(known: Covered, leaves: Strata) -> Any:
    if not isinstance(known.sum, float | np.floating) and leaves.totals.sum.dtype != np.float64:
        return 0
    size = (leaves.totals.positive - leaves.totals.negative).sum() + abs(float(known.sum))
    return _ROUNDING * float(size)


def _average_range(certain: Any, least: int, leaves: Strata, slack: Any) -> tuple[Any, Any]:
    """The least and the most an average can be: unsampled rows pass where that takes it furthest."""
    rest = leaves.totals.count - leaves.valued
    some = rest > 0
    rest = rest[some]
    high = _furthest(certain, least, rest, leaves.totals.high[some])
    low = -_furthest(-certain, least, rest, -leaves.totals.low[some])
    spare = slack / max(1, least)
    return (low, high) if low == high else (low - spare, high + spare)


def _furthest(certain: Any, least: int, rest: Ints, ends: Any) -> Any:
    order = np.argsort(-ends.astype(np.float64), kind="stable")
    rest, ends = rest[order], ends[order]
    counts = accumulate(rest.tolist(), initial=0)
    sums = accumulate((rest.astype(ends.dtype) * ends).tolist(), initial=0)
    return max(
        _ratio(certain + more, least + count)
        for more, count in zip(sums, counts, strict=True)
        if least + count
    )
