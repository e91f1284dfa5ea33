"""Several at work on one view: whoever reads it sees one of its exact answers, whoever is late is told so."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sooner
from sooner.engine.rows import table_rows
from sooner.errors import SchemaChanged, SoonerError, WriteConflict
from sooner.keeper import Keeper
from sooner.storage import protection
from sooner.storage.views import find_view, stored_views
from sooner.views.cleaning import clean
from sooner.views.refreshing import refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database, View

pytestmark = pytest.mark.spark

# Of some rows, so that some changes to the table are none to the view.
VISITS = (
    "SELECT videoId, count(*) AS n, sum(bytes) AS bytes FROM {} WHERE bytes > 2 GROUP BY videoId"
)
HOWS: tuple[Literal["incremental", "recompute"], ...] = ("incremental", "recompute")


@pytest.fixture
def home(small_spark: SparkSession, tmp_path: Path) -> Path:
    log = {
        "sessionId": range(40),
        "videoId": [n % 8 for n in range(40)],
        "bytes": [n % 7 for n in range(40)],
    }
    video = {"videoId": range(8), "ownerId": [n % 3 for n in range(8)]}
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        for name, columns in (("log", log), ("video", video)):
            pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
            database.register(name, tmp_path / f"{name}.parquet", key=next(iter(columns)))
    return tmp_path / "home"


@pytest.fixture
def database(home: Path, small_spark: SparkSession) -> Iterator[Database]:
    with sooner.connect(home, spark=small_spark, progress=False) as opened:
        yield opened


@pytest.fixture
def other(home: Path, small_spark: SparkSession) -> Iterator[Database]:
    """A second connection to the same home."""
    with sooner.connect(home, spark=small_spark, progress=False) as opened:
        yield opened


def visits(database: Database, **more: Any) -> View:
    return database.view("visits", VISITS.format("log"), sample=0.5, **more)


def counted(rows: Sequence[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in rows)


def shown(database: Database, name: str = "visits") -> Counter[tuple[Any, ...]]:
    rows = database.sql(f"SELECT * FROM {name}").exact().to_arrow().to_pylist()
    return counted([row.values() for row in rows])


def evaluated(database: Database, version: int | None = None) -> Counter[Any]:
    """The query of the log as it is, or at a version, without any view."""
    groups: dict[int, list[int]] = {}
    for _, video, size in table_rows(
        database.spark, database._catalog.table("log", version)
    ).collect():
        if size > 2:
            groups.setdefault(video, []).append(size)
    return Counter((video, len(sizes), sum(sizes)) for video, sizes in groups.items())


def assert_whole(view: View) -> None:
    """Its rows are those of the version that it says it reflects, and it knows whether it is stale."""
    database = view._database
    reflects = view._stored.reflects["log"]
    assert shown(database, view.name) == evaluated(database, reflects.version)
    now = database._catalog.version("log")
    assert view.is_stale == ((reflects.id, reflects.version) != now)


def assert_refreshes(view: View, how: Any = "incremental") -> None:
    """It can be brought up to date from here, exactly."""
    database = view._database
    database.insert("log", [(int(time.time_ns()), 3, 4)])
    assert view.refresh(how) is not None
    assert not view.is_stale
    assert shown(database, view.name) == evaluated(database)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each gives, or the error it raises, when all begin at one moment."""
    start = threading.Barrier(len(calls))
    found: list[Any] = [None] * len(calls)

    def run(place: int) -> None:
        start.wait()
        try:
            found[place] = calls[place]()
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def require_named(found: Sequence[Any]) -> None:
    for one in found:
        if isinstance(one, Exception) and not isinstance(one, SoonerError):
            raise one


def brought(view: View, how: str) -> Any:
    if how != "in parts":
        return view.refresh(how)  # type: ignore[arg-type]
    return list(view.refresh_progress("SELECT sum(n) AS n FROM visits"))[-1]


