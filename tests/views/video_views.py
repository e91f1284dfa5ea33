"""Two small tables, views of every shape over them, and changes: what several tests of views share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sooner

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database

VIEWS = {
    "visits": """SELECT videoId, ownerId, duration, count(1) AS visitCount
                 FROM log JOIN video USING (videoId) GROUP BY videoId, ownerId, duration""",
    "some_rows": "SELECT sessionId, videoId, bytes * 2 AS b FROM log WHERE bytes > 3",
    "no_key": "SELECT bytes * 2 AS b FROM log WHERE bytes > 3",
    "joined": "SELECT v.ownerId, l.bytes FROM log l JOIN video v ON l.videoId = v.videoId",
    "seen": "SELECT v.videoId FROM video v LEFT SEMI JOIN log l ON l.videoId = v.videoId",
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


@contextmanager
def videos(spark: SparkSession, place: Path, rows: int = 40) -> Iterator[Database]:
    """A database with a log of visits and the videos they are of."""
    log = [(n, n % 5, n % 7 if n % 4 else None, f"{n % 9}.25", n / 3) for n in range(rows)]
    video = [(n, n % 3, float(n)) for n in range(8)]
    frames = {
        "log": (log, "sessionId BIGINT, videoId BIGINT, bytes BIGINT, price STRING, rate DOUBLE"),
        "video": (video, "videoId BIGINT, ownerId BIGINT, duration DOUBLE"),
    }
    with sooner.connect(place / "home", spark=spark, progress=False) as database:
        for name, (values, schema) in frames.items():
            frame = spark.createDataFrame(values, schema)
            if name == "log":
                frame = frame.withColumn("price", frame.price.cast("decimal(9,2)"))
            frame.write.parquet(str(place / name))
            database.register(name, str(place / name), key=schema.split()[0])
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
    """The rows of a query, floating numbers to nine digits."""
    return counted(database.sql(text).exact().to_arrow().to_pylist())


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    """How often each row is there."""
    return Counter(tuple(_rounded(value) for value in row.values()) for row in rows)


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value
