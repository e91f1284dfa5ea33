"""Corrections that groups share: closer whatever the groups did, never beyond a group's own interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from sooner.statistics.intervals import Interval
from sooner.views.pooled import deviations, pooled
from sooner.views.quantile_estimates import quantile_estimate

RATIO = 0.1
SEEDS = 60
ANYWHERE = Interval(np.full(25, -np.inf), np.full(25, np.inf))


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("own", "at_most"),
    [
        pytest.param(lambda rng: np.zeros(25), 0.15, id="none moved"),
        pytest.param(lambda rng: np.full(25, 0.3), 0.15, id="all alike"),
        pytest.param(lambda rng: rng.normal(0.1, 0.02, 25), 0.75, id="each by as much as chance"),
        pytest.param(lambda rng: rng.normal(0, 0.5, 25), 1.01, id="each its own way"),
        pytest.param(lambda rng: 0.5 * (np.arange(25) == 3), 1.01, id="one alone"),
        pytest.param(lambda rng: 0.1 * (np.arange(25) % 2), 1.01, id="every other"),
    ],
)
def test_squared_errors_become_smaller_whatever_the_groups_did(
    own: Callable[[np.random.Generator], np.ndarray], at_most: float
) -> None:
    stale = np.geomspace(1, 1e6, 25)
    together, alone = 0.0, 0.0
    for seed in range(4 * SEEDS):
        rng = np.random.default_rng(seed)
        truth = stale * (1 + own(rng))
        chance = stale * rng.uniform(0.01, 0.04, 25)
        corrected = truth + chance * rng.standard_normal(25)
        found = pooled(stale, corrected, chance, ANYWHERE)
        together += float((((found - truth) / chance) ** 2).sum())
        alone += float((((corrected - truth) / chance) ** 2).sum())
    assert together < at_most * alone


@dataclass(frozen=True)
class Groups:
    """Of each seed and group: the correction by itself, with the others, and the interval."""

    stale: np.ndarray
    truth: np.ndarray
    alone: np.ndarray
    together: np.ndarray
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray


@cache
def simulated(rise: float) -> Groups:
    """Skewed values in groups of 300 to 3,000 rows; a tenth changed, and these rise."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(300, 3_000, 12)
    before = [rng.lognormal(rng.uniform(0, 5), 1.2, size) for size in sizes]
    after = [
        np.where(rng.random(len(one)) < 0.1, one * rise * rng.lognormal(0, 0.5, len(one)), one)
        for one in before
    ]
    stale, truth = (np.array([np.median(one) for one in side]) for side in (before, after))
    rows = []
    for seed in range(SEEDS):
        drawn = np.random.default_rng([seed, 7])
        pairs = []
        for old, new in zip(before, after, strict=True):
            some = drawn.random(len(old)) < RATIO
            pairs.append((old[some], new[some]))
        found = [
            quantile_estimate(0.5, base, *pair, RATIO, estimator="corr", seed=seed)
            for base, pair in zip(stale, pairs, strict=True)
        ]
        value, low, high = (
            np.array([getattr(one, end) for one in found]) for end in ("value", "low", "high")
        )
        chance = deviations(0.5, pairs, RATIO)
        rows.append(
            (value, pooled(stale, value, chance, Interval(low, high)), low, high, chance / truth)
        )
    return Groups(stale, truth, *(np.array(part) for part in zip(*rows, strict=True)))


def off(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(found / truth - 1).mean())


@pytest.mark.simulation
@pytest.mark.parametrize("rise", [1.0, 1.5, 3.0])
def test_medians_of_groups_are_closer_and_stay_in_their_intervals(rise: float) -> None:
    groups = simulated(rise)
    assert off(groups.together, groups.truth) < 0.7 * off(groups.alone, groups.truth)
    assert (groups.low <= groups.together).all() and (groups.together <= groups.high).all()
    held = (groups.low <= groups.truth) & (groups.truth <= groups.high)
    assert held.mean() >= 0.93


