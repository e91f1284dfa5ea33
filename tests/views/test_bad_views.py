"""What cannot be a view, or be asked of one: a named error that says what to do, and nothing is changed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import udf

import sooner
from sooner.errors import (
    InvalidArgument,
    MissingFile,
    NotSupported,
    ParseError,
    SchemaChanged,
    SoonerError,
    SourceChanged,
    TableExists,
    UnknownColumn,
    UnknownTable,
    UnknownView,
)
from sooner.storage import protection
from sooner.storage.views import stored_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

VISITS = "SELECT videoId, count(*) AS n, sum(bytes) AS b FROM log GROUP BY videoId"
COUNT = "SELECT count(*) AS c FROM visits"
LOG = {
    "sessionId": list(range(40)),
    "videoId": [n % 5 for n in range(40)],
    "bytes": [n % 7 for n in range(40)],
    "page": [f"page {n % 3}" for n in range(40)],
    "rate": [n / 3 for n in range(40)],
}
VIDEO = {"videoId": list(range(5)), "ownerId": [n % 2 for n in range(5)]}
LOOSE = {"x": [1, 2, 2], "y": [1.5, 2.5, 2.5]}


def tables_of(spark: SparkSession, place: Path) -> Database:
    """A home with two tables that have a key and one that has none."""
    database = sooner.connect(place / "home", spark=spark, progress=False)
    spark.range(3).createOrReplaceTempView("of_spark")
    spark.udf.register("another_each_time", udf(float, "double").asNondeterministic())
    odd = {"id": [1], "__sign": [1]}
    for name, columns in (("log", LOG), ("video", VIDEO), ("loose", LOOSE), ("odd", odd)):
        pq.write_table(pa.table(columns), place / f"{name}.parquet")
        key = () if name == "loose" else next(iter(columns))
        database.register(name, place / f"{name}.parquet", key=key)
    return database


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    with tables_of(small_spark, tmp_path) as database:
        yield database


@pytest.fixture(scope="module")
def shared(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """One home for all that changes nothing."""
    with tables_of(small_spark, tmp_path_factory.mktemp("shared")) as database:
        database.view("visits", VISITS, sample=0.5)
        database.insert("log", [(100, 1, 2, "page 1", 0.5)])
        yield database


def everything(database: Database) -> Any:
    """All that a home holds: tables, views, directories and reservations."""
    catalog = database._catalog
    with catalog.database.reading() as connection:
        waiting = protection.waiting(connection)
    return (
        [(table.name, table.id, table.version, table.scrambles) for table in database.tables()],
        [
            (one.id, one.definition, one.reflects, one.cleaned is None)
            for one in stored_views(catalog)
        ],
        set((catalog.home.path / "data").glob("*/*")),
        waiting,
    )


def rows_of(database: Database, text: str) -> Counter[Any]:
    found = database.sql(text).exact().to_arrow().to_pylist()
    return Counter(tuple(row.values()) for row in found)


class Bad(NamedTuple):
    """Something that is refused, the error's name and a part of its message."""

    what: Callable[[Database], Any]
    error: type[SoonerError]
    said: str


def query(text: Any, **more: Any) -> Callable[[Database], Any]:
    return lambda database: database.view("bad", text, **more)


def kept(**more: Any) -> Callable[[Database], Any]:
    return query(VISITS, **more)


def asked(text: Any = COUNT, **more: Any) -> Callable[[Database], Any]:
    return lambda database: database.view("visits").answer(text, **more)


def in_parts(text: str = COUNT, **more: Any) -> Callable[[Database], Any]:
    return lambda database: next(database.view("visits").refresh_progress(text, **more))


JOINED = "SELECT l.sessionId, v.ownerId FROM log l JOIN video v ON l.videoId = v.videoId"
LEAVE_OUT = r"cannot hold {}: .* Leave it out of the view"
THRESHOLD = r"give how many of the largest, up to 10,000, or a distance .* such as \"3 sd\""

