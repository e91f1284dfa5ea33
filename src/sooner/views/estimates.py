"""What a stale view would say if it were fresh, from samples of it as it was and as it is (§5).

Both samples hold the values that hash low, each with probability m, so what a value brings is a draw of its
own: a total of x over all of them is Σx/m over the sampled ones, with the variance (1−m)/m²·Σx² (the paper's
SQL in §5.2.1 gives the width of a mean, not of a total). SVC+AQP takes the fresh sample alone. SVC+CORR adds
the difference of both samples to what the whole stale view says, value by value: where little has changed,
little can be wrong. An average or a variance is a smooth function of totals and is linearized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial, prod
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import stdtrit

from sooner.errors import InvalidArgument
from sooner.statistics.arrays import Booleans, Floats

Estimator: TypeAlias = Literal["auto", "corr", "aqp"]
Function: TypeAlias = Literal[
    "sum", "count", "avg", "variance", "deviation", "variance of all", "deviation of all"
]
Power: TypeAlias = tuple[int, int, int]

# With fewer values that bring anything, nothing is said of how far off the estimate is.
FEWEST = 12
# Of a group with fewer sampled rows to be expected, a changed row stands for no more rows than the group has.
# Of larger ones 19 in 20 samples have a row.
_FEWEST_EXPECTED = 3.0
# Where the sample has less than this part of all squares, what is missing may be anything.
HEAVIEST = 3.0
# Where fourth powers of changed values are so many times those of the stale view, it knows nothing of their
# tail. Of even values of which a fifth became lognormal, intervals of the deviation held in 81%.
_HEAVIER_CHANGES = 30.0
# Of terms that cancel out so far as this only rounding is left.
ROUNDING = 1e-12
_SQUARES: tuple[Power, ...] = ((2, 0, 0), (0, 2, 0), (0, 0, 2))


def is_spread(function: Function | None) -> bool:
    """Whether it needs squares: a variance or a deviation."""
    return function is not None and function not in ("sum", "count", "avg")


def powers_of(spread: bool) -> tuple[Power, ...]:
    """Which products of what a value brings to a count, a sum and squares are needed, summed over values.

    Products of two tell a variance, those of four how much it is worth; squares matter to a spread only.

    >>> powers_of(False)
    ((2, 0, 0), (1, 1, 0), (0, 2, 0), (4, 0, 0), (3, 1, 0), (2, 2, 0), (1, 3, 0), (0, 4, 0))
    """
    return tuple(
        (degree - total - squares, total, squares)
        for degree in (2, 4)
        for squares in range(degree + 1 if spread else 1)
        for total in range(degree - squares + 1)
    )


@dataclass(frozen=True)
class Drawn:
    """What sampled values bring to a count, a sum and a sum of squares, for each group of an answer.

    ``totals`` has a row for each of the three, and one for fourth powers where squares matter; ``powers``
    those of :func:`powers_of`; ``number`` are the values that bring anything.
    """

    totals: Floats
    powers: Mapping[Power, Floats]
    number: Floats

    @staticmethod
    def of(brought: Floats) -> Drawn:
        """Of what each value brings to one group: three rows, a column for each value."""
        powers = {
            each: prod(one**n for one, n in zip(brought, each, strict=True)).sum(keepdims=True)
            for each in powers_of(True)
        }
        totals = np.vstack([brought.sum(axis=1, keepdims=True), [[np.nan]]])
        return Drawn(totals, powers, (brought != 0).any(axis=0).sum(keepdims=True).astype(float))


@dataclass(frozen=True)
class Totals:
    """What each sampled value brings to a count, a sum and squares: a row each, a column for each."""

    of: Floats

    @staticmethod
    def of_values(values: Floats, passes: Floats) -> Totals:
        """Of one value for each key, and 1 where its row passes the condition, 0 where it does not."""
        seen = np.where(passes > 0, values, 0.0)
        return Totals(np.stack([passes, seen, seen * seen]).astype(np.float64))


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and by which estimator; the ends are ``None`` where none can be justified."""

    value: float | None
    low: float | None
    high: float | None
    by: str


@dataclass(frozen=True)
class Estimates:
    """The same for many groups; NaN where there is none. ``corrected`` are those by SVC+CORR."""

    value: Floats
    low: Floats
    high: Floats
    corrected: Booleans


def require_estimator(estimator: str) -> None:
    """Refuse what is none of the estimators."""
    if estimator not in ("auto", "corr", "aqp"):
        raise InvalidArgument(f"estimator must be auto, corr or aqp, not {estimator!r}.")


