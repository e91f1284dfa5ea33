"""The rendered text means the plan: DuckDB reads both the query and the text."""

from __future__ import annotations

from collections import Counter
from itertools import product

import duckdb
import pytest
import sqlglot
from plan_cases import CASES, SCHEMAS

from sooner.algebra import Column, Join, JoinKind, Map, Opaque, Relation, Scan
from sooner.rewrites import rewrite
from sooner.sql import plan_query, quote, render

# Queries that went wrong once.
REGRESSIONS = {
    "a side of a join of which nothing is read": (
        "SELECT u.a FROM t CROSS JOIN u UNION ALL SELECT a FROM u"
    ),
    "a filtered side of a join of which nothing is read": (
        "SELECT u.a FROM (SELECT 1 AS one FROM t WHERE b = 1) AS d CROSS JOIN u"
        " UNION ALL SELECT a FROM u"
    ),
    "a limited table of which nothing is read": (
        "SELECT u.a FROM (SELECT a FROM t LIMIT 2) AS d CROSS JOIN u UNION ALL SELECT a FROM u"
    ),
    "NOT IN with a conjunction on its left": (
        "SELECT a FROM t WHERE (a > 1 AND b > 0) NOT IN (SELECT c > 1 FROM u WHERE c IS NOT NULL)"
    ),
    "NOT IN with a negation on its left": (
        "SELECT a FROM t WHERE (NOT a > 1) NOT IN (SELECT c > 1 FROM u WHERE c IS NOT NULL)"
    ),
    "NOT IN with a disjunction on its left": (
        "SELECT a FROM t WHERE (a > 1 OR b > 0) NOT IN (SELECT c > 1 FROM u WHERE c IS NOT NULL)"
    ),
}
# LIMIT without an order may give any rows.
QUERIES = {
    name: text
    for name, (text, _) in CASES.items()
    if "LIMIT 1)" not in text and "OFFSET" not in text
} | REGRESSIONS


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(config={"threads": 1})
    made.execute("PRAGMA disable_optimizer")  # it costs more than it saves on ten rows
    small = "(0), (1), (2), (NULL)"
    made.execute("CREATE TABLE t (a INT, b INT, s VARCHAR)")
    made.execute(
        f"INSERT INTO t SELECT x, y, CASE WHEN x > 0 THEN 'x' END FROM (VALUES {small}) AS l(x),"
        f" (VALUES {small}) AS r(y) WHERE x IS NULL OR y IS NULL OR x <> y"
    )
    made.execute("CREATE TABLE u (a INT, c INT)")
    made.execute("INSERT INTO u VALUES (0, 1), (0, 1), (1, 2), (2, NULL), (NULL, 3), (5, 0)")
    made.execute("CREATE TABLE v (k BIGINT, c INT)")
    made.execute("INSERT INTO v VALUES (0, 1), (1, 2), (NULL, 2), (1, NULL)")
    return made


def rows(connection: duckdb.DuckDBPyConnection, text: str) -> Counter[tuple[object, ...]]:
    (translated,) = sqlglot.transpile(text, read="spark", write="duckdb")
    return Counter(connection.execute(translated).fetchall())


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_rendered_text_means_the_query(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    plan = plan_query(text, SCHEMAS)
    assert isinstance(plan, Relation)
    expected = rows(connection, text)
    assert rows(connection, render(plan)) == expected
    assert rows(connection, render(rewrite(plan).plan)) == expected


def test_null_aware_anti_join_of_any_condition(connection: duckdb.DuckDBPyConnection) -> None:
    import sqlglot

    left = Scan("u", ("a", "c"), (Column("a"), Column("c")))
    right = Scan("v", ("k", "c"), (Column("k"), Column("c2")))
    data = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("u", "v")}
    for text, test in {
        "a = k": lambda a, c, k, c2: _equal(a, k),
        "a = k AND c = c2": lambda a, c, k, c2: _both(_equal(a, k), _equal(c, c2)),
    }.items():
        join = Join(left, right, JoinKind.NULL_AWARE_ANTI, sqlglot.parse_one(text, read="spark"))
        kept = Counter(
            row for row in data["u"] if all(test(*row, *other) is False for other in data["v"])
        )
        assert rows(connection, render(join)) == kept


def _equal(x: object, y: object) -> bool | None:
    return None if x is None or y is None else x == y


def _both(x: bool | None, y: bool | None) -> bool | None:
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def test_truth_tables_of_the_oracle() -> None:
    values = (True, False, None)
    assert [_both(x, y) for x, y in product(values, values)].count(None) == 3


def test_leaves_can_be_named_by_the_caller() -> None:
    scan = Scan("t", ("A",), (Column("a"),))
    assert render(scan, lambda node: "`other`") == "SELECT `A` AS `a` FROM `other`"
    node = Map(scan, len, ("a",), (Column("n", "int"),))
    assert render(node, lambda node: "`m`") == "SELECT `n` FROM `m`"


def test_opaque_text_gets_names_by_position() -> None:
    node = Opaque("SELECT 1 AS x, 2 AS x", (Column("c1"), Column("c2")), "a test")
    assert render(node) == "SELECT * FROM (\nSELECT 1 AS x, 2 AS x\n) AS `_`(`c1`, `c2`)"


def test_names_are_quoted() -> None:
    assert quote("a`b") == "`a``b`"
    schemas = {"odd": (Column("a b", "int"), Column("c`d", "int"))}
    plan = plan_query("SELECT `a b`, `c``d` FROM odd", schemas)
    assert isinstance(plan, Relation)
    assert render(plan) == ("SELECT `a b`, `c``d` FROM (SELECT `a b`, `c``d` FROM `odd`) AS _1")
