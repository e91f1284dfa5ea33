"""What the algebra cannot express goes to Spark as it is written, with a reason that a person can read."""

from __future__ import annotations

import pytest
from plan_cases import SCHEMAS

from sooner.sql import Verbatim, plan_query

# A query and a word that its reason must have.
CASES = [
    ("SELECT a + 1 AS b, count(*) AS n FROM t GROUP BY b", "both a column and an alias"),
    ("SELECT a + 1 AS b FROM t ORDER BY b", "both a column and an alias"),
    ("SELECT max(a) AS b FROM t GROUP BY s HAVING b > 1", "both a column and an alias"),
    ("SELECT a FROM t WHERE EXISTS (SELECT c + 1 AS b FROM u WHERE b > 1)", "in WHERE"),
    (
        "SELECT a FROM t WHERE a IN (SELECT d AS b FROM (SELECT c AS d FROM u) WHERE b > 1)",
        "in WHERE",
    ),
    ("SELECT a FROM t WHERE a NOT IN ((SELECT c FROM u))", "a list of one value"),
    ("SELECT a FROM t -- from C:\\\nWHERE a > 1", "comment that goes on"),
    ("SELECT a FROM t WHERE s = '${spark.app.name}'", "the value of a setting"),
    ("FROM t |> LIMIT 3 |> AGGREGATE count(*) AS n", "|>"),
    ("SELECT a FROM t |> UNION ALL SELECT c FROM u", "|>"),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM (SELECT struct(c AS a) AS t FROM u) WHERE t.a > 1)",
        "both a column and a table",
    ),
    ("SELECT interval + 1 AS x FROM t", "without a unit"),
    ("SELECT a - INTERVAL 1 YEAR 2 MONTHS AS x FROM t", "several units"),
    ("SELECT a FROM t WHERE a > (SELECT min(c) FROM u) AND 10 DIV a > 0", "may fail"),
    ("SELECT 10L AS x FROM t", "type letter"),
    ("SELECT a FROM t WHERE b > 1.5BD", "type letter"),
    (r"SELECT a FROM t WHERE s = r'\d'", "type letter"),
    ("SELECT a, row_number() OVER (ORDER BY b) AS n FROM t", "window"),
    ("SELECT a, sum(b) OVER () AS n FROM t", "window"),
    ("SELECT a FROM t QUALIFY row_number() OVER (ORDER BY b) = 1", "QUALIFY"),
    ("SELECT a, x FROM t LATERAL VIEW explode(array(1, 2)) e AS x", "LATERAL"),
    ("SELECT a FROM t, LATERAL (SELECT c FROM u WHERE u.a = t.a) AS l", "LATERAL"),
    ("SELECT a, sum(b) AS n FROM t GROUP BY ROLLUP (a)", "ROLLUP"),
    ("SELECT a, sum(b) AS n FROM t GROUP BY a WITH CUBE", "cube"),
    ("SELECT a, sum(b) AS n FROM t GROUP BY GROUPING SETS ((a), ())", "GROUPING SETS"),
    ("SELECT a, sum(b) AS n FROM t GROUP BY ALL", "all"),
    ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "SAMPLE"),
    ("SELECT /*+ BROADCAST(u) */ t.a FROM t JOIN u ON t.a = u.a", "hint"),
    (
        "WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM w) SELECT n FROM w",
        "RECURSIVE",
    ),
    ("SELECT * FROM t PIVOT (sum(b) FOR a IN (1, 2))", "PIVOT"),
    ("SELECT a FROM t SORT BY a", "SORT"),
    ("SELECT a FROM t DISTRIBUTE BY a", "DISTRIBUTE"),
    ("SELECT a FROM t WHERE a > ALL (SELECT c FROM u)", "ALL"),
    ("SELECT a FROM t WHERE a IN (SELECT c FROM u) OR b = 1", "EXISTS or IN"),
    ("SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN 1 END AS x FROM t", "EXISTS or IN"),
    ("SELECT t.a FROM t JOIN u ON t.a = (SELECT max(c) FROM u)", "join condition"),
    ("SELECT 1 AS one", "without FROM"),
    ("SELECT rand() AS r FROM t", "rand"),
    ("SELECT my_function(a) AS r FROM t", "my_function"),
    ("SELECT percentile(a, 0.5, b) AS r FROM t", "count several times"),
    ("SELECT percentile(a, array(0.5, 0.9)) AS r FROM t", "array"),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC) AS r FROM t", "WITHIN GROUP"),
    ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) AS r FROM t", "WITHIN GROUP"),
    ("SELECT a FROM t LIMIT 1 + 1", "LIMIT"),
    ("SELECT a FROM t WHERE b = (SELECT c FROM u LIMIT 1)", "scalar subquery"),
    ("SELECT a FROM t WHERE b = (SELECT c FROM u)", "scalar subquery"),
    ("SELECT a FROM t WHERE b > (SELECT sum(c) FROM u WHERE u.a < t.a)", "="),
    ("SELECT a FROM t WHERE b > (SELECT sum(c) FROM u WHERE u.a + 1 = t.a)", "computed"),
    ("SELECT a FROM t WHERE b > (SELECT sum(c) FROM u WHERE u.a = t.s)", "unlike"),
    ("SELECT a FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a)", "aggregate"),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 0)", "LIMIT"),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS"
        " (SELECT 1 FROM v WHERE v.c = t.a))",
        "two levels up",
    ),
    ("SELECT DISTINCT a FROM t ORDER BY b", "order that is not shown"),
    ("SELECT a FROM t UNION BY NAME SELECT c AS a FROM u", "NAME"),
    ("SELECT x.a FROM VALUES (1), (2) AS x(a)", "VALUES"),
    ("SELECT CAST(a AS ARRAY<INT>) AS r FROM t", "type ARRAY"),
    ("SELECT x.a FROM (SELECT a, b AS a FROM t) AS x", "two columns called a"),
    ("SELECT a FROM t GROUP BY a, (SELECT max(c) FROM u)", "GROUP BY"),
    ("SELECT s LIKE 'a!%' ESCAPE '!' AS x FROM t", "!"),
    # Spark puts the columns that tables are joined by first, does comparisons one after the other,
    # and has all columns there are for *.
    ("SELECT u.* FROM t JOIN u USING (a)", "u.* with JOIN … USING"),
    ("SELECT a FROM t WHERE a = b IN (TRUE)", "comparison of a comparison"),
    ("SELECT a FROM t WHERE a <=> b < TRUE", "comparison of a comparison"),
    ("SELECT a FROM t WHERE a = b NOT BETWEEN FALSE AND TRUE", "comparison of a comparison"),
    ("SELECT count(DISTINCT *) AS n FROM t", "* among the arguments"),
    ("SELECT count(*, a) AS n FROM t", "* among the arguments"),
    ("SELECT coalesce(*) AS n FROM t", "* among the arguments"),
]


