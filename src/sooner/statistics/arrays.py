"""The types of arrays that the statistics take and give, and estimates in the types of answers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]


def in_type(values: Floats, type_: pa.DataType) -> pa.Array:
    """Estimates in the type that the exact answer has; null where there is none, or it does not fit."""
    if pa.types.is_integer(type_):
        whole = np.rint(values)
        most = 2.0 ** (type_.bit_width - 1)
        values = np.where((whole >= -most) & (whole < most), whole, np.nan)
    elif pa.types.is_decimal(type_):
        most = 10.0 ** (type_.precision - type_.scale) - 0.5 * 10.0**-type_.scale
        values = np.where(np.abs(values) < most, values, np.nan)
    return pa.array(values, from_pandas=True).cast(type_, safe=False)
