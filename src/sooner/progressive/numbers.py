"""Arrow columns as NumPy's floating numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sooner.statistics.arrays import Floats


def numbers(column: pa.ChunkedArray) -> Floats:
    """A column of any numbers as floating ones; null is not a number.

    >>> numbers(pa.chunked_array([[1, None]])).tolist()
    [1.0, nan]
    """
    return np.asarray(
        column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64
    )
