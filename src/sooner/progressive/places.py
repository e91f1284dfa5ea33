"""Which group a row belongs to, by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sooner.statistics.arrays import Integers


def places(groups: pa.Table, rows: pa.Table, keys: Sequence[str]) -> Integers:
    """For each row the place of its group in a table that has every group once; −1 if it is not there.

    >>> places(pa.table({"k": ["a", None]}), pa.table({"k": [None, "a", "b"]}), ["k"]).tolist()
    [1, 0, -1]
    """
    if not keys:
        return np.zeros(rows.num_rows, np.int64)
    both = pa.concat_tables([groups.select(list(keys)), rows.select(list(keys))])
    numbers = np.zeros(both.num_rows, np.int64)
    for key in keys:
        codes = both.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        indices = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered anew after every key, so that the product stays small.
        _, numbers = np.unique(numbers * (len(codes.dictionary) + 1) + indices, return_inverse=True)
    place = np.full(numbers.max(initial=-1) + 1, -1, np.int64)
    place[numbers[: groups.num_rows]] = np.arange(groups.num_rows)
    return place[numbers[groups.num_rows :]]
