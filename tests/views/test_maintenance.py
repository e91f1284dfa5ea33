"""On Spark: a view and its changes are the view made again, after every insert, delete and update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import sooner
from sooner.algebra import Relation
from sooner.engine.change_rows import change_rows, readable
from sooner.engine.lowering import lower
from sooner.engine.rows import table_rows
from sooner.storage import Table
from sooner.views.deltas import CHANGED, NEW, OLD, SIGN, as_it_is, as_it_was, consolidated, delta

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

VIEWS = {
    "visits": """SELECT videoId, ownerId, duration, count(1) AS visitCount
                 FROM log JOIN video USING (videoId) GROUP BY videoId, ownerId, duration""",
    "rows": "SELECT sessionId, videoId, bytes * 2 AS b FROM log WHERE bytes > 3",
    "joined": "SELECT l.sessionId, v.ownerId, l.bytes FROM log l JOIN video v ON l.videoId = v.videoId",
    "unseen": "SELECT v.videoId FROM video v LEFT ANTI JOIN log l ON l.videoId = v.videoId",
    "all": "SELECT v.videoId, l.sessionId FROM video v LEFT JOIN log l ON l.videoId = v.videoId",
    "either": "SELECT v.videoId, l.bytes FROM video v FULL JOIN log l ON l.videoId = v.videoId",
    "ends": "SELECT videoId, min(bytes) AS l, max(bytes) AS h, sum(bytes) AS s, avg(bytes) AS a"
    " FROM log GROUP BY videoId",
    "owners": "SELECT DISTINCT ownerId FROM video",
    "ids": "SELECT videoId FROM video EXCEPT SELECT videoId FROM log",
    "both": "SELECT videoId FROM video INTERSECT SELECT videoId FROM log",
    "nested": "SELECT n, count(*) AS c FROM (SELECT videoId, count(*) AS n FROM log GROUP BY videoId)"
    " GROUP BY n",
    "total": "SELECT count(*) AS n, sum(bytes) AS b FROM log",
}


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    place = tmp_path
    log = [(n, n % 5, n % 7 if n % 4 else None) for n in range(40)]
    video = [(n, n % 3, float(n)) for n in range(8)]
    frames = {
        "log": (log, "sessionId BIGINT, videoId BIGINT, bytes BIGINT"),
        "video": (video, "videoId BIGINT, ownerId BIGINT, duration DOUBLE"),
    }
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        for name, (rows, schema) in frames.items():
            small_spark.createDataFrame(rows, schema).write.parquet(str(place / name))
            key = schema.split()[0]
            database.register(name, str(place / name), key=key)
        yield database


def collected(spark: SparkSession, plan: Relation) -> Counter[Any]:
    return Counter(tuple(row) for row in lower(spark, plan).collect())


def between(
    database: Database, before: dict[str, Table], after: dict[str, Table]
) -> dict[str, DataFrame]:
    spark = database.spark
    frames = {}
    for name, new in after.items():
        frames[OLD + name] = table_rows(spark, before[name])
        frames[NEW + name] = table_rows(spark, new)
        frames[CHANGED + name] = change_rows(spark, before[name], new, SIGN)
    return frames


def _change_log(database: Database) -> None:
    database.insert("log", [(100, 2, 9), (101, 77, 4), (102, None, 1)])
    database.delete("log", [(0,), (5,), (10,), (101,)])


def _change_both(database: Database) -> None:
    database.update("video", [(2, 1, 5.5), (7, 2, 0.0)])
    database.insert("video", [(77, 5, 1.0)])
    database.delete("video", [(3,), (77,)])
    database.insert("log", [(200, 7, None)])


def test_some_views_after_every_change(opened: Database) -> None:
    _assert_maintained(opened, ["visits", "either", "ends", "ids", "nested"])


@pytest.mark.slow
def test_all_views_after_every_change(opened: Database) -> None:
    _assert_maintained(opened, list(VIEWS))


def _assert_maintained(opened: Database, names: list[str]) -> None:
    spark = opened.spark
    plans = {name: opened.sql(VIEWS[name]).prepared.plan for name in names}
    before = {name: opened._catalog.table(name) for name in ("log", "video")}
    views = {}
    with readable(spark, between(opened, before, before)):
        for name, plan in plans.items():
            views[name] = collected(spark, as_it_was(plan))
    for change in (_change_log, _change_both):
        change(opened)
        after = {name: opened._catalog.table(name) for name in before}
        with readable(spark, between(opened, before, after)):
            for name, plan in plans.items():
                rows = views[name]
                for *row, sign in lower(spark, consolidated(delta(plan))).collect():
                    rows[tuple(row)] += sign
                assert all(number >= 0 for number in rows.values()), name
                views[name] = +rows
                assert views[name] == collected(spark, as_it_is(plan)), name
        before = after
    assert not spark.catalog.tableExists(f"{OLD}log")


def test_a_table_that_was_registered_anew_has_no_changes(opened: Database, tmp_path: Path) -> None:
    spark = opened.spark
    place = str(tmp_path / "other")
    spark.createDataFrame([(1,)], "id BIGINT").write.parquet(place)
    old = opened.register("other", place, key="id")
    new = opened.register("other", place, key="id", replace=True)
    with pytest.raises(sooner.SchemaChanged, match="registered anew"):
        change_rows(spark, old, new, SIGN)
