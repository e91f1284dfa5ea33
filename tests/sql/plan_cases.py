"""Queries of every construct and the plans they mean, for the tests of front end and rewrites."""

from __future__ import annotations

from textwrap import dedent

from sooner.algebra import Column, Schema

SCHEMAS: dict[str, Schema] = {
    "t": (Column("a", "int"), Column("b", "int"), Column("s", "string")),
    "u": (Column("a", "int"), Column("c", "int")),
    "v": (Column("k", "bigint"), Column("c", "int")),
}


def plan(text: str) -> str:
    return dedent(text).strip()


# name: (query, its plan)
CASES: dict[str, tuple[str, str]] = {
    "exists": (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        plan("""
        Project [a]
          Join semi on a_2 = a
            Scan t [a, b, s]
            Project [1 AS 1, a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "exists, uncorrelated": (
        "SELECT a FROM t WHERE EXISTS (SELECT c FROM u)",
        plan("""
        Project [a]
          Join semi
            Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "exists, by inequality": (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a < t.a)",
        plan("""
        Project [a]
          Join semi on a_2 < a
            Scan t [a, b, s]
            Project [1 AS 1, a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "not exists": (
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.c > 1)",
        plan("""
        Project [a]
          Join anti on a_2 = a
            Scan t [a, b, s]
            Project [1 AS 1, a_2]
              Filter c > 1
                Scan u [a AS a_2, c]
        """),
    ),
    "exists in exists": (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a "
        "AND EXISTS (SELECT 1 FROM v WHERE v.c = u.c))",
        plan("""
        Project [a]
          Join semi on a_2 = a
            Scan t [a, b, s]
            Project [1 AS 1_2, a_2]
              Join semi on c_2 = c
                Scan u [a AS a_2, c]
                Project [1 AS 1, c_2]
                  Scan v [k, c AS c_2]
        """),
    ),
    "in": (
        "SELECT a FROM t WHERE a IN (SELECT c FROM u)",
        plan("""
        Project [a]
          Join semi on a = c
            Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "in, correlated": (
        "SELECT a FROM t WHERE a IN (SELECT c FROM u WHERE u.a = t.b)",
        plan("""
        Project [a]
          Join semi on a = c AND a_2 = b
            Scan t [a, b, s]
            Project [c, a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "in, grouped": (
        "SELECT a FROM t WHERE a IN (SELECT max(c) FROM u WHERE u.a = t.b GROUP BY u.a)",
        plan("""
        Project [a]
          Join semi on a = _col_0 AND a_2 = b
            Scan t [a, b, s]
            Project [_col_0, a_2]
              Aggregate [MAX(c) AS _col_0] by [a_2]
                Scan u [a AS a_2, c]
        """),
    ),
    "in, two columns": (
        "SELECT a FROM t WHERE (a, b) IN (SELECT a, c FROM u)",
        plan("""
        Project [a]
          Join semi on a = a_2 AND b = c
            Scan t [a, b, s]
            Project [a_2, c]
              Scan u [a AS a_2, c]
        """),
    ),
    "in, of an expression": (
        "SELECT a FROM t WHERE a + 1 IN (SELECT c FROM u)",
        plan("""
        Project [a]
          Join semi on (a + 1) = c
            Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "not in: unknown counts as a match": (
        "SELECT a FROM t WHERE a NOT IN (SELECT c FROM u)",
        plan("""
        Project [a]
          Join null-aware anti on a = c
            Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "not in, two columns": (
        "SELECT a FROM t WHERE (a, b) NOT IN (SELECT a, c FROM u)",
        plan("""
        Project [a]
          Join null-aware anti on a = a_2 AND b = c
            Scan t [a, b, s]
            Project [a_2, c]
              Scan u [a AS a_2, c]
        """),
    ),
    "not in, correlated: unknown counts among the rows of the subquery only": (
        "SELECT a FROM t WHERE a NOT IN (SELECT c FROM u WHERE u.a = t.b)",
        plan("""
        Project [a]
          Join anti on a_2 = b AND ((a = c) OR (a = c) IS NULL)
            Scan t [a, b, s]
            Project [c, a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "scalar": (
        "SELECT a FROM t WHERE b > (SELECT max(c) FROM u)",
        plan("""
        Project [a]
          Filter b > max
            Join inner
              Scan t [a, b, s]
              Aggregate [MAX(c) AS max]
                Scan u [a AS a_2, c]
        """),
    ),
    "scalar, correlated": (
        "SELECT a FROM t WHERE b > (SELECT avg(c) FROM u WHERE u.a = t.a)",
        plan("""
        Project [a]
          Filter b > avg
            Join left on a_2 = a
              Scan t [a, b, s]
              Aggregate [AVG(c) AS avg] by [a_2]
                Scan u [a AS a_2, c]
        """),
    ),
    "scalar, correlated, int with bigint": (
        "SELECT a FROM t WHERE b > (SELECT sum(c) FROM v WHERE v.k = t.a)",
        plan("""
        Project [a]
          Filter b > sum
            Join left on k = a
              Scan t [a, b, s]
              Aggregate [SUM(c) AS sum] by [k]
                Scan v [k, c]
        """),
    ),
    "scalar count of nothing is zero": (
        "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t",
        plan("""
        Project [a, COALESCE(count, 0) AS n]
          Join left on a_2 = a
            Scan t [a, b, s]
            Aggregate [COUNT(*) AS count] by [a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "scalar sum of nothing is null": (
        "SELECT a, (SELECT sum(c) + 1 FROM u WHERE u.a = t.a) AS n FROM t",
        plan("""
        Project [a, (sum + 1) AS n]
          Join left on a_2 = a
            Scan t [a, b, s]
            Aggregate [SUM(c) AS sum] by [a_2]
              Scan u [a AS a_2, c]
        """),
    ),
    "scalar with having": (
        "SELECT a FROM t WHERE 0 = (SELECT count(*) FROM u WHERE u.a = t.a HAVING count(*) < 3)",
        plan("""
        Project [a]
          Filter 0 = CASE WHEN COALESCE(count, 0) < 3 THEN COALESCE(count, 0) END
            Join left on a_2 = a
              Scan t [a, b, s]
              Aggregate [COUNT(*) AS count] by [a_2]
                Scan u [a AS a_2, c]
        """),
    ),
    "scalar in having": (
        "SELECT a FROM t GROUP BY a HAVING sum(b) > (SELECT max(c) FROM u)",
        plan("""
        Project [a]
          Filter sum > max
            Join inner
              Aggregate [SUM(b) AS sum] by [a]
                Scan t [a, b, s]
              Aggregate [MAX(c) AS max]
                Scan u [a AS a_2, c]
        """),
    ),
    "with, used twice": (
        "WITH w AS (SELECT a, sum(b) AS total FROM t GROUP BY a) "
        "SELECT w.a, x.total FROM w JOIN w AS x ON w.a = x.a",
        plan("""
        Project [a, total_2]
          Join inner on a = a_2
            Project [a, total]
              Aggregate [SUM(b) AS total] by [a]
                Scan t [a, b, s]
            Project [a_2, total_2]
              Aggregate [SUM(b_2) AS total_2] by [a_2]
                Scan t [a AS a_2, b AS b_2, s AS s_2]
        """),
    ),
    "with over with": (
        "WITH w AS (SELECT a, b FROM t), x AS (SELECT b FROM w) SELECT b FROM x",
        plan("""
        Project [b]
          Project [b]
            Project [a, b]
              Scan t [a, b, s]
        """),
    ),
    "with, named columns": (
        "WITH w(x) AS (SELECT a FROM t UNION ALL SELECT c FROM u) SELECT x FROM w",
        plan("""
        Project [a]
          Union all
            Project [a]
              Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "with inside a subquery": (
        "SELECT a FROM t WHERE a IN (WITH w AS (SELECT c FROM u) SELECT c FROM w)",
        plan("""
        Project [a]
          Join semi on a = c
            Scan t [a, b, s]
            Project [c]
              Project [c]
                Scan u [a AS a_2, c]
        """),
    ),
    "derived table": (
        "SELECT d.n FROM (SELECT count(*) AS n FROM t GROUP BY a) AS d WHERE d.n > 1",
        plan("""
        Project [n]
          Filter n > 1
            Project [n]
              Aggregate [COUNT(*) AS n] by [a]
                Scan t [a, b, s]
        """),
    ),
    "derived table, named columns": (
        "SELECT d.p FROM (SELECT a, b FROM t) AS d(p, q)",
        plan("""
        Project [a]
          Project [a, b]
            Scan t [a, b, s]
        """),
    ),
    "union all": (
        "SELECT a FROM t UNION ALL SELECT c FROM u",
        plan("""
        Union all
          Project [a]
            Scan t [a, b, s]
          Project [c]
            Scan u [a AS a_2, c]
        """),
    ),
    "union": (
        "SELECT a FROM t UNION SELECT c FROM u",
        plan("""
        Distinct [a]
          Union all
            Project [a]
              Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """),
    ),
    "intersect": (
        "SELECT a FROM t INTERSECT SELECT c FROM u",
        plan("""
        Intersect
          Project [a]
            Scan t [a, b, s]
          Project [c]
            Scan u [a AS a_2, c]
        """),
    ),
    "intersect all": (
        "SELECT a FROM t INTERSECT ALL SELECT c FROM u",
        plan("""
        Intersect all
          Project [a]
            Scan t [a, b, s]
          Project [c]
            Scan u [a AS a_2, c]
        """),
    ),
    "except, in order": (
        "SELECT a FROM t EXCEPT SELECT c FROM u ORDER BY a LIMIT 3",
        plan("""
        Limit 3
          Sort [a]
            Except
              Project [a]
                Scan t [a, b, s]
              Project [c]
                Scan u [a AS a_2, c]
        """),
    ),
    "except all": (
        "SELECT a FROM t EXCEPT ALL SELECT c FROM u",
        plan("""
        Except all
          Project [a]
            Scan t [a, b, s]
          Project [c]
            Scan u [a AS a_2, c]
        """),
    ),
    "minus": (
        "SELECT a FROM t MINUS SELECT c FROM u",
        plan("""
        Except
          Project [a]
            Scan t [a, b, s]
          Project [c]
            Scan u [a AS a_2, c]
        """),
    ),
    "intersect binds more than union": (
        "SELECT a FROM t UNION ALL SELECT c FROM u INTERSECT SELECT c FROM v",
        plan("""
        Union all
          Project [a]
            Scan t [a, b, s]
          Intersect
            Project [c]
              Scan u [a AS a_2, c]
            Project [c_2]
              Scan v [k, c AS c_2]
        """),
    ),
    "parts of a union with their own limits": (
        "(SELECT a FROM t LIMIT 1) UNION ALL (SELECT c FROM u ORDER BY c LIMIT 2)",
        plan("""
        Union all
          Limit 1
            Project [a]
              Scan t [a, b, s]
          Limit 2
            Sort [c]
              Project [c]
                Scan u [a AS a_2, c]
        """),
    ),
    "distinct": (
        "SELECT DISTINCT a, b FROM t",
        plan("""
        Distinct [a, b]
          Project [a, b]
            Scan t [a, b, s]
        """),
    ),
    "distinct, in order": (
        "SELECT DISTINCT a FROM t ORDER BY a DESC",
        plan("""
        Sort [a DESC]
          Distinct [a]
            Project [a]
              Scan t [a, b, s]
        """),
    ),
    "group by": (
        "SELECT a, count(*) AS n FROM t GROUP BY a",
        plan("""
        Project [a, n]
          Aggregate [COUNT(*) AS n] by [a]
            Scan t [a, b, s]
        """),
    ),
    "group by an expression": (
        "SELECT a % 2 AS m, count(*) AS n FROM t GROUP BY a % 2 ORDER BY count(*) DESC",
        plan("""
        Sort [n DESC]
          Project [key, n]
            Aggregate [COUNT(*) AS n] by [key]
              Project [a, b, s, a % 2 AS key]
                Scan t [a, b, s]
        """),
    ),
    "group by an alias": (
        "SELECT a + 1 AS x, sum(b) AS y FROM t GROUP BY x",
        plan("""
        Project [key, y]
          Aggregate [SUM(b) AS y] by [key]
            Project [a, b, s, a + 1 AS key]
              Scan t [a, b, s]
        """),
    ),
    "group by a place": (
        "SELECT a + 1 AS x, sum(b) AS y FROM t GROUP BY 1",
        plan("""
        Project [key, y]
          Aggregate [SUM(b) AS y] by [key]
            Project [a, b, s, a + 1 AS key]
              Scan t [a, b, s]
        """),
    ),
    "group by what is not shown": (
        "SELECT count(*) AS n FROM t GROUP BY a, b",
        plan("""
        Project [n]
          Aggregate [COUNT(*) AS n] by [a, b]
            Scan t [a, b, s]
        """),
    ),
    "having": (
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING sum(b) > 1 AND n < 9",
        plan("""
        Project [a, n]
          Filter n < 9
            Filter sum > 1
              Aggregate [COUNT(*) AS n, SUM(b) AS sum] by [a]
                Scan t [a, b, s]
        """),
    ),
    "having without group by": (
        "SELECT max(a) AS m FROM t HAVING count(*) > 1",
        plan("""
        Project [m]
          Filter count > 1
            Aggregate [MAX(a) AS m, COUNT(*) AS count]
              Scan t [a, b, s]
        """),
    ),
    "aggregate of no group": (
        "SELECT sum(b) + 1 AS x, max(a) AS y, max(a) AS z FROM t",
        plan("""
        Project [sum + 1 AS x, y, y AS z]
          Aggregate [SUM(b) AS sum, MAX(a) AS y]
            Scan t [a, b, s]
        """),
    ),
    "aggregates: distinct and filter": (
        "SELECT count(DISTINCT a, b) AS n, sum(b) FILTER (WHERE s = 'x') AS f FROM t",
        plan("""
        Project [n, f]
          Aggregate [COUNT(DISTINCT a, b) AS n, SUM(b) FILTER(WHERE s = 'x') AS f]
            Scan t [a, b, s]
        """),
    ),
    "order by hidden columns": (
        "SELECT a FROM t ORDER BY b DESC, s",
        plan("""
        Project [a]
          Sort [sort_key DESC, sort_key_2]
            Project [a, b AS sort_key, s AS sort_key_2]
              Scan t [a, b, s]
        """),
    ),
    "order by an alias": (
        "SELECT a AS x FROM t ORDER BY x NULLS LAST LIMIT 5 OFFSET 2",
        plan("""
        Limit 5 after skipping 2
          Sort [a NULLS LAST]
            Project [a]
              Scan t [a, b, s]
        """),
    ),
    "order by an aggregate that is not shown": (
        "SELECT a FROM t GROUP BY a ORDER BY sum(b)",
        plan("""
        Project [a]
          Sort [sort_key]
            Project [a, sum AS sort_key]
              Aggregate [SUM(b) AS sum] by [a]
                Scan t [a, b, s]
        """),
    ),
    "order by a place": (
        "SELECT a, b + 1 AS c FROM t ORDER BY 2, 1",
        plan("""
        Sort [c, a]
          Project [a, b + 1 AS c]
            Scan t [a, b, s]
        """),
    ),
    "offset": (
        "SELECT a FROM t OFFSET 2",
        plan("""
        Limit all after skipping 2
          Project [a]
            Scan t [a, b, s]
        """),
    ),
    "left join": (
        "SELECT t.a, u.c FROM t LEFT JOIN u ON t.a = u.a AND u.c > 1",
        plan("""
        Project [a, c]
          Join left on a = a_2 AND c > 1
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "right join": (
        "SELECT t.a, u.c FROM t RIGHT OUTER JOIN u ON t.a = u.a",
        plan("""
        Project [a, c]
          Join right on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "full join": (
        "SELECT t.a, u.c FROM t FULL OUTER JOIN u ON t.a = u.a",
        plan("""
        Project [a, c]
          Join full on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "semi join": (
        "SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a",
        plan("""
        Project [a]
          Join semi on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "anti join": (
        "SELECT t.a FROM t ANTI JOIN u ON t.a = u.a",
        plan("""
        Project [a]
          Join anti on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "cross joins": (
        "SELECT t.b, v.k FROM t, u CROSS JOIN v",
        plan("""
        Project [b, k]
          Join inner
            Join inner
              Scan t [a, b, s]
              Scan u [a AS a_2, c]
            Scan v [k, c AS c_2]
        """),
    ),
    "self join": (
        "SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.b",
        plan("""
        Project [a, b_2]
          Join inner on a = b_2
            Scan t [a, b, s]
            Scan t [a AS a_2, b AS b_2, s AS s_2]
        """),
    ),
    "using": (
        "SELECT a, c FROM t JOIN u USING (a)",
        plan("""
        Project [a, c]
          Join inner on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "using, all columns": (
        "SELECT * FROM t LEFT JOIN u USING (a)",
        plan("""
        Project [a, b, s, c]
          Join left on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "using, the side that keeps its rows": (
        "SELECT a, c FROM t RIGHT JOIN u USING (a) JOIN t AS v USING (a)",
        plan("""
        Project [a_2, c]
          Join inner on a_2 = a_3
            Join right on a = a_2
              Scan t [a, b, s]
              Scan u [a AS a_2, c]
            Scan t [a AS a_3, b AS b_2, s AS s_2]
        """),
    ),
    "using, both sides keep theirs": (
        "SELECT a FROM t FULL JOIN u USING (a) LEFT JOIN t AS v USING (a)",
        plan("""
        Project [COALESCE(a, a_2) AS a_4]
          Join left on COALESCE(a, a_2) = a_3
            Join full on a = a_2
              Scan t [a, b, s]
              Scan u [a AS a_2, c]
            Scan t [a AS a_3, b AS b_2, s AS s_2]
        """),
    ),
    "using, and what the user wrote": (
        "SELECT coalesce(t.a, u.a, a) AS x, t.a FROM t RIGHT JOIN u USING (a)",
        plan("""
        Project [COALESCE(a, a_2, a_2) AS x, a]
          Join right on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "natural join": (
        "SELECT * FROM t NATURAL RIGHT JOIN u",
        plan("""
        Project [a_2, b, s, c]
          Join right on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "star": (
        "SELECT * FROM t",
        plan("""
        Project [a, b, s]
          Scan t [a, b, s]
        """),
    ),
    "star of one source": (
        "SELECT u.*, t.b FROM t, u",
        plan("""
        Project [a_2, c, b]
          Join inner
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "names in any case": (
        "SELECT T.A, U.C FROM T JOIN U ON t.A = u.a",
        plan("""
        Project [a, c]
          Join inner on a = a_2
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """),
    ),
    "the same column twice": (
        "SELECT a, a AS again FROM t",
        plan("""
        Project [a, a AS again]
          Scan t [a, b, s]
        """),
    ),
    "an alias does not hide a column in WHERE": (
        "SELECT a + 1 AS b, b + 1 AS y FROM t WHERE b > 1",
        plan("""
        Project [a + 1 AS b_2, b + 1 AS y]
          Filter b > 1
            Scan t [a, b, s]
        """),
    ),
}
