"""Sessions and job groups: work can be stopped, and leaves the session as it was."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import Database, InvalidArgument, QueryCancelled, QueryFailed
from sooner.engine import exact
from sooner.engine.failures import plain_errors
from sooner.engine.jobs import cancel, job_group
from sooner.engine.session import open_session

# Some minutes of work, in many tasks and in tasks that last.
LONG = "SELECT count(*) AS n FROM range(0, 4000000000000, 1, 16) WHERE hash(id) % 7 = 8"
PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def properties(spark: SparkSession) -> dict[str, Any]:
    return {name: spark.sparkContext.getLocalProperty(name) for name in PROPERTIES}


def wait_for_jobs(spark: SparkSession, group: str) -> None:
    limit = time.monotonic() + 20
    tracker = spark.sparkContext.statusTracker()
    while not any(
        (info := tracker.getJobInfo(job)) and info.status == "RUNNING"
        for job in tracker.getJobIdsForGroup(group)
    ):
        assert time.monotonic() < limit, "the job never started"
        time.sleep(0.05)


def stopped_after(spark: SparkSession, groups: list[str], run: Callable[[], Any]) -> float:
    """Seconds from the cancel (by another thread) to the error; the error must be QueryCancelled."""
    cancelled_at: list[float] = []

    def stop() -> None:
        while not groups:
            time.sleep(0.02)
        wait_for_jobs(spark, groups[0])
        cancelled_at.append(time.monotonic())
        cancel(spark, groups[0])

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        with pytest.raises(QueryCancelled, match="cancelled"):
            run()
        return time.monotonic() - cancelled_at[0]
    finally:
        stopper.join()


def test_cancel_from_another_thread(spark: SparkSession) -> None:
    before = properties(spark)
    groups: list[str] = []

    def run() -> None:
        with plain_errors(), job_group(spark, "A long count") as group:
            groups.append(group)
            spark.sql(LONG).collect()

    assert stopped_after(spark, groups, run) < 1.0
    assert properties(spark) == before
    assert spark.sql("SELECT 1").collect()[0][0] == 1


def test_cancel_an_exact_answer(
    database: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way that ``Frame.exact`` collects, through Arrow, stops as fast."""
    groups: list[str] = []

    def noted(*arguments: Any) -> Any:
        class Noted:
            def __enter__(self) -> str:
                self.inner = job_group(*arguments)
                groups.append(self.inner.__enter__())
                return groups[-1]

            def __exit__(self, *error: Any) -> Any:
                return self.inner.__exit__(*error)

        return Noted()

    monkeypatch.setattr(exact, "job_group", noted)
    before = properties(spark)
    query = database.sql(LONG)
    assert stopped_after(spark, groups, query.exact) < 1.0
    assert properties(spark) == before
    assert database.sql("SELECT 1 AS one").exact().to_arrow().to_pylist() == [{"one": 1}]


def test_cancel_stops_its_own_group_only(spark: SparkSession) -> None:
    with job_group(spark, "first") as first, job_group(spark, "second"):
        cancel(spark, first)
        assert spark.range(10).count() == 10


def test_groups_nest_and_restore(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("mine", "my own work", interruptOnCancel=False)
    try:
        before = properties(spark)
        with job_group(spark, "outer") as outer:
            with job_group(spark, "inner") as inner:
                assert properties(spark)["spark.jobGroup.id"] == inner != outer
            assert properties(spark)["spark.jobGroup.id"] == outer
            assert properties(spark)["spark.job.description"] == "outer"
        assert properties(spark) == before
    finally:
        for name in PROPERTIES:
            spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]


def test_properties_are_restored_after_a_failure(database: Database) -> None:
    before = properties(database.spark)
    with pytest.raises(QueryFailed):
        database.sql("SELECT 1 / 0").exact()
    assert properties(database.spark) == before


def test_jobs_belong_to_their_group(spark: SparkSession) -> None:
    with job_group(spark, "counting") as group:
        spark.range(1000).count()
        assert spark.sparkContext.statusTracker().getJobIdsForGroup(group)


def test_interrupt_cancels_the_group(spark: SparkSession) -> None:
    """What Ctrl-C does: jobs that other threads run for the group stop too."""
    ended: list[BaseException | None] = []

    def work(group: str) -> None:
        spark.sparkContext.setJobGroup(group, "in the background", interruptOnCancel=True)
        try:
            spark.sql(LONG).collect()
        except Exception as error:
            ended.append(error)

    with pytest.raises(KeyboardInterrupt), job_group(spark, "interrupted") as group:
        worker = threading.Thread(target=work, args=(group,))
        worker.start()
        wait_for_jobs(spark, group)
        raise KeyboardInterrupt
    worker.join(timeout=5)
    assert ended and "cancel" in str(ended[0])


def test_progress_bar_on_demand(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then draws though nobody watches
    with job_group(spark, "A slow one", True):
        time.sleep(2.6)
    assert "A slow one" in capfd.readouterr().err
    with job_group(spark, "A slow one", False):
        pass
    assert capfd.readouterr().err == ""


def test_quick_work_shows_no_bar(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with job_group(spark, "A quick one", True):
        spark.range(3).count()
    assert capfd.readouterr().err == ""


def test_the_given_session_is_used(spark: SparkSession, tmp_path: Path) -> None:
    assert open_session(spark, tmp_path / "log") is spark
    with sooner.connect(tmp_path / "home", spark=spark) as database:
        assert database.spark is spark


def test_the_running_session_is_found(spark: SparkSession, tmp_path: Path) -> None:
    with sooner.connect(tmp_path / "home") as database:
        assert database.spark.sparkContext is spark.sparkContext


@pytest.mark.parametrize("given", ["local[2]", 7, object()])
def test_something_else_is_no_session(tmp_path: Path, given: Any) -> None:
    with pytest.raises(InvalidArgument, match="SparkSession"):
        open_session(given, tmp_path / "log")


def test_a_failed_query_is_not_logged(
    database: Database, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The error says it all; PySpark would print it a second time, as JSON."""
    with caplog.at_level(logging.DEBUG), pytest.raises(sooner.SoonerError):
        database.sql("SELECT no_such_column")
    printed = capfd.readouterr()
    assert "errorClass" not in printed.err + printed.out
    assert not [record for record in caplog.records if "QueryContext" in record.name]
