"""Calculations with aggregates of a stale view: what they are, their slopes, and where they are no sum."""

from __future__ import annotations

import numpy as np
import pytest
from random_plans import sql

from sooner.algebra import Item
from sooner.errors import CannotAnswer
from sooner.views.calculation import Calculation, calculation_of


def made(text: str) -> Calculation:
    """Of sums a and b, and a median m."""
    return calculation_of(Item("r", sql(text)), ["a", "b"], ["m"])


def test_the_slopes_of_a_ratio_are_its_derivatives() -> None:
    slopes = made("100 * a / b").slopes({"a": np.array([6.0, 0.0]), "b": np.array([3.0, 4.0])})
    assert slopes["a"] == pytest.approx([100 / 3, 25])
    assert slopes["b"] == pytest.approx([-600 / 9, 0])


def test_a_ratio_bends_where_its_divisor_may_be_a_third_smaller() -> None:
    values = {"a": np.full(3, 10.0), "b": np.full(3, 3.0)}
    errors = {"a": np.full(3, 1.0), "b": np.array([0.5, 1.5, np.nan])}
    assert made("a / b").bends(values, errors).tolist() == [False, True, True]
    assert not made("a - 2 * b").bends(values, {"a": np.full(3, 9.0), "b": np.full(3, 9.0)}).any()


def test_ends_turn_with_the_one_aggregate_and_not_across_zero() -> None:
    low, high = np.array([1.0, -1.0]), np.array([2.0, 2.0])
    falls = [end.tolist() for end in made("1 - 3 * m").ends(low, high)]
    assert falls == [[-5.0, -5.0], [-2.0, 4.0]]
    least, most = made("6 / m").ends(low, high)
    assert (least[0], most[0]) == (3.0, 6.0)
    assert np.isnan([least[1], most[1]]).all()


def test_it_is_rounded_as_spark_does_and_only_in_the_end() -> None:
    one = made("round(cast(a / b AS decimal(10, 4)), 1)")
    assert one.digits == 1
    assert one.rounded(np.array([0.25, -0.25, 0.349])).tolist() == [0.3, -0.3, 0.3]
    assert made("round(a / 10, -1)").rounded(np.array([15.0, 14.9])).tolist() == [20.0, 10.0]
    with pytest.raises(CannotAnswer, match="more than arithmetic"):
        made("1 - round(a / b, 1)")


def test_a_divisor_of_nothing_leaves_nothing() -> None:
    values = {"a": np.array([1.0]), "b": np.array([0.0])}
    for text in ("a / b", "a / nullif(b, 0)"):
        assert np.isnan(made(text).value(values)).all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("case when a > 0 then a / b end", "more than arithmetic"),
        ("cast(a / b as int)", "more than arithmetic"),
        ("a / k", "grouped by"),
        ("upper(k)", "grouped by"),
        ("m / a", "not sums, counts or averages"),
        ("m * m", "not sums, counts or averages"),
        ("round(a, b)", "rounded to"),
    ],
)
def test_what_cannot_be_estimated_is_refused(text: str, why: str) -> None:
    with pytest.raises(CannotAnswer, match=why):
        made(text)
