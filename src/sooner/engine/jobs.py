"""Every piece of work in a Spark job group of its own: it can be watched and cancelled."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

_SILENT_SECONDS = 2.0
_POLL_SECONDS = 0.25


@contextmanager
def job_group(
    spark: SparkSession, description: str, bar: bool | None = None, group: str | None = None
) -> Iterator[str]:
    """Run what is inside as one job group and yield its name; interrupting it cancels its jobs.

    A progress bar appears on standard error after two seconds: always if ``bar``, never if it is
    False, and if it is None only where a person is watching. ``group`` is for those who want to cancel
    it from elsewhere; else it has a name of its own.
    """
    group = group or f"sooner-{uuid.uuid4().hex[:12]}"
    done = threading.Event()
    watcher = None
    if bar or (bar is None and sys.stderr.isatty()):
        watcher = threading.Thread(
            target=_show_progress, args=(spark, group, description, done), daemon=True
        )
        watcher.start()
    try:
        with within(spark, group, description):
            yield group
    except KeyboardInterrupt:
        cancel(spark, group)
        raise
    finally:
        done.set()
        if watcher is not None:
            watcher.join()


@contextmanager
def within(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    """Run the jobs of this thread in a group; afterwards they are in the group they were in before."""
    context = spark.sparkContext
    before = {
        key: context.getLocalProperty(key)
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    }
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]


@contextmanager
def in_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Run the jobs of this thread in a pool: where Spark schedules fairly, each gets its share."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.scheduler.pool")
    context.setLocalProperty("spark.scheduler.pool", pool)
    try:
        yield
    finally:
        context.setLocalProperty("spark.scheduler.pool", before)  # type: ignore[arg-type]


class Pools:
    """Names of pools, each for one at a time and used again: Spark forgets no pool it has seen."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def take(self) -> str:
        """One that nobody else has."""
        with self._lock:
            names = (f"sooner-{self._kind}-{number}" for number in count())
            name = next(name for name in names if name not in self._taken)
            self._taken.add(name)
            return name

    def give_back(self, name: str) -> None:
        """Let others have it."""
        with self._lock:
            self._taken.discard(name)


def cancel(spark: SparkSession, group: str) -> None:
    """Stop all jobs of a group, from any thread."""
    spark.sparkContext.cancelJobGroup(group)


def _show_progress(
    spark: SparkSession, group: str, description: str, done: threading.Event
) -> None:
    if done.wait(_SILENT_SECONDS):
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None)
        while not done.wait(_POLL_SECONDS):
            finished, total = _tasks(spark, group)
            progress.update(task, completed=finished, total=total or None)


def _tasks(spark: SparkSession, group: str) -> tuple[int, int]:
    """Finished and known Spark tasks of a group; stages that are still to come are not known."""
    tracker = spark.sparkContext.statusTracker()
    finished = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            details = tracker.getStageInfo(stage)
            if details:
                finished += details.numCompletedTasks
                total += details.numTasks
    return finished, total