@pytest.mark.parametrize(
    "pairs",
    [
        [("incremental", "incremental"), ("incremental", "recompute")],
        pytest.param(
            [("recompute", "recompute"), ("in parts", "incremental"), ("in parts", "in parts")] * 3,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_two_refreshes_at_once(
    database: Database, other: Database, pairs: list[tuple[str, str]]
) -> None:
    first, second = visits(database), other.view("visits")
    for number, (one, two) in enumerate(pairs):
        database.update("log", [(number, number % 5 + 3, 5), (10 + number, 6, 1)])
        found = at_once(partial(brought, first, one), partial(brought, second, two))
        require_named(found)
        assert any(done is not None and not isinstance(done, Exception) for done in found)
        assert not first.is_stale and not second.is_stale
        assert shown(database) == evaluated(database)
    assert len(first.history()) <= 1 + 2 * len(pairs)


@pytest.mark.parametrize(
    ("late", "faster"),
    [
        ("incremental", "incremental"),
        pytest.param("incremental", "recompute", marks=pytest.mark.slow),
        pytest.param("recompute", "incremental"),
        pytest.param("recompute", "recompute", marks=pytest.mark.slow),
        pytest.param("clean", "incremental", marks=pytest.mark.slow),
        ("clean", "recompute"),
        pytest.param("nothing", "incremental"),
        pytest.param("nothing", "recompute", marks=pytest.mark.slow),
    ],
)
def test_who_is_late_is_refused_or_right(
    database: Database, other: Database, late: str, faster: Any
) -> None:
    """One has looked at the tables; another brings the view further; then the first would commit."""
    view = visits(database)
    # A row that the view does not show: nothing to bring in, but another version.
    database.insert("log", [(100, 3, 0 if late == "nothing" else 5)])
    upkeep = view._upkeep()
    database.insert("log", [(101, 4, 6)])
    assert other.view("visits").refresh(faster) is not None
    try:
        if late == "clean":
            clean(upkeep)
        else:
            refresh(upkeep, "incremental" if late == "nothing" else late)  # type: ignore[arg-type]
    except WriteConflict as conflict:
        assert "visits" in str(conflict)
    assert_whole(view)
    assert not view.is_stale, "it went back"
    assert view._stored.cleaned is None
    assert_refreshes(view)


def test_a_refresh_goes_on_from_what_another_did(database: Database, other: Database) -> None:
    """It begins again, of what is there then, when somebody else was faster."""
    view = visits(database)
    database.insert("log", [(100, 3, 5)])
    look, faster = view._upkeep, iter([other.view("visits")])

    def slow() -> Any:
        upkeep = look()
        for theirs in faster:  # once, just after this one has looked
            theirs.refresh("recompute")
            other.insert("log", [(101, 4, 6)])
        return upkeep

    view._upkeep = slow  # type: ignore[method-assign]
    assert view.refresh("incremental") is not None
    assert [one.kind for one in view.history()] == ["created", "recomputed", "incremental"]
    assert shown(database) == evaluated(database)


def test_readers_see_one_of_the_exact_answers(database: Database, other: Database) -> None:
    view = visits(database)
    answers = [shown(database)]
    seen: list[Counter[Any]] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                seen.append(shown(other))
                time.sleep(0.02)
            except BaseException as error:
                failed.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number, how in enumerate(HOWS):
            database.update("log", [(number, 7 - number, 6), (10 + number, number, 5)])
            answers.append(evaluated(database))
            assert view.refresh(how) is not None
            until = len(seen) + 2
            while len(seen) < until and not failed:
                time.sleep(0.01)
    finally:
        over.set()
        reader.join()
    assert not failed, failed
    # Each of them, and one after the other: never back.
    places = [answers.index(one) for one in seen]
    assert places == sorted(places)
    assert set(places) >= {1, 2}


@pytest.mark.parametrize("how", HOWS)
def test_cleaning_beside_a_refresh(database: Database, other: Database, how: Any) -> None:
    view, second = visits(database), other.view("visits")
    question = "SELECT count(*) AS n FROM visits"
    database.insert("log", [(100, 9, 5), (101, 7, 6)])
    asking = (
        second.clean if how == "recompute" else partial(second.answer, question, estimator="corr")
    )
    refreshed, cleaned = at_once(lambda: view.refresh(how), asking)
    require_named([cleaned])
    if isinstance(refreshed, Exception):
        raise refreshed
    assert refreshed is not None
    assert not view.is_stale
    assert shown(database) == evaluated(database)
    # A sample that was cleaned of the view as it was is not taken for one of it as it is.
    database.delete("log", [100])
    fresh = [{"n": evaluated(database).total()}]
    assert second.answer(question, estimator="exact").to_arrow().to_pylist() == fresh
    assert view.refresh(how) is not None
    assert second.answer(question).to_arrow().to_pylist() == fresh


def wait(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def test_keeping_refreshes_and_cleans_side_by_side(database: Database) -> None:
    often = visits(database, refresh=sooner.after(rows=3), clean=sooner.after(rows=1))
    timed = database.view(
        "owners",
        "SELECT ownerId, count(*) AS n FROM video GROUP BY ownerId",
        sample=0.5,
        refresh=sooner.every("0.2s"),
        clean=sooner.every("100ms"),
    )
    idle = database.view("idle", "SELECT videoId FROM video", sample=None)
    with database.keeping() as keeper:
        database.insert("log", [(100, 1, 5)])
        wait(lambda: ("clean", "visits") in keeper.done, "it is not cleaned")
        assert ("refresh", "visits") not in keeper.done
        assert often.is_stale
        database.insert("log", [(101, 2, 5), (102, 3, 5)])
        database.insert("video", [(8, 1)])
        wait(lambda: ("refresh", "visits") in keeper.done, "it is not refreshed")
        wait(lambda: ("refresh", "owners") in keeper.done, "it is not refreshed in time")
        wait(lambda: not timed.is_stale, "it stays stale")
    for _, _, error in keeper.failed:  # cleaned too late for what was refreshed meanwhile
        assert isinstance(error, WriteConflict)
    assert idle.is_stale
    assert not any(name == "idle" for _, name in keeper.done)
    database.update("video", [(8, 2)])
    known = list(keeper.done)
    time.sleep(1.3)  # longer than it sleeps between two looks
    assert keeper.done == known
    assert timed.is_stale
    often.refresh()
    assert shown(database) == evaluated(database)


def test_work_does_what_is_due(database: Database) -> None:
    view = visits(database, refresh=sooner.after(rows=3), clean=sooner.after(rows=2))
    assert database.work() == []
    database.insert("log", [(100, 1, 5)])
    assert database.work() == []
    database.insert("log", [(101, 2, 5)])
    assert database.work() == [("clean", "visits")]
    assert database.work() == []
    assert view.is_stale
    database.insert("log", [(102, 3, 5)])
    assert database.work() == [("refresh", "visits")]
    assert database.work() == []
    assert shown(database) == evaluated(database)


def test_work_goes_on_to_other_views_and_tells_what_failed(database: Database) -> None:
    database.view("gone", "SELECT videoId FROM video", sample=None, refresh=sooner.every("1ms"))
    view = database.view("visits", "SELECT * FROM log", refresh=sooner.every("1ms"))
    database.drop("video")
    database.insert("log", [(100, 3, 5)])
    with pytest.raises(SchemaChanged, match="'gone' can no longer be made"):
        database.work()
    assert not view.is_stale


def test_a_view_is_dropped_while_the_keeper_looks(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = sooner.every("1ms")
    database.view("gone", "SELECT videoId FROM video", sample=None, refresh=often)
    view = database.view("visits", "SELECT * FROM log", refresh=often)
    database.insert("log", [(100, 3, 5)])

    def listed(catalog: Any) -> Any:
        found = stored_views(catalog)
        if len(found) == 2:
            other.drop_view("gone")
        return found

    monkeypatch.setattr("sooner.database.stored_views", listed)
    assert Keeper(database).work("refresh") == ["visits"]
    assert not view.is_stale


UPPER = "SELECT n, count(*) AS c, max(bytes) AS most FROM visits GROUP BY n"


def over(rows: Counter[Any]) -> Counter[Any]:
    """UPPER, of the rows of the lower view."""
    groups: dict[int, list[int]] = {}
    for _, n, size in rows:
        groups.setdefault(n, []).append(size)
    return Counter((n, len(sizes), max(sizes)) for n, sizes in groups.items())


def fresh_answer(view: View) -> Counter[Any]:
    rows = view.answer(f"SELECT * FROM {view.name}", estimator="exact").to_arrow().to_pylist()
    return counted([row.values() for row in rows])


def test_a_view_over_a_view(database: Database) -> None:
    lower, upper = visits(database), database.view("counts", UPPER, sample=0.5)
    before = over(evaluated(database))
    for number in range(2):
        database.update("log", [(number, 1, 50 + number), (10 + number, 2, 5)])
        now = over(evaluated(database))
        # Fresh while both are stale, and both stay so.
        assert fresh_answer(upper) == now
        assert lower.is_stale and upper.is_stale
        assert shown(database, "counts") == before
        if number:
            assert lower.refresh("incremental") is not None
            assert upper.is_stale
            assert fresh_answer(upper) == now
            assert upper.refresh("incremental") is not None
        else:
            # Of itself it brings the lower one up to date first.
            assert upper.refresh() is not None
        assert not lower.is_stale and not upper.is_stale
        assert over(shown(database)) == shown(database, "counts") == now
        before = now


def test_a_sample_over_a_view_that_was_made_again(database: Database) -> None:
    lower = visits(database)
    upper = database.view("counts", UPPER, sample=1.0)
    database.insert("log", [(100, 1, 50), (101, 2, 60)])
    lower.refresh("recompute")
    expected = over(evaluated(database))
    assert fresh_answer(upper) == expected
    # All of it is its sample: that tells no less.
    total = upper.answer("SELECT sum(most) AS m FROM counts", estimator="corr").to_arrow()
    assert total.to_pylist() == [{"m": sum(row[2] for row in expected)}]


@pytest.mark.slow
def test_over_a_view_that_was_made_again_and_is_stale(database: Database) -> None:
    lower, upper = visits(database), database.view("counts", UPPER, sample=0.5)
    database.insert("log", [(100, 1, 50)])
    lower.refresh("incremental")
    upper.refresh("incremental")
    database.insert("log", [(101, 2, 60)])
    lower.refresh("recompute")
    database.insert("log", [(102, 3, 70)])
    assert fresh_answer(upper) == over(evaluated(database))


def test_over_a_view_that_is_always_made_again(database: Database) -> None:
    visits(database)
    database.view("best", "SELECT * FROM visits ORDER BY bytes DESC, videoId LIMIT 3")
    upper = database.view("counts", UPPER.replace("visits", "best"), sample=0.5)
    database.insert("log", [(100, 1, 5000), (101, 2, 60)])
    rows = sorted(evaluated(database), key=lambda row: (-row[2], row[0]))
    expected = over(Counter(rows[:3]))
    assert fresh_answer(upper) == expected
    assert upper.refresh() is not None
    assert shown(database, "counts") == expected


def test_the_view_below_is_refreshed_while_the_upper_one_looks(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(database)
    upper = database.view("busy", "SELECT * FROM visits WHERE n > 0", sample=None)
    database.insert("log", [(100, 1, 50)])
    answers = [evaluated(database)]
    faster = iter(["incremental"])

    def found(catalog: Any, name: str) -> Any:
        for how in faster if name == "visits" else ():
            other.view("visits").refresh(how)
            other.insert("log", [(101, 2, 60)])
            answers.append(evaluated(database))
        return find_view(catalog, name)

    monkeypatch.setattr("sooner.view.find_view", found)
    found_answer = fresh_answer(upper)
    assert len(answers) == 2
    assert found_answer in answers


def test_a_row_that_comes_while_views_below_are_refreshed_counts_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One view below has it, another is stale again: what it has not brought in must not be committed."""
    for name in ("one", "two"):
        database.view(name, f"SELECT sessionId, videoId, bytes AS {name} FROM log", sample=None)
    query = "SELECT {}.videoId AS v, count(*) AS n FROM {} JOIN {} ON {}.sessionId = {}.sessionId GROUP BY 1"
    upper = database.view("upper", query.format("one", "one", "two", "one", "two"), sample=None)
    database.insert("log", [(100, 1, 3)])
    real, late = sooner.View.refresh, [101]

    def and_then(view: View, how: Any = "auto") -> Any:
        done = real(view, how)
        if view.name == "one" and late:
            database.insert("log", [(late.pop(), 2, 3)])
        return done

    monkeypatch.setattr(sooner.View, "refresh", and_then)
    for _ in range(2):
        upper.refresh()
    assert not upper.is_stale and not late
    truth = database.sql("SELECT videoId, count(*) FROM log GROUP BY videoId").exact()
    assert shown(database, "upper") == counted(
        [row.values() for row in truth.to_arrow().to_pylist()]
    )


def units(home: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in (home / "data").glob("*/*")}


def test_vacuum_removes_what_no_view_needs_any_more(database: Database, home: Path) -> None:
    view = visits(database)
    made = units(home)
    database.insert("log", [(100, 1, 5)])
    cleaned = view.clean()
    assert cleaned is not None
    assert database.vacuum(older_than=timedelta(0)).directories == ()
    assert view._upkeep().cleaned == cleaned
    # Brought in, the changes are needed and the sample is not.
    view.refresh("incremental")
    assert database.vacuum(older_than=timedelta(0)).directories == (cleaned.directory,)
    assert made < units(home)
    assert shown(database) == evaluated(database)
    # Made again, nothing is needed of what there was; but a reader of a moment ago may be at it.
    database.insert("log", [(101, 2, 5)])
    view.refresh("recompute")
    kept = database.vacuum()
    assert kept.directories == ()
    removed = database.vacuum(older_than=timedelta(0))
    assert len(removed.directories) == 2  # as it was made, and what was brought in
    assert not made & units(home)
    assert shown(database) == evaluated(database)
    assert_refreshes(view)
    # A refresh that is left in the middle leaves nothing.
    before = units(home)
    database.insert("log", [(102, 1, 5)])
    for _ in view.refresh_progress("SELECT sum(n) AS n FROM visits"):
        break
    with database._catalog.database.reading() as connection:
        assert not any("visits" in unit for unit in protection.waiting(connection))
    assert {unit for unit in units(home) if "visits" in unit} <= before
    assert view.is_stale
    view.drop()
    database.vacuum(older_than=timedelta(0))
    assert not any("visits" in unit for unit in units(home))
    assert len(evaluated(database)) > 0
