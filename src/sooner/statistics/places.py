"""Where rows find their group: equal columns, a null being equal to a null."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa


def places(groups: pa.Table, rows: pa.Table) -> npt.NDArray[np.int64]:
    """For each row the place of its group in a table that has every group once; −1 without one.

    Columns go by position; those of ``rows`` are cast.

    >>> places(pa.table({"g": ["a", "b"]}), pa.table({"x": ["b", "c", "a"]})).tolist()
    [1, -1, 0]
    """
    if not groups.num_columns:
        return np.zeros(rows.num_rows, np.int64)
    if not groups.num_rows or not rows.num_rows:  # the other side may have millions
        return np.full(rows.num_rows, -1, np.int64)
    alike = [
        column.cast(kind) for column, kind in zip(rows.columns, groups.schema.types, strict=True)
    ]
    if len(alike) == 1 and pa.types.is_integer(groups.schema.types[0]):
        there, asked = groups.column(0), alike[0]
        if not there.null_count and not asked.null_count:
            index = pd.Index(there.to_numpy())
            if index.is_unique:  # the common case of a million keys, in two thirds of the time
                return np.asarray(index.get_indexer(asked.to_numpy()), np.int64)
    both = pa.concat_tables(
        [groups, pa.Table.from_arrays(alike, schema=groups.schema.remove_metadata())]
    )
    first, *others = both.columns
    numbers, count = _numbered(first)
    for column in others:
        indices, distinct = _numbered(column)
        # Numbered anew after every column, so that the product stays small.
        numbers, count = _numbered(pa.chunked_array([numbers * distinct + indices]))
    place = np.full(count, -1, np.int64)
    place[numbers[: groups.num_rows]] = np.arange(groups.num_rows)
    return place[numbers[groups.num_rows :]]


def _numbered(values: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each value, the same for equal ones, and how many there are."""
    codes = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return codes.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(codes.dictionary)
