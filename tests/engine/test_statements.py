"""Only queries run: everything that could change something is refused before it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner import Database, NotSupported, ParseError
from sooner.engine.statements import require_query

pytestmark = pytest.mark.spark

REFUSED = [
    "DROP TABLE t",
    "DROP VIEW t",
    "drop table if exists t",
    "DROP DATABASE default CASCADE",
    "INSERT INTO t VALUES (9, 'z')",
    "INSERT OVERWRITE t SELECT 9, 'z'",
    "INSERT OVERWRITE DIRECTORY '{place}/out' USING parquet SELECT 1 AS a",
    "CREATE TABLE made (a INT) USING parquet",
    "CREATE TABLE made USING parquet AS SELECT 1 AS a",
    "CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 9 AS id, 'z' AS v",
    "CREATE VIEW made AS SELECT 1 AS a",
    "CREATE TEMPORARY FUNCTION made AS 'no.such.Thing'",
    "CREATE DATABASE made",
    "ALTER TABLE t RENAME TO other",
    "CACHE TABLE t",
    "CACHE TABLE made AS SELECT 1 AS a",
    "UNCACHE TABLE t",
    "CLEAR CACHE",
    "SET spark.sql.shuffle.partitions = 77",
    "SET spark.sql.ansi.enabled",
    "RESET",
    "USE nowhere",
    "REFRESH TABLE t",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "WITH x AS (SELECT 9 AS id, 'z' AS v) INSERT INTO t SELECT * FROM x",
    "FROM t INSERT INTO t SELECT *",
    "FROM t INSERT OVERWRITE DIRECTORY '{place}/out' USING parquet SELECT * "
    "INSERT INTO t SELECT id, v",
    "EXECUTE IMMEDIATE 'DROP TABLE t'",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "DECLARE VARIABLE made INT",
    "SET VAR made = 1",
    "BEGIN DROP TABLE t; END",
    "BEGIN\n  DECLARE made INT DEFAULT 1;\n  SELECT made;\nEND",
    "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "UPDATE t SET v = 'z'",
    "DELETE FROM t",
    "DELETE FROM t WHERE id = 1",
    "TRUNCATE TABLE t",
    "ADD JAR '{place}/no.jar'",
    "LIST JARS",
    "LOAD DATA INPATH '{place}' INTO TABLE t",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE t",
    "SELECT * FROM t; DROP TABLE t; --",
    "-- a comment first\nDROP TABLE t",
    "/* hidden */ DROP TABLE t",
    "(DROP TABLE t)",
    "SELECT * FROM t) DROP TABLE t --",
    "SHOW TABLES",
    "DESCRIBE t",
    "EXPLAIN SELECT * FROM t",
    "COMMENT ON TABLE t IS 'x'",
    "KILL 1",
]

PASSING = {
    "VALUES (1), (2)": [(1,), (2,)],
    "TABLE t": [(1, "a"), (2, "b")],
    "FROM t SELECT id": [(1,), (2,)],
    "FROM t": [(1, "a"), (2, "b")],
    "(SELECT id FROM t)": [(1,), (2,)],
    "((SELECT id FROM t))": [(1,), (2,)],
    "(SELECT id FROM t) UNION ALL (SELECT 9)": [(1,), (2,), (9,)],
    "WITH x AS (SELECT 5 AS a), y AS (SELECT a + 1 AS b FROM x) SELECT b FROM y": [(6,)],
    "-- a comment first\nSELECT id FROM t": [(1,), (2,)],
    "/* one */ /* two */ SELECT id FROM t": [(1,), (2,)],
    "SELECT id FROM t -- a comment last": [(1,), (2,)],
    "SELECT id FROM t /* last */": [(1,), (2,)],
    "SELECT id FROM t;": [(1,), (2,)],
    "SELECT id FROM t ;;": [(1,), (2,)],
    "SELECT id FROM t ; ;\n": [(1,), (2,)],
    "SELECT id FROM t; -- done": [(1,), (2,)],
    "\n\n  select ID from T  \n": [(1,), (2,)],
    "SELECT 'DROP TABLE t; --' AS s": [("DROP TABLE t; --",)],
    "SELECT `id` FROM `t` WHERE v = 'a'": [(1,)],
    "SELECT * FROM range(3)": [(0,), (1,), (2,)],
    "SELECT explode(array(3, 4))": [(3,), (4,)],
    "SELECT col FROM t LATERAL VIEW explode(array(id, -id)) AS col": [(-2,), (-1,), (1,), (2,)],
    "SELECT * FROM (VALUES (1, 'x')) AS s(a, b)": [(1, "x")],
    "SELECT count(*) FROM t HAVING count(*) > 1": [(2,)],
    "FROM t |> WHERE id > 1 |> SELECT id": [(2,)],
    "SELECT * FROM IDENTIFIER('t')": [(1, "a"), (2, "b")],
    "SELECT id FROM t WHERE id IN (SELECT max(id) FROM t)": [(2,)],
}


@pytest.fixture
def t(database: Database, tmp_path: Path) -> Database:
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet", key="id")
    database.table("t")  # its view is there for a statement to spoil
    return database


def state(database: Database, place: Path) -> dict[str, Any]:
    """All that a statement could have changed."""
    spark = database.spark
    return {
        "rows": sorted(tuple(row) for row in spark.table("t").collect()),
        "views": sorted(v.name for v in spark.catalog.listTables() if not v.name.startswith("__")),
        "databases": sorted(d.name for d in spark.catalog.listDatabases()),
        "database": spark.catalog.currentDatabase(),
        "cached": spark.catalog.isCached("t"),
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "tables": [(table.name, table.version) for table in database.tables()],
        "files": sorted(str(path) for path in place.rglob("*") if path.suffix == ".parquet"),
        "warehouse": sorted(Path(str(spark.conf.get("spark.sql.warehouse.dir"))[5:]).glob("*")),
    }


def test_statements_are_refused_and_change_nothing(t: Database, tmp_path: Path) -> None:
    """One state for all texts: looking at it takes longer than refusing one."""
    before = state(t, tmp_path)
    passed, unlike = [], []
    for text in REFUSED:
        try:
            t.sql(text.format(place=tmp_path))
        except (NotSupported, ParseError) as error:
            if not str(error):
                unlike.append(f"{text}: no message")
        except Exception as error:
            unlike.append(f"{text}: {type(error).__name__}: {error}")
        else:
            passed.append(text)
    assert not passed
    assert not unlike, "\n".join(unlike)
    assert state(t, tmp_path) == before


@pytest.mark.parametrize("text", ["DROP TABLE t", "BEGIN DROP TABLE t; END", "CLEAR CACHE"])
def test_refusal_says_what_to_do(t: Database, text: str) -> None:
    with pytest.raises(NotSupported, match=r"only read.*nothing was changed.*db\.register"):
        t.sql(text)


@pytest.mark.parametrize("text", PASSING)
def test_odd_queries_pass(t: Database, text: str) -> None:
    answer = t.sql(text).exact()
    rows = zip(*(column.to_pylist() for column in answer.to_arrow().columns), strict=True)
    assert sorted(rows) == PASSING[text]


@pytest.mark.parametrize("text", ["SELECT id FROM t ; ;", "TABLE t", "SELECT id FROM t; -- done"])
def test_odd_queries_take_operations(t: Database, text: str) -> None:
    assert t.sql(text).filter("id = 2").exact().to_arrow().num_rows == 1


def test_a_file_can_be_read_by_its_path(t: Database, tmp_path: Path) -> None:
    """Any Spark SQL query is accepted."""
    answer = t.sql(f"SELECT id FROM parquet.`{tmp_path}/t.parquet`").exact()
    assert sorted(answer.to_arrow().column("id").to_pylist()) == [1, 2]


@pytest.mark.parametrize("text", ["", "  \n", ";", " ; ; ", "-- only a comment", "/* only */"])
def test_nothing_is_no_query(t: Database, text: str) -> None:
    with pytest.raises(ParseError):
        t.sql(text)


@pytest.mark.parametrize("text", REFUSED[:20:3])
def test_spark_alone_refuses_too(t: Database, tmp_path: Path, text: str) -> None:
    """Not sqlglot's reading of the text but Spark's own decides."""
    with pytest.raises((NotSupported, ParseError)):
        require_query(t.spark, text.format(place=tmp_path))