BAD = {
    # The query.
    "unknown table": Bad(query("SELECT * FROM logg"), UnknownTable, "Did you mean 'log'"),
    "unknown column": Bad(query("SELECT byte FROM log"), UnknownColumn, "Did you mean 'bytes'"),
    "malformed": Bad(query("SELEC videoId FROM log"), ParseError, "'SELEC', at line 1, column 1"),
    "empty": Bad(query(" "), ParseError, "empty. Write a SELECT"),
    "two statements": Bad(query(f"{VISITS}; {VISITS}"), NotSupported, "one after the other"),
    "no query": Bad(query("DROP TABLE log"), NotSupported, "nothing was changed. Use db"),
    "no table": Bad(query("SELECT 1 AS x"), InvalidArgument, "made from registered tables"),
    "no type": Bad(query("SELECT sessionId, NULL AS x FROM log"), SoonerError, "cast it, as in"),
    "two columns of one name": Bad(query("SELECT bytes, bytes FROM log"), SoonerError, "bytes"),
    "rand": Bad(query("SELECT rand() AS r FROM log"), NotSupported, LEAVE_OUT.format(r"rand\(\)")),
    "now": Bad(
        query("SELECT bytes FROM log WHERE now() > DATE'2020-01-01'"),
        NotSupported,
        LEAVE_OUT.format(r"now\(\)"),
    ),
    "current_date": Bad(
        query("SELECT bytes FROM log WHERE CURRENT_DATE > DATE'2020-01-01'"),
        NotSupported,
        LEAVE_OUT.format("current_date"),
    ),
    "current_date()": Bad(
        query("SELECT current_date() AS d, count(*) AS n FROM log"),
        NotSupported,
        LEAVE_OUT.format("current_date"),
    ),
    **{
        call: Bad(query(f"SELECT sessionId, {call} AS x FROM log"), NotSupported, "Leave it out")
        for call in (
            "`now`()",
            "to_date('now')",
            "CAST('today' AS DATE)",
            "user",
            "session_user",
            "reflect('java.util.UUID', 'randomUUID')",
            "another_each_time(bytes)",
        )
    },
    "a view of Spark's": Bad(
        query("SELECT sessionId FROM log JOIN of_spark ON videoId = id", sample=None),
        UnknownTable,
        "'of_spark' is none.* Register it",
    ),
    "a table with a column of ours": Bad(
        query("SELECT id FROM odd"), NotSupported, "column '__sign'.* renamed"
    ),
    "no key": Bad(
        query("SELECT x, y FROM loose"),
        NotSupported,
        r"Register its tables with key=.* sample=None",
    ),
    # The name.
    "a table's name": Bad(
        lambda db: db.view("LOG", VISITS), TableExists, "a table 'LOG' already. Use another name"
    ),
    "a table's name to replace": Bad(
        lambda db: db.view("log", "SELECT * FROM video", replace=True), TableExists, "another name"
    ),
    "a view's name": Bad(
        lambda db: db.view("Visits", VISITS), TableExists, "a view 'Visits' already. Use replace="
    ),
    "a view's name for a table": Bad(
        lambda db: db.register("visits", db.tables()[0].source.location), TableExists, "replace="
    ),
    "no name": Bad(lambda db: db.view("", VISITS), InvalidArgument, "use up to 128 letters"),
    "two words": Bad(lambda db: db.view("a b", VISITS), InvalidArgument, "use up to 128 letters"),
    "of itself": Bad(
        lambda db: db.view("visits", "SELECT n FROM visits", replace=True),
        InvalidArgument,
        "made from itself",
    ),
    # How it is kept.
    **{
        f"sample={share}": Bad(
            kept(sample=share), InvalidArgument, "give the share of rows, above 0 and up to 1"
        )
        for share in (0, -0.1, 1.5, float("nan"), float("inf"))
    },
    "sample_by unknown": Bad(kept(sample_by="ownerId"), UnknownColumn, "no column 'ownerId'"),
    "outliers unknown": Bad(
        kept(outliers={"bites": 3}, sample_by="videoId"), UnknownColumn, "Did you mean 'bytes'"
    ),
    "outliers of text": Bad(
        kept(outliers={"page": 3}), InvalidArgument, "a column of numbers is needed"
    ),
    "outliers of a table that is not sampled": Bad(
        query(JOINED, sample_by="sessionId", outliers={"ownerId": 3}),
        NotSupported,
        r"video is not sampled by sessionId.* Give sample_by=",
    ),
    "outliers without a sample": Bad(
        kept(sample=None, outliers={"bytes": 3}), NotSupported, "kept for a sample, and this view"
    ),
    **{
        f"outliers={how!r}": Bad(kept(outliers={"bytes": how}), InvalidArgument, THRESHOLD)
        for how in (0, -1, 10_001, 2.5, True, None, "3", "sd", "-1 sd")
    },
    # A view is no table.
    "insert": Bad(
        lambda db: db.insert("visits", [(1, 1, 1)]), NotSupported, "is a view.* refresh it"
    ),
    "update": Bad(
        lambda db: db.update("visits", [(1, 1, 1)]), NotSupported, "is a view.* refresh it"
    ),
    "delete": Bad(lambda db: db.delete("visits", [1]), NotSupported, "is a view.* refresh it"),
    "scramble": Bad(
        lambda db: db.scramble("visits", "videoId"), NotSupported, "is a view.* Scramble these"
    ),
    "drop": Bad(lambda db: db.drop("visits"), NotSupported, r"is a view.* with db.drop_view\(\)"),
    # A table is no view.
    "open a table": Bad(lambda db: db.view("log"), UnknownView, "no view 'log'. Known: .*visits"),
    "open an unknown one": Bad(lambda db: db.view("visit"), UnknownView, "Did you mean 'visits'"),
    "drop a table": Bad(lambda db: db.drop_view("log"), UnknownView, "no view 'log'"),
    "drop an unknown one": Bad(
        lambda db: db.drop_view("vizits"), UnknownView, "Did you mean 'visits'"
    ),
    # What is asked of it.
    "unknown estimator": Bad(asked(estimator="svc"), InvalidArgument, "auto, corr or aqp"),
    "unknown estimator in parts": Bad(
        in_parts(estimator="exact"), InvalidArgument, "auto, corr or aqp"
    ),
    **{
        f"confidence={level}": Bad(asked(confidence=level), InvalidArgument, "between 0 and 1")
        for level in (0, 1, -0.5, 95, float("nan"))
    },
    "confidence=95 in parts": Bad(in_parts(confidence=95), InvalidArgument, "between 0 and 1"),
    "unknown way to refresh": Bad(
        lambda db: db.view("visits").refresh("fast"),
        InvalidArgument,
        "auto, incremental or recompute, not 'fast'",
    ),
    "another table": Bad(
        asked("SELECT count(*) AS c FROM log"), InvalidArgument, "write FROM visits"
    ),
    "no table at all": Bad(asked("SELECT 1 AS x"), InvalidArgument, "write FROM visits"),
    "unknown column of it": Bad(
        asked("SELECT sum(m) AS s FROM visits"), UnknownColumn, "Known: b, n, videoId"
    ),
    "malformed question": Bad(asked("SELECT sum( FROM visits"), ParseError, "at line 1"),
    "no time": Bad(
        lambda db: db.view("visits").sample_within(0), InvalidArgument, "give a time above 0"
    ),
}


