"""Estimates from corresponding samples: not biased, and in their intervals as often as these say."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
import pytest

from sooner.errors import InvalidArgument
from sooner.views.estimates import (
    Drawn,
    Function,
    Totals,
    estimate,
    estimates,
    heavier,
    lighter_came,
    powers_of,
    rows_each,
)

KEYS = 20_000
SAMPLES = 20_000
FUNCTIONS: list[Function] = ["count", "sum", "avg"]


class View:
    """A view before and after its tables changed: rows that change, come and go; values are skewed."""

    def __init__(self, changed: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        old = rng.lognormal(2, 1, KEYS)
        owner = np.sort(rng.integers(0, 50, KEYS))  # neighbours change together
        hit = rng.random(50)[owner] < changed
        new = np.where(hit & (rng.random(KEYS) < 0.7), old * rng.uniform(0.5, 2.5, KEYS), old)
        came, went = rng.random(KEYS) < changed / 5, rng.random(KEYS) < changed / 10
        self.old, self.new = old, new
        self.was = ((old > 5) & ~came).astype(float)
        self.is_ = ((new > 5) & ~went).astype(float)

    def truth(self, function: Function) -> float:
        values = self.new[self.is_ > 0]
        return {
            "count": float(len(values)),
            "sum": values.sum(),
            "avg": values.mean(),
        }[function]

    @cached_property
    def stale(self) -> np.ndarray:
        return Totals.of_values(self.old, self.was).of.sum(axis=1)

    def samples(self, ratio: float, seed: int) -> tuple[Totals, Totals]:
        low = sampled(ratio, seed)
        dirty = Totals.of_values(self.old[low], self.was[low])
        return dirty, Totals.of_values(self.new[low], self.is_[low])

    def asked(self, function: Function, ratio: float, seed: int, estimator: str, level: float):
        samples = self.samples(ratio, seed)
        return estimate(function, self.stale, *samples, ratio, level, estimator)


@cache
def sampled(ratio: float, seed: int) -> np.ndarray:
    return np.flatnonzero(np.random.default_rng(seed).random(KEYS) < ratio)


@cache
def changed_view(changed: float) -> View:
    return View(changed, 7)


def together(drawn: list[Drawn]) -> Drawn:
    """A group for each."""
    powers = {each: np.hstack([one.powers[each] for one in drawn]) for each in drawn[0].powers}
    totals, number = (np.hstack([getattr(one, n) for one in drawn]) for n in ("totals", "number"))
    return Drawn(totals, powers, number)


@cache
def drawn(changed: float) -> tuple[Drawn, Drawn]:
    """What SVC+CORR and SVC+AQP draw, a group for each seed: the same for every function."""
    view = changed_view(changed)
    both = [view.samples(0.1, seed) for seed in range(400)]
    corr = [Drawn.of(clean.of - dirty.of) for dirty, clean in both]
    return together(corr), together([Drawn.of(clean.of) for _, clean in both])


@pytest.mark.simulation
@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("changed", [0.05, 0.4])
def test_not_biased_and_intervals_hold(function: Function, estimator: str, changed: float) -> None:
    view = changed_view(changed)
    truth = view.truth(function)
    corr, aqp = drawn(changed)
    stale = np.array([[*view.stale, np.nan]]).T
    found = estimates(function, (stale, corr), (np.zeros((4, 1)), aqp), 0.1, 0.95, estimator)
    values = found.value
    assert len(values) == 400
    standard = values.std(ddof=1) / len(values) ** 0.5
    assert abs(values.mean() - truth) <= 4 * standard
    known = ~(np.isnan(found.low) | np.isnan(found.high))
    assert known.sum() > 350
    held = np.mean((found.low <= truth)[known] & (truth <= found.high)[known])
    assert held >= 0.925, (held, function)
    assert np.median((found.high - found.low)[known]) < 6 * values.std()
    # What one sample alone is asked for is the same.
    for seed in (0, 399):
        one = view.asked(function, 0.1, seed, estimator, 0.95)
        ends = (found.value[seed], found.low[seed], found.high[seed])
        assert (one.value, one.low, one.high) == ends
        assert one.by == ("corr" if found.corrected[seed] else "aqp")


def test_little_change_is_corrected_more_closely_than_estimated_anew() -> None:
    view = View(0.02, 3)
    for function in ("count", "sum", "avg"):
        corr, aqp, auto = (
            view.asked(function, 0.1, 5, estimator, 0.95) for estimator in ("corr", "aqp", "auto")
        )
        assert corr.high - corr.low < (aqp.high - aqp.low) / 2
        assert auto == corr


def test_the_example_of_the_paper() -> None:
    """Of a twentieth of the view two videos were above 100, and now four are; in all of it there were 45."""
    before = np.array([101.0, 102.0, 3.0, 99.0, 0.0])
    after = np.array([101.0, 110.0, 120.0, 130.0, 7.0])
    dirty, clean = (Totals.of_values(v, (v > 100).astype(float)) for v in (before, after))
    stale = np.array([45.0, 0.0, 0.0])
    assert estimate("count", stale, dirty, clean, 0.05, estimator="corr").value == 45 + (80 - 40)
    assert estimate("count", stale, dirty, clean, 0.05, estimator="aqp").value == 80


def test_a_whole_sample_is_exact() -> None:
    view = View(0.3, 1)
    for function in FUNCTIONS:
        found = view.asked(function, 1.0, 0, "auto", 0.95)
        assert found.low == found.high == found.value
        assert found.value == pytest.approx(view.truth(function))


def test_few_changes_say_nothing_of_how_far_off_it_is() -> None:
    passes = np.ones(100)
    before, after = np.zeros(100), np.zeros(100)
    after[3] = 1.0
    dirty, clean = (Totals.of_values(each, passes) for each in (before, after))
    found = estimate("sum", np.array([1000.0, 0.0, 0.0]), dirty, clean, 0.1, estimator="corr")
    assert found.value == pytest.approx(10.0)
    assert found.low is None and found.high is None


def test_rows_that_agree_do_not_say_that_the_others_do() -> None:
    """Of rows that came one in twenty is 15 and all others 5: a sample of thirty may have none of it."""
    was, is_ = np.zeros(40), np.ones(40)
    for value in (5.0, 5.1):
        values = np.full(40, value)
        dirty, clean = (Totals.of_values(values, one) for one in (was, is_))
        for estimator in ("corr", "aqp"):
            stale = np.array([400.0, 400.0 * value, 400.0 * value**2])
            one = estimate("avg", stale, dirty, clean, 0.1, estimator=estimator)
            assert one.value == pytest.approx(value)
            assert one.low is None and one.high is None


def test_nothing_there_has_no_average() -> None:
    nothing = Totals.of_values(np.array([1.0]), np.array([0.0]))
    assert estimate("avg", np.zeros(3), nothing, nothing, 0.5).value is None


def test_an_estimator_that_is_none() -> None:
    nothing = Totals.of_values(np.array([1.0]), np.array([0.0]))
    with pytest.raises(InvalidArgument, match="auto, corr or aqp"):
        estimate("sum", np.zeros(3), nothing, nothing, 0.5, estimator="best")  # type: ignore[arg-type]


def test_a_small_group_is_not_taken_for_a_large_one() -> None:
    """One sampled row changed from 10 to 12: in a group of that row alone, of 5 rows, and of 1,000."""
    rows = np.array([1.0, 5.0, 1_000.0])
    stale = np.array([rows, 10 * rows, 100 * rows, 0 * rows])
    corr = together([Drawn.of(np.array([[0.0], [2.0], [4.0]]))] * 3)
    nothing = np.zeros((4, 3)), corr
    each = rows_each(stale[0], np.array([1.0, 1.0, 100.0]), 0.1)
    found = estimates("sum", (stale, corr), nothing, 0.1, estimator="corr", stands_for=each)
    assert found.value.tolist() == [12.0, 60.0, 10_020.0]
    assert np.isnan(found.low).all()


class SmallGroup:
    """A group of a view before and after some of its rows changed, went or came, and samples of it."""

    def __init__(self, rows: int, kind: str, part: float) -> None:
        rng = np.random.default_rng(rows)
        number = max(1, round(part * rows))
        came = number if kind == "came" else 0
        values = rng.lognormal(2, 1, rows + came)
        hit = rng.permutation(rows)[:number]
        was, is_ = np.ones(rows + came), np.ones(rows + came)
        was[rows:] = 0
        after = values.copy()
        if kind == "changed":
            after[hit] *= 1.5
        if kind == "went":
            is_[hit] = 0
        self.stale, self.fresh = (
            Totals.of_values(*one).of.sum(axis=1) for one in ((values, was), (after, is_))
        )
        self._low = (rng.random((rows + came, SAMPLES)) < 0.1).astype(float)
        self._dirty = Totals.of_values(values, was).of
        self._clean = Totals.of_values(after, is_).of

    def _drawn(self, brought: np.ndarray) -> Drawn:
        """A group for each sample."""
        powers = {
            each: np.prod([one**n for one, n in zip(brought, each, strict=True)], axis=0)
            @ self._low
            for each in powers_of(True)
        }
        totals = np.vstack([brought @ self._low, np.full(SAMPLES, np.nan)])
        return Drawn(totals, powers, (brought != 0).any(axis=0).astype(float) @ self._low)

    def corrected(self, function: Function) -> np.ndarray:
        corr, aqp = self._drawn(self._clean - self._dirty), self._drawn(self._clean)
        stale = np.array([[*self.stale, np.nan]]).T * np.ones(SAMPLES)
        each = rows_each(stale[0], self._dirty[0] @ self._low, 0.1)
        alone = np.zeros((4, SAMPLES)), aqp
        return estimates(function, (stale, corr), alone, 0.1, 0.95, "corr", stands_for=each).value


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [30, 60, 110, 200])
@pytest.mark.parametrize("kind", ["changed", "went", "came"])
@pytest.mark.parametrize("part", [0.1, 0.5])
def test_corrections_of_few_changes_are_not_biased(rows: int, kind: str, part: float) -> None:
    """A scale cut where the sample has many rows of a group left a tenth of the change out."""
    group = SmallGroup(rows, kind, part)
    for place, function in enumerate(FUNCTIONS[:2]):
        found, change = group.corrected(function), group.fresh[place] - group.stale[place]
        none = np.isnan(found)
        if none.any():
            # Of a group that is gone by the sample there is no sum; of some there would be one below nothing.
            assert function == "sum" and kind == "went"
            assert none.mean() < 0.2
            assert np.all(found[~none] <= group.stale[place] + 1e-9)
            continue
        standard = found.std(ddof=1) / len(found) ** 0.5
        assert abs(found.mean() - group.fresh[place]) <= 4 * standard
        assert standard <= abs(change) / 25  # a lean of a tenth and more would be seen


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_corrections_of_a_handful_of_rows_are_none_or_less(rows: int) -> None:
    """Of 1 to 20 rows a sample often has none; of those that it has, no more can be gone than there are."""
    for kind in ("went", "came"):
        group = SmallGroup(rows, kind, 1.0)
        found, change = group.corrected("count"), group.fresh[0] - group.stale[0]
        moved = (found - group.stale[0]) / change
        assert 1 - 0.9**rows - 0.15 < moved.mean() < 1.05
        if kind == "went":
            assert found.min() >= 0


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_correction_that_leaves_no_rows_is_none(function: Function) -> None:
    """Of 150 open orders nearly all were closed: the sample, a lucky one, says that of 200."""
    values, was = np.linspace(40.0, 60.0, 20), np.ones(20)
    is_ = (np.arange(20) == 7).astype(float)
    dirty, clean = (Totals.of_values(values, one) for one in (was, is_))
    found = estimate(function, np.array([150.0, 7_500.0, 4e5]), dirty, clean, 0.1)
    assert found.value == pytest.approx(values[7] * (10 if function == "sum" else 1))
    assert found.low is None and found.high is None and found.by == "aqp"


def test_of_two_estimates_without_intervals_the_one_that_varies_less_is_taken() -> None:
    """All large rows went, so that the stale view is far heavier than the sample: neither has an interval."""
    small, large = np.linspace(1.0, 2.0, 50), np.linspace(500.0, 900.0, 30)
    went = Drawn.of(-np.array([np.ones(30), large, large**2]))
    stay = Drawn.of(np.array([np.ones(50), small, small**2]))
    stale = np.array([[800.0], [200_000.0], [1e8], [np.nan]])
    both = (stale, went), (np.zeros((4, 1)), stay)
    found = estimates("sum", *both, 0.1, missing=np.array([9.0]))
    assert found.value.tolist() == pytest.approx([10 * small.sum()])
    assert np.isnan(found.low).all() and not found.corrected.any()


@pytest.mark.parametrize("seed", range(20))
def test_a_group_of_which_the_sample_lost_all_rows_is_gone(seed: int) -> None:
    """What the correction leaves of it is chance: half of the time some rows, with any average."""
    values = np.random.default_rng(seed).uniform(0, 1000, 2000)
    low = np.random.default_rng(seed + 100).random(2000) < 0.1
    stale = np.array([2000.0, values.sum(), (values**2).sum()])
    dirty = Totals.of_values(values[low], np.ones(low.sum()))
    clean = Totals.of_values(values[low], np.zeros(low.sum()))
    for how in ("auto", "corr"):
        counted, mean = (
            estimate(function, stale, dirty, clean, 0.1, estimator=how)
            for function in ("count", "avg")
        )
        assert counted.value == 0 and mean.value is None


def test_where_little_changed_the_value_stays_the_corrected_one() -> None:
    """Of 100 samples the intervals of five miss the truth, which the stale view may know."""
    values = np.random.default_rng(0).lognormal(0, 1, 5000)
    stale = np.array([5000.0, values.sum(), (values**2).sum()])
    for seed in range(100):
        low = np.random.default_rng(seed).random(5000) < 0.1
        sample = Totals.of_values(values[low], np.ones(low.sum()))
        found = estimate("sum", stale, sample, sample, 0.1)
        assert found.value == pytest.approx(values.sum())
        assert found.low <= found.value <= found.high


LAWS = {
    "even": lambda rng, n: rng.random(n),
    "prices": lambda rng, n: rng.lognormal(3, 1.0, n),
    "a long tail": lambda rng, n: rng.lognormal(3, 1.5, n),
}


@pytest.mark.simulation
@pytest.mark.parametrize("function", ["sum", "avg"])
@pytest.mark.parametrize("went", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_where_few_rows_came_or_went(
    law: str, went: bool, function: Function
) -> None:
    """Of 120 rows 24 are sampled: most samples have none of the few large ones that decide."""
    held = number = 0
    for population in range(40):
        rng = np.random.default_rng(population)
        values = LAWS[law](rng, 720)
        old, new = (np.ones(720), (np.arange(720) < 600).astype(float))[:: 1 if went else -1]
        stale = Totals.of_values(values, old).of.sum(axis=1)
        kept = values[new > 0]
        truth = kept.sum() if function == "sum" else kept.mean()
        for _ in range(25):
            low = rng.random(720) < 0.2
            dirty, clean = (Totals.of_values(values[low], one[low]) for one in (old, new))
            corr, aqp = Drawn.of(clean.of - dirty.of), Drawn.of(clean.of)
            known, nothing = np.array([[*stale, np.nan]]).T, np.zeros((4, 1))
            missing = heavier(
                known[:3], nothing[:3], Drawn(aqp.totals[:3], aqp.powers, aqp.number), 0.2
            )
            found = estimates(
                function,
                (known, corr),
                (nothing, aqp),
                0.2,
                missing=missing,
                lighter=lighter_came(function, known, corr),
            )
            if not np.isnan(found.low[0]):
                number += 1
                held += found.low[0] <= truth <= found.high[0]
    assert number > 700
    assert held / number > 0.93
