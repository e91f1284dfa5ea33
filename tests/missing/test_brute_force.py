"""Ranges against all tables there are: valid and tight, for every aggregate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC
from functools import cache
from itertools import combinations_with_replacement, product

import duckdb
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.algebra import Column
from sooner.missing.constraint import Constraint
from sooner.missing.program import infinite
from sooner.missing.ranges import RANGES, Known, Span
from sooner.missing.space import condition_of, space_of
from sooner.missing.worlds import Split, told, worlds

SCHEMA = (Column("a", "int"), Column("b", "boolean"), Column("v", "int"))
# All rows there can be: constraints leave no other values to a and v.
ROWS = list(product((0, 1, 2), (None, False, True), (-2, 0, 1)))
MOST = 3
CONDITIONS = [
    "a = 1",
    "a >= 1",
    "a IN (0, 2)",
    "b",
    "NOT b",
    "b IS NULL",
    "b IS NOT NULL AND a < 2",
    "v > 0",
    "v <= 0",
    "a = 0 OR v = 1",
    "NOT (a = 1 AND b)",
    "a <> 2 OR b IS NULL",
]
APART = ["a = 0", "a = 1", "a = 2"]
Worlds = list[tuple[int, ...]]


@cache
def passing(condition: str | None) -> np.ndarray:
    """Which of all rows fulfil a condition, by DuckDB."""
    if condition is None:
        return np.ones(len(ROWS), np.bool_)
    values = ", ".join(
        f"({n}, {a}, {'NULL' if b is None else b}, {v})" for n, (a, b, v) in enumerate(ROWS)
    )
    found = duckdb.sql(
        f"SELECT n FROM (VALUES {values}) AS t(n, a, b, v) WHERE {condition}"
    ).fetchall()
    mask = np.zeros(len(ROWS), np.bool_)
    mask[[n for (n,) in found]] = True
    return mask


@cache
def all_tables() -> np.ndarray:
    """How often each row is in each table of up to three rows."""
    found = [
        np.bincount(np.array(one, np.int64), minlength=len(ROWS))
        for size in range(MOST + 1)
        for one in combinations_with_replacement(range(len(ROWS)), size)
    ]
    return np.array(found)


def possible(constraints: Sequence[Constraint]) -> np.ndarray:
    """The tables that fulfil all constraints, each row in one at least."""
    tables = all_tables()
    covered = np.zeros(len(ROWS), np.bool_)
    allowed = np.ones(len(tables), np.bool_)
    for one in constraints:
        mask = passing(one.where)
        covered |= mask
        low, high = one.values["v"]
        first, last = one.values["a"]
        broken = mask & np.array(
            [not (low <= v <= high and first <= a <= last) for a, _, v in ROWS]
        )
        count = tables @ mask
        fewest, most = one.rows
        allowed &= (tables @ broken == 0) & (count >= fewest)
        allowed &= count <= (MOST if most is None else most)
    allowed &= tables @ ~covered == 0
    return tables[allowed]


def truth(
    tables: np.ndarray, where: str | None, function: str, of: str | None, known: list[int]
) -> Span:
    """The range of an aggregate over all tables, each with the known rows."""
    place = {None: None, "v": 2, "b": 1}[of]
    mask = passing(where)
    if place is not None:
        mask = mask & np.array([row[place] is not None for row in ROWS])
    values = np.array([1 if of is None else int(row[place] or 0) for row in ROWS], np.float64)
    ours = np.bincount(np.array(known, np.int64), minlength=len(ROWS))
    counts = (tables + ours) * mask
    rows = counts.sum(axis=1)
    if function == "count":
        return Span(float(rows.min()), float(rows.max()), False)
    null = bool((rows == 0).any())
    counts, rows = counts[rows > 0], rows[rows > 0]
    if not len(rows):
        return Span(None, None, True)
    if function in ("sum", "avg"):
        found = counts @ values / (rows if function == "avg" else 1)
    elif function == "min":
        found = np.where(counts > 0, values, np.inf).min(axis=1)
    else:
        found = np.where(counts > 0, values, -np.inf).max(axis=1)
    return Span(float(found.min()), float(found.max()), null)


def known_of(where: str | None, of: str | None, known: list[int]) -> Known:
    place = {None: None, "v": 2, "b": 1}[of]
    mask = passing(where)
    held = [ROWS[n] for n in known if mask[n] and (place is None or ROWS[n][place] is not None)]
    values = [1.0 if place is None else float(row[place]) for row in held]
    if not values:
        return Known()
    return Known(len(values), math.fsum(values), min(values), max(values))


@st.composite
def constraint(draw: st.DrawFn, conditions: Sequence[str | None]) -> Constraint:
    low, high = sorted((draw(st.sampled_from((-2, 0, 1))), draw(st.sampled_from((-2, 0, 1)))))
    first, last = sorted((draw(st.integers(0, 2)), draw(st.integers(0, 2))))
    fewest, most = sorted((draw(st.integers(0, 2)), draw(st.integers(0, MOST))))
    if draw(st.booleans()):
        first, last = 0, 2
    where = draw(st.sampled_from(conditions))
    return Constraint(where, {"v": (low, high), "a": (first, last)}, (fewest, most))


@st.composite
def case(draw: st.DrawFn) -> tuple[list[Constraint], str | None, list[int]]:
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(APART), min_size=1, max_size=3, unique=True))
        constraints = [draw(constraint([one])) for one in chosen]
    else:
        constraints = draw(st.lists(constraint([*CONDITIONS, None]), min_size=1, max_size=3))
    # Tables of three rows are all there are: no more may be missing.
    constraints.append(Constraint(None, {"v": (-2, 1), "a": (0, 2)}, (0, MOST)))
    if sum(one.rows[1] or 0 for one in constraints[:-1]) <= MOST and draw(st.booleans()):
        constraints.pop()
    where = draw(st.sampled_from([None, *CONDITIONS]))
    known = draw(st.lists(st.integers(0, len(ROWS) - 1), max_size=2))
    return constraints, where, known


def same(found: Span, right: Span) -> bool:
    if (found.low is None) != (right.low is None) or found.may_be_null != right.may_be_null:
        return False
    if found.low is None or right.low is None or found.high is None or right.high is None:
        return True
    return math.isclose(found.low, right.low, abs_tol=1e-9) and math.isclose(
        found.high, right.high, abs_tol=1e-9
    )


QUESTIONS = [("count", None), ("count", "b"), *((f, "v") for f in RANGES)]


@given(case=case())
@settings(max_examples=settings.default.max_examples * 2)
def test_ranges_are_valid_and_tight(case: tuple[list[Constraint], str | None, list[int]]) -> None:
    constraints, where, known = case
    tables = possible(constraints)
    node = [] if where is None else [condition_of(where)]
    space = space_of(SCHEMA, constraints, node, [], UTC)
    question = space.boxes(where)
    found = worlds(space, constraints, [question], ["v", "b"])
    if not len(tables):
        assert not found.program.is_possible()
        return
    assert found.is_split
    for function, of in QUESTIONS:
        reach = found.reach(question, space.axis(of) if of else None)
        ours = RANGES[function](found.program, reach, known_of(where, of, known))
        right = truth(tables, where, function, of, known)
        if not question:
            continue
        assert same(ours, right), (function, of, ours, right)


@given(case=case(), most=st.integers(1, 4), atoms=st.sampled_from([4, 12, 10**6]))
def test_stopping_early_is_wider_and_holds(
    case: tuple[list[Constraint], str | None, list[int]], most: int, atoms: int
) -> None:
    constraints, where, known = case
    tables = possible(constraints)
    if not len(tables):
        return
    node = [] if where is None else [condition_of(where)]
    space = space_of(SCHEMA, constraints, node, [], UTC)
    question = space.boxes(where)
    fewest = np.array([one.rows[0] for one in constraints], np.float64)
    limits = infinite([one.rows[1] for one in constraints])
    regions = told(space, constraints).regions
    found = Split(regions, question, fewest, limits, True, most, atoms)
    for function, of in QUESTIONS:
        reach = found.reach(question, space.axis(of) if of else None)
        ours = RANGES[function](found.program, reach, known_of(where, of, known))
        right = truth(tables, where, function, of, known)
        if right.low is None or right.high is None:
            continue
        assert ours.low is not None and ours.high is not None
        assert ours.low <= right.low + 1e-9 and ours.high >= right.high - 1e-9, (function, of)
        assert ours.may_be_null or not right.may_be_null