def refused(database: Database, bad: Bad) -> None:
    before = everything(database)
    with pytest.raises(bad.error, match=bad.said):
        bad.what(database)
    assert everything(database) == before


@pytest.mark.parametrize("name", BAD)
def test_is_refused_and_changes_nothing(shared: Database, name: str) -> None:
    refused(shared, BAD[name])


def test_the_view_is_still_right_after_all_that(shared: Database) -> None:
    view = shared.view("visits")
    assert view.is_stale
    assert view.answer(COUNT, estimator="corr").to_arrow().to_pylist() == [{"c": 5}]
    assert view.refresh() is not None
    assert rows_of(shared, "SELECT * FROM visits") == rows_of(shared, VISITS)


# What was once accepted, or refused by an error of Python's, and what came of it.
ONCE_ACCEPTED = {
    "today": (
        Bad(query("SELECT rate FROM log WHERE DATE'today' > DATE'2020-01-01'"), NotSupported, "."),
        "the date of the day on which it was made is kept",
    ),
    "TABLESAMPLE": (
        Bad(query("SELECT rate FROM log TABLESAMPLE (10 PERCENT)"), NotSupported, "."),
        "another sample is taken at each refresh",
    ),
    "sample_by a value": (
        Bad(kept(sample_by="n"), SoonerError, "'?n'?"),
        "accepted, and then KeyError whenever it is cleaned, asked or refreshed in parts",
    ),
    "a schedule as text": (Bad(kept(refresh="1h"), InvalidArgument, "every"), "AttributeError"),
    "sample as text": (Bad(kept(sample="half"), InvalidArgument, "sample"), "TypeError"),
    "outliers as a list": (Bad(kept(outliers=["bytes"]), InvalidArgument, "."), "AttributeError"),
    "a number for a name": (
        Bad(lambda db: db.view(3, VISITS), InvalidArgument, "."),
        "AttributeError",
    ),
    "a number for a query": (Bad(query(3), InvalidArgument, "text"), "TypeError"),
    "confidence as text": (Bad(asked(confidence="95%"), InvalidArgument, "."), "TypeError"),
    "another table in parts": (
        Bad(in_parts("SELECT count(*) AS c FROM log"), InvalidArgument, "write FROM visits"),
        "the view is refreshed",
    ),
}


