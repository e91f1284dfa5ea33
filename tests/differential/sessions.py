"""Video sessions in the manner of iOLAP §8 (Conviva): one wide table, skewed and clustered, and its queries.

The paper tells the kind of each query, not its text: simple ones (C3, C5, C11, C12), nested ones and HAVING
(C1, C2, C4, C6 to C10), with a function (C6, C7) or an aggregate (C8, C9, C10) of the user's own.
"""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CDNS = ("Alder", "Birch", "Cedar", "Dogwood")
DEVICES = ("phone", "tablet", "television", "browser")
CITIES = 60
CONTENTS = 400
DAYS = 14
FIRST_DAY = datetime.date(2014, 3, 1)


def make_sessions(rows: int = 200_000, seed: int = 0) -> pa.Table:
    """Sessions of users of unlike zeal; those of one user are in one city, mostly by one CDN, and alike."""
    generator = np.random.default_rng(seed)
    users = max(10, rows // 12)
    zeal = generator.pareto(1.3, users) + 0.2
    user = generator.choice(users, rows, p=zeal / zeal.sum())
    city_of = _skewed(generator, CITIES, users, 1.1)
    own_cdn = generator.integers(0, len(CDNS), users)
    line_of = generator.lognormal(0.0, 0.5, users)  # how slow a user's line is
    city_slow, cdn_slow = generator.lognormal(0.0, 0.25, CITIES), np.array([0.8, 1.0, 1.1, 1.6])
    content = _skewed(generator, CONTENTS, rows, 1.2)
    cdn = np.where(generator.random(rows) < 0.85, own_cdn[user], _skewed(generator, 4, rows, 0.7))
    slow = line_of[user] * city_slow[city_of[user]] * cdn_slow[cdn]
    buffering = np.round(8.0 * slow * generator.lognormal(0.0, 0.7, rows), 3)
    failed = generator.random(rows) < np.clip(0.02 * slow, 0.0, 0.6)
    patience = generator.lognormal(5.5, 0.9, rows) / (1.0 + buffering / 30.0)
    day = _skewed(generator, DAYS, rows, 0.3)
    return pa.table(
        {
            "session_id": pa.array(generator.permutation(rows) + 1, pa.int64()),
            "user_id": pa.array(user, pa.int64()),
            "day": pa.array([FIRST_DAY + datetime.timedelta(d) for d in range(DAYS)]).take(day),
            "city": pa.array([f"city {number:02}" for number in range(CITIES)]).take(city_of[user]),
            "cdn": pa.array(CDNS).take(cdn),
            "device": pa.array(DEVICES).take(generator.integers(0, 4, users)[user]),
            "content": pa.array(content, pa.int32()),
            "is_live": pa.array(content % 5 == 0),
            "join_failed": pa.array(failed),
            # A session that never began has no time to the first picture.
            "join_ms": pa.array(
                np.rint(400 * slow * generator.lognormal(0, 0.4, rows)), pa.int64(), mask=failed
            ),
            "bitrate": pa.array(np.rint(4000 / np.sqrt(slow)), pa.int32()),
            "buffer_time": pa.array(buffering, pa.float64()),
            "play_time": pa.array(np.where(failed, 0.0, np.round(patience, 3)), pa.float64()),
        }
    )


def _skewed(generator: np.random.Generator, values: int, count: int, power: float) -> Any:
    """Numbers from 0, the n-th of which is as frequent as n to the minus ``power``."""
    weights = np.arange(1, values + 1, dtype=float) ** -power
    return generator.choice(values, count, p=weights / weights.sum())


# Example 1 of the paper: do sessions that buffer longer than most end sooner?
SLOW_BUFFERING = """
SELECT avg(play_time) AS play_time FROM sessions
WHERE buffer_time > (SELECT avg(buffer_time) FROM sessions)
"""

QUERIES = {
    "SBI": SLOW_BUFFERING,
    "C1": """
SELECT city, avg(buffer_time) AS buffering, count(*) AS n FROM sessions GROUP BY city
HAVING avg(buffer_time) > (SELECT 1.1 * avg(buffer_time) FROM sessions)
""",
    "C2": """
SELECT s.city, count(*) AS n, avg(s.play_time) AS play_time FROM sessions AS s
WHERE s.buffer_time > (SELECT 1.5 * avg(i.buffer_time) FROM sessions AS i WHERE i.cdn = s.cdn)
GROUP BY s.city
""",
    "C3": """
SELECT day, count(*) AS n, sum(play_time) AS played, avg(bitrate) AS bitrate FROM sessions
GROUP BY day ORDER BY day
""",
    "C4": """
SELECT city, count(*) AS users, avg(n) AS each, sum(played) AS played FROM (
  SELECT user_id, city, count(*) AS n, sum(play_time) AS played FROM sessions GROUP BY user_id, city
) GROUP BY city HAVING count(*) >= 5
""",
    "C5": """
SELECT cdn, device, count(*) AS n, sum(CASE WHEN join_failed THEN 1 ELSE 0 END) / count(*) AS failing,
  avg(join_ms) AS join_ms
FROM sessions WHERE is_live GROUP BY cdn, device
""",
    "C6": """
SELECT cdn, avg(quality(bitrate, buffer_time, play_time)) AS quality FROM sessions
WHERE play_time > (SELECT avg(play_time) FROM sessions) GROUP BY cdn
""",
    "C7": """
SELECT city, count(*) AS n, sum(quality(bitrate, buffer_time, play_time)) AS quality FROM sessions
WHERE NOT join_failed GROUP BY city HAVING count(*) > (SELECT count(*) / 100 FROM sessions)
""",
    "C8": """
SELECT cdn, middle(buffer_time) AS buffering FROM sessions
WHERE play_time > (SELECT avg(play_time) FROM sessions) GROUP BY cdn
""",
    "C9": """
SELECT avg(typical) AS typical, max(typical) AS worst FROM (
  SELECT city, middle(buffer_time) AS typical FROM sessions GROUP BY city)
""",
    "C10": """
SELECT device, middle(join_ms) AS join_ms FROM sessions GROUP BY device
HAVING middle(join_ms) > (SELECT 0.5 * avg(join_ms) FROM sessions)
""",
    "C11": """
SELECT count(*) AS n, sum(play_time) AS played, avg(join_ms) AS join_ms,
  sum(play_time) / sum(buffer_time + play_time) AS playing
FROM sessions WHERE NOT join_failed AND day >= DATE '2014-03-08'
""",
    "C12": """
SELECT content, sum(play_time) AS played, count(*) AS n FROM sessions
WHERE device <> 'browser' GROUP BY content ORDER BY played DESC, content LIMIT 10
""",
}

# What Sooner's plan does not hold goes to Spark as it is written, in one step.
WITH_OWN_AGGREGATES = frozenset({"C8", "C9", "C10"})


def query(name: str, table: str = "sessions") -> str:
    """The text of a query, over a table of another name if need be."""
    return re.sub(r"\bsessions\b", table, QUERIES[name])


def register_functions(spark: SparkSession) -> None:
    """The user's own function and aggregate that some of the queries call."""
    import pandas as pd
    from pyspark.sql.functions import PandasUDFType, pandas_udf, udf

    def quality(bitrate: int, buffering: float, playing: float) -> float:
        return bitrate * playing / (buffering + playing + 1.0)

    def middle(values: pd.Series) -> float:
        return float(values.median())

    spark.udf.register("quality", udf(quality, "double"))
    grouped = pandas_udf(middle, "double", PandasUDFType.GROUPED_AGG)  # type: ignore[call-overload]
    spark.udf.register("middle", grouped)
