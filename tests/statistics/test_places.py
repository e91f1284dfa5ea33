"""Rows find their group, whatever the keys are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sooner.statistics.places import places

KEYS: dict[str, Sequence[Any]] = {
    "numbers": [3, 1, None, -(2**62)],
    "whole": [3, -1, 2**62],
    "texts": ["b", None, "", "a"],
    "days": [date(2024, 2, 29), None, date(1, 1, 1)],
    "decimals": [Decimal("1.10"), Decimal("-1.10"), None],
    "doubles": [0.5, None, float("inf"), -1.0],
}


@pytest.mark.parametrize("names", [(name,) for name in KEYS] + [("texts", "days"), tuple(KEYS)])
def test_rows_meet_their_group(names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(len(names))
    wanted = [KEYS[name] for name in names]
    tuples = {tuple(each[rng.integers(len(each))] for each in wanted) for _ in range(200)}
    groups = list(tuples)
    rows = [groups[place] for place in rng.integers(len(groups), size=1000)]

    def table(of: Sequence[tuple[Any, ...]]) -> pa.Table:
        columns = zip(*of, strict=True)
        types = [pa.array(each).type for each in wanted]
        arrays = [pa.array(one, type_) for one, type_ in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, names=names)

    # In several chunks, as Spark gives them.
    chunked = pa.concat_tables([table(rows[:300]), table(rows[300:])])
    found = places(table(groups), chunked)
    assert [groups[place] for place in found] == rows
    # A group that is not there has no place.
    found = places(table(groups[1:]), chunked)
    assert [place < 0 for place in found] == [row == groups[0] for row in rows]


def test_without_keys_there_is_one_group() -> None:
    rows = pa.table({"x": [1, 2, 3]})
    assert places(rows.select([]), rows.select([])).tolist() == [0, 0, 0]