def estimates(
    function: Function,
    corr: tuple[Floats, Drawn],
    aqp: tuple[Floats, Drawn],
    ratio: float,
    confidence: float = 0.95,
    estimator: Estimator = "auto",
    missing: Floats | None = None,
    lighter: Floats | None = None,
    stands_for: Floats | None = None,
) -> Estimates:
    """The fresh values of an aggregate. For each estimator: the totals that are known, and what is drawn.

    ``missing`` says how much of all values the sample lacks, as :func:`heavier` tells, ``lighter`` how much
    of those that changed, as :func:`lighter_changes` and :func:`lighter_came` do, and ``stands_for`` how
    many rows of its group a changed one is at most, as :func:`rows_each` does. With ``auto`` the estimator
    with the smaller variance is taken, which is the condition of §5.2.2, measured.
    """
    require_estimator(estimator)
    corrected = _judged(function, *corr, ratio, stands_for)
    anew = _judged(function, *aqp, ratio)
    if ratio < 1:
        corrected = _without_gone(function, corrected, corr[1], aqp)
    varies_more = anew.variance < corrected.variance
    if missing is not None and ratio < 1:
        of_changes = missing
        if lighter is not None:
            missing = np.where(lighter * _HEAVIER_CHANGES < 1, np.inf, missing)
            of_changes = np.maximum(missing, lighter)
        corrected, anew = _heavier(corrected, of_changes), _heavier(anew, missing)
    if estimator == "auto":
        better = _or_infinite(corrected.variance) <= _or_infinite(anew.variance)
        # Where neither can say how far off it is, the one that varies more is further off all the same. And a
        # correction that leaves no rows, or a spread below nothing, is none.
        none = np.isnan(corrected.value) & ~np.isnan(corr[0][1]) & ~np.isnan(anew.value)
        better &= ~(np.isnan(corrected.variance) & (varies_more | none))
    else:
        better = np.full(len(corrected.value), estimator == "corr")
    value, variance, freedom = (
        np.where(better, one, other) for one, other in zip(corrected.all, anew.all, strict=True)
    )
    with np.errstate(invalid="ignore"):
        half = stdtrit(np.maximum(1.0, freedom - 1), 0.5 + confidence / 2) * np.sqrt(variance)
        low, high = (value + sign * np.where(variance == 0, 0.0, half) for sign in (-1, 1))
        if estimator == "auto":
            few = np.isnan(corrected.variance) & ~better
            return nearest(Estimates(value, low, high, better), corrected.value, few)
    return Estimates(value, low, high, better)


def nearest(alone: Estimates, corrected: Floats, few: Booleans) -> Estimates:
    """Estimates of a sample alone, but where there are ``few`` changes with the value that is corrected.

    It is the closest then, and only the sample alone says how far off it may be. Where the interval misses
    it, as one in twenty does, it is made so wide that it does not.
    """
    few = few & ~np.isnan(corrected) & ~np.isnan(alone.low)
    value = np.where(few, corrected, alone.value)
    low, high = (
        np.where(few, further(end, corrected), end)
        for further, end in ((np.minimum, alone.low), (np.maximum, alone.high))
    )
    return Estimates(value, low, high, alone.corrected)


def _without_gone(
    function: Function, corrected: _Judged, changes: Drawn, fresh: tuple[Floats, Drawn]
) -> _Judged:
    """Nothing where all that the sample had is gone: what a correction leaves there is chance alone."""
    left = fresh[0][0] + fresh[1].totals[0]
    gone = (left <= 0) & (changes.totals[0] < 0) & (changes.number >= FEWEST)
    value = np.where(gone, 0.0 if function == "count" else np.nan, corrected.value)
    return _Judged(value, corrected.variance, corrected.freedom)


def _heavier(one: _Judged, missing: Floats) -> _Judged:
    variance = np.where(missing > HEAVIEST, np.nan, one.variance * np.maximum(1.0, missing))
    return _Judged(one.value, variance, one.freedom)


