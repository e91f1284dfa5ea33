"""Estimates are shown in the type of the exact answer, and never as a number that they are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sooner.statistics.arrays import in_type


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (pa.int64(), [5, None, None, None, -(2**63)]),
        (pa.int8(), [5, None, None, None, None]),
        (pa.decimal128(4, 1), ["5.2", None, None, None, None]),
        (pa.float64(), [5.25, None, 1e30, 2.0**63, -(2.0**63)]),
    ],
)
def test_an_estimate_that_does_not_fit_its_type_is_none(type_: pa.DataType, found: list) -> None:
    values = np.array([5.25, np.nan, 1e30, 2.0**63, -(2.0**63)])
    shown = in_type(values, type_)
    assert shown.type == type_
    assert [
        str(one) if "decimal" in str(type_) and one else one for one in shown.to_pylist()
    ] == found


def test_an_estimate_that_rounds_to_more_digits_than_fit_is_none() -> None:
    shown = in_type(np.array([999.94, 999.96, -999.96]), pa.decimal128(4, 1))
    assert [str(one) for one in shown.to_pylist()] == ["999.9", "None", "None"]
