"""Queries over tables that rows were inserted into, which Spark reads as a union."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import Database
from sooner.engine.session import open_session

pytestmark = pytest.mark.spark

HAS = "EXISTS (SELECT 1 FROM parents WHERE parents.id = children.parent)"
QUERIES = {
    f"SELECT id, CASE WHEN {HAS} THEN 1 ELSE 0 END AS has FROM children": [(1, 1), (2, 0), (3, 1)],
    f"SELECT id, {HAS} AS has FROM children": [(1, True), (2, False), (3, True)],
    f"SELECT sum(CASE WHEN NOT {HAS} THEN 1 ELSE 0 END) AS n FROM children": [(1,)],
    "SELECT id, parent + (SELECT max(size) FROM parents WHERE id = children.parent) AS s "
    "FROM children": [(1, 17), (2, None), (3, 17)],
}


@pytest.fixture(scope="module")
def family(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    place = tmp_path_factory.mktemp("family")
    pq.write_table(pa.table({"id": [7], "size": [10]}), place / "parents.parquet")
    pq.write_table(pa.table({"id": [1, 2], "parent": [7, 8]}), place / "children.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        for name in ("parents", "children"):
            database.register(name, str(place / f"{name}.parquet"), key="id")
        database.insert("children", pa.table({"id": [3], "parent": [7]}))
        yield database


@pytest.mark.parametrize("text", QUERIES)
def test_subqueries_in_expressions(family: Database, text: str) -> None:
    answer = family.sql(text).get().to_arrow()
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    assert sorted(rows) == QUERIES[text]


def test_a_view_with_a_subquery_in_an_expression(family: Database) -> None:
    text = f"SELECT id, CASE WHEN {HAS} THEN 1 ELSE 0 END AS has FROM children"
    view = family.view("kinds", text)
    family.insert("children", pa.table({"id": [4], "parent": [8]}))
    assert view.is_stale
    view.refresh()
    answer = family.sql("SELECT id, has FROM kinds").get().to_arrow()
    assert sorted(answer.to_pylist(), key=lambda row: row["id"])[-1] == {"id": 4, "has": 0}
    family.delete("children", pa.table({"id": [4]}))


def test_rules_that_the_user_excludes_stay_so(small_spark: SparkSession, tmp_path: Path) -> None:
    name, own = "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.X"
    session = small_spark.newSession()
    session.conf.set(name, own)
    open_session(session, tmp_path)
    once = session.conf.get(name)
    open_session(session, tmp_path)
    assert session.conf.get(name) == once
    assert once.split(",")[0] == own and len(once.split(",")) == 2
