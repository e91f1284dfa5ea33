"""What a percentile of a stale view would be if the view were fresh, with the bootstrap's interval (§5.2.5).

A percentile is no function of totals. The sampled keys are drawn again and again, each with its row before
and its row after; what the estimators make of these draws says how far off they can be.

- Keys far below and far above the percentile need only be counted, and a sum of Poisson weights is Poisson:
  with the keys near it drawn one by one, of n keys some √n, the draws are those of all keys.
- A sample of a share m varies √(1−m) times as much as draws from it. Weights are moved towards 1 by that, not
  values towards the estimate: from one whole number 0.95 of the way to the next is never the answer.
- The keys that changed may be among those not sampled. Where no sampled key shows a change of some kind, a
  sample can still have been meant to hold 3.7 of them (e^−3.7 is 2.5%). For SVC+CORR each draw has changes
  up and changes down that nobody saw, Poisson(1) of each, which reaches as far.
- SVC+CORR takes what a change moves at the sample's percentile for what it moves at the view's. Where values
  lie apart the one may be on this side of a step, the other beyond it. The ends are moved out by the step,
  though never past those of both estimators together, as SVC+AQP's hold wherever the values lie.

The ends are percentiles of the draws, as in the paper. Reflected at the estimate they hold less often: what
is alike on both sides of a percentile are ranks, not values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite, sqrt

import numpy as np
from scipy.special import pdtr

from sooner.errors import InvalidArgument
from sooner.statistics.arrays import Floats, Integers
from sooner.statistics.bootstrap import percentile_interval
from sooner.statistics.intervals import Interval
from sooner.views.estimates import Estimate, Estimator, require_estimator

_REPLICATES = 400
_MOST_REPLICATES = 4_000
# Weights drawn at a time: so many stay in a cache.
_CELLS = 1 << 16
# From so many columns on, adding row to row takes less time than NumPy's sums along each column.
_WIDE = 64
# With fewer rows, as many as would be of equal weight, nothing is said of how far off the estimate is.
_FEWEST = 12
# Where a row is, seen from the percentile.
_NONE, _BELOW, _NEAR, _ABOVE = range(4)
# Weights less 1 by 16 random bits, Poisson(1): drawing them one by one would be most of the time.
_CHANCES = (np.arange(1 << 16) + 0.5) / (1 << 16)
_MORE = (np.searchsorted(pdtr(np.arange(12), 1.0), _CHANCES) - 1).astype(np.int8)


def quantile_estimate(
    share: float,
    stale: float | None,
    dirty: Floats,
    clean: Floats,
    ratio: float,
    confidence: float = 0.95,
    estimator: Estimator = "auto",
    seed: int = 0,
    *,
    put_right: float | None = None,
) -> Estimate:
    """The fresh value of a percentile, 0.5 for the median, between neighbours as Spark's ``percentile``.

    ``stale`` is the percentile of the whole stale view. ``dirty`` and ``clean`` are what the sampled keys
    had before and have after, not a number where a key has no row that counts. SVC+AQP is the percentile of
    ``clean``; SVC+CORR adds to ``stale`` what it differs from that of ``dirty`` (§5.1). With ``auto`` the
    one with the smaller variance among the draws is taken.

    Of a handful of rows the percentile moves by chance further than that of the whole does. With so few,
    SVC+CORR says ``put_right``: that of the stale view once the sampled rows in it have been put right.

    No ends: a side with fewer rows than 12 of equal weight, which at the median are 12 and at 0.9 are 98.
    So it is with the smallest and the largest value always, where the bootstrap fails (§12.1.1).

    >>> before = np.arange(1000.0)
    >>> after = np.where(before < 800, before, before + 50)
    >>> quantile_estimate(0.9, 903.0, before, after, 0.1, estimator="corr").value
    953.0
    >>> quantile_estimate(0.9, 903.0, before, after, 0.1, estimator="aqp").value
    949.1
    """
    require_estimator(estimator)
    if not 0.0 <= share <= 1.0:
        raise InvalidArgument(f"share must be between 0 and 1, not {share}.")
    before, after = _Side.of(dirty, share), _Side.of(clean, share)
    if ratio >= 1.0:
        whole = _known(after.quantile)
        return Estimate(whole, whole, whole, "aqp" if estimator == "auto" else estimator)
    both = estimator != "aqp"
    return _judged(before, after, stale, ratio, confidence, seed, put_right, both).by(estimator)


def are_few(share: float, dirty: Floats, clean: Floats) -> bool:
    """Whether sampled rows are too few to tell by how much a percentile moved."""
    return min(_Side.of(dirty, share).rows, _Side.of(clean, share).rows) < _FEWEST


@dataclass(frozen=True, eq=False)
class _Judged:
    """SVC+CORR and SVC+AQP, in this order: what they say, their ends, and a row for each replicate."""

    values: Floats
    ends: Interval
    draws: Floats

    def by(self, estimator: Estimator) -> Estimate:
        names = ("corr", "aqp")
        chosen = self._varies_less if estimator == "auto" else names.index(estimator)
        value, low, high = (
            _known(each[chosen]) for each in (self.values, self.ends.low, self.ends.high)
        )
        return Estimate(value, low, high, names[chosen])

    @property
    def _varies_less(self) -> int:
        """One without an interval only if the other has none, or no value, either."""
        if not self.ends.known.any():
            return int(np.isnan(self.values[0]))
        return int(np.argmin(np.where(self.ends.known, np.var(self.draws, axis=0), np.inf)))


def _judged(
    before: _Side,
    after: _Side,
    stale: float | None,
    ratio: float,
    confidence: float,
    seed: int,
    put_right: float | None,
    both: bool = True,
) -> _Judged:
    """With ``both`` false, SVC+CORR has no ends."""
    base = np.nan if stale is None else stale
    rows = np.array([min(before.rows, after.rows), after.rows])
    corrected = base + (after.quantile - before.quantile)
    if rows[0] < _FEWEST:
        corrected = base if put_right is None else put_right
    values = np.array([corrected, after.quantile])
    if rows[1] < _FEWEST:  # no ends, whatever is drawn
        unknown = np.full(2, np.nan)
        return _Judged(values, Interval(unknown, unknown), np.empty((0, 2)))
    replicates = min(_MOST_REPLICATES, max(_REPLICATES, ceil(10 / max(1e-9, 1 - confidence))))
    both = both and rows[0] >= _FEWEST
    draws = _draws(before, after, ratio, replicates, np.random.default_rng(seed), both)
    theta = np.vstack([values, np.array([base, 0.0]) + draws])
    with np.errstate(invalid="ignore"):
        ends = percentile_interval(theta, 0.0, confidence, rows, _FEWEST)
    ends = _moved_out(ends, max(before.step(ratio), after.step(ratio)))
    return _Judged(values, ends, draws)


@dataclass(frozen=True, eq=False)
class _Side:
    """One of both samples: its rows near the percentile in order, and where the row of each key is."""

    share: float
    count: int
    first: int
    near: Floats
    keys: Integers
    places: Integers

    @staticmethod
    def of(values: Floats, share: float) -> _Side:
        order = np.flatnonzero(~np.isnan(values))
        order = order[np.argsort(values[order])]
        first, end = around(len(order), share, 5.0, 8)
        keys = order[first:end]
        places = np.full(len(values), _NONE)
        places[order[:first]], places[keys], places[order[end:]] = _BELOW, _NEAR, _ABOVE
        return _Side(share, len(order), first, values[keys], keys, places)

    @property
    def quantile(self) -> float:
        if not self.count:
            return np.nan
        position = self.share * (self.count - 1) - self.first
        low, high = self.near[int(position)], self.near[ceil(position)]
        return float(_between(low, high, position - int(position)))

    @property
    def rows(self) -> float:
        """As many rows as would be of equal weight: few on one side of the percentile count as few."""
        beyond = 1.0 - self.share
        return self.count * self.share * beyond / (self.share**3 + beyond**3)

    def step(self, ratio: float) -> float:
        """How far values near the percentile lie apart in the view itself.

        Where most rows equal their neighbours, values come in steps: the widest of these. A gap that less
        than one in a hundred smooth samples has (Fisher 1929) is one of the view, and rows are few around
        it, too: the widest √k of k ranks. Any other gap is there because rows were not sampled; with them
        it would be about ``ratio`` as wide.
        """
        first, end = around(self.count, self.share, 3.0, 2)
        values = self.near[first - self.first : end - self.first]
        if len(values) < 2 or values[0] == values[-1]:
            return 0.0
        if not (isfinite(values[0]) and isfinite(values[-1])):
            return np.inf
        gaps = values[1:] - values[:-1]
        widest, number = float(gaps.max()), len(gaps)
        if 2 * np.count_nonzero(gaps) < number:
            return widest
        if number * (1.0 - widest / (values[-1] - values[0])) ** (number - 1) < 0.01:
            ranks = ceil(sqrt(number))
            return float((values[ranks:] - values[:-ranks]).max())
        return ratio * widest


def around(count: int, share: float, deviations: float, more: int) -> tuple[int, int]:
    """The ranks that a replicate's percentile may have, from and to."""
    middle = share * max(0, count - 1)
    half = deviations * sqrt(count * share * (1.0 - share)) + more
    return max(0, int(middle - half)), min(count, int(middle + half) + 2)


