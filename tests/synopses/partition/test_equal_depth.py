"""Leaves of equally many rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.synopses.partition import equal_depth, items_of


def depths(codes: np.ndarray, leaves: int) -> list[int]:
    boundaries = equal_depth(items_of(codes, np.zeros(len(codes))), leaves)
    return np.bincount(np.searchsorted(boundaries, codes), minlength=len(boundaries) + 1).tolist()


@given(st.integers(1, 60), st.integers(1, 20))
def test_distinct_codes_differ_by_one_row_at_most(m: int, leaves: int) -> None:
    found = depths(np.arange(m), leaves)
    assert len(found) == min(m, leaves)
    assert max(found) - min(found) <= 1


def test_leaves_after_a_frequent_code_share_the_rest() -> None:
    assert depths(np.repeat([1, 2, 3, 4, 5, 6, 7, 8, 9], [92] + [1] * 8), 5) == [92, 2, 2, 2, 2]


def test_frequent_codes_at_the_end_leave_items_for_all() -> None:
    assert depths(np.repeat([1, 2, 3, 4], [1, 1, 1, 97]), 4) == [1, 1, 1, 97]


@pytest.mark.parametrize("leaves", [1, 0])
def test_one_leaf_has_no_boundaries(leaves: int) -> None:
    assert depths(np.arange(5), leaves) == [5]
