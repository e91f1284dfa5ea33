from __future__ import annotations

import numpy as np
import pytest
from populations import PROGRESS, R, sample

from sooner.statistics import all_but_one, effective_replicates, jackknife_error, leave_one_out


def test_leaves_one_out_by_rows() -> None:
    partials = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 4.0]])
    rows = np.array([10.0, 10.0, 20.0])
    expected = 400 * np.array([[6 / 40, 4 / 40], [5 / 30, 4 / 30], [4 / 30, 4 / 30], [3 / 20, 0.0]])
    np.testing.assert_allclose(leave_one_out(partials, rows, 400.0), expected)


def test_rows_may_differ_between_groups() -> None:
    rng = np.random.default_rng(1)
    partials, rows = rng.random((5, R)), rng.integers(1, 9, (5, R)).astype(float)
    together = leave_one_out(partials, rows, 1e4)
    for group in range(5):
        alone = leave_one_out(partials[[group]], rows[group], 1e4)
        np.testing.assert_allclose(together[:, [group]], alone)


def test_a_replicate_with_all_rows_cannot_be_left_out() -> None:
    theta = leave_one_out(np.array([[3.0, 0.0]]), np.array([5.0, 0.0]), 10.0)
    assert theta[0, 0] == 6.0
    assert np.isnan(theta[1, 0])
    assert np.isnan(jackknife_error(theta, 0.5))


def test_nothing_read_is_not_a_number() -> None:
    assert np.isnan(leave_one_out(np.zeros((2, 4)), np.zeros(4), 10.0)).all()


def test_all_read_is_exact() -> None:
    partials, rows = np.array([[0.1, 0.2, 0.7]]), np.array([1.0, 2.0, 3.0])
    theta = leave_one_out(partials, rows, 6.0)
    assert theta[0, 0] == partials.sum()
    assert jackknife_error(theta, 1.0)[0] == 0.0


def test_a_row_count_has_no_error() -> None:
    """Scaled by R/(R − 1) it would seem to be off by its replicates' unequal sizes."""
    rows = np.random.default_rng(1).integers(50, 150, R).astype(float)
    by_rows = leave_one_out(rows[None], rows, 1e6)
    assert jackknife_error(by_rows, 0.1)[0] <= 1e-9 * by_rows[0, 0]
    by_number = all_but_one(rows[None]) * 1e6 / rows.sum()
    by_number[1:] *= R / (R - 1)
    assert jackknife_error(by_number, 0.1)[0] > 0.03 * by_number[0, 0]


def test_of_single_values_it_is_the_error_of_a_mean() -> None:
    values = np.random.default_rng(1).normal(size=(3, 20))
    theta = leave_one_out(values, np.ones(20), 1.0)
    expected = np.sqrt(0.7 * values.var(axis=1, ddof=1) / 20)
    np.testing.assert_allclose(jackknife_error(theta, 0.3), expected)


def test_effective_replicates() -> None:
    found = effective_replicates(
        np.array([[2.0] * 8, [0.0] * 8, [1e200] + [0.0] * 7, [9.0] + [1.0] * 7])
    )
    assert found.non_empty.tolist() == [8, 0, 1, 8]
    np.testing.assert_allclose(found.effective, [8.0, 0.0, 1.0, 256 / 88])
    np.testing.assert_allclose(found.freedom, [7.0, -1.0, 0.0, 256 / 88 - 1])


@pytest.mark.parametrize("t", PROGRESS)
@pytest.mark.parametrize("kind", ["clustered", "skewed"])
@pytest.mark.simulation
def test_estimates_and_their_errors_are_not_biased(kind: str, t: float) -> None:
    keys, (rows, values, _, _, grouped) = sample(kind, t)
    for partials, column in ((values, 1), (grouped, 4)):
        theta = leave_one_out(partials, rows, keys[0].sum())
        real = theta[0].std()
        assert abs(theta[0].mean() - keys[column].sum()) <= 4 * real / np.sqrt(theta.shape[1])
        assert np.square(jackknife_error(theta, t)).mean() == pytest.approx(real**2, rel=0.12)
