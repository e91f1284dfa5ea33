"""Extremes from corresponding samples: what can be so, and how much may lie beyond."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import pytest

from sooner.views.extremes import Extreme, extreme_estimate

KEYS = 5_000
FUNCTIONS: list[Literal["min", "max"]] = ["min", "max"]
DATA = {
    "lognormal": lambda rng: rng.lognormal(2, 1, KEYS),
    "zipf": lambda rng: rng.zipf(2.5, KEYS).astype(float),
    "integers": lambda rng: rng.poisson(5, KEYS).astype(float),
    "uniform": lambda rng: rng.uniform(0, 1000, KEYS),
}


def view(kind: str, seed: int, changed: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Before and after: of the keys that changed, 6 in 10 have another value, 2 came and 2 went."""
    rng = np.random.default_rng([seed, 13])
    old, fresh = DATA[kind](rng), DATA[kind](rng)
    fate = rng.random(KEYS) / changed
    before, after = (
        old.copy(),
        np.where(fate < 0.6, np.round(old * rng.uniform(0.5, 1.5, KEYS)), old),
    )
    came, went = (fate >= 0.6) & (fate < 0.8), (fate >= 0.8) & (fate < 1)
    before[came], after[came], after[went] = np.nan, fresh[came], np.nan
    return before, after


@cache
def sampled(seed: int) -> np.ndarray:
    return np.flatnonzero(np.random.default_rng([seed, 17]).random(KEYS) < 0.1)


@cache
def much_changed(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return view(kind, seed, 0.9)


class Drawn(NamedTuple):
    """A sample before and after, the smallest and the largest row of the whole, and all of it after."""

    before: np.ndarray
    after: np.ndarray
    stale: dict[str, float]
    truth: dict[str, float]
    new: np.ndarray


@cache
def drawn(kind: str, seed: int) -> Drawn:
    (old, new), low = view(kind, seed), sampled(seed)
    stale, truth = (
        {"min": float(np.fmin.reduce(each)), "max": float(np.fmax.reduce(each))}
        for each in (old, new)
    )
    return Drawn(old[low], new[low], stale, truth, new)


def papers(before: np.ndarray, stale: float, after: np.ndarray) -> float:
    """The maximum as §12.1.1 has it."""
    return stale + float(np.fmax.reduce(after - before))


@pytest.mark.simulation
@pytest.mark.parametrize("kind", DATA)
def test_closer_than_the_papers(kind: str) -> None:
    """Where the row of the stale maximum is sampled on average, elsewhere never further off."""
    mine, theirs = [], []
    for seed in range(200):
        before, after = drawn(kind, seed)[:2]
        stale, truth = drawn(kind, seed).stale["max"], drawn(kind, seed).truth["max"]
        found = extreme_estimate("max", stale, before, after)
        assert found.value is not None and found.value >= np.fmax.reduce(after)
        errors = (
            abs(found.value - truth) / truth,
            abs(papers(before, stale, after) - truth) / truth,
        )
        if np.fmax.reduce(before) < stale:
            assert errors[0] <= errors[1] + 1e-12
        else:
            mine.append(errors[0])
            theirs.append(errors[1])
    assert len(mine) >= 10
    # Of uniform values many are close to the largest, and one of them grows: there the paper's is closer.
    assert (np.mean(mine) < np.mean(theirs)) == (kind != "uniform")


@pytest.mark.simulation
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DATA)
def test_a_random_row_is_beyond_it_as_rarely_as_cantelli_says(
    kind: str, function: Literal["min", "max"]
) -> None:
    for seed in range(100):
        before, after, stale, _, new = drawn(kind, seed)
        found = extreme_estimate(function, stale[function], before, after)
        assert found.value is not None and found.probability is not None
        beyond = np.mean(new > found.value if function == "max" else new < found.value)
        assert beyond <= found.probability <= 1


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", DATA)
def test_a_whole_sample_is_exact(kind: str, function: Literal["min", "max"]) -> None:
    extreme = np.nanmax if function == "max" else np.nanmin
    for seed in range(20):
        old, new = much_changed(kind, seed)
        assert extreme_estimate(function, float(extreme(old)), old, new).value == extreme(new)


