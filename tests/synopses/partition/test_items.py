"""Items: rows of one code together, and totals that tell of any run of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI, items_from, rows

from sooner.synopses.partition import items_of, smallest_query


@given(rows, st.randoms())
def test_totals_are_those_of_the_rows_up_to_each_code(pairs, random) -> None:
    random.shuffle(pairs)
    items = items_from(pairs)
    assert items.codes.tolist() == sorted({code for code, _ in pairs})
    low = min(value for _, value in pairs)
    for place, code in enumerate(items.codes.tolist()):
        upto = [value for other, value in pairs if other <= code]
        assert items.counts[place + 1] == len(upto)
        assert items.sums[place + 1] == sum(upto)
        assert items.squares[place + 1] == sum(value**2 for value in upto)
        assert items.lifted_sums[place + 1] == sum(value - low for value in upto)
        assert items.lifted_squares[place + 1] == sum((value - low) ** 2 for value in upto)
    assert items.rows == len(pairs)


def test_what_is_no_finite_number_counts_as_zero() -> None:
    items = items_of(np.arange(4), np.array([np.nan, np.inf, -np.inf, 2.0]))
    assert items.sums.tolist() == [0, 0, 0, 0, 2]


def test_the_largest_numbers_do_not_overflow() -> None:
    items = items_of(np.arange(3), np.array([1.7e308, -1.7e308, 1.0]))
    assert all(np.isfinite(items.totals(focus)).all() for focus in FOCI)


def test_the_ends_of_the_codes() -> None:
    ends = np.iinfo(np.int64)
    assert items_of(np.array([ends.max, ends.min]), np.ones(2)).codes.tolist() == [
        ends.min,
        ends.max,
    ]


def test_no_rows() -> None:
    items = items_of(np.zeros(0, np.int64), np.zeros(0))
    assert len(items) == items.rows == 0


@pytest.mark.parametrize(
    ("m", "delta", "rows"), [(100, 0.05, 5), (100, 0.051, 6), (3, 0.1, 1), (0, 0.1, 1), (7, 1.0, 7)]
)
def test_smallest_query(m: int, delta: float, rows: int) -> None:
    assert smallest_query(m, delta) == rows
