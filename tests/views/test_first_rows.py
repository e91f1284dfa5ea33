"""Rows that LIMIT takes among estimates are the first ones for certain, or have no intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sooner.algebra import Limit, Project, Relation, Scan, Sort
from sooner.algebra.scalar import Item, SortKey, column
from sooner.algebra.schema import Column
from sooner.views.cells import Cells
from sooner.views.estimates import Estimates

BELOW = Scan("t", ("g", "n"), (Column("g"), Column("n")))


def cells_of(groups: list[str | None], values: list[float], half: list[float]) -> Cells:
    """Groups with an estimate each, as far off as ``half`` says."""
    cells = Cells(len(groups))
    cells.values["g"] = pa.array(groups)
    value, margin = np.array(values), np.array(half)
    found = Estimates(value, value - margin, value + margin, np.ones(len(value), bool))
    cells.put("n", found)
    return cells


def first(cells: Cells, *keys: SortKey, count: int | None, offset: int = 0) -> Cells:
    ordered: Relation = Sort(BELOW, keys)
    for node in (ordered, Limit(ordered, count, offset)):
        cells.apply(node)
    return cells


def by(name: str, *, descending: bool = False) -> SortKey:
    return SortKey(column(name), descending, nulls_first=not descending)


@pytest.mark.parametrize(
    ("half", "count", "chosen"),
    [
        ([1.0, 1.0, 1.0, 1.0], 2, False),
        ([1.0, 1.0, 20.0, 1.0], 2, True),
        ([9.0, 9.0, 1.0, 1.0], 2, False),  # the first two may change places, and stay the first two
        ([1.0, np.nan, 1.0, 1.0], 2, True),
        ([9.0, 9.0, 9.0, 9.0], 4, False),
        ([9.0, 9.0, 9.0, 9.0], None, False),
    ],
)
def test_first_rows_are_chosen_unless_intervals_part_them(
    half: list[float], count: int | None, chosen: bool
) -> None:
    cells = cells_of(["a", "b", "c", "d"], [100.0, 95.0, 80.0, 10.0], half)
    found = first(cells, by("n", descending=True), count=count)
    assert found.chosen is chosen and found.rows == (count or 4)
    up = cells_of(["a", "b", "c", "d"], [-100.0, -95.0, -80.0, -10.0], half)
    assert first(up, by("n"), count=count).chosen is chosen


def test_rows_that_an_offset_leaves_out_count_too() -> None:
    values, half = [100.0, 95.0, 10.0], [9.0, 9.0, 1.0]
    cells = cells_of(["a", "b", "c"], values, half)
    assert first(cells, by("n", descending=True), count=None, offset=1).chosen
    cells = cells_of(["a", "b", "c"], values, half)
    assert not first(cells, by("n", descending=True), count=1, offset=2).chosen
    cells = cells_of(["a", "b", "c"], values, half)
    assert first(cells, by("n", descending=True), count=5, offset=7).rows == 0


def test_groups_in_their_own_order_are_not_chosen_by_estimates() -> None:
    groups = [None, "a", "b", "b"]
    assert not first(cells_of(groups, [1.0] * 4, [9.0] * 4), by("g"), count=2).chosen
    alike = cells_of(groups, [1.0, 2.0, 3.0, 4.0], [9.0] * 4)
    assert first(alike, by("g"), by("n"), count=3).chosen
    alike = cells_of(groups, [1.0, 2.0, 3.0, 4.0], [9.0] * 4)
    assert not first(alike, by("g"), by("n"), count=2).chosen


def test_what_is_not_a_number_is_the_largest_group() -> None:
    for descending, expected in ((True, ["nan", "1.5", "0.0"]), (False, ["None", "0.0", "1.5"])):
        cells = cells_of(["a", "b", "c", "d"], [1.0] * 4, [9.0] * 4)
        cells.values["g"] = pa.array([1.5, np.nan, None, 0.0])
        found = first(cells, by("g", descending=descending), count=3)
        assert [str(one) for one in found.values["g"].to_pylist()] == expected


def test_columns_that_are_left_out_between_do_not_matter() -> None:
    cells = cells_of(["a", "b"], [1.0, 2.0], [9.0, 9.0])
    ordered = Sort(BELOW, (by("n"),))
    shown = Project(ordered, (Item("g", column("g")),))
    for node in (ordered, shown, Limit(shown, 1)):
        cells.apply(node)
    assert cells.chosen and list(cells.values) == ["g"]
