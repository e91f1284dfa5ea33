"""The oracle: the exact one query by query, and how much the fast one misses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI, items_from, largest_variance, random_items, rows, variance

from sooner.synopses.partition import Focus, Items, exact_max_variance, fast_max_variance, items_of


def leaves_of(items: Items) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(len(items))


@given(rows, st.integers(1, 4), st.sampled_from(FOCI))
def test_exact_is_the_largest_of_all_queries(pairs, smallest: int, focus: Focus) -> None:
    items = items_from(pairs)
    first, last = leaves_of(items)
    found = exact_max_variance(items, focus, smallest)(first, last)
    for leaf in zip(first.tolist(), last.tolist(), found, strict=True):
        assert leaf[2] == pytest.approx(
            largest_variance(items, focus, smallest, leaf[:2]), abs=1e-9
        )


@given(rows, st.integers(1, 4), st.sampled_from(FOCI))
def test_a_larger_leaf_is_never_better(pairs, smallest: int, focus: Focus) -> None:
    """PASS §2.4.3; the programs rest on it."""
    items = items_from(pairs)
    first, last = leaves_of(items)
    table = np.zeros((len(items), len(items)))
    table[first, last] = exact_max_variance(items, focus, smallest)(first, last)
    for i, j in zip(first, last, strict=True):
        if i < j:
            assert table[i, j] >= max(table[i + 1, j], table[i, j - 1]) - 1e-9


@pytest.mark.parametrize("focus", FOCI)
@pytest.mark.parametrize("exact", [True, False])
def test_blocks_of_a_large_leaf_make_no_difference(focus: Focus, exact: bool, monkeypatch) -> None:
    items = items_of(np.arange(40) // 2, np.random.default_rng(5).lognormal(0, 1, 40))
    first, last = leaves_of(items)
    make = exact_max_variance if exact else fast_max_variance
    before = make(items, focus, 3)(first, last)
    monkeypatch.setattr("sooner.synopses.partition.max_variance._AT_ONCE", 50)
    assert (make(items, focus, 3)(first, last) == before).all()


@given(rows, st.integers(1, 4), st.sampled_from(FOCI), st.booleans())
def test_worst_query_has_the_variance(pairs, smallest: int, focus: Focus, exact: bool) -> None:
    items = items_from(pairs)
    oracle = (exact_max_variance if exact else fast_max_variance)(items, focus, smallest)
    first, last = leaves_of(items)
    for leaf in zip(first.tolist(), last.tolist(), oracle(first, last), strict=True):
        query = oracle.worst_query(leaf[0], leaf[1])
        assert leaf[0] <= query[0] <= query[1] <= leaf[1]
        if leaf[2] > 0:
            assert variance(items, focus, leaf[:2], query) == pytest.approx(leaf[2], abs=1e-9)


@pytest.mark.parametrize("focus", FOCI)
@pytest.mark.parametrize("distinct", [True, False])
def test_fast_finds_a_quarter_at_least(focus: Focus, distinct: bool) -> None:
    """Proven for distinct codes and leaves of 2·δ·m rows; seen for all others too."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        items = random_items(rng, 14, distinct)
        smallest = int(rng.integers(1, items.rows // 2 + 2))
        first, last = leaves_of(items)
        exact = exact_max_variance(items, focus, smallest)(first, last)
        fast = fast_max_variance(items, focus, smallest)(first, last)
        assert (fast <= exact).all()
        assert (exact <= 4 * fast + 1e-12 * exact.max()).all()


def rows_with(sizes: list[int], means: list[float], squares: list[float]) -> Items:
    """Items of so many rows with such means, and Σ(t − mean)² in those of several rows."""
    values = []
    for size, mean, square in zip(sizes, means, squares, strict=True):
        away = np.zeros(size)
        if size > 1:
            away[:2] = np.sqrt(square / 2) * np.array([1, -1])
        values.append(mean + away)
    return items_of(np.repeat(np.arange(len(sizes)), sizes), np.concatenate(values))


@pytest.mark.parametrize(
    ("focus", "smallest", "sizes", "means", "squares", "factor"),
    [
        # Halves alone would miss three quarters of the whole leaf, exactly.
        ("sum", 1, [1] * 4, [-1, -1, 1, 1], [0] * 4, 1.0),
        ("sum", 1, [1] * 6, [1, 1, 3.7, 3.7, 1, 1], [0] * 6, 1.9),
        ("sum", 10, [10, 2, 1, 3, 3], [-1.334, -2.927, -3.541, -1.652, -1.743], [0, 0.656, 0, 0, 0], 2.6),
        ("sum", 9, [10, 1, 1, 1, 3], [0.29, 0.879, 0.354, 0.349, 0.349], [0] * 5, 2.4),
        # One window has most rows of the leaf, and squares that say nothing.
        ("avg", 2, [20, 1, 1, 1, 2], [1.834, 0.787, 0.228, 0.261, 0.0], [0] * 5, 2.1),
        ("avg", 2, [20, 1, 1], [2.348, 1.048, 0.0], [0] * 3, 2.1),
        ("avg", 2, [3, 2, 1], [0.0, 3.733, 5.902], [0] * 3, 2.1),
        ("avg", 6, [1] * 7, [1.5, 1.9, 1.8, 2, 1.7, 1.9, 0], [0] * 7, 1.8),
    ],
)  # fmt: skip
def test_inputs_that_were_searched_for_the_largest_miss(
    focus: Focus, smallest: int, sizes, means, squares, factor: float
) -> None:
    items = rows_with(sizes, means, squares)
    whole = np.array([0]), np.array([len(items) - 1])
    exact = exact_max_variance(items, focus, smallest)(*whole)[0]
    fast = fast_max_variance(items, focus, smallest)(*whole)[0]
    assert fast <= exact <= factor * fast + 1e-9


@pytest.mark.parametrize("focus", FOCI)
def test_leaves_too_small_to_be_asked_about(focus: Focus) -> None:
    items = items_of(np.arange(10), np.random.default_rng(3).normal(0, 1, 10))
    first = np.array([0, 2, 5, 0])
    last = first + 3
    for make in (exact_max_variance, fast_max_variance):
        assert (make(items, focus, 5)(first, last) == 0).all()
        assert (make(items, focus, 3)(first, last) > 0).all()
        assert (make(items, focus, 11)(first, last) == 0).all(), "more than there are rows"


def test_no_leaves() -> None:
    items = items_of(np.arange(3), np.ones(3))
    none = np.zeros(0, np.int64)
    for focus in FOCI:
        assert fast_max_variance(items, focus, 1)(none, none).shape == (0,)
        assert exact_max_variance(items, focus, 1)(none, none).shape == (0,)
