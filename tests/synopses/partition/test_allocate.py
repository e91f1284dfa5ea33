"""The laws of sharing a sample between leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.synopses.partition import Allocation, allocate

HOWS: tuple[Allocation, ...] = ("proportional", "equal", "neyman")
leaf = st.tuples(
    st.one_of(st.integers(0, 6), st.integers(0, 10**7)),
    st.one_of(st.just(0.0), st.floats(0, 1e12), st.just(float("nan"))),
)


@given(st.lists(leaf, max_size=12), st.integers(0, 10**8), st.sampled_from(HOWS))
def test_laws(leaves, total: int, how: Allocation) -> None:
    rows = np.array([rows for rows, _ in leaves], np.int64)
    spreads = np.array([spread for _, spread in leaves], np.float64)
    for asked in (total, total % 50):
        given_ = allocate(asked, rows, spreads, how)
        assert given_.dtype == np.int64
        assert (given_ >= 0).all()
        assert (given_ <= rows).all()
        assert given_.sum() == min(asked, rows.sum())
        if np.minimum(rows, 2).sum() <= asked:
            assert (given_ >= np.minimum(rows, 2)).all()


@pytest.mark.parametrize(
    ("how", "expected"),
    [("proportional", [60, 30, 10]), ("equal", [34, 33, 33]), ("neyman", [27, 40, 33])],
)
def test_shares(how: Allocation, expected: list[int]) -> None:
    rows, spreads = np.array([6000, 3000, 1000]), np.array([2.0, 6.0, 15.0])
    assert allocate(100, rows, spreads, how).tolist() == expected


def test_what_a_full_leaf_cannot_take_the_others_share() -> None:
    assert allocate(100, np.array([10, 500, 500]), np.ones(3), "equal").tolist() == [10, 45, 45]
    rows, spreads = np.array([10, 300, 600]), np.array([1e6, 1.0, 1.0])
    assert allocate(100, rows, spreads, "neyman").tolist() == [10, 30, 60]


def test_leaves_without_deviation_come_last() -> None:
    rows, spreads = np.array([10, 300, 600]), np.array([5.0, 0.0, 0.0])
    assert allocate(14, rows, spreads, "neyman").tolist() == [10, 2, 2]
    assert allocate(100, rows, spreads, "neyman").tolist() == [10, 30, 60]
    assert allocate(100, rows, np.zeros(3), "neyman").tolist() == [1 + 1, 33, 65]


def test_neyman_has_the_smallest_variance() -> None:
    rng = np.random.default_rng(0)
    rows, spreads = rng.integers(100, 5000, 20), rng.lognormal(0, 1, 20)

    def variance(shares: np.ndarray) -> float:
        return float((rows**2 * spreads**2 / shares).sum())

    found = {how: variance(allocate(1000, rows, spreads, how)) for how in HOWS}
    assert found["neyman"] < min(found["equal"], found["proportional"])


def test_too_little_for_all() -> None:
    rows = np.array([1000, 1000, 1000, 10])
    assert allocate(5, rows, np.ones(4), "proportional").tolist() == [2, 1, 1, 1]
    assert allocate(2, rows, np.ones(4), "proportional").sum() == 2
    assert allocate(0, rows, np.ones(4), "equal").tolist() == [0, 0, 0, 0]
    assert allocate(9, np.zeros(0, np.int64), np.zeros(0), "equal").shape == (0,)