@pytest.mark.parametrize(
    "name",
    list(ONCE_ACCEPTED),
)
def test_is_refused_by_now(shared: Database, name: str) -> None:
    refused(shared, ONCE_ACCEPTED[name][0])


@pytest.mark.parametrize("time", ["x", "", "1x", "-1s", "0s", "1 week", 0, -3, True, None])
def test_a_time_that_is_none(time: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"such as \"60s\"|must be above zero"):
        sooner.every(time)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "3", None])
def test_a_number_of_rows_that_is_none(rows: Any) -> None:
    with pytest.raises(InvalidArgument, match="give a number of rows, at least 1"):
        sooner.after(rows=rows)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("ordered", "SELECT sessionId, bytes FROM log ORDER BY bytes, sessionId", "in an order"),
        ("best", "SELECT sessionId, bytes FROM log ORDER BY bytes DESC LIMIT 3", "of LIMIT"),
        ("loose_rows", "SELECT x, y FROM loose", "no sample was asked for"),
    ],
)
def test_made_again_each_time_and_not_sampled(
    opened: Database, name: str, text: str, why: str
) -> None:
    view = opened.view(name, text, sample=None if name == "loose_rows" else 0.5)
    assert view.sample is None
    assert rows_of(opened, f"SELECT * FROM {name}") == rows_of(opened, text)
    if name == "loose_rows":
        opened.insert("loose", [(7, 99.5), (7, 99.5)])
    else:
        opened.insert("log", [(100, 1, 99, "page 9", 0.5)])
    for refuse in (view.clean, lambda: view.sample_within(1.0)):
        with pytest.raises(NotSupported, match=rf"{why}.* Use refresh\(\)"):
            refuse()
    with pytest.raises(NotSupported, match=r"made again, because .* Use refresh\(\) as it is"):
        view.refresh("incremental")
    assert view.is_stale
    last = "y" if name == "loose_rows" else "bytes"
    question = f"SELECT count(*) AS c, max({last}) AS m FROM {name}"
    answer = view.answer(question)
    assert answer.final
    assert "exact" in answer.method
    assert view.is_stale
    done = view.refresh()
    assert done is not None
    assert done.kind == "recomputed"
    assert rows_of(opened, f"SELECT * FROM {name}") == rows_of(opened, text)
    assert Counter(tuple(row.values()) for row in answer.to_arrow().to_pylist()) == rows_of(
        opened, question
    )


def ways_to_use(database: Database) -> list[Callable[[], Any]]:
    view = database.view("visits")
    return [
        lambda: view.is_stale,
        view.refresh,
        view.clean,
        view.explain,
        lambda: view.answer(COUNT, estimator="corr"),
        lambda: view.answer(COUNT, estimator="exact"),
        lambda: next(view.refresh_progress(COUNT)),
        database.work,
    ]


