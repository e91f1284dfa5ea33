from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.storage.widen import widen

LISTS = st.lists(st.none() | st.integers(), max_size=5)


def _facts(values: list[int | None]) -> TableFacts:
    present = [value for value in values if value is not None]
    column = ColumnFacts(
        min(present, default=None), max(present, default=None), len(values) - len(present)
    )
    return TableFacts(len(values), 0, {"x": column})


@given(LISTS, LISTS)
def test_widened_facts_are_those_of_all_rows(one: list[int | None], two: list[int | None]) -> None:
    assert widen(_facts(one), _facts(two)) == _facts(one + two)


def test_what_one_side_does_not_know_nobody_knows() -> None:
    known = TableFacts(1, 1, {"x": ColumnFacts(1, 2, 0, 1)})
    assert widen(known, TableFacts(1, 1)).column("x") == ColumnFacts()
    assert widen(known, TableFacts()).rows is None


def test_unlike_types_have_no_bounds() -> None:
    one = TableFacts(1, 1, {"x": ColumnFacts(1, 2, 0)})
    two = TableFacts(1, 1, {"x": ColumnFacts(date(2024, 1, 1), "z", 0)})
    assert widen(one, two).column("x") == ColumnFacts(None, None, 0)
