"""The worst error of a partitioning, and the query that has it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI, items_from, largest_variance, rows

from sooner.synopses.partition import (
    Focus,
    equal_depth,
    items_of,
    leaves_between,
    smallest_query,
    worst_error,
    worst_interval,
)


@given(rows, st.integers(1, 5), st.sampled_from(FOCI), st.sampled_from([0.0, 0.2]))
def test_it_is_that_of_the_worst_leaf(pairs, leaves: int, focus: Focus, delta: float) -> None:
    items = items_from(pairs)
    boundaries = equal_depth(items, leaves)
    smallest = smallest_query(items.rows, delta)
    each = [
        largest_variance(items, focus, smallest, (int(first), int(last)))
        for first, last in zip(*leaves_between(items, boundaries), strict=True)
    ]
    error = worst_error(items, boundaries, focus, delta)
    assert error**2 == pytest.approx(max(each), abs=1e-9)
    fast = worst_error(items, boundaries, focus, delta, exact=False)
    assert error / 2 - 1e-6 <= fast <= error


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("focus", ["sum", "avg"])
def test_the_challenging_query_is_where_values_differ(focus: Focus, exact: bool) -> None:
    values = np.where(np.arange(80) < 70, 0.0, np.random.default_rng(1).normal(50, 9, 80))
    items = items_of(np.arange(80) * 10, values)
    first, last = worst_interval(items, equal_depth(items, 4), focus, 0.05, exact)
    assert 600 <= first < last
    assert last - first >= 10 * (smallest_query(80, 0.05) - 1)


def test_no_rows() -> None:
    none = items_of(np.zeros(0, np.int64), np.zeros(0))
    assert worst_error(none, none.codes, "sum", 0.1) == 0.0
    with pytest.raises(ValueError, match="no queries"):
        worst_interval(none, none.codes, "sum", 0.1)
