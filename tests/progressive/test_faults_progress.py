"""Steps that are stopped, that fail, that run beside others: nothing is left behind, nothing mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from threading import Event
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer

from sooner.engine.streaming import Streaming
from sooner.errors import InvalidArgument, SoonerError
from sooner.progressive.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

GROUPED = "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g"
WITH_STATIC = (
    "SELECT s.name, count(*) AS n, sum(t.v) AS total FROM t JOIN s ON t.g = s.g GROUP BY s.name"
)
OPEN_TEXT = "SELECT name FROM s WHERE g IN (SELECT g FROM t WHERE v > 3)"


def some_rows(count: int, first: int = 0) -> pa.Table:
    generator = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "k": pa.array(generator.integers(0, count // 4 + 1, count), pa.int64()),
            "g": pa.array(generator.integers(0, 4, count), pa.int32()),
            "v": pa.array(generator.integers(1, 10, count), pa.int32()),
        }
    )


def fill(database: Database, place: Path) -> Database:
    pq.write_table(some_rows(2000), place / "t.parquet")
    names = {"g": pa.array(range(4), pa.int32()), "name": ["a", "b", "c", "d"]}
    pq.write_table(pa.table(names), place / "s.parquet")
    database.register("t", place / "t.parquet", key="id")
    database.register("s", place / "s.parquet", key="g")
    database.scramble("t", ["k"], blocks=8)
    return database


@pytest.fixture
def fresh(database: Database, tmp_path: Path) -> Database:
    """For tests that change or break the tables."""
    return fill(database, tmp_path)


@pytest.fixture(scope="module")
def ready(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    import sooner

    place = tmp_path_factory.mktemp("faults")
    with sooner.connect(place / "home", spark=spark, progress=False) as opened:
        yield fill(opened, place)


def held(spark: SparkSession) -> tuple[int, set[str]]:
    """Cached RDDs and our temporary views."""
    # Not catalog.listTables(), which stumbles over a view of another test that has lost its files.
    names = {row["tableName"] for row in spark.sql("SHOW TABLES").collect()}
    views = {name for name in names if "__sooner" in name}
    return spark.sparkContext._jsc.getPersistentRDDs().size(), views  # type: ignore[union-attr]


@pytest.fixture
def nothing_left(spark: SparkSession) -> Iterator[None]:
    cached, views = held(spark)
    yield
    # What earlier tests left may go at any time: only what came is ours.
    still_cached, still = held(spark)
    assert still - views == set()
    assert still_cached <= cached


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("text", [GROUPED, WITH_STATIC, OPEN_TEXT])
@pytest.mark.parametrize("taken", [1, 4, 99])
def test_stopping_early_gives_everything_back(ready: Database, text: str, taken: int) -> None:
    answers = ready.sql(text).progress(batches=8)
    for number, _ in enumerate(answers, 1):
        if number >= taken:
            break
    answers.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("nothing_left")
def test_stopping_by_error_or_time_gives_everything_back(ready: Database) -> None:
    by_error = list(ready.sql("SELECT avg(v) AS a FROM t").progress(batches=8, error=0.5))
    assert len(by_error) < 8 and not by_error[-1].final
    by_time = list(ready.sql(WITH_STATIC).progress(batches=8, within=1e-6))
    assert len(by_time) == 1 and not by_time[0].final


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, v FROM t WHERE v > 3",
        "SELECT k, sum(v) AS total FROM t GROUP BY k",
        "SELECT g, count(*) AS n FROM t WHERE id = 7 GROUP BY g",  # nothing at first
    ],
)
def test_a_target_is_not_met_while_rows_are_missing(ready: Database, text: str) -> None:
    frame = ready.sql(text)
    *_, last = frame.progress(batches=8, error=0.5)
    assert last.final
    assert_same_answer(last.table, frame.exact().table)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """When each job of a batch began and ended; to read takes 0.4 s at least."""
    run, found = Streaming.run, []

    def slowly(own: Streaming, plan: Any, blocks: Any, *hints: Any) -> pa.Table:
        begun = perf_counter()
        if blocks:
            sleep(0.4)
        rows = run(own, plan, blocks, *hints)
        if blocks:
            found.append((begun, perf_counter()))
        return rows

    monkeypatch.setattr(Streaming, "run", slowly)
    return found


@pytest.mark.parametrize("dawdles_after", [None, 3])
def test_a_batch_begins_when_the_one_before_is_on_its_way(
    ready: Database, spans: list[tuple[float, float]], dawdles_after: int | None
) -> None:
    """Also where a user was busy with an answer, so that the next one had been there all the while."""
    answers = []
    for answer in ready.sql(GROUPED).progress(batches=8):
        answers.append(answer)
        if len(answers) == dawdles_after:
            sleep(1.5)
    assert_same_answer(answers[-1].table, ready.sql(GROUPED).exact().table)
    assert len(spans) == 8
    assert min(np.diff(sorted(begun for begun, _ in spans))) > 0.05  # no two together


def test_a_batch_of_two_jobs_does_not_keep_the_next_from_beginning(
    ready: Database, spans: list[tuple[float, float]]
) -> None:
    list(ready.sql("SELECT avg(v) FROM t WHERE v > (SELECT avg(v) FROM t)").progress(batches=8))
    assert len(spans) == 16  # the average, and the rows that are compared with it
    at_once = [sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans]
    assert max(at_once) > 2


def test_each_loop_has_a_pool_that_later_ones_use_again(spark: SparkSession) -> None:
    with Streaming(spark) as one, Streaming(spark) as other:
        assert one.pool != other.pool
    with Streaming(spark) as later:
        assert later.pool in (one.pool, other.pool)


def test_what_waits_for_its_turn_is_not_begun_once_stopped(
    spans: list[tuple[float, float]],
) -> None:
    stopped = object.__new__(Reading)
    stopped._stopping = Event()
    stopped._stopping.set()
    with pytest.raises(CancelledError):
        stopped._run_after([], 0.0, None, (1,))  # type: ignore[arg-type]
    assert not spans


@pytest.mark.usefixtures("nothing_left")
def test_an_exception_in_the_loop_gives_everything_back(ready: Database) -> None:
    def run() -> None:
        for _ in ready.sql(WITH_STATIC).progress(batches=8):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("text", [GROUPED, WITH_STATIC, "SELECT * FROM t"])
def test_a_block_that_vanishes_is_said_plainly(fresh: Database, text: str) -> None:
    (table,) = (known for known in fresh.tables() if known.name == "t")
    (scramble,) = table.scrambles
    answers = fresh.sql(text).progress(batches=8, seed=3)
    last = next(answers)
    rows = last.to_arrow()
    for path in Path(scramble.directory.removeprefix("file://")).rglob("*.parquet"):
        path.unlink()
    with pytest.raises(SoonerError) as raised:
        for later in answers:
            last, rows = later, later.to_arrow()
    assert "Traceback" not in str(raised.value) and "java." not in str(raised.value)
    assert not last.final and last.to_arrow() is rows and rows.num_rows > 0
    assert str(last) and last.status(rows.column_names[0])
    with pytest.raises(StopIteration):
        next(answers)


def test_the_users_session_stays_the_active_one(ready: Database) -> None:
    """A progressive query works in a session of its own; what users find active is theirs."""
    from pyspark.sql import SparkSession

    before = SparkSession.getActiveSession()
    assert before is not None
    list(
        ready.sql("SELECT count(*) AS n FROM t WHERE v > (SELECT avg(v) FROM t)").progress(
            batches=4
        )
    )
    after = SparkSession.getActiveSession()
    assert after is not None and after._jsparkSession.equals(before._jsparkSession)


def test_after_a_failure_the_next_query_works(ready: Database) -> None:
    answers = ready.sql("SELECT sum(1 / (v - v)) AS x FROM t").progress(batches=8)
    with pytest.raises(SoonerError):
        list(answers)
    frame = ready.sql(GROUPED)
    last = list(frame.progress(batches=3))[-1]
    assert_same_answer(last.to_arrow(), frame.exact().to_arrow())


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": 0},
        {"error": -0.1},
        {"error": float("nan")},
        {"batches": 0},
        {"batches": -1},
        {"batches": 1.5},
        {"batches": "3"},
        {"confidence": 0},
        {"confidence": 1},
        {"confidence": 95},
        {"confidence": float("nan")},
        {"within": 0},
        {"within": -1},
        {"slack": -1},
        {"slack": float("nan")},
        {"seed": -1},
        {"seed": "x"},
        {"stream": ["nosuch"]},
        {"stream": "nosuch"},
        {"stream": ["t", "nosuch"]},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_at_the_call(ready: Database, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        ready.sql(GROUPED).progress(**wrong)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("other", [GROUPED, WITH_STATIC])
def test_two_loops_side_by_side(ready: Database, other: str) -> None:
    one, two = ready.sql(WITH_STATIC), ready.sql(other)
    first, second = one.progress(batches=5, seed=1), two.progress(batches=7, seed=2)
    lasts: dict[int, Any] = {}
    waiting = {0: first, 1: second}
    while waiting:
        for place, answers in list(waiting.items()):
            answer = next(answers, None)
            if answer is None:
                del waiting[place]
            else:
                lasts[place] = answer
    assert lasts[0].final and lasts[1].final
    assert_same_answer(lasts[0].to_arrow(), one.exact().to_arrow())
    assert_same_answer(lasts[1].to_arrow(), two.exact().to_arrow())


def test_stopping_one_loop_leaves_the_other(ready: Database) -> None:
    one, two = ready.sql(WITH_STATIC), ready.sql(WITH_STATIC)
    first, second = one.progress(batches=8, seed=1), two.progress(batches=8, seed=1)
    next(first), next(second)
    first.close()  # type: ignore[attr-defined]
    last = list(second)[-1]
    assert last.final
    assert_same_answer(last.to_arrow(), two.exact().to_arrow())


@pytest.mark.parametrize("text", [GROUPED, WITH_STATIC, OPEN_TEXT, "SELECT * FROM t"])
@pytest.mark.parametrize("changed", ["t", "s"])
def test_a_loop_stays_on_its_version(fresh: Database, text: str, changed: str) -> None:
    frame = fresh.sql(text)
    before = frame.exact()
    answers = frame.progress(batches=4, seed=5)
    first = next(answers)
    if changed == "t":
        fresh.insert("t", some_rows(100, first=10_000))
        fresh.delete("t", [(number,) for number in range(300)])
    else:
        fresh.insert("s", pa.table({"g": pa.array([7], pa.int32()), "name": ["e"]}))
        fresh.delete("s", [(0,), (1,)])
    during = frame.exact()  # binds the new version in between
    last = list(answers)[-1]
    assert last.final and last.as_of == first.as_of == before.as_of
    assert_same_answer(last.to_arrow(), before.to_arrow())
    after = list(frame.progress(batches=4, seed=5))[-1]
    assert after.as_of == during.as_of
    assert_same_answer(after.to_arrow(), during.to_arrow())


def test_a_dropped_table_does_not_disturb_a_loop(fresh: Database) -> None:
    frame = fresh.sql(WITH_STATIC)
    before = frame.exact()
    answers = frame.progress(batches=4)
    next(answers)
    fresh.drop("s")
    fresh.drop("t")
    assert_same_answer(list(answers)[-1].to_arrow(), before.to_arrow())


def test_the_callers_job_group_stays(ready: Database, spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my own work")
    try:
        text = "SELECT g, round(avg(v), 1) AS a FROM t GROUP BY g"  # by Spark, in this thread
        for _ in ready.sql(text).progress(batches=3):
            assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def test_answers_come_from_another_thread(ready: Database) -> None:
    from concurrent.futures import ThreadPoolExecutor

    frame = ready.sql(WITH_STATIC)
    exact = frame.exact().to_arrow()
    with ThreadPoolExecutor(3) as pool:
        lasts = pool.map(lambda seed: list(frame.progress(batches=4, seed=seed))[-1], range(3))
        for last in lasts:
            assert_same_answer(last.to_arrow(), exact)


def test_more_batches_than_blocks_and_one(ready: Database) -> None:
    frame = ready.sql(GROUPED)
    assert len(list(frame.progress(batches=64))) == 8
    assert len(list(frame.progress(batches=1))) == 1
    assert [answer.final for answer in frame.progress()] == [True]  # too small to go in steps