def heavier(stale: Floats, certain: Floats, drawn: Drawn, ratio: float) -> Floats:
    """How much larger the squares of all values of the stale view are than those of the sample let expect.

    Of a few values that are far larger than all others a sample has none, most of the time, and nothing in
    the sample tells. The whole stale view does: where its squares are larger than the sample's, so is the
    variance, as far as values change in proportion to what they are. ``stale`` and ``certain`` are totals as
    those of ``drawn``; what counts is the last one, of a spread fourth powers.
    """
    stale, certain = stale[-1], certain[-1]
    seen = certain + drawn.totals[-1] / ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(stale > 0, stale / seen, 1.0)
    found = np.where(seen > 0, found, np.where(stale > 0, np.inf, 1.0))
    return np.where(np.isnan(stale), np.nan, found)


def lighter_changes(stale: Floats, number: Floats, fourth: Floats) -> Floats:
    """How much smaller values that changed in the sample are than those of the stale view, by fourth powers.

    A spread lives on its largest values, and of a few hundred changes a sample may have none of those that
    hit one. ``stale`` are the totals of the view but for what is in the sample for certain, ``number`` the
    sampled rows that came or went and ``fourth`` their fourth powers. Of a sum this would say too much:
    changes of small values alone move it by little.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(stale[0] > 0, number * stale[3] / stale[0], 0.0)
        return np.where(fourth > 0, expected / fourth, np.where(expected > 0, np.inf, 1.0))


def lighter_came(function: Function, stale: Floats, changes: Drawn) -> Floats:
    """How much smaller values that came or went in the sample are than those of the stale view, by squares.

    A sum rests on the largest of them, and an average on what is farthest from it: a few rows that came most
    likely have none of a long tail, and those that stayed tell of it. Values of rows that stay, and change,
    do not count. At most so much that there still is an interval: what came may well be of another kind.
    """
    count, total, squares = stale[:3]
    powers = changes.powers
    came = powers[2, 0, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = total / count if function == "avg" else np.zeros_like(total)
        seen = powers[0, 2, 0] - 2 * mean * powers[1, 1, 0] + mean**2 * came
        found = came * (squares / count - mean**2) / seen
    return np.where(np.isfinite(found), np.clip(found, 1.0, HEAVIEST), 1.0)


def rows_each(stale: Floats, sampled: Floats, ratio: float) -> Floats:
    """How many rows of a small stale group each of its sampled rows is at most: of a group of one row, one.

    Whether it is small goes by all of its rows, never by how many of them the sample happened to have: a
    scale that is cut where there are many, and not raised where there are few, is too small by a tenth.

    >>> rows_each(np.array([1.0, 20.0, 30.0]), np.array([1.0, 4.0, 5.0]), 0.1)
    array([ 1.,  5., inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.maximum(1.0, stale / sampled)
    return np.where((stale * ratio < _FEWEST_EXPECTED) & (sampled > 0), each, np.inf)


def estimate(
    function: Function,
    stale: Floats,
    dirty: Totals,
    clean: Totals,
    ratio: float,
    confidence: float = 0.95,
    estimator: Estimator = "auto",
) -> Estimate:
    """The fresh value of one aggregate. ``stale`` are the totals of the whole stale view.

    The samples are aligned: a column of each belongs to the same key.

    >>> ones = np.array([1.0, 1.0, 1.0, 1.0])
    >>> before, after = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0])
    >>> dirty, clean = (Totals.of_values(ones, passes) for passes in (before, after))
    >>> estimate("count", np.array([45.0, 0.0, 0.0]), dirty, clean, 0.05, estimator="corr").value
    85.0
    """
    known = np.array([[*stale, np.nan]]).T
    corr, aqp = Drawn.of(clean.of - dirty.of), Drawn.of(clean.of)
    nothing = np.zeros((4, 1))
    found = estimates(function, (known, corr), (nothing, aqp), ratio, confidence, estimator)
    value, low, high = (
        None if np.isnan(one[0]) else float(one[0]) for one in (found.value, found.low, found.high)
    )
    return Estimate(value, low, high, "corr" if found.corrected[0] else "aqp")


@dataclass(frozen=True)
class _Judged:
    value: Floats
    variance: Floats
    freedom: Floats

    @property
    def all(self) -> tuple[Floats, Floats, Floats]:
        return self.value, self.variance, self.freedom


def _judged(
    function: Function,
    known: Floats,
    drawn: Drawn,
    ratio: float,
    stands_for: Floats | None = None,
) -> _Judged:
    """A function of totals that are partly known and partly drawn, and its variance."""
    few = drawn.number < FEWEST
    times = np.full(len(few), 1 / ratio)
    if stands_for is not None:
        # No interval is given for so few draws; a row must not be taken for ten of a group of one.
        times = np.where(few, np.minimum(times, stands_for), times)
    totals = known + drawn.totals * times
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value, slopes = _FUNCTIONS[function](totals, drawn.powers, (1 - ratio) / ratio**2)
        second, fourth = (_powered(drawn.powers, slopes, degree) for degree in (2, 4))
        # That all sampled rows agree with the average does not say that the others do.
        alone = (slope**2 * drawn.powers[n] for slope, n in zip(slopes, _SQUARES, strict=False))
        alike = second <= ROUNDING * sum(alone)
        # As many draws as would be of equal weight: a few that dominate count as few.
        freedom = np.where(second > 0, second * second / fourth, drawn.number)
        variance = (1 - ratio) / ratio**2 * second
        if is_spread(function):
            # Where all values are about as far from their mean, as of a flag that half the rows have, a
            # spread has no slope, and is off by the square of how far the mean is.
            off = slopes[2] * _chance(totals, drawn.powers, (1 - ratio) / ratio**2)
            variance = variance + 2 * off**2
    variance = np.where(few | alike, np.nan, variance) if ratio < 1 else np.zeros_like(value)
    return _Judged(value, np.where(np.isnan(value), np.nan, variance), freedom)


def _powered(powers: Mapping[Power, Floats], slopes: Sequence[Floats], degree: int) -> Floats:
    """Σ(a·count + b·sum + …)ⁿ over draws, of the sums of products of n of them."""
    total = np.zeros_like(slopes[0])
    for exponents, summed in powers.items():
        # Along squares there is no slope where they do not matter.
        if sum(exponents) == degree == sum(exponents[: len(slopes)]):
            times = factorial(degree) // prod(factorial(n) for n in exponents)
            pairs = zip(slopes, exponents, strict=False)
            total = total + times * prod(slope**n for slope, n in pairs) * summed
    return np.maximum(0.0, total)


def _or_infinite(variance: Floats) -> Floats:
    return np.where(np.isnan(variance), np.inf, variance)


# The value, and its slope along the count, the sum and the squares.
_Result: TypeAlias = tuple[Floats, tuple[Floats, ...]]
_Powers: TypeAlias = Mapping[Power, Floats]


def _count(totals: Floats, _powers: _Powers, _times: float) -> _Result:
    return totals[0], (np.ones_like(totals[0]), np.zeros_like(totals[0]))


def _sum(totals: Floats, _powers: _Powers, _times: float) -> _Result:
    some = np.where(totals[0] > 0, totals[1], np.nan)  # of no rows there is no sum
    return some, (np.zeros_like(some), np.ones_like(some))


def _average(totals: Floats, _powers: _Powers, _times: float) -> _Result:
    count, total = totals[:2]
    mean = np.where(count > 0, total / count, np.nan)
    return mean, (-mean / count, 1 / count)


def _chance(totals: Floats, powers: _Powers, times: float) -> Floats:
    """The variance of the mean, for each of the rows."""
    count, total = totals[:2]
    mean = total / count
    chance = powers[2, 0, 0] * mean**2 - 2 * powers[1, 1, 0] * mean + powers[0, 2, 0]
    return np.asarray(times * np.maximum(0.0, chance) / count)


def _variance(totals: Floats, powers: _Powers, times: float, *, of_all: bool = False) -> _Result:
    """Of values less one near their mean: of large ones with a small variance nothing else is left."""
    count, total, squares = totals[:3]
    fewer = count - np.where(of_all, 0.0, 1.0)
    fewer = np.where(fewer > 0, fewer, np.nan)
    mean = total / count
    # The square of a mean that is off by chance is too large by the variance of that chance.
    spread = (squares - count * mean**2 + _chance(totals, powers, times)) / fewer
    slopes = ((mean**2 - spread) / fewer, -2 * mean / fewer, 1 / fewer)
    return np.where(spread < 0, np.nan, spread), slopes


def _deviation(totals: Floats, powers: _Powers, times: float, *, of_all: bool = False) -> _Result:
    variance, slopes = _variance(totals, powers, times, of_all=of_all)
    root = np.sqrt(variance)
    steep = np.where(root > 0, 2 * root, np.nan)
    return root, tuple(slope / steep for slope in slopes)


_FUNCTIONS: Mapping[Function, Callable[[Floats, _Powers, float], _Result]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "variance": _variance,
    "deviation": _deviation,
    "variance of all": partial(_variance, of_all=True),
    "deviation of all": partial(_deviation, of_all=True),
}
