"""Estimates from corresponding samples: not biased, and in their intervals as often as these say."""

from __future__ import annotations

import numpy as np
import pytest

from sooner.errors import InvalidArgument
from sooner.views.estimates import Drawn, Function, Totals, estimate, estimates, rows_each

KEYS = 20_000
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

    def asked(self, function: Function, ratio: float, seed: int, estimator: str, level: float):
        low = np.random.default_rng(seed).random(KEYS) < ratio
        stale = Totals.of_values(self.old, self.was).of.sum(axis=1)
        dirty = Totals.of_values(self.old[low], self.was[low])
        clean = Totals.of_values(self.new[low], self.is_[low])
        return estimate(function, stale, dirty, clean, ratio, level, estimator)


@pytest.mark.simulation
@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("changed", [0.05, 0.4])
def test_not_biased_and_intervals_hold(function: Function, estimator: str, changed: float) -> None:
    view = View(changed, 7)
    truth = view.truth(function)
    found = [view.asked(function, 0.1, seed, estimator, 0.95) for seed in range(400)]
    values = np.array([one.value for one in found])
    standard = values.std(ddof=1) / len(values) ** 0.5
    assert abs(values.mean() - truth) <= 4 * standard
    known = [one for one in found if one.low is not None and one.high is not None]
    assert len(known) > 350
    held = np.mean([one.low <= truth <= one.high for one in known])
    assert held >= 0.925, (held, function)
    assert np.median([one.high - one.low for one in known]) < 6 * values.std()


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
    stale = np.array([45.0, 0.0])
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
    found = estimate("sum", np.array([1000.0, 0.0]), dirty, clean, 0.1, estimator="corr")
    assert found.value == pytest.approx(10.0)
    assert found.low is None and found.high is None


def test_nothing_there_has_no_average() -> None:
    nothing = Totals.of_values(np.array([1.0]), np.array([0.0]))
    assert estimate("avg", np.zeros(2), nothing, nothing, 0.5).value is None


def test_an_estimator_that_is_none() -> None:
    nothing = Totals.of_values(np.array([1.0]), np.array([0.0]))
    with pytest.raises(InvalidArgument, match="auto, corr or aqp"):
        estimate("sum", np.zeros(2), nothing, nothing, 0.5, estimator="best")  # type: ignore[arg-type]


def test_a_small_group_is_not_taken_for_a_large_one() -> None:
    """One sampled row changed from 10 to 12: in a group of that row alone, of 5 rows, and of 1,000."""
    rows = np.array([1.0, 5.0, 1_000.0])
    stale = np.array([rows, 10 * rows, 100 * rows])
    one = Drawn.of(np.array([[0.0], [2.0]]))
    corr = Drawn(*(np.repeat(part, 3, axis=-1) for part in (one.totals, one.powers, one.number)))
    nothing = np.zeros((3, 3)), corr
    each = rows_each(stale[0], np.array([1.0, 1.0, 100.0]))
    found = estimates("sum", (stale, corr), nothing, 0.1, estimator="corr", stands_for=each)
    assert found.value.tolist() == [12.0, 60.0, 10_020.0]
    assert np.isnan(found.low).all()
