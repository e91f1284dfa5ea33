"""Queries at the edges of what Sooner plans itself: the answer is Spark's, whichever way it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from fuzz import world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

QUERIES = """
SELECT id, id FROM p
SELECT id AS x, a AS X FROM p
SELECT p.id, q.id FROM p JOIN q ON p.id = q.id
SELECT * FROM p JOIN q ON p.id = q.id
SELECT * FROM p LEFT JOIN q USING (id)
SELECT * FROM p RIGHT JOIN q USING (id, s)
SELECT * FROM p FULL JOIN q USING (b)
SELECT id, w FROM p RIGHT JOIN q USING (id) LEFT JOIN z USING (id)
SELECT id, count(*) FROM q FULL JOIN z USING (id) JOIN p USING (id) GROUP BY id
SELECT id FROM z FULL JOIN q USING (id) WHERE EXISTS (SELECT 1 FROM r WHERE r.k = id)
SELECT * FROM p NATURAL RIGHT JOIN q
SELECT b, s, id FROM q NATURAL FULL JOIN p
SELECT e, count(*) FROM (SELECT CAST(e AS STRING) AS e FROM q) AS g RIGHT JOIN (SELECT CAST(b AS DECIMAL(6, 1)) AS e FROM p) AS h USING (e) GROUP BY e
SELECT count(*) FROM (SELECT repeat('0', a) || id AS id FROM p) AS g RIGHT JOIN (SELECT id FROM q) AS h USING (id) GROUP BY id
SELECT * FROM p NATURAL JOIN z
SELECT id, s FROM p LEFT SEMI JOIN q USING (id)
SELECT q.b FROM p CROSS JOIN q
SELECT 1 FROM p CROSS JOIN z
SELECT 'x' AS one, count(*) FROM p GROUP BY 1
SELECT 5 AS c FROM p ORDER BY 1
SELECT id + 1 AS y, y * 2 AS z FROM p
SELECT a + 1 AS b, b + 1 AS y FROM p WHERE b > 0
SELECT a AS id, count(*) FROM p GROUP BY a ORDER BY id
SELECT sum(a + (SELECT max(id) FROM q)) FROM p
SELECT a FROM p WHERE (a > 1 AND b > 0) NOT IN (SELECT id > 1 FROM q WHERE id IS NOT NULL)
SELECT a FROM p WHERE (a, s) NOT IN (SELECT id, s FROM q WHERE id IS NOT NULL)
SELECT a FROM p WHERE a NOT IN (SELECT id FROM z)
SELECT a FROM p WHERE a NOT IN (SELECT id FROM q WHERE q.b = p.b)
SELECT a FROM p WHERE a NOT IN ((SELECT id FROM q WHERE id > 9))
SELECT a FROM p WHERE a IN (SELECT b FROM q)
SELECT a FROM p WHERE d IN (SELECT e FROM q)
SELECT a FROM p WHERE d NOT IN (SELECT e FROM q WHERE e > 0)
SELECT id, (SELECT count(*) FROM q WHERE q.id = p.id) FROM p
SELECT id, (SELECT count(*) FROM q WHERE q.b = p.id) AS n FROM p
SELECT id, (SELECT max(e) FROM q WHERE q.e = p.d) AS n FROM p
SELECT id, (SELECT CASE WHEN count(*) = 0 THEN 'none' ELSE 'some' END FROM q WHERE q.id = p.a) AS n FROM p
SELECT a, (SELECT count(*) FROM q WHERE q.id = p.a) AS n, count(*) FROM p GROUP BY 1, 2
SELECT a FROM p WHERE EXISTS (SELECT max(id) FROM z)
SELECT a FROM p WHERE EXISTS (SELECT 1 FROM z HAVING count(*) > 0)
SELECT a FROM p WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.id = p.id OR q.id IS NULL)
SELECT a FROM p WHERE EXISTS (SELECT id FROM q LIMIT 0)
SELECT count(*) FROM (SELECT DISTINCT a, b FROM p) AS d
SELECT d.n, d.m FROM (SELECT a, count(*), sum(d) FROM p GROUP BY a) AS d(k, n, m)
WITH w(x, y) AS (SELECT a, b FROM p), w2 AS (SELECT x FROM w) SELECT w2.x, w.y FROM w JOIN w2 ON w.x = w2.x
WITH p AS (SELECT id FROM p WHERE id > 1) SELECT * FROM p
SELECT a FROM p UNION SELECT b FROM q
SELECT a FROM p UNION ALL SELECT e FROM q
SELECT a, s FROM p INTERSECT ALL SELECT id, s FROM q
SELECT b FROM p EXCEPT ALL SELECT b FROM q
SELECT a FROM p UNION ALL SELECT id FROM q INTERSECT SELECT a FROM r
SELECT x FROM (SELECT a AS x FROM p UNION ALL SELECT e FROM q) WHERE x > 1
SELECT x FROM (SELECT a AS x FROM p EXCEPT SELECT e FROM q) WHERE x > 0
SELECT p.d, q.e FROM p JOIN q ON p.id = q.id WHERE q.c = 1 UNION ALL SELECT p.d, q.e FROM p JOIN q ON p.id = q.id WHERE q.c = 2
SELECT 'x' AS k, p.d * q.e AS v FROM p JOIN q ON p.id = q.id WHERE q.c = 1 UNION ALL SELECT 'longer', p.d * q.e FROM q JOIN p ON p.id = q.id WHERE q.c > 1 UNION ALL SELECT s, d FROM p
SELECT p.s, q.c FROM p JOIN q ON p.id = q.id WHERE q.b = 1 UNION ALL SELECT p.s, q.b FROM p JOIN q ON p.id = q.id WHERE q.b = 2
SELECT p.s FROM p JOIN q ON p.id = q.c WHERE q.b = 1 UNION SELECT p.s FROM p JOIN q ON p.id = q.b WHERE q.b = 2
SELECT 1 AS n, p.s FROM p JOIN q USING (id) WHERE q.c = 1 UNION ALL SELECT 12345678901, p.s FROM p JOIN q USING (id) WHERE q.c = 2
SELECT p.a, q.e FROM p LEFT JOIN q ON p.id = q.id AND p.a > 0 WHERE p.s = 'a' UNION ALL SELECT p.a, q.e FROM p LEFT JOIN q ON p.id = q.id AND p.a > 0 WHERE p.s = 'b'
SELECT a FROM p WHERE s = 'a' AND a NOT IN (SELECT id FROM z) UNION ALL SELECT a FROM p WHERE s = 'b' AND a NOT IN (SELECT id FROM z)
SELECT p.s, g.m FROM p JOIN (SELECT id, sum(e) AS m FROM q WHERE c > 1 GROUP BY id) AS g USING (id) UNION ALL SELECT p.s, g.m FROM p JOIN (SELECT id, sum(e) AS m FROM q WHERE c <= 1 GROUP BY id) AS g USING (id)
SELECT s, max(t) AS m FROM p GROUP BY s HAVING m > DATE '2020-01-01' AND count(*) > 1
SELECT max(a) FROM p HAVING count(*) > 100
SELECT max(id), count(*), sum(w) FROM z
SELECT id, sum(w) FROM z GROUP BY id
SELECT a, avg(d), avg(x), sum(DISTINCT b), count(DISTINCT a, s), stddev(x) FROM p GROUP BY a
SELECT sum(a) FILTER (WHERE s = 'a'), count(*) FILTER (WHERE d > 1) FROM p
SELECT DISTINCT s FROM p ORDER BY s DESC NULLS FIRST
SELECT a FROM p ORDER BY b, d, x, s, t, id, a LIMIT 4 OFFSET 1
SELECT s, count(*) AS n FROM p GROUP BY s ORDER BY count(*) DESC, s
SELECT a % 2, count(*) FROM p GROUP BY a % 2 ORDER BY 1
SELECT 1 AS one, round(sum(x), 1) FROM p GROUP BY 1
SELECT t - INTERVAL 1 YEAR 2 MONTHS, t + INTERVAL 1 YEAR + INTERVAL 2 MONTHS, t - INTERVAL '1-2' YEAR TO MONTH FROM p
SELECT id FROM p WHERE EXISTS (SELECT q.c + 1 AS a FROM q WHERE a > 1 AND q.id = p.id)
SELECT id FROM p WHERE id IN (SELECT n AS a FROM (SELECT c AS n FROM q) WHERE a > 1)
WITH a AS (SELECT id, c AS n FROM q) SELECT id FROM p WHERE id IN (SELECT n AS b FROM a WHERE b > 1)
SELECT id FROM p WHERE a > (SELECT min(id) FROM q WHERE id >= 0) AND CAST(10 / a AS INT) >= 0
SELECT id FROM p WHERE EXISTS (SELECT q.c + 1 AS a FROM q LEFT SEMI JOIN r ON q.id = r.k WHERE a > 1)
SELECT id FROM (SELECT * FROM p WHERE a > (SELECT min(id) FROM q WHERE id >= 0)) WHERE 10 DIV a > 0
SELECT a, sum(a) FROM p GROUP BY a HAVING sum(a) > (SELECT min(id) FROM q) AND 10 DIV sum(a) > 0
SELECT id, row_number() OVER (ORDER BY id, a, b, d, x, s, t) AS n FROM p
SELECT a, sum(b) FROM p GROUP BY ROLLUP (a)
SELECT a, count(*) FROM p GROUP BY ALL
SELECT 10L + a, 1.5BD * a FROM p
SELECT count(*) FROM p WHERE s <> 'a''b' AND s || '''' <> "x""y" AND 'a' 'b' <> s
SELECT 'O''Brien', "a""b", 'a' 'b', '''', 'x''''y', 'a\\\\''b', r'a''b' FROM p
SELECT q.* FROM p JOIN q USING (b)
SELECT p.*, q.* FROM p FULL JOIN q USING (b)
SELECT count(DISTINCT *), count(*, id) FROM (SELECT id, b FROM p)
SELECT count(*) FROM p WHERE (id > 1) <=> (a > 1) < (b > 0)
SELECT count(*) FROM p WHERE (id > 1) = (a > 1) NOT IN (TRUE)
SELECT "double quoted", 'it\\'s', s || "x" FROM p
SELECT s FROM p WHERE s LIKE '%a%' OR s RLIKE 'b$'
SELECT d / 3, d * e, d + e, -d, x / 2, a / 2 FROM p JOIN q ON p.id = q.id
SELECT CAST(d AS INT), CAST(a AS STRING), CAST(x AS DECIMAL(5,1)), CAST(t AS TIMESTAMP) FROM p
SELECT t + INTERVAL '1' MONTH, t - DATE '2020-01-01', year(t), quarter(t), extract(DAY FROM t) FROM p
SELECT p.* FROM p, q, r WHERE p.id = r.k AND r.a = q.c
SELECT x.id FROM p AS x LEFT JOIN q AS y ON x.id = y.id LEFT JOIN r ON r.a = y.c WHERE r.k = 1
SELECT P.ID, Q.S FROM P JOIN Q ON p.Id = q.iD
FROM p |> SELECT id |> ORDER BY id |> LIMIT 3 |> AGGREGATE count(*)
SELECT id FROM p -- a comment ; with a semicolon
SELECT 1 AS one
VALUES (1, 'a'), (2, 'b')
"""  # noqa: E501
TEXTS = [line for line in QUERIES.splitlines() if line]


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    import sooner

    place = tmp_path_factory.mktemp("edges")
    with sooner.connect(place / "home", spark=spark, progress=False) as opened:
        for name, table in world(0).items():
            pq.write_table(table, place / f"{name}.parquet")
            opened.register(name, place / f"{name}.parquet")
        yield opened


@pytest.mark.parametrize("text", TEXTS)
def test_answer_is_sparks(small: Database, text: str) -> None:
    for table in small.tables():
        small._bind(table.name)
    ordered = "ORDER BY" in text and "OVER" not in text
    assert_same_answer(small.sql(text).exact().to_arrow(), small.spark.sql(text).toArrow(), ordered)