def assert_unusable(database: Database, error: type[SoonerError], said: str) -> None:
    """Nothing can be done with the view but to read it, and to drop it."""
    view = database.view("visits")
    before, rows = everything(database), view.rows
    for use in ways_to_use(database):
        with pytest.raises(error, match=said):
            use()
    assert everything(database) == before
    assert rows_of(database, COUNT) == Counter([(rows,)])
    assert [one.name for one in database.views()] == ["visits"]
    assert view.text == VISITS
    assert len(view.history()) == 1


def scheduled(database: Database) -> Any:
    return database.view("visits", VISITS, sample=0.5, refresh=sooner.every("1ms"))


def test_its_table_is_dropped(opened: Database, tmp_path: Path) -> None:
    view = scheduled(opened)
    opened.drop("log")
    said = r"'visits' can no longer be made .* no table 'log'.* stay readable .* or drop the view"
    assert_unusable(opened, SchemaChanged, said)
    # Brought back, it is made again.
    opened.register("log", tmp_path / "log.parquet", key="sessionId")
    assert view.is_stale
    done = view.refresh()
    assert done is not None
    assert done.kind == "recomputed"
    opened.drop("log")
    opened.drop_view("visits")
    assert opened.views() == []


def test_its_table_has_other_columns(opened: Database, tmp_path: Path) -> None:
    view = scheduled(opened)
    pq.write_table(pa.table({"sessionId": [1, 2], "size": [3, 4]}), tmp_path / "other.parquet")
    opened.register("log", tmp_path / "other.parquet", key="sessionId", replace=True)
    said = r"'visits' can no longer be made .* no column .* stay readable .* or drop the view"
    assert_unusable(opened, SchemaChanged, said)
    opened.register("log", tmp_path / "log.parquet", key="sessionId", replace=True)
    assert view.refresh() is not None
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VISITS)


def test_its_text_means_nothing_with_other_columns(opened: Database, tmp_path: Path) -> None:
    """Here the name of an aggregate would be taken for the column that is gone."""
    text = "SELECT videoId, sum(size) AS bytes, max(bytes) AS most FROM wide GROUP BY videoId"
    pq.write_table(pa.table({"videoId": [1], "size": [2], "bytes": [3]}), tmp_path / "wide.parquet")
    pq.write_table(pa.table({"videoId": [1], "size": [2]}), tmp_path / "narrow.parquet")
    opened.register("wide", tmp_path / "wide.parquet")
    view = opened.view("most", text, sample=None)
    opened.register("wide", tmp_path / "narrow.parquet", replace=True)
    with pytest.raises(SchemaChanged, match="'most' can no longer be made"):
        view.refresh()


def half(place: Path) -> Path:
    """Half of the log, in a file of its own."""
    table = pa.table(LOG).slice(0, 20)
    pq.write_table(table, place / "half.parquet")
    return place / "half.parquet"


def test_its_table_is_registered_anew(opened: Database, tmp_path: Path) -> None:
    view = opened.view("visits", VISITS, sample=0.5)
    opened.register("log", half(tmp_path), key="sessionId", replace=True)
    assert view.is_stale
    assert "registered anew" in view.explain()
    exact = view.answer("SELECT sum(n) AS n FROM visits", estimator="exact")
    assert exact.to_arrow().to_pylist() == [{"n": 20}]
    with pytest.raises(NotSupported, match=r"log was registered anew. Use refresh\(\)"):
        view.refresh("incremental")
    done = view.refresh()
    assert done is not None
    assert (done.kind, not view.is_stale) == ("recomputed", True)
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VISITS)
    opened.insert("log", [(100, 1, 2, "page 1", 0.5)])
    assert view.refresh("incremental") is not None
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VISITS)


@pytest.mark.parametrize("changed", [False, True])
def test_a_fresh_answer_when_its_table_is_registered_anew(
    opened: Database, tmp_path: Path, changed: bool
) -> None:
    """Nobody knows what changed: no sample can be cleaned, but the answer is the same."""
    view = opened.view("visits", VISITS, sample=1.0)
    if changed:
        opened.insert("log", [(100, 1, 2, "page 1", 0.5)])
        view.refresh("incremental")
    opened.register("log", half(tmp_path), key="sessionId", replace=True)
    answer = view.answer("SELECT sum(n) AS n FROM visits", estimator="corr")
    assert answer.to_arrow().to_pylist() == [{"n": 20}]


