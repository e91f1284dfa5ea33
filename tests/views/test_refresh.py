"""A view that is refreshed is the view made again, after every insert, delete and update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import sooner

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

VIEWS = {
    "visits": """SELECT videoId, ownerId, duration, count(1) AS visitCount
                 FROM log JOIN video USING (videoId) GROUP BY videoId, ownerId, duration""",
    "some_rows": "SELECT sessionId, videoId, bytes * 2 AS b FROM log WHERE bytes > 3",
    "no_key": "SELECT bytes * 2 AS b FROM log WHERE bytes > 3",
    "joined": "SELECT v.ownerId, l.bytes FROM log l JOIN video v ON l.videoId = v.videoId",
    "unseen": "SELECT v.videoId FROM video v LEFT ANTI JOIN log l ON l.videoId = v.videoId",
    "all_of": "SELECT v.videoId, l.sessionId FROM video v LEFT JOIN log l ON l.videoId = v.videoId",
    "either": "SELECT v.videoId, l.bytes FROM video v FULL JOIN log l ON l.videoId = v.videoId",
    "ends": "SELECT videoId, min(bytes) AS l, max(bytes) AS h, sum(bytes) AS s, avg(bytes) AS a,"
    " avg(price) AS p, sum(price) AS t, sum(rate) AS r, avg(rate) AS q FROM log GROUP BY videoId",
    "spread": "SELECT videoId, var_samp(bytes) AS v, stddev(rate) AS d, count(DISTINCT bytes) AS n"
    " FROM log GROUP BY videoId",
    "shares": "SELECT videoId, sum(bytes) / count(*) AS each, count(bytes) FILTER (WHERE bytes > 2) AS f"
    " FROM log GROUP BY videoId",
    "busy": "SELECT videoId, count(*) AS n FROM log GROUP BY videoId HAVING count(*) > 8",
    "hidden_key": "SELECT sum(bytes) AS b FROM log GROUP BY videoId, bytes % 2",
    "owners": "SELECT DISTINCT ownerId FROM video",
    "ids": "SELECT videoId FROM video EXCEPT SELECT videoId FROM log",
    "both": "SELECT videoId FROM video INTERSECT SELECT videoId FROM log",
    "two": "SELECT videoId AS id FROM video UNION ALL SELECT sessionId FROM log",
    "nested": "SELECT n, count(*) AS c FROM (SELECT videoId, count(*) AS n FROM log GROUP BY videoId)"
    " GROUP BY n",
    "total": "SELECT count(*) AS n, sum(bytes) AS b, min(rate) AS r FROM log",
    "best": "SELECT videoId, bytes FROM log ORDER BY bytes DESC, sessionId LIMIT 3",
    "ordered": "SELECT sessionId FROM log ORDER BY sessionId DESC",
}
MADE_AGAIN = {"best", "ordered"}


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    log = [(n, n % 5, n % 7 if n % 4 else None, f"{n % 9}.25", n / 3) for n in range(40)]
    video = [(n, n % 3, float(n)) for n in range(8)]
    frames = {
        "log": (log, "sessionId BIGINT, videoId BIGINT, bytes BIGINT, price STRING, rate DOUBLE"),
        "video": (video, "videoId BIGINT, ownerId BIGINT, duration DOUBLE"),
    }
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        for name, (rows, schema) in frames.items():
            frame = small_spark.createDataFrame(rows, schema)
            if name == "log":
                frame = frame.withColumn("price", frame.price.cast("decimal(9,2)"))
            frame.write.parquet(str(tmp_path / name))
            database.register(name, str(tmp_path / name), key=schema.split()[0])
        yield database


def changes(database: Database) -> Iterator[None]:
    """One change after another."""
    database.insert("log", [(100, 2, 9, "1.10", 1e20), (101, 77, 4, "2.20", None)])
    database.insert("log", [(102, None, 1, None, 0.5)])
    yield
    database.delete("log", [(0,), (5,), (10,), (101,), (100,)])
    yield
    database.update("video", [(2, 1, 5.5), (7, 2, 0.0)])
    database.insert("video", [(77, 5, 1.0)])
    database.delete("video", [(3,), (77,)])
    database.insert("log", [(200, 7, None, "0.00", 2.0)])
    yield
    database.delete("log", [(n,) for n in range(40) if n % 5 == 1])
    yield


def rows_of(database: Database, text: str) -> Counter[Any]:
    rows = database.sql(text).exact().to_arrow().to_pylist()
    return Counter(tuple(_rounded(value) for value in row.values()) for row in rows)


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _assert_refreshed(database: Database, names: list[str]) -> None:
    for name in names:
        view = database.view(name, VIEWS[name])
        assert not view.is_stale
        assert rows_of(database, f"SELECT * FROM {name}") == rows_of(database, VIEWS[name]), name
    for _ in changes(database):
        for name in names:
            view = database.view(name)
            if not view.is_stale:
                continue
            before = rows_of(database, f"SELECT * FROM {name}")
            done = view.refresh("auto" if name in MADE_AGAIN else "incremental")
            assert done is not None
            expected = rows_of(database, VIEWS[name])
            assert rows_of(database, f"SELECT * FROM {name}") == expected, (name, before, done)
            assert not view.is_stale
            assert view.refresh() is None
    for name in names:
        kinds = {one.kind for one in database.view(name).history()}
        kind = "recomputed" if name in MADE_AGAIN else "incremental"
        assert kinds == {"created", kind}, name


def test_some_views_are_as_if_made_again(opened: Database) -> None:
    _assert_refreshed(opened, ["visits", "ends", "busy", "either", "two", "total", "best"])


@pytest.mark.slow
def test_all_views_are_as_if_made_again(opened: Database) -> None:
    _assert_refreshed(opened, list(VIEWS))
