"""What bounds rule out holds no row: random values, nulls and comparisons."""

from __future__ import annotations

import operator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from sooner.analysis.facts import ColumnFacts
from sooner.analysis.ruled_out import ruled_out

OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
KINDS: dict[str, Any] = {
    "int": lambda n: (n, str(n)),
    "decimal(9,2)": lambda n: (Decimal(n) / 4, str(Decimal(n) / 4)),
    "date": lambda n: (
        date(2000, 1, 1) + timedelta(days=n),
        f"DATE '{date(2000, 1, 1) + timedelta(days=n)}'",
    ),
    "string": lambda n: (f"{n + 50:02d}", f"'{n + 50:02d}'"),
}
SMALL = st.integers(-20, 20)


def facts_of(values: list[Any]) -> ColumnFacts:
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (None, None)
    return ColumnFacts(low, high, len(values) - len(known))


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.none() | SMALL, min_size=1, max_size=6),
    st.sampled_from(sorted(OPERATORS)),
    SMALL,
    st.booleans(),
)
def test_nothing_that_passes_is_ruled_out(
    type_: str, numbers: list[int | None], sign: str, literal: int, mirrored: bool
) -> None:
    values = [None if n is None else KINDS[type_](n)[0] for n in numbers]
    bound, text = KINDS[type_](literal)
    condition = f"{text} {sign} a" if mirrored else f"a {sign} {text}"
    ends = [(bound, v) if mirrored else (v, bound) for v in values if v is not None]
    passes = any(OPERATORS[sign](*pair) for pair in ends)
    scalar = sqlglot.parse_one(condition, dialect="spark")
    out = ruled_out([scalar], {"a": type_}, {"a": facts_of(values)}, len(values))
    assert not (out and passes)
    if sign != "=":  # bounds tell all there is to tell
        assert out is not passes


@given(st.lists(SMALL, min_size=1, max_size=4), st.lists(SMALL, min_size=1, max_size=3))
def test_lists_and_ranges(values: list[int], listed: list[int]) -> None:
    facts = {"a": facts_of(values)}
    low, high = min(listed), max(listed)
    inside = sqlglot.parse_one(f"a IN ({', '.join(map(str, listed))})", dialect="spark")
    between = sqlglot.parse_one(f"a BETWEEN {low} AND {high}", dialect="spark")
    if set(values) & set(listed):
        assert not ruled_out([inside], {"a": "int"}, facts, len(values))
    if any(low <= value <= high for value in values):
        assert not ruled_out([between], {"a": "int"}, facts, len(values))
    if high < min(values) or low > max(values):
        assert ruled_out([inside], {"a": "int"}, facts, len(values))
        assert ruled_out([between], {"a": "int"}, facts, len(values))


def test_without_bounds_nothing_is_ruled_out() -> None:
    condition = sqlglot.parse_one("a < 0", dialect="spark")
    assert not ruled_out([condition], {"a": "int"}, {}, 5)
    assert not ruled_out([condition], {"a": "int"}, {"a": ColumnFacts(nulls=4)}, 5)
    assert ruled_out([condition], {"a": "int"}, {"a": ColumnFacts(nulls=5)}, 5)
    assert not ruled_out([condition], {"a": "double"}, {"a": ColumnFacts(1.0, 2.0, 0)}, 5)
    assert not ruled_out([condition], {"a": None}, {"a": ColumnFacts(1, 2, 0)}, 5)