@pytest.mark.parametrize(("text", "word"), CASES, ids=[text for text, _ in CASES])
def test_goes_to_spark_with_a_reason(text: str, word: str) -> None:
    plan = plan_query(text, SCHEMAS)
    assert isinstance(plan, Verbatim)
    assert word in plan.reason


@pytest.mark.parametrize("word", ["10L", "1.5bd", "r'x'"])
def test_type_letters_inside_strings_and_names_are_no_literals(word: str) -> None:
    escaped = word.replace("'", "''")
    plan = plan_query(f"SELECT a AS `{word}` FROM t WHERE s = '{escaped}'", SCHEMAS)
    assert not isinstance(plan, Verbatim)


def test_what_the_parser_cannot_read_is_left_to_spark() -> None:
    plan = plan_query("SELECT a FROM t WHERE ) (", SCHEMAS)
    assert isinstance(plan, Verbatim)
    assert "parser" in plan.reason


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(a + (SELECT max(c) FROM u)) AS x FROM t",
        "SELECT sum(a) FILTER (WHERE a > (SELECT max(c) FROM u)) AS x FROM t",
        "SELECT count(*) AS n FROM t HAVING max((SELECT max(c) FROM u)) > 1",
    ],
)
def test_a_subquery_inside_an_aggregate_goes_to_spark(text: str) -> None:
    assert isinstance(plan_query(text, SCHEMAS), Verbatim)
