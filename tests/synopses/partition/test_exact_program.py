"""The exact program against all partitionings there are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI, items_from, rows

from sooner.synopses.partition import (
    Focus,
    boundaries_at,
    equal_depth,
    exact_program,
    items_of,
    worst_error,
)


@given(rows, st.integers(1, 4), st.sampled_from(FOCI), st.sampled_from([0.0, 0.2, 0.4]))
def test_no_partitioning_is_better(pairs, leaves: int, focus: Focus, delta: float) -> None:
    items = items_from(pairs)
    found = worst_error(items, exact_program(items, leaves, focus, delta), focus, delta)
    others = (
        worst_error(items, boundaries_at(items, np.array(cuts, np.int64)), focus, delta)
        for count in range(leaves)
        for cuts in combinations(range(1, len(items)), count)
    )
    assert found == pytest.approx(min(others), abs=1e-6)


@pytest.mark.parametrize("m", [5, 12, 31])
@pytest.mark.parametrize("leaves", [1, 2, 3, 7])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_equal_depth_is_best_for_count(m: int, leaves: int, delta: float) -> None:
    items = items_of(np.arange(m), np.ones(m))
    best = worst_error(items, exact_program(items, leaves, "count", delta), "count", delta)
    assert worst_error(items, equal_depth(items, leaves), "count", delta) == pytest.approx(best)
