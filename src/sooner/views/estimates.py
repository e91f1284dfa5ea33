"""What a stale view would say if it were fresh, from samples of it as it was and as it is (§5).

Both samples hold the keys that hash low, each with probability m, so what a key brings is a draw of its own:
a total of x over all keys is Σx/m over the sampled ones, with the variance (1−m)/m²·Σx² (the paper's SQL in
§5.2.1 gives the width of a mean, not of a total). SVC+AQP takes the fresh sample alone. SVC+CORR adds the
difference of both samples to what the whole stale view says, key by key: where little has changed, little
can be wrong. An average is a smooth function of totals and is linearized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import stdtrit

from sooner.errors import InvalidArgument
from sooner.statistics.arrays import Floats

Estimator: TypeAlias = Literal["auto", "corr", "aqp"]
Function: TypeAlias = Literal["sum", "count", "avg"]

# With fewer keys that bring anything, nothing is said of how far off the estimate is.
_FEWEST = 12


@dataclass(frozen=True)
class Totals:
    """What each sampled key brings to a count and a sum: two rows, a column for each key."""

    of: Floats

    @staticmethod
    def of_values(values: Floats, passes: Floats) -> Totals:
        """Of one value for each key, and 1 where its row passes the condition, 0 where it does not."""
        seen = np.where(passes > 0, values, 0.0)
        return Totals(np.stack([passes, seen]).astype(np.float64))


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and by which estimator; the ends are ``None`` where none can be justified."""

    value: float | None
    low: float | None
    high: float | None
    by: str


def estimate(
    function: Function,
    stale: Floats,
    dirty: Totals,
    clean: Totals,
    ratio: float,
    confidence: float = 0.95,
    estimator: Estimator = "auto",
) -> Estimate:
    """The fresh value of an aggregate. ``stale`` are the totals of the whole stale view.

    The samples are aligned: a column of each belongs to the same key. With ``auto`` the estimator with the
    smaller variance is taken, which is the condition of §5.2.2, measured.

    >>> ones = np.array([1.0, 1.0, 1.0, 1.0])
    >>> before, after = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0])
    >>> dirty, clean = (Totals.of_values(ones, passes) for passes in (before, after))
    >>> estimate("count", np.array([45.0, 0.0]), dirty, clean, 0.05, estimator="corr").value
    85.0
    """
    if estimator not in ("auto", "corr", "aqp"):
        raise InvalidArgument(f"estimator must be auto, corr or aqp, not {estimator!r}.")
    found = {
        "corr": _judged(function, stale, clean.of - dirty.of, ratio),
        "aqp": _judged(function, np.zeros(2), clean.of, ratio),
    }
    if estimator == "auto":
        known = {by: one for by, one in found.items() if one.variance is not None}
        chosen = min(known, key=lambda by: known[by].variance or 0.0) if known else "corr"
    else:
        chosen = estimator
    return _between(found[chosen], chosen, confidence)


@dataclass(frozen=True)
class _Judged:
    value: float | None
    variance: float | None
    freedom: float


def _judged(function: Function, known: Floats, drawn: Floats, ratio: float) -> _Judged:
    """A function of totals that are partly known and partly drawn, and its variance."""
    totals = known + drawn.sum(axis=1) / ratio
    value, slopes = _FUNCTIONS[function](totals)
    if value is None:
        return _Judged(None, None, 0.0)
    moved = slopes @ drawn
    squares = moved * moved
    number = int((drawn != 0).any(axis=0).sum())
    if ratio < 1 and number < _FEWEST:
        return _Judged(value, None, 0.0)
    total = float(squares.sum())
    # As many draws as would be of equal weight: a few that dominate count as few.
    freedom = total * total / float((squares * squares).sum()) if total else float(number)
    return _Judged(value, (1 - ratio) / ratio**2 * total, freedom)


def _between(one: _Judged, by: str, confidence: float) -> Estimate:
    if one.value is None or one.variance is None:
        return Estimate(one.value, None, None, by)
    if one.variance == 0.0:
        return Estimate(one.value, one.value, one.value, by)
    half = float(stdtrit(max(1.0, one.freedom - 1), 0.5 + confidence / 2)) * one.variance**0.5
    return Estimate(one.value, one.value - half, one.value + half, by)


_Result: TypeAlias = tuple[float | None, Floats]


def _count(totals: Floats) -> _Result:
    return float(totals[0]), np.array([1.0, 0.0])


def _sum(totals: Floats) -> _Result:
    return float(totals[1]), np.array([0.0, 1.0])


def _average(totals: Floats) -> _Result:
    count, total = totals
    if count <= 0:
        return None, np.zeros(2)
    mean = total / count
    return float(mean), np.array([-mean / count, 1 / count])


_FUNCTIONS: Mapping[Function, Callable[[Floats], _Result]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
}
