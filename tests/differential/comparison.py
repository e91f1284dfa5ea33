"""Whether two answers are the same: names, types and rows, in order where the query fixes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]

_EXACT = 1e-9  # of a floating sum, which depends on the order of its parts


def assert_same_answer(ours: pa.Table, theirs: pa.Table, ordered: bool = False) -> None:
    """Ours is what Spark gives: the same names and types, the same rows."""
    assert ours.schema.names == theirs.schema.names
    assert ours.schema.types == theirs.schema.types
    assert_same_rows(rows_of(ours), rows_of(theirs), ordered)


def rows_of(table: pa.Table) -> list[Row]:
    """The rows as tuples; names may be equal."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def assert_same_rows(
    ours: Iterable[Row], theirs: Iterable[Row], ordered: bool = False, tolerance: float = _EXACT
) -> None:
    """The same rows, as multisets unless ``ordered``; floating numbers up to the tolerance."""
    one, other = list(ours), list(theirs)
    if not ordered:
        one, other = sorted(one, key=_place), sorted(other, key=_place)
    assert len(one) == len(other), f"{len(one)} rows, not {len(other)}: {one[:5]} … {other[:5]}"
    for number, (row, expected) in enumerate(zip(one, other, strict=True)):
        assert _same(row, expected, tolerance), f"row {number}: {row}, not {expected}"


def _same(row: Sequence[Any], expected: Sequence[Any], tolerance: float) -> bool:
    return len(row) == len(expected) and all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(row, expected, strict=True)
    )


def _place(row: Row) -> Row:
    # Rounded, so that numbers which are the same up to the tolerance sort alike.
    return tuple(
        (v is not None, type(v).__name__, float(f"{v:.6g}") if isinstance(v, float) else str(v))
        for v in row
    )
