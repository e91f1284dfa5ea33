"""Variances and deviations of a stale view from its samples: no lean, and intervals that hold."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np
import pytest

from sooner.views.estimates import (
    Drawn,
    Estimates,
    Totals,
    estimate,
    estimates,
    heavier,
    lighter_changes,
    powers_of,
)

RATIO, SEEDS = 0.1, 200
KINDS = {
    "even": lambda rng, n: rng.random(n),
    "around a mean": lambda rng, n: rng.normal(1e6, 1.0, n),
    "waiting times": lambda rng, n: rng.exponential(1.0, n),
    "prices": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "counts": lambda rng, n: rng.poisson(3.0, n).astype(float),
    "rarely": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "two kinds": lambda rng, n: rng.normal(np.where(rng.random(n) < 0.01, 20.0, 0.0), 1.0),
}


TAILED = ("waiting times", "prices", "rarely", "two kinds")


class Asked(NamedTuple):
    """Of a view before and after: the truth, and for each seed what both estimators are made of."""

    stale: float
    truth: float
    known: np.ndarray
    corr: Drawn
    aqp: Drawn
    missing: np.ndarray
    lighter: np.ndarray


@cache
def asked(kind: str, changed: float, keys: int) -> Asked:
    """Rows change, come and go; some do not pass the condition. A seed is a group."""
    rng = np.random.default_rng(5)
    old = KINDS[kind](rng, keys)
    owner = np.sort(rng.integers(0, 50, keys))  # neighbours change together
    hit = rng.random(50)[owner] < changed
    middle = old.mean()
    new = np.where(hit & (rng.random(keys) < 0.7), middle + 1.3 * (old - middle), old)
    came, went = rng.random(keys) < changed / 5, rng.random(keys) < changed / 10
    return changed_to(old, new, (~came).astype(float), (~went).astype(float))


def changed_to(old: np.ndarray, new: np.ndarray, was: np.ndarray, is_: np.ndarray) -> Asked:
    """Values before and after, and whether their rows were and are there."""
    middle = old.mean()
    before, after = (
        Totals.of_values(values - middle, passes).of for values, passes in ((old, was), (new, is_))
    )
    low = drawn_keys(len(old))
    known = np.repeat(fourth(before).sum(axis=1, keepdims=True), SEEDS, axis=1)
    corr, aqp = drawn(fourth(after) - fourth(before), low), drawn(fourth(after), low)
    missing = heavier(known, np.zeros((4, SEEDS)), aqp, RATIO)
    sides = np.vstack([fourth(side) * (before != after).any(axis=0) for side in (before, after)])
    number, squared = (sides[[n, n + 4]].sum(axis=0) @ low for n in (0, 3))
    lighter = lighter_changes(known, number, squared)
    found = (float(values[one > 0].var(ddof=1)) for values, one in ((old, was), (new, is_)))
    return Asked(*found, known, corr, aqp, missing, lighter)


@cache
def drawn_keys(keys: int) -> np.ndarray:
    """1 where a seed, a column, draws a key."""
    each = [np.random.default_rng([7, seed]).random(keys) < RATIO for seed in range(SEEDS)]
    return np.stack(each, axis=1).astype(float)


def fourth(brought: np.ndarray) -> np.ndarray:
    return np.vstack([brought, brought[2] ** 2])


def drawn(brought: np.ndarray, low: np.ndarray) -> Drawn:
    """Of what each key brings, a group for each seed that draws some of them."""
    some = brought.any(axis=0)
    brought, low = brought[:, some], low[some]
    upto = [np.ones_like(brought[:3])]
    for _ in range(4):
        upto.append(upto[-1] * brought[:3])
    powers = {each: prod(upto[n][i] for i, n in enumerate(each)) for each in powers_of(True)}
    summed = np.vstack([brought, np.ones(some.sum()), *powers.values()]) @ low
    return Drawn(summed[:4], dict(zip(powers, summed[5:], strict=True)), summed[4])


def found(view: Asked, function: str, estimator: str) -> Estimates:
    nothing = np.zeros((4, SEEDS))
    corr, aqp = (view.known, view.corr), (nothing, view.aqp)
    return estimates(function, corr, aqp, RATIO, 0.95, estimator, view.missing, view.lighter)  # type: ignore[arg-type]


@pytest.mark.simulation
@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
@pytest.mark.parametrize("changed", [0.05, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_no_lean_and_intervals_hold(kind: str, changed: float, estimator: str) -> None:
    view = asked(kind, changed, 20_000)
    for function, truth in (("variance", view.truth), ("deviation", view.truth**0.5)):
        one = found(view, function, estimator)
        standard = one.value.std(ddof=1) / SEEDS**0.5
        # The root of an estimate leans by a quarter of its relative variance.
        lean = 0.0 if function == "variance" else one.value.var() / truth / 2
        assert abs(one.value.mean() - truth) <= 4 * standard + lean
        known = ~np.isnan(one.low)
        # Of values with a long tail it is seldom known how far off a correction from few changes is.
        assert known.mean() > (0.25 if changed < 0.1 and kind in TAILED else 0.9)
        held = ((one.low <= truth) & (truth <= one.high))[known]
        assert held.mean() >= 0.925
        if kind in ("even", "around a mean", "counts"):
            assert held.mean() <= 0.985
            assert np.median((one.high - one.low)[known]) < 5 * one.value.std()


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["prices", "waiting times", "two kinds"])
def test_of_changes_with_a_tail_that_the_view_has_never_seen_nothing_is_said(kind: str) -> None:
    rng = np.random.default_rng(6)
    old = KINDS["even"](rng, 800)
    hit = rng.random(800) < 0.2
    view = changed_to(old, np.where(hit, KINDS[kind](rng, 800), old), np.ones(800), np.ones(800))
    for estimator in ("corr", "aqp"):
        assert np.isnan(found(view, "deviation", estimator).low).mean() > 0.7


@pytest.mark.simulation
@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
def test_of_a_flag_that_half_the_rows_have_intervals_hold(estimator: str) -> None:
    """All values are equally far from their mean: without the square of how far that is off, 70% held."""
    rng = np.random.default_rng(6)
    old = (rng.random(2_000) < 0.5).astype(float)
    new = np.where(rng.random(2_000) < 0.5, 1 - old, old)
    view = changed_to(old, new, np.ones(2_000), np.ones(2_000))
    for function, truth in (("variance", view.truth), ("deviation", view.truth**0.5)):
        one = found(view, function, estimator)
        known = ~np.isnan(one.low)
        assert known.mean() > 0.9
        assert ((one.low <= truth) & (truth <= one.high))[known].mean() >= 0.925


@pytest.mark.simulation
def test_of_a_few_rows_there_is_no_lean_either() -> None:
    """A mean from thirty rows is off by chance, and its square too large by that."""
    view = asked("even", 0.4, 300)
    for estimator in ("corr", "aqp"):
        value = found(view, "variance", estimator).value
        assert abs(value.mean() - view.truth) <= 4 * value.std(ddof=1) / SEEDS**0.5


@pytest.mark.simulation
def test_a_correction_is_closer_than_the_stale_value_and_than_the_sample_alone() -> None:
    view = asked("around a mean", 0.4, 20_000)
    corr, aqp = (
        np.abs(found(view, "deviation", one).value - view.truth**0.5).mean()
        for one in ("corr", "aqp")
    )
    assert corr < 0.8 * aqp
    assert corr < 0.2 * abs(view.stale**0.5 - view.truth**0.5)


@pytest.mark.parametrize(
    ("function", "value"),
    [("variance", 4.0), ("deviation", 2.0), ("variance of all", 3.0), ("deviation of all", 3**0.5)],
)
def test_of_all_of_it_they_are_exact(function: str, value: float) -> None:
    values = Totals.of_values(np.array([1.0, 1.0, 1.0, 5.0, 9.0]), np.array([1.0, 1, 1, 1, 0]))
    nothing = Totals(np.zeros((3, 5)))
    for stale, dirty in ((np.zeros(3), nothing), (values.of.sum(axis=1), values)):
        one = estimate(function, stale, dirty, values, 1.0, estimator="corr")  # type: ignore[arg-type]
        assert one.value == pytest.approx(value)
        assert one.low == one.high == one.value


@pytest.mark.parametrize("function", ["variance", "deviation"])
def test_of_one_row_there_is_none(function: str) -> None:
    one, none = (Totals.of_values(np.array([3.0]), np.array([passes])) for passes in (1.0, 0.0))
    assert estimate(function, np.zeros(3), none, one, 1.0).value is None  # type: ignore[arg-type]
    assert estimate(f"{function} of all", np.zeros(3), none, one, 1.0).value == 0.0  # type: ignore[arg-type]


def test_values_that_are_all_alike() -> None:
    alike = Totals.of_values(np.zeros(100), np.ones(100))
    for function in ("variance", "deviation"):
        one = estimate(function, np.zeros(3), Totals(0 * alike.of), alike, 0.1, estimator="aqp")  # type: ignore[arg-type]
        assert one.value == 0.0
        assert one.low in (0.0, None)


def test_powers_are_those_of_so_many_draws() -> None:
    assert {sum(each) for each in powers_of(True)} == {2, 4}
    assert set(powers_of(False)) < set(powers_of(True))
    assert len(powers_of(True)) == 6 + 15
