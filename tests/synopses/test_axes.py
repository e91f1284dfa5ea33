"""Values keep their order as numbers; null comes first and NaN last."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.errors import NotSupported
from sooner.synopses.axes import MOST, NULL, Axis, float_codes, floats_of


def codes(values: list[Any], type_: str, arrow: pa.DataType, words: tuple[str, ...] = ()) -> Any:
    return Axis("a", type_, words).codes(pa.chunked_array([pa.array(values, arrow)]))


@given(st.lists(st.floats(), min_size=1))
def test_floating_numbers_come_back_and_keep_their_order(numbers: list[float]) -> None:
    given_ = np.array(numbers)
    found = float_codes(given_)
    back = floats_of(found)
    np.testing.assert_array_equal(back, np.where(np.isnan(given_), np.nan, given_ + 0.0))
    order = np.argsort(given_, kind="stable")  # NumPy puts NaN last, too
    assert (np.diff(found[order].astype(object)) >= 0).all()
    assert ((found == MOST) == np.isnan(given_)).all()


def test_nulls_and_slices() -> None:
    whole = pa.chunked_array([pa.array([5, None, 7], pa.int64()).slice(1), pa.array([2])])
    assert Axis("a", "bigint").codes(whole).tolist() == [NULL, 7, 2]
    amounts = pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(12, 2)).slice(1)
    assert codes_of(amounts, "decimal(12,2)") == [NULL, -300]
    assert codes([True, None, False], "boolean", pa.bool_()).tolist() == [1, NULL, 0]


def codes_of(array: pa.Array, type_: str) -> list[int]:
    return [int(one) for one in Axis("a", type_).codes(pa.chunked_array([array]))]


def test_words_that_are_not_known_go_by_the_next() -> None:
    words = ("apple", "banana", "zebra")
    found = codes(["banana", "b", "zz", None, "apple"], "string", pa.string(), words)
    assert found.tolist() == [1, 1, 3, NULL, 0]
    axis = Axis("a", "string").with_words({"é", "z", "a"})
    assert axis.words == ("a", "z", "é"), "by bytes, as Spark compares"
    assert axis.word_at("z") == (1, True) and axis.word_at("b") == (1, False)


@pytest.mark.parametrize("type_", ["array<int>", "decimal(38,2)", "binary", "map<int,int>"])
def test_other_types_are_refused(type_: str) -> None:
    with pytest.raises(NotSupported, match=r"cannot go by a, which is of type"):
        _ = Axis("a", type_).kind


def test_the_number_that_stands_for_null() -> None:
    with pytest.raises(NotSupported, match="stands for null"):
        codes([-(2**63)], "bigint", pa.int64())
