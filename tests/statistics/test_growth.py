from __future__ import annotations

import numpy as np
import pytest
from populations import R, assert_covers, clustered, coverage

from sooner.statistics import Growth, all_but_one, interval


def test_until_two_points_growth_is_that_of_what_is_read() -> None:
    assert Growth().power == 1.0
    one = Growth().add(0.1, 7.0)
    assert one.power == 1.0
    assert one.add(0.1, 9.0).power == 1.0, "two points at one progress are no line"
    assert one.scale(0.25) == pytest.approx(4.0)


@pytest.mark.parametrize("power", [-0.3, 0.0, 0.4, 1.0, 2.0])
def test_a_monomial_is_found_again(power: float) -> None:
    growth = Growth()
    for t in (0.01, 0.05, 0.1, 0.3):
        growth = growth.add(t, 12.0 * t**power)
    assert growth.power == pytest.approx(power)
    assert growth.scale(0.3) == pytest.approx(0.3**-power)
    assert growth.scale(1.0) == 1.0


def test_adding_one_by_one_is_fitting_all_at_once() -> None:
    rng = np.random.default_rng(1)
    progress = np.sort(rng.random(9))
    rows = rng.lognormal(2.0, 1.0, (9, 4))
    growth = Growth()
    for t, point in zip(progress, rows, strict=True):
        growth = growth.add(t, point)
    np.testing.assert_allclose(growth.power, np.polyfit(np.log(progress), np.log(rows), 1)[0])


def test_adding_leaves_the_old_one_as_it_was() -> None:
    growth = Growth().add(0.1, 1.0)
    growth.add(0.2, 9.0)
    assert growth.points == 1 and growth.power == 1.0


def test_points_without_a_logarithm_are_passed_over() -> None:
    growth = Growth().add(0.0, 5.0).add(0.1, np.array([0.0, 10.0, np.nan]))
    growth = growth.add(0.2, np.array([3.0, 20.0, 3.0])).add(0.4, np.array([6.0, 40.0, 12.0]))
    np.testing.assert_allclose(growth.power, [1.0, 1.0, 2.0])


def grown(batches: list[float]) -> tuple[Growth, np.ndarray, np.ndarray, float]:
    """A count of rows that grows as keys are read: the fit, the R + 1 counts, by replicate, truth."""
    rows, _ = clustered(3000)
    rng = np.random.default_rng(2)
    place = rng.random((1000, len(rows)), dtype=np.float32).ravel()
    read = np.flatnonzero(place < batches[-1])
    cell = read // len(rows) * len(batches) + np.searchsorted(batches, place[read])
    cell = cell * R + rng.integers(0, R, read.size)
    counts = np.bincount(cell, rows[read % len(rows)], 1000 * len(batches) * R)
    counts = counts.reshape(1000, len(batches), R).cumsum(axis=1)
    growth = Growth()
    for batch, t in enumerate(batches):
        left = all_but_one(counts[:, batch])
        left[1:] *= R / (R - 1)
        growth = growth.add(t, left)
    return growth, left, counts[:, -1], float(rows.sum())


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("batches", "bias", "short"),
    [
        ([0.005, 0.01, 0.02], 0.7, None),
        ([0.01, 0.02, 0.04, 0.07, 0.1], 0.05, None),
        # 1 − t is too small a correction for the early points, which the power rests on as well.
        ([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5], 0.01, 0.918),
    ],
)
def test_a_fitted_power_gives_its_own_error(
    batches: list[float], bias: float, short: float | None
) -> None:
    growth, left, counts, truth = grown(batches)
    t = batches[-1]
    theta = left * growth.scale(t)
    assert growth.power[0].mean() == pytest.approx(1.0, abs=0.04)
    # t^−w is convex in w: the fit of three small batches is far too high on average.
    assert -0.01 < theta[0].mean() / truth - 1 < bias
    found = interval(theta, t, counts, 0.95, True, counts.sum(axis=1))
    assert_covers(coverage(found, truth), short)
