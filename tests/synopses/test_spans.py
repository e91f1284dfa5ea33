"""Spans of numbers are sets of numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sooner.synopses.axes import LEAST, MOST, NULL
from sooner.synopses.spans import ALL, NULLS, VALUES, spans_of

small = st.integers(-6, 6)
pieces = st.lists(st.tuples(small, small), max_size=4)
NUMBERS = np.arange(-10, 11)


def members(spans: object) -> set[int]:
    return set(NUMBERS[spans.hold(NUMBERS)].tolist())  # type: ignore[attr-defined]


def meant(ends: list[tuple[int, int]]) -> set[int]:
    return {n for low, high in ends for n in range(low, high + 1)}


@given(pieces, pieces)
def test_they_meet_and_join_as_sets(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    a, b = spans_of(one), spans_of(other)
    assert members(a) == meant(one)
    assert members(a & b) == meant(one) & meant(other)
    assert members(a | b) == meant(one) | meant(other)
    assert members(a.without_null(negated=True)) == set(NUMBERS.tolist()) - meant(one)
    assert all(high + 1 < low for (_, high), (low, _) in zip(a.ends, a.ends[1:], strict=False))


@given(pieces, small, small)
def test_boxes(ends: list[tuple[int, int]], low: int, high: int) -> None:
    if low > high:
        low, high = high, low
    spans, inside = spans_of(ends), set(range(low, high + 1))
    at = (np.array([low]), np.array([high]))
    assert bool(spans.meet(*at)[0]) == bool(inside & meant(ends))
    assert bool(spans.contain(*at)[0]) == (inside <= meant(ends))


def test_null_is_no_value() -> None:
    null = np.array([NULL])
    assert NULLS.hold(null)[0] and ALL.hold(null)[0] and not VALUES.hold(null)[0]
    assert not spans_of([(3, 5)]).without_null(negated=True).hold(null)[0]
    assert spans_of([]).is_empty and not spans_of([(LEAST, MOST)]).is_empty
    assert not spans_of([]).meet(null, np.array([MOST]))[0]
    assert not spans_of([(1, 2)]).meet(np.array([5]), np.array([MOST]))[0]