def _draws(
    before: _Side,
    after: _Side,
    ratio: float,
    replicates: int,
    rng: np.random.Generator,
    both: bool,
) -> Floats:
    """What SVC+CORR, if ``both`` are wanted, adds to the stale percentile, and SVC+AQP.

    A row for each replicate.
    """
    near = (before.places == _NEAR) | (after.places == _NEAR)
    alone = np.flatnonzero(near)
    # The other keys, by where they were and where they are.
    numbers = np.bincount((4 * before.places + after.places)[~near])
    kinds = np.flatnonzero(numbers)
    sizes = numbers[kinds][:, None]
    was = np.append(before.places[alone], kinds // 4)
    is_ = np.append(after.places[alone], kinds % 4)
    of_before, of_after = (np.searchsorted(alone, side.keys) for side in (before, after))
    expected: Floats = np.vstack([np.ones((len(alone), 1)), sizes])
    spread = sqrt(1.0 - ratio)
    at_once = max(1, _CELLS // max(1, len(expected)))
    found = []
    for start in range(0, replicates, at_once):
        number = min(at_once, replicates - start)
        bits = rng.integers(0, len(_MORE), (len(alone), number), dtype=np.uint16)
        weights = np.empty((len(expected), number))
        # Nothing is clipped, as all bits have a weight, and nothing need be checked.
        weights[: len(alone)] = _MORE.take(bits, mode="clip")
        weights[len(alone) :] = rng.poisson(sizes, (len(sizes), number)) - sizes
        weights *= spread
        weights += expected
        up, down = rng.poisson(1.0, (2, number))
        new = _Weighed.of(after, weights, is_, of_after)
        moved = np.full(number, np.nan)
        if both:
            old = _Weighed.of(before, weights, was, of_before)
            with np.errstate(invalid="ignore"):
                moved = new.quantiles(spread * (up - down)) - old.quantiles()
        found.append(np.stack([moved, new.quantiles()], axis=1))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _Weighed:
    """The rows near the percentile in every replicate: the rank after each, and that of the percentile."""

    values: Floats
    ranks: Floats
    positions: Floats

    @staticmethod
    def of(side: _Side, weights: Floats, places: Integers, lines: Integers) -> _Weighed:
        """``places`` says where each line of ``weights`` is, ``lines`` which is that of each near row."""
        totals, below = (places != _NONE) @ weights, (places == _BELOW) @ weights
        positions = side.share * np.maximum(0.0, totals - 1.0) - below
        return _Weighed(side.near, _summed(weights[lines]), positions)

    def quantiles(self, shift: Floats | float = 0.0) -> Floats:
        """The percentile of each replicate, so many ranks further up."""
        if not len(self.values):
            return np.full(len(self.positions), np.nan)
        positions = self.positions + shift
        below = np.floor(positions)
        return _between(self._at(below), self._at(below + 1.0), positions - below)

    def _at(self, rank: Floats) -> Floats:
        place = (self.ranks <= rank).sum(axis=0, dtype=np.min_scalar_type(len(self.ranks)))
        return np.asarray(self.values[np.minimum(place, len(self.values) - 1)])


def _summed(rows: Floats) -> Floats:
    """The sum of all rows up to each, in place."""
    if rows.shape[1] < _WIDE:
        return np.cumsum(rows, axis=0, out=rows)
    for before, row in pairwise(rows):
        np.add(before, row, out=row)
    return rows


def _between(low: Floats, high: Floats, part: Floats | float) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(low == high, low, low + (high - low) * part))


def _moved_out(ends: Interval, step: float) -> Interval:
    """SVC+CORR's ends, the first, moved out by a step, at most to where SVC+AQP's are."""
    steps = np.array([step, 0.0])
    low = np.maximum(ends.low - steps, np.fmin(*ends.low))
    high = np.minimum(ends.high + steps, np.fmax(*ends.high))
    return Interval(low, high)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
