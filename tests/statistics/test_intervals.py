from __future__ import annotations

import numpy as np
import pytest
from populations import PROGRESS, R, assert_covers, coverage, draw, sample

from sooner.statistics import (
    Interval,
    interval,
    jackknife_error,
    leave_one_out,
    simultaneous,
    student_interval,
)

# Where 100 lognormal keys (σ = 1) have been read, which are too few for the tail to show.
SHORT = {
    ("skewed", 0.02, "total"): 0.935,
    ("skewed", 0.02, "average"): 0.920,
    ("skewed", 0.02, "average, log"): 0.935,
    ("skewed", 0.02, "group average"): 0.915,
    ("skewed", 0.02, "group average, log"): 0.938,
}


def figures(kind: str, t: float) -> dict[str, tuple[np.ndarray, np.ndarray, bool, float]]:
    """Values, contributions, whether on the log scale, and the truth."""
    keys, (rows, values, _, group_rows, grouped) = sample(kind, t)
    truth = keys.sum(axis=1)
    total, count, part, part_count = (
        leave_one_out(x, rows, truth[0]) for x in (values, rows, grouped, group_rows)
    )
    return {
        "total": (total, values, True, truth[1]),
        "group total": (part, grouped, True, truth[4]),
        "average": (total / count, values, False, truth[1] / truth[0]),
        "average, log": (total / count, values, True, truth[1] / truth[0]),
        "group average": (part / part_count, grouped, False, truth[4] / truth[3]),
        "group average, log": (part / part_count, grouped, True, truth[4] / truth[3]),
        "share": (part / total, grouped, False, truth[4] / truth[1]),
        "group count": (part_count, group_rows, True, truth[3]),
    }


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.simulation
def test_coverage(kind: str, t: float) -> None:
    for name, (theta, parts, positive, truth) in figures(kind, t).items():
        certain = parts.sum(axis=1) if "total" in name or "count" in name else None
        found = interval(theta, t, parts, 0.95, positive, certain)
        assert_covers(coverage(found, truth), SHORT.get((kind, t, name)))


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("expected", [12, 30, 60])
@pytest.mark.simulation
def test_long_tails_need_the_log_scale(expected: int, t: float) -> None:
    """A small group of a large table; so many lognormal keys (σ = 1.5) of it are read on average."""
    values = np.random.default_rng(7).lognormal(0.0, 1.5, (1000, int(expected / t)))
    (parts,) = draw(8, t, [values], 1000)
    theta = leave_one_out(parts, np.full(R, 1000.0), R * 1000 / t)
    truth = values.sum(axis=1)
    found = interval(theta, t, parts, 0.95, True, parts.sum(axis=1))
    assert 0.90 <= coverage(found, truth) <= 0.97
    assert found.known.mean() > 0.95
    assert coverage(interval(theta, t, parts, 0.95), truth) < coverage(found, truth)


@pytest.mark.parametrize("t", [0.1, 0.5])
@pytest.mark.simulation
def test_groups_of_three_keys(t: float) -> None:
    values = np.random.default_rng(7).lognormal(0.0, 1.5, (4000, int(3 / t)))
    (parts,) = draw(8, t, [values], 4000)
    theta = leave_one_out(parts, np.full(R, 1000.0), R * 1000 / t)
    truth = values.sum(axis=1)
    assert_covers(coverage(interval(theta, t, parts, 0.95, fewest=2), truth))
    error, freedom = jackknife_error(theta, t), np.full(4000, R - 1.0)
    assert coverage(student_interval(theta[0], error, freedom, 0.95), truth) < 0.75
    assert interval(theta, t, parts, 0.95).known.mean() < 0.3


def theta_of(parts: np.ndarray) -> np.ndarray:
    return leave_one_out(parts, np.full(parts.shape[1], 10.0), parts.shape[1] * 100.0)


def test_unknown_is_not_a_number() -> None:
    few, nothing, one = np.zeros((3, 8))
    few[:4], one[0] = 1.0, 5.0
    parts = np.stack([few, nothing, one, np.ones(8)])
    found = interval(theta_of(parts), 0.1, parts, 0.95)
    assert found.known.tolist() == [False, False, False, True]
    assert np.isnan(found.low[:3]).all() and np.isnan(found.high[:3]).all()
    assert not interval(theta_of(parts), 0.1, parts, 0.95, fewest=0).known[1:3].any()
    assert interval(theta_of(parts), 0.1, parts, 0.95, fewest=4).known[0]


def test_no_width_when_all_has_been_read() -> None:
    parts = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    for positive in (False, True):
        found = interval(theta_of(parts), 1.0, parts, 0.95, positive, parts.sum(axis=1))
        np.testing.assert_array_equal(found.low, theta_of(parts)[0])
        np.testing.assert_array_equal(found.high, theta_of(parts)[0])


def test_progress_may_differ_between_cells() -> None:
    parts = np.random.default_rng(1).random((3, 8))
    found = interval(theta_of(parts), np.array([0.1, 0.5, 1.0]), parts, 0.95)
    width = (found.high - found.low) / jackknife_error(theta_of(parts), 0.0)
    assert width[0] > width[1] > width[2] == 0.0


def test_positive_totals_lie_above_what_is_certain() -> None:
    parts = np.random.default_rng(1).lognormal(0.0, 2.0, (200, 6))
    theta, certain = theta_of(parts), parts.sum(axis=1) * 5
    found = interval(theta, 0.1, parts, 0.95, True, certain)
    assert (found.low[found.known] >= certain[found.known]).all()
    assert (found.low == certain).any()
    # An upper end that overflows is no end.
    assert np.isfinite(found.high[found.known]).all()


def test_the_log_scale_is_symmetric_in_ratios() -> None:
    parts = np.random.default_rng(1).random((5, 12))
    theta = theta_of(parts)
    found = interval(theta, 0.1, parts, 0.9, True)
    np.testing.assert_allclose(found.low * found.high, theta[0] ** 2)


def test_a_negative_total_falls_back_to_the_plain_scale() -> None:
    parts = -np.random.default_rng(1).random((2, 12))
    log, plain = (interval(theta_of(parts), 0.1, parts, 0.9, p) for p in (True, False))
    np.testing.assert_array_equal(log.low, plain.low)


def test_holds_and_known() -> None:
    found = Interval(np.array([0.0, np.nan]), np.array([1.0, np.nan]))
    assert found.holds(0.5).tolist() == [True, False]
    assert found.known.tolist() == [True, False]


def test_simultaneous() -> None:
    assert simultaneous(0.95, 1) == 0.95
    assert simultaneous(0.95, 0) == 0.95
    assert simultaneous(0.95, 25) ** 25 == pytest.approx(0.95)


@pytest.mark.simulation
def test_cells_are_right_together_at_the_simultaneous_level() -> None:
    values = np.random.default_rng(1).normal(10.0, 1.0, (1000 * 25, R))
    theta = leave_one_out(values, np.ones(R), R * 1e6)
    truth = 10.0 * R * 1e6
    each, together = (
        interval(theta, 0.0, values, level).holds(truth).reshape(1000, 25).all(axis=1).mean()
        for level in (0.95, simultaneous(0.95, 25))
    )
    assert each < 0.4
    assert_covers(float(together))
