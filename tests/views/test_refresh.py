"""A view that is refreshed is the view made again, after every insert, delete and update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from video_views import MADE_AGAIN, VIEWS, changes, rows_of, videos

import sooner
from sooner.views import refreshing

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    with videos(small_spark, tmp_path) as database:
        yield database


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
    _assert_refreshed(opened, ["visits", "ends", "busy", "either", "total"])


@pytest.mark.slow
def test_all_views_are_as_if_made_again(opened: Database) -> None:
    _assert_refreshed(opened, list(VIEWS))


def test_a_view_says_how_and_why_it_was_refreshed(opened: Database) -> None:
    view = opened.view("visits", VIEWS["visits"])
    next(changes(opened))
    assert "sooner" not in view.explain().lower()
    for words in ("Stale. log: version 1 to 3", "by the hash of videoId", "log, video", "CORR"):
        assert words in view.explain(), view.explain()
    done = view.refresh("recompute")
    assert done is not None
    assert (done.kind, done.why) == ("recomputed", "made again, as asked")
    assert [one.kind for one in view.history()] == ["created", "recomputed"]
    assert "Up to date." in view.explain()


def test_hidden_columns_are_never_shown(opened: Database) -> None:
    opened.view("hidden_key", VIEWS["hidden_key"])
    assert opened.table("hidden_key").exact().to_arrow().column_names == ["b"]
    names = [column.name for table in opened.tables() for column in table.columns]
    assert not [name for name in names if name.startswith("__")]


def test_a_change_that_the_view_does_not_see_is_none(opened: Database) -> None:
    view = opened.view("visits", VIEWS["visits"])
    opened.update("log", [(4, 4, 99, "7.00", 0.1), (6, 1, 98, "7.00", 0.2)])  # other bytes
    done = view.refresh("incremental")
    assert done is not None
    assert (done.inserted, done.deleted) == (0, 0)
    # With one that it sees, that one alone.
    opened.update("log", [(4, 2, 97, "7.00", 0.1), (6, 1, 96, "7.00", 0.2)])
    done = view.refresh("incremental")
    assert done is not None
    assert (done.inserted, done.deleted) == (2, 2)
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VIEWS["visits"])


def test_rows_that_come_together_meet(opened: Database) -> None:
    """New videos meet new visits, and old visits that waited for them."""
    view = opened.view("visits", VIEWS["visits"])
    opened.insert("log", [(300, 90, 1, "1.00", 0.1), (301, 91, 1, "1.00", 0.1)])
    opened.insert("video", [(90, 1, 1.0)])
    assert view.refresh("incremental") is not None
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VIEWS["visits"])
    opened.insert("video", [(91, 2, 2.0)])
    assert view.refresh("incremental") is not None
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VIEWS["visits"])


def test_values_that_only_group_together(opened: Database, tmp_path: Path) -> None:
    """0.0 and -0.0 are one group and two values; so are texts that are equal to a collation."""
    schema = "id BIGINT, x DOUBLE, xs ARRAY<DOUBLE>, word STRING COLLATE UTF8_LCASE, other INT"
    rows = [(0, 0.0, [0.0], "a", 0), (1, -0.0, [-0.0], "A", 0), (2, 1.5, [], None, 0)]
    opened.spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "few"))
    opened.register("few", str(tmp_path / "few"), key="id")
    texts = {
        "values": "SELECT id, x, xs, word FROM few",
        "counted": "SELECT CAST(x AS STRING) AS y, count(*) AS n FROM log JOIN few ON videoId = id"
        " GROUP BY CAST(x AS STRING)",
    }
    for name, text in texts.items():
        opened.view(name, text, sample=None)
    swapped = [(0, -0.0, [-0.0], "A", 0), (1, 0.0, [0.0], "a", 0), (2, 1.5, [], None, 1)]
    opened.update("few", opened.spark.createDataFrame(swapped, schema))
    opened.delete("few", [(0,)])
    for name, text in texts.items():
        assert opened.view(name).refresh("incremental") is not None
        assert texts_of(opened, f"SELECT * FROM {name}") == texts_of(opened, text)


def test_values_that_nothing_compares(opened: Database, tmp_path: Path) -> None:
    rows = opened.spark.sql("SELECT id, parse_json(string(id)) AS v FROM range(3)")
    rows.write.parquet(str(tmp_path / "variants"))
    opened.register("variants", str(tmp_path / "variants"), key="id")
    view = opened.view("v", "SELECT id, v FROM variants", sample=None)
    opened.delete("variants", [(1,)])
    assert "variant" in view.explain()
    assert view.refresh() is not None
    assert view.rows == 2


def texts_of(database: Database, text: str) -> list[str]:
    return sorted(str(row) for row in database.sql(text).exact().to_arrow().to_pylist())


def test_what_goes_by_floating_sums_is_made_again(opened: Database) -> None:
    """Added up in another order they are other values, and the rows that go would not be found again."""
    sums = "SELECT videoId, sum(rate) AS r, sum(bytes) AS b FROM log GROUP BY videoId"
    for number, text in enumerate(
        [
            f"SELECT r, count(*) AS n FROM ({sums}) GROUP BY r",
            f"SELECT DISTINCT r / 2 AS half FROM ({sums})",
            f"SELECT r FROM ({sums}) EXCEPT SELECT duration FROM video",
        ]
    ):
        view = opened.view(f"sums{number}", text, sample=None)
        assert "floating sums" in view.explain()
    for number, text in enumerate([f"SELECT b, max(r) AS r FROM ({sums}) GROUP BY b", sums]):
        assert "floating sums" not in opened.view(f"others{number}", text).explain()


def test_days_of_another_time_zone(opened: Database, tmp_path: Path) -> None:
    """Who refreshes it elsewhere would take rows from other days than they were counted in."""
    spark = opened.spark
    moments = "timestamp_seconds(1577836800 + 14400 * id) AS at"
    spark.range(12).selectExpr("id", moments).write.parquet(str(tmp_path / "moments"))
    opened.register("moments", str(tmp_path / "moments"), key="id")
    text = "SELECT CAST(at AS DATE) AS day, count(*) AS n FROM moments GROUP BY CAST(at AS DATE)"
    view = opened.view("days", text, sample=None)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for keys in ([(0,)], [(7,)]):
            opened.delete("moments", keys)
            assert view.refresh() is not None
            assert rows_of(opened, "SELECT * FROM days") == rows_of(opened, text)
        opened.delete("moments", [(3,)])
        assert view.refresh("incremental") is not None
        assert rows_of(opened, "SELECT * FROM days") == rows_of(opened, text)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    opened.delete("moments", [(4,)])
    with pytest.raises(sooner.NotSupported, match="times are those of America/New_York"):
        view.refresh("incremental")


def test_a_table_that_is_only_totalled(opened: Database) -> None:
    texts = {
        "short": "SELECT sessionId FROM log WHERE bytes < (SELECT max(ownerId) FROM video)",
        "shortest": "SELECT videoId, min(bytes) AS b FROM log GROUP BY videoId"
        " HAVING min(bytes) < (SELECT max(ownerId) FROM video)",
    }
    for name, text in texts.items():
        opened.view(name, text, sample=None)
    opened.update("video", [(0, 5, 1.0)])
    opened.delete("log", [(2,), (7,)])
    for name, text in texts.items():
        assert opened.view(name).refresh("incremental") is not None
        assert rows_of(opened, f"SELECT * FROM {name}") == rows_of(opened, text)


def test_rows_that_are_gone_again_are_in_no_refresh_s_way(opened: Database) -> None:
    """A row that no query could be computed of has been put right: the view is made again, and says so."""
    text = "SELECT sessionId, 60 / videoId AS q FROM log WHERE videoId IS NOT NULL"
    opened.delete("log", [(n,) for n in range(0, 40, 5)])
    view = opened.view("quotients", text)
    opened.insert("log", [(100, 0, 1, "1.00", 1.0)])
    with pytest.raises(sooner.SoonerError, match=r"[Dd]ivision by zero"):
        view.refresh()
    opened.update("log", [(100, 5, 1, "1.00", 1.0)])
    exact = view.answer("SELECT sum(q) AS s FROM quotients").to_arrow().to_pylist()
    assert exact == opened.sql(f"SELECT sum(q) AS s FROM ({text})").exact().to_arrow().to_pylist()
    done = view.refresh()
    assert done is not None and done.kind == "recomputed" and "rows that are gone again" in done.why
    assert rows_of(opened, "SELECT * FROM quotients") == rows_of(opened, text)


def test_days_of_numbers_are_made_again_in_another_time_zone(opened: Database) -> None:
    day = "CAST(CAST(sessionId * 3600 AS timestamp) AS date)"
    text = f"SELECT {day} AS day, count(*) AS n FROM log GROUP BY {day}"
    zone = opened.spark.conf.get("spark.sql.session.timeZone")
    view = opened.view("days", text, sample=None)
    opened.insert("log", [(100, 5, 1, "1.00", 1.0)])
    try:
        opened.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        done = view.refresh()
        assert done is not None and "its times are those of" in done.why
        assert rows_of(opened, "SELECT * FROM days") == rows_of(opened, text)
    finally:
        opened.spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_refresh_that_is_stopped_does_not_begin_in_another_way(
    opened: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = opened.view("some_rows", VIEWS["some_rows"])
    opened.insert("log", [(100, 5, 9, "1.00", 1.0)])
    assert view._upkeep().choice.incremental

    def stopped(*_: object) -> None:
        raise sooner.QueryCancelled("The query was cancelled.")

    monkeypatch.setattr(refreshing, "write", stopped)
    with pytest.raises(sooner.QueryCancelled):
        view.refresh()
    assert view.is_stale and len(view.history()) == 1
