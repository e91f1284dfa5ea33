"""Groups that were seen little: their totals in simulations, against plain scaling."""

from __future__ import annotations

import numpy as np
import pytest

from sooner.statistics import growth, shared_growth

R = 32
FEWEST = 5


def read(keys: np.ndarray, t: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Of groups of so many keys: how many were read of each, and in how many replicates they are."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(keys)), keys)
    group = group[rng.random(len(group)) < t]
    replicate = rng.integers(0, R, len(group))
    seen = np.zeros((len(keys), R), np.bool_)
    seen[group, replicate] = True
    return np.bincount(group, minlength=len(keys)), seen.sum(axis=1)


def ratios(keys: np.ndarray, t: float) -> tuple[float, float, np.ndarray]:
    """Totals of groups seen little against the truth: scaled, grown, and grown one by one."""
    count, seen = read(keys, t)
    little = (seen > 0) & (seen < FEWEST)
    scaled = count[little] / t
    grown = scaled * growth(seen, t, FEWEST)[little]
    truth = keys[little]
    return scaled.sum() / truth.sum(), grown.sum() / truth.sum(), grown / truth


@pytest.mark.parametrize("t", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("size", [1, 3, 10])
def test_groups_of_equal_size(size: int, t: float) -> None:
    scaled, grown, each = ratios(np.full(20_000, size), t)
    assert grown == pytest.approx(1.0, abs=0.12)
    assert abs(grown - 1) < abs(scaled - 1)
    assert np.median(each) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("t", [0.02, 0.1, 0.3])
def test_groups_of_very_unequal_size(t: float) -> None:
    keys = np.maximum(1, np.random.default_rng(3).lognormal(1.5, 1.2, 30_000)).astype(np.int64)
    scaled, grown, _ = ratios(keys, t)
    assert grown == pytest.approx(1.0, abs=0.1)
    assert abs(grown - 1) < abs(scaled - 1)


def test_the_first_of_a_list_are_not_far_too_large() -> None:
    """The twenty with the most rows so far: chosen because chance favoured them."""
    keys = np.full(20_000, 10)
    count, seen = read(keys, 0.02)
    first = np.argsort(-count, kind="stable")[:20]
    assert (count[first] / 0.02 / keys[first]).mean() > 10
    grown = count[first] / 0.02 * growth(seen, 0.02, FEWEST)[first]
    assert (grown / keys[first]).mean() < 2


def test_groups_that_are_complete_when_seen_stay_as_they_are() -> None:
    """As in files sorted by the group: none is seen in a second row group."""
    seen = np.repeat([1, 2], [500, 3])
    factors = growth(seen, 0.05, FEWEST)
    assert factors[0] == pytest.approx(0.05 + 0.95 * 2 * 3 / 500)
    assert factors[-1] == pytest.approx(factors[0]), "three groups tell nothing of their own"


def test_few_groups_are_scaled_as_they_are() -> None:
    assert (growth(np.array([1, 1, 2, 30]), 0.1, FEWEST) == 1.0).all()
    assert growth(np.array([], np.int64), 0.1, FEWEST).shape == (0,)


def test_at_the_end_nothing_grows() -> None:
    assert (growth(np.repeat([1, 2, 3], 50), 1.0, FEWEST) == 1.0).all()
    assert shared_growth(0.7, 1.0) == 1.0


def test_what_new_groups_take_is_not_the_others() -> None:
    assert shared_growth(0.0, 0.1) == 1.0
    assert shared_growth(1.0, 0.1) == pytest.approx(0.1), "complete when seen"
