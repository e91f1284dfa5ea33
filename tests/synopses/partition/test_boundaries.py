"""What holds for the boundaries of every algorithm, and the helpers that make them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI, items_from, rows

from sooner.synopses.partition import (
    Focus,
    binary_search,
    boundaries_at,
    equal_depth,
    exact_program,
    fast_program,
    hill_climbing,
    items_of,
    leaves_between,
)

ALGORITHMS = {
    "equal": lambda items, leaves, focus, delta: equal_depth(items, leaves),
    "exact": exact_program,
    "fast": fast_program,
    "climbing": hill_climbing,
    "search": binary_search,
}


@pytest.mark.parametrize("how", ALGORITHMS)
@given(rows, st.integers(1, 12), st.sampled_from(FOCI), st.sampled_from([0.0, 0.01, 0.3, 1.0]))
def test_codes_in_order_and_as_many_leaves_as_can_be(
    how: str, pairs, leaves: int, focus: Focus, delta: float
) -> None:
    items = items_from(pairs)
    boundaries = ALGORITHMS[how](items, leaves, focus, delta)
    assert boundaries.dtype == np.int64
    assert boundaries.tolist() == sorted(set(boundaries.tolist()))
    assert set(boundaries.tolist()) <= set(items.codes[:-1].tolist())
    assert len(boundaries) + 1 == min(leaves, len(items))


@pytest.mark.parametrize("how", ALGORITHMS)
@pytest.mark.parametrize("focus", FOCI)
def test_nothing_to_part(how: str, focus: Focus) -> None:
    for codes in ([], [7], [7] * 20):
        items = items_of(np.array(codes, np.int64), np.arange(len(codes)) * 1.5)
        boundaries = ALGORITHMS[how](items, 8, focus, 0.05)
        assert boundaries.shape == (0,)
        assert boundaries.dtype == np.int64


@pytest.mark.parametrize("how", ALGORITHMS)
@pytest.mark.parametrize("focus", FOCI)
def test_the_same_again(how: str, focus: Focus) -> None:
    rng = np.random.default_rng(9)
    codes, values = rng.integers(0, 40, 60), rng.normal(0, 1, 60)
    order = rng.permutation(60)
    one, other = (
        ALGORITHMS[how](items_of(*sample), 5, focus, 0.02)
        for sample in ((codes, np.floor(4 * values)), (codes[order], np.floor(4 * values[order])))
    )
    assert one.tolist() == other.tolist(), "whatever order rows come in"


@pytest.mark.parametrize("how", ALGORITHMS)
def test_values_that_are_no_numbers_or_huge(how: str) -> None:
    values = np.array([np.nan, np.inf, 1e308, -1e308, 0.0, 1.0, 2.0, np.nan])
    for focus in FOCI:
        assert len(ALGORITHMS[how](items_of(np.arange(8), values), 3, focus, 0.1)) == 2


@given(rows, st.lists(st.integers(-2, 10)))
def test_leaves_between_boundaries(pairs, boundaries: list[int]) -> None:
    items = items_from(pairs)
    first, last = leaves_between(items, np.array(sorted(set(boundaries)), np.int64))
    leaf = np.searchsorted(sorted(set(boundaries)), items.codes)
    assert [items.codes[a : b + 1].tolist() for a, b in zip(first, last, strict=True)] == [
        items.codes[leaf == number].tolist() for number in np.unique(leaf)
    ]


def test_cuts_that_separate_nothing() -> None:
    items = items_of(np.array([3, 5, 9]), np.zeros(3))
    assert boundaries_at(items, np.array([3, 2, 0, 2])).tolist() == [5]