def test_a_fresh_answer_when_its_key_is_lost(opened: Database, tmp_path: Path) -> None:
    """Nothing tells its rows apart any more: two that are alike are two."""
    view = opened.view("visits", "SELECT videoId, bytes FROM log", sample=1.0, sample_by="videoId")
    opened.register("log", tmp_path / "log.parquet", replace=True)
    assert view.refresh() is not None
    opened.insert("log", [(100, 1, 2, "page 1", 0.5), (101, 1, 2, "page 1", 0.5)])
    assert view.answer(COUNT, estimator="corr").to_arrow().to_pylist() == [{"c": 42}]


def test_what_it_is_sampled_by_gets_another_type(opened: Database, tmp_path: Path) -> None:
    view = opened.view("visits", VISITS, sample=0.5)
    named = pa.table(LOG | {"videoId": [f"video {n % 5}" for n in range(40)]})
    pq.write_table(named, tmp_path / "named.parquet")
    opened.register("log", tmp_path / "named.parquet", key="sessionId", replace=True)
    assert view.refresh() is not None
    assert rows_of(opened, "SELECT * FROM visits") == rows_of(opened, VISITS)


def test_the_column_of_its_outliers_is_gone(opened: Database, tmp_path: Path) -> None:
    text = "SELECT videoId, count(*) AS n FROM log GROUP BY videoId"
    view = opened.view("counts", text, sample=0.5, outliers={"bytes": 3})
    fewer = {name: values for name, values in LOG.items() if name != "bytes"}
    pq.write_table(pa.table(fewer).slice(0, 20), tmp_path / "fewer.parquet")
    opened.register("log", tmp_path / "fewer.parquet", key="sessionId", replace=True)
    assert view.refresh() is not None
    assert rows_of(opened, "SELECT * FROM counts") == rows_of(opened, text)
    opened.delete("log", [(3,)])
    assert view.clean() is not None


def test_a_file_of_its_table_changes(opened: Database, tmp_path: Path) -> None:
    view = scheduled(opened)
    place = tmp_path / "log.parquet"
    kept = place.read_bytes()
    stamp = place.stat().st_mtime_ns
    pq.write_table(pa.table(LOG).slice(0, 20), place)
    assert_unusable(opened, SourceChanged, r"log\.parquet.* Register the table again")
    place.unlink()
    with pytest.raises(MissingFile, match=r"is gone. Bring it back, or register"):
        view.refresh()
    pq.write_table(pa.table({"sessionId": [1]}), place)
    with pytest.raises(SchemaChanged, match=r"'visits' can no longer .* column 'videoId' is gone"):
        view.refresh()
    assert rows_of(opened, COUNT) == Counter([(5,)])
    # Brought back as it was, the view is as if nothing had happened.
    place.write_bytes(kept)
    os.utime(place, ns=(stamp, stamp))
    assert not view.is_stale
    assert view.refresh() is None


def test_the_view_below_it_is_dropped(opened: Database) -> None:
    opened.view("visits", VISITS, sample=None)
    upper = opened.view("busy", "SELECT videoId, n FROM visits WHERE n > 3", sample=None)
    opened.drop_view("visits")
    with pytest.raises(SchemaChanged, match=r"'busy' can no longer be made .* no table 'visits'"):
        upper.refresh()
    assert rows_of(opened, "SELECT count(*) AS c FROM busy") == Counter([(5,)])
    opened.view("visits", VISITS, sample=None)
    assert upper.refresh() is not None


def test_views_in_a_circle(opened: Database) -> None:
    opened.view("visits", VISITS, sample=None)
    opened.view("busy", "SELECT videoId, n FROM visits WHERE n > 3", sample=None)
    before = everything(opened)
    with pytest.raises(InvalidArgument, match="'visits'"):
        opened.view("visits", "SELECT videoId, n FROM busy", sample=None, replace=True)
    assert everything(opened) == before
    assert not opened.view("busy").is_stale
