"""How many distinct values there will be, from those among the pairs seen so far.

A pair is a (stream key, value) that occurs: rows of one key repeat its values, so rows would make
values look more frequent than they are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma

from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.intervals import Interval, interval
from sooner.statistics.replicates import all_but_one

_STEPS = 100
_CLOSE = 1e-10


def count_distinct(distinct: Floats, pairs: Floats, total_pairs: Floats) -> Floats:
    """The estimate D_MM1 (DeepOLA eq. 3.4 and 3.5; Haas et al. 1995) of each group.

    The number Y with y = Y·(1 − h(N/Y)): each of Y values is in N/Y of the N pairs, and h is the
    chance that none of these is among the n seen. It lies between y and N; nothing seen is unknown.

    >>> count_distinct(np.array([90.0, 50.0]), np.array([100.0, 50.0]), np.array([1000.0, 500.0]))
    array([323.32362447, 500.        ])
    """
    y, n, total = (a.astype(np.float64) for a in np.broadcast_arrays(distinct, pairs, total_pairs))
    total = np.maximum(total, n)
    # Values no pair of which is repeated: as many as pairs, and no root inside the bracket.
    result = np.where(y >= n, total, y)
    result = np.where(n > 0, result, np.nan)
    open_ = (y > 0) & (y < n) & (n < total)
    if open_.any():
        result[open_] = _solve(y[open_], n[open_], total[open_])
    return result


def _solve(y: Floats, n: Floats, total: Floats) -> Floats:
    """Newton's steps, kept inside a bracket that halves where a step would leave it."""
    low, high = y.copy(), total.copy()
    guess = low
    for _ in range(_STEPS):
        expected, slope = _expected(guess, n, total)
        low = np.where(expected < y, guess, low)
        high = np.where(expected < y, high, guess)
        step = guess + (y - expected) / np.maximum(slope, 1e-300)
        inside = (step >= low) & (step <= high)
        following = np.where(inside, step, np.sqrt(low * high))
        moved = np.abs(following - guess)
        guess = following
        if np.all(moved <= _CLOSE * guess):
            break
    return guess


def _expected(values: Floats, n: Floats, total: Floats) -> tuple[Floats, Floats]:
    """How many of so many values would be seen, and the slope of that."""
    each = total / values
    room = total - n - each + 1.0
    missable = room > 0
    room = np.where(missable, room, 1.0)
    # Γ(N−z+1)/Γ(N+1) is B(N−z+1, z)/Γ(z): betaln keeps the digits that gammaln of large N loses.
    log_missed = np.where(
        missable, np.minimum(0.0, betaln(total - each + 1.0, each) - betaln(room, each)), -np.inf
    )
    missed = np.exp(log_missed)
    change = missed * each * (digamma(room) - digamma(total - each + 1.0))
    return -values * np.expm1(log_missed), -np.expm1(log_missed) + np.where(missable, change, 0.0)


def leave_one_out_distinct(
    distinct: Floats, alone: Floats, pairs: Floats, total_pairs: Floats
) -> Floats:
    """Estimates from all replicates (row 0) and from all but the r-th (row r + 1), for each group.

    ``alone`` are values seen in one replicate only and ``pairs`` the pairs seen, by group and
    replicate; ``total_pairs`` are the R + 1 estimates of all pairs that :func:`leave_one_out` gives.
    """
    seen = np.concatenate([distinct[None], distinct[None] - alone.T])
    return count_distinct(seen, all_but_one(pairs), total_pairs)


def frequency_variation(
    estimate: Floats, pairs: Floats, total_pairs: Floats, repeats: Floats
) -> Floats:
    """The squared coefficient of variation of how frequent values are: zero if all are alike.

    ``repeats`` is Σc·(c − 1) over the values seen, c the pairs a value was seen in. Its expectation is
    that of all pairs times n(n − 1)/N(N − 1), whatever the frequencies (Haas and Stokes 1998, eq. 16).

    >>> float(frequency_variation(*map(np.array, (100.0, 200.0, 1000.0, 358.56))).round(4))
    0.0
    """
    n, total = np.asarray(pairs, np.float64), np.asarray(total_pairs, np.float64)
    possible = n * (n - 1.0)
    share = np.full_like(possible, np.nan)
    np.divide(repeats, possible, out=share, where=possible > 0)
    squares = share * total * (total - 1.0) + total
    return np.asarray(estimate * squares / np.square(total) - 1.0)


def maybe_skewed(
    estimate: Floats,
    pairs: Floats,
    total_pairs: Floats,
    repeats: Floats,
    tolerated: float = 0.05,
) -> Booleans:
    """Groups whose values are not known to be alike in frequency; see :func:`frequency_variation`.

    Pairs that meet in a value are about Poisson, which gives the error of the variation. Alike means
    that it is below ``tolerated`` with two errors to spare: that takes some thousand meetings. Less
    would not do, because values that are rare and not yet seen also make the variation look small.
    """
    variation = frequency_variation(estimate, pairs, total_pairs, repeats)
    meetings = np.asarray(repeats, np.float64) / 2.0
    error = np.full_like(meetings, np.inf)
    np.divide(1.0 + variation, np.sqrt(meetings), out=error, where=meetings > 0)
    return np.asarray(~(variation + 2.0 * error <= tolerated))


def distinct_interval(
    distinct: Floats,
    theta: Floats,
    progress: float,
    pairs: Floats,
    skewed: Booleans,
    confidence: float,
) -> Interval:
    """From what is certain, the values seen, to an upper end that is unknown where it may be skewed.

    ``theta`` is what :func:`leave_one_out_distinct` gives, ``pairs`` the pairs by group and replicate.
    D_MM1 takes values to be alike in frequency and is too low where they are not, by more than any
    error that replicates show.
    """
    found = interval(theta, progress, pairs, confidence, positive=True, certain_low=distinct)
    unknown = skewed & (np.asarray(progress) < 1.0)
    return Interval(distinct.astype(np.float64), np.where(unknown, np.nan, found.high))
