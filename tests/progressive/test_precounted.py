"""Sums of rows that meet an open value, by counts of like rows: the same sums, of fewer rows."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_oracle import Table, rows_of

from sooner.algebra import Aggregate, Column, Relation, walk
from sooner.analysis import ColumnFacts, TableFacts, TableInfo
from sooner.progressive.cut import cut
from sooner.progressive.precounted import precounted
from sooner.rewrites import rewrite
from sooner.sql import plan_query

TYPES = {"k": "int", "g": "int", "b": "bigint", "v": "int"}
SCHEMAS = {
    "t": tuple(Column(name, type_) for name, type_ in TYPES.items()),
    "money": (Column("g", "int"), Column("v", "decimal(12,2)")),
}
MEAN = "(SELECT avg(b) AS m, sum(v) AS total FROM t)"
QUERIES = {
    "all functions": f"""SELECT g, sum(b - m), count(*), count(v + m), avg(v * m), min(b - m), max(m)
        FROM t, {MEAN} WHERE v < m GROUP BY g""",
    "one group": f"SELECT sum(v * total) FROM t, {MEAN} WHERE b > m OR v IS NULL",
    "the other way round": f"SELECT count(*), avg(b - m) FROM {MEAN}, t WHERE m < v",
    "groups meet groups": """SELECT g, sum(b * c) FROM t JOIN
        (SELECT g AS h, count(*) AS c FROM t GROUP BY g) ON g = h GROUP BY g""",
    "a key that is computed": f"SELECT g + v, sum(m - b) FROM t, {MEAN} GROUP BY g + v",
    "through a subquery": f"""SELECT x, sum(y) FROM
        (SELECT g AS x, b - m AS y, v FROM t, {MEAN}) WHERE v > 1 AND y < 3 GROUP BY x""",
}
REFUSED = {
    "a decimal": "SELECT sum(v * m) FROM money, (SELECT avg(v) AS m FROM money)",
    "a decimal literal": f"SELECT sum(v * 0.5 * m) FROM t, {MEAN}",
    "distinct values": f"SELECT count(DISTINCT v * m) FROM t, {MEAN}",
    "a deviation": f"SELECT stddev(v * m) FROM t, {MEAN}",
    "groups by the open value": f"SELECT m, sum(v) FROM t, {MEAN} GROUP BY m",
    "an outer join": f"SELECT sum(v * m) FROM t LEFT JOIN {MEAN} ON v < m",
    "nothing that is nested": "SELECT sum(t.v * u.b) FROM t JOIN t AS u ON t.k = u.k",
}

numbers = st.sampled_from([None] * 7 + [0, 1, 2, 3, -1, -2, -3])  # half of them null
tables = st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=8)


@cache
def aggregate(text: str) -> Aggregate:
    plan: Relation = rewrite(plan_query(text, SCHEMAS)).plan
    return next(node for node in walk(plan) if isinstance(node, Aggregate))


by_counts = cache(precounted)


@pytest.mark.parametrize("name", QUERIES)
@given(rows=tables)
def test_the_sums_are_the_same(name: str, rows: list[tuple[int | None, ...]]) -> None:
    plan = aggregate(QUERIES[name])
    found = by_counts(plan)
    assert found is not None
    assert found.plan.names == plan.names
    data = {"t": Table(TYPES, rows)}
    ours, theirs = (
        sorted(rows_of(one, data), key=lambda row: [(x is not None, x) for x in row[:1]])
        for one in (found.plan, plan)
    )
    assert len(ours) == len(theirs)
    for mine, right in zip(ours, theirs, strict=True):
        for x, y in zip(mine, right, strict=True):
            assert (x is None) == (y is None)
            assert x is None or math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_as_it_is(name: str) -> None:
    assert precounted(aggregate(REFUSED[name])) is None


def kept(rows: int, values: int) -> list[tuple[str, ...]]:
    """The keys of the states of a sum over like rows and of the average they meet."""
    columns = {name: ColumnFacts(nulls=0, distinct=values) for name in ("g", "b", "v")}
    info = TableInfo(scrambles=(("k",),), facts=TableFacts(rows=rows, columns=columns))
    plan = aggregate(QUERIES["all functions"])
    found = cut(plan, {"t": info}, {0: ("k",), 1: ("k",)})
    return [state.aggregate.keys if state.aggregate else () for state in found.states]


def test_counts_are_kept_where_rows_are_alike() -> None:
    assert kept(rows=1_000_000, values=10) == [("__by_g", "b", "v"), ()]


def test_rows_are_kept_where_each_is_different() -> None:
    assert kept(rows=1000, values=1000) == [(), ()]