@pytest.mark.simulation
def test_where_changes_move_medians_they_are_closer_than_stale_ones() -> None:
    for rise in (1.5, 3.0):
        groups = simulated(rise)
        assert off(groups.together, groups.truth) < off(groups.stale, groups.truth)
        # Over all groups there is no lean: they share what the samples say, not what the stale view says.
        moved = (groups.together / groups.stale).mean() - 1
        assert moved == pytest.approx((groups.truth / groups.stale).mean() - 1, rel=0.1, abs=0.002)


@pytest.mark.simulation
@pytest.mark.parametrize("rise", [1.0, 1.5, 3.0])
def test_a_deviation_is_what_corrections_vary_by(rise: float) -> None:
    groups = simulated(rise)
    varies = float(np.sqrt(((groups.alone / groups.truth).std(axis=0) ** 2).mean()))
    said = float(np.sqrt((groups.chance**2).mean()))
    assert 0.8 * varies < said < 1.6 * varies


def test_fewer_than_four_groups_go_alone() -> None:
    stale, ends = np.full(3, 100.0), Interval(np.full(3, 0.0), np.full(3, 200.0))
    corrected = np.array([101.0, 102.0, 103.0])
    assert pooled(stale, corrected, np.full(3, 10.0), ends).tolist() == [101.0, 102.0, 103.0]


def test_a_group_of_which_too_little_is_known_stays_and_moves_nobody() -> None:
    stale = np.array([100.0, 100.0, 100.0, 100.0, 100.0, 100.0, np.inf])
    corrected = np.array([108.0, 104.0, 116.0, 112.0, 900.0, 800.0, np.inf])
    chance = np.array([10.0, 10.0, 10.0, 10.0, np.nan, 0.0, 10.0])
    ends = Interval(np.full(7, 0.0), np.full(7, np.inf))
    with np.errstate(invalid="ignore"):
        found = pooled(stale, corrected, chance, ends)
    assert found.tolist() == pytest.approx([110.0] * 4 + [900.0, 800.0, np.inf])


def test_a_value_stays_within_its_own_ends() -> None:
    stale = np.full(5, 100.0)
    corrected = np.array([100.0, 100.0, 100.0, 100.0, 160.0])
    chance = np.array([5.0, 5.0, 5.0, 5.0, 60.0])
    ends = Interval(np.array([90.0] * 4 + [140.0]), np.array([110.0] * 4 + [180.0]))
    found = pooled(stale, corrected, chance, ends)
    assert found[-1] == 140.0 and (found[:-1] < 102).all()


def test_no_group_is_moved_much_further_than_chance_would() -> None:
    corrected = np.array([100.0] * 24 + [160.0])
    found = pooled(np.full(25, 100.0), corrected, np.full(25, 20.0), ANYWHERE)
    assert found[-1] == 120.0


def test_values_of_either_sign_move_by_amounts() -> None:
    stale = np.array([-10.0, -1.0, 0.0, 1.0, 10.0])
    ends = Interval(stale - 100, stale + 100)
    found = pooled(stale, stale + 3, np.full(5, 5.0), ends)
    assert found.tolist() == pytest.approx((stale + 3).tolist())


def test_no_deviation_where_values_come_in_steps_or_there_are_none() -> None:
    steps, none, smooth = np.repeat(np.arange(5.0), 200), np.full(1000, np.nan), np.arange(1000.0)
    found = deviations(0.5, [(one, one) for one in (steps, none, smooth)], 0.5)
    assert np.isnan(found[:2]).all()
    # Nothing passed the median: one up and one down may have been missed, in a third of the keys.
    assert found[2] == pytest.approx((0.5 * 2 / 3) ** 0.5)


def test_a_group_that_moved_far_is_not_taken_for_a_vague_one() -> None:
    before = np.linspace(100, 200, 400)
    found = deviations(0.5, [(before, before), (before, before + 40)], RATIO)
    assert found[0] == pytest.approx(found[1])