def test_a_minimum_is_a_maximum_seen_from_below() -> None:
    old, new = view("lognormal", 1)
    low = sampled(1)
    least, largest = float(np.nanmin(old)) - 1, -float(np.nanmin(old)) + 1
    found = extreme_estimate("min", least, old[low], new[low])
    mirrored = extreme_estimate("max", largest, -old[low], -new[low])
    assert found == Extreme(-mirrored.value, mirrored.probability)


def test_the_papers_correction() -> None:
    before, after = np.array([10.0, 20.0, 30.0]), np.array([12.0, 25.0, 31.0])
    assert extreme_estimate("max", 100.0, before, after).value == 105
    assert extreme_estimate("min", 2.0, before, after).value == 3
    assert extreme_estimate("max", 100.0, before, before).value == 100
    fallen = np.array([8.0, 13.0, 26.0])
    assert extreme_estimate("max", 100.0, before, fallen).value == 98
    assert extreme_estimate("min", 2.0, before, fallen).value == -5


def test_what_is_seen_is_there() -> None:
    before, after = np.array([10.0, 20.0, np.nan]), np.array([10.0, 20.0, 500.0])
    assert extreme_estimate("max", 100.0, before, after).value == 500
    assert extreme_estimate("min", 1.0, before, np.array([10.0, 20.0, -3.0])).value == -3


@pytest.mark.parametrize(
    ("became", "now"), [(100.0, 100.0), (130.0, 130.0), (40.0, 60.0), (np.nan, 60.0)]
)
def test_the_row_of_the_stale_maximum_is_corrected_by_its_own_change(
    became: float, now: float
) -> None:
    before, after = np.array([10.0, 55.0, 100.0]), np.array([10.0, 60.0, became])
    assert extreme_estimate("max", 100.0, before, after).value == now


def test_without_rows() -> None:
    nothing, some = np.array([np.nan, np.nan]), np.array([1.0, 2.0])
    none = np.array([])
    assert extreme_estimate("max", None, none, none) == Extreme(None, None)
    assert extreme_estimate("max", 5.0, nothing, nothing) == Extreme(5.0, None)
    assert extreme_estimate("max", 5.0, some, nothing) == Extreme(None, None)
    assert extreme_estimate("max", None, nothing, some).value == 2
    # No row is in both: what was there has gone, and what came is seen.
    assert extreme_estimate("max", 5.0, np.array([3.0, np.nan]), np.array([np.nan, 2.0])).value == 2


def test_the_probability_is_cantellis() -> None:
    before = np.tile([-1.0, 1.0], 100)
    variance = float(before.var(ddof=1))
    share = pytest.approx(variance / (variance + 5**2))
    assert extreme_estimate("max", 5.0, before, before) == Extreme(5.0, share)
    assert extreme_estimate("min", -5.0, before, before) == Extreme(-5.0, share)
    # 200 rows do not say that fewer than one in 201 lie beyond.
    assert extreme_estimate("max", 1e6, before, before) == Extreme(1e6, pytest.approx(1 / 201))


def test_rows_all_alike_say_nothing_of_others() -> None:
    alike = np.full(10, 4.0)
    assert extreme_estimate("max", 9.0, alike, alike) == Extreme(9.0, None)
    assert extreme_estimate("max", 9.0, alike[:1], alike[:1]) == Extreme(9.0, None)


def test_infinite_values_are_values() -> None:
    before, after = np.array([1.0, np.inf]), np.array([3.0, np.inf])
    assert extreme_estimate("max", np.inf, before, after) == Extreme(np.inf, None)
    assert extreme_estimate("min", 0.0, before, after).value == 2
