"""The views of the paper are as if made again after inserts, deletes and updates (§7.1, §12.7).

The join view, the 22 TPC-H queries as views, the data cube, and eight views of a session log in the manner
of V1 to V8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from video_views import rows_of

import sooner
from sooner.tpch import QUERIES, generate, query, register

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CUBE = """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue, c_custkey, n_nationkey, r_regionkey,
          l_partkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
          JOIN region ON n_regionkey = r_regionkey
          GROUP BY c_custkey, n_nationkey, r_regionkey, l_partkey"""
ROLL_UPS = ["", "c_custkey", "n_nationkey", "r_regionkey", "l_partkey", "c_custkey, n_nationkey"]
ROLL_UPS += ["c_custkey, r_regionkey", "c_custkey, l_partkey", "n_nationkey, r_regionkey"]
ROLL_UPS += ["n_nationkey, l_partkey", "c_custkey, n_nationkey, r_regionkey"]
ROLL_UPS += ["c_custkey, n_nationkey, l_partkey", "n_nationkey, r_regionkey, l_partkey"]

SESSIONS = {
    "v1": "SELECT resource, user, day, error, count(*) AS n FROM log GROUP BY resource, user, day, error",
    "v2": "SELECT resource, user, day, sum(bytes) AS b FROM log GROUP BY resource, user, day",
    "v3": "SELECT upper(substring(tag, 1, 2)) AS t, user, day, count(*) AS visits FROM log"
    " GROUP BY upper(substring(tag, 1, 2)), user, day",
    "v4": "SELECT region, avg(n) AS a, sum(b) AS s FROM (SELECT region, provider, user, count(*) AS n,"
    " sum(bytes) AS b FROM log GROUP BY region, provider, user) GROUP BY region",
    "v5": "SELECT region, error, count(*) AS users, sum(n) AS errors FROM (SELECT region, provider, user,"
    " error, count(*) AS n FROM log GROUP BY region, provider, user, error) GROUP BY region, error",
    "v6": "SELECT resource, count(*) AS visits, sum(bytes) AS b FROM (SELECT resource, bytes FROM log"
    " WHERE resource < 5 UNION ALL SELECT resource, bytes FROM log WHERE resource > 12) GROUP BY resource",
    "v7": "SELECT resource, user, day, count(*) AS n, sum(bytes) AS s, avg(latency) AS a,"
    " min(latency) AS l, max(latency) AS h, stddev(latency) AS d FROM log GROUP BY resource, user, day",
    "v8": "SELECT resource, user, day, count(*) AS n, count(DISTINCT tag) AS tags, max(bytes) AS most,"
    " sum(bytes) FILTER (WHERE error IS NULL) AS good FROM log GROUP BY resource, user, day",
}


def _in_no_order(text: str) -> str:
    """A query without its last ORDER BY: a view's rows have none."""
    return re.sub(r"\border\s+by\s+[^()]*$", "", text.strip().rstrip(";"), flags=re.IGNORECASE)


@pytest.fixture
def small_tpch(
    small_spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config
) -> Iterator[Database]:
    cache = pytestconfig.cache
    assert cache is not None
    data = generate(cache.mkdir("tpch") / "scale-0.005", scale=0.005, progress=False)
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        register(database, data)
        yield database


def change_orders(database: Database) -> None:
    """Some orders go, some come back with other items, some items cost more."""
    lines = database.sql("SELECT * FROM lineitem WHERE l_orderkey % 40 = 1").exact().to_pandas()
    orders = database.sql("SELECT * FROM orders WHERE o_orderkey % 40 = 1").exact().to_pandas()
    database.delete("lineitem", lines[["l_orderkey", "l_linenumber"]])
    database.delete("orders", orders[["o_orderkey"]])
    moved = lines.assign(l_orderkey=lines.l_orderkey + 10_000_000, l_quantity=lines.l_quantity + 1)
    database.insert("lineitem", moved)
    database.insert("orders", orders.assign(o_orderkey=orders.o_orderkey + 10_000_000))
    dearer = database.sql("SELECT * FROM lineitem WHERE l_orderkey % 40 = 2").exact().to_pandas()
    database.update("lineitem", dearer.assign(l_extendedprice=dearer.l_extendedprice * 2))


def assert_as_if_made_again(database: Database, name: str, text: str) -> str:
    view = database.view(name)
    possible = view._upkeep().choice
    how = "incremental" if possible.incremental or possible.possible else "auto"
    done = view.refresh(how)  # type: ignore[arg-type]
    expected = rows_of(database, text)
    assert rows_of(database, f"SELECT * FROM {name}") == expected, name
    return "unchanged" if done is None else done.kind


def test_the_tpch_queries_as_views(small_tpch: Database) -> None:
    texts = {f"q{number}": _in_no_order(query(number)) for number in QUERIES}
    for name, text in texts.items():
        small_tpch.view(name, text, sample=None)
    change_orders(small_tpch)
    kinds = {name: assert_as_if_made_again(small_tpch, name, t) for name, t in texts.items()}
    assert sum(kind == "incremental" for kind in kinds.values()) >= 12, kinds


def test_the_join_view_and_the_cube(small_tpch: Database) -> None:
    texts = {"lo": "SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey", "cube": CUBE}
    for name, text in texts.items():
        small_tpch.view(name, text)
    change_orders(small_tpch)
    for name, text in texts.items():
        assert assert_as_if_made_again(small_tpch, name, text) == "incremental"
    for keys in ROLL_UPS:
        shown, group = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
        asked = f"SELECT {shown}sum(revenue) AS r FROM {{}}{group}"
        kept = rows_of(small_tpch, asked.format("cube"))
        assert kept == rows_of(small_tpch, asked.format(f"({CUBE})")), keys


def test_views_of_a_session_log(small_spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def log(first: int, number: int) -> pd.DataFrame:
        errors = np.array(["net", "disk", None], object)
        return pd.DataFrame(
            {
                "sessionId": np.arange(first, first + number),
                "resource": rng.integers(0, 20, number),
                "user": rng.integers(0, 30, number),
                "day": rng.integers(0, 4, number),
                "error": errors[rng.integers(0, 3, number)],
                "bytes": rng.integers(0, 10_000, number),
                "latency": rng.random(number),
                "tag": np.array(["sport", "news", "film"])[rng.integers(0, 3, number)],
                "region": rng.integers(0, 5, number),
                "provider": rng.integers(0, 3, number),
            }
        )

    log(0, 800).to_parquet(tmp_path / "log.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("log", str(tmp_path / "log.parquet"), key="sessionId")
        for name, text in SESSIONS.items():
            database.view(name, text)
        for number in range(2):
            database.insert("log", log(1_000 * (number + 1), 60))
            database.delete("log", [(n,) for n in range(100 * number, 100 * number + 50)])
            changed = log(200, 30)
            database.update("log", changed)
            for name, text in SESSIONS.items():
                assert assert_as_if_made_again(database, name, text) == "incremental", name
