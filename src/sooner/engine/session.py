"""A Spark session: the user's, or a quiet local one of a size that fits the machine."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from sooner.errors import InvalidArgument, SoonerError

# Half for Spark: Python, Arrow and the operating system's file cache need the rest.
_SHARE_OF_MEMORY = 0.5
_LEAST_MEMORY_MB = 1024
# PySpark prints every failed query as JSON through these; Sooner says it in its own words.
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# A listing job costs more than looking at a few hundred files from the driver.
_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
# It loses the outer columns of an EXISTS in an expression (4.3: "key not found"), and rows that were inserted
# are a union. Columns that nobody needs are left out of unions by another rule.
_BROKEN_RULE = "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion"
_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


def open_session(spark: SparkSession | None, log: Path) -> SparkSession:
    """The given session, else the running one, else a new local one that logs into ``log``."""
    if spark is None:
        spark = SparkSession.getActiveSession() or _start(log)
    elif not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        raise InvalidArgument(
            "spark= takes a classic SparkSession; Spark Connect is not supported."
        )
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    spark.conf.set(_LISTING_THRESHOLD, "10000")
    excluded = str(spark.conf.get(_EXCLUDED_RULES, "") or "")
    if _BROKEN_RULE not in excluded:
        spark.conf.set(_EXCLUDED_RULES, f"{excluded},{_BROKEN_RULE}".strip(","))
    return spark


def zone_name(spark: SparkSession) -> str:
    """The session's time zone as Spark has it."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def is_ansi(spark: SparkSession) -> bool:
    """Whether what is too large for its type is an error to Spark; else it is null."""
    return str(spark.conf.get("spark.sql.ansi.enabled", "true")) == "true"


def session_zone(spark: SparkSession | None) -> tzinfo:
    """The zone in which Spark reads moments that name none; the machine's while Spark does not run."""
    if spark is None:
        return datetime.now().astimezone().tzinfo or UTC
    name = zone_name(spark)
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?", name)
    if offset:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        apart = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-apart if offset[1] == "-" else apart)
    return UTC if name == "Z" else ZoneInfo(name)


def _start(log: Path) -> SparkSession:
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise SoonerError(
            "Spark needs Java 17 or newer and there is none: install it (Debian: "
            "apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )
    # Spark dies at start where the machine's own name does not resolve, unless told an address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # map() needs the same packages
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("sooner")
        .config("spark.driver.memory", f"{_memory_mb()}m")
        # Every operator of every task begins with a page. By default it is 64 MB, which for small jobs was
        # most of what the collector had to move: pauses of half a second, and ten times the memory.
        .config("spark.buffer.pageSize", "4m")
        # Throughput, not pauses: scrambling took about a tenth less time than with Java's default. Room
        # for Spark's classes from the start: Java would go through its whole memory each time they grow.
        .config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC -XX:MetaspaceSize=512m")
        # Spark keeps the code it wrote for the last 100 stages, which are few queries; what is written
        # anew, Java has to compile anew. First answers to queries asked before came a third sooner.
        .config("spark.sql.codegen.cache.maxEntries", "2000")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # Pools of jobs side by side: a long one does not keep a short one waiting.
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", str(8 * (cores or 1)))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.warehouse.dir", str(log.parent / "warehouse"))
    )
    try:
        with _errors_into(log):
            return builder.getOrCreate()
    except Exception as error:
        raise SoonerError(
            f"Spark did not start ({type(error).__name__}: {str(error).splitlines()[0]}). "
            f"See {log}; Java 17 or newer must be installed."
        ) from error


def _memory_mb() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")  # a container may have less than its machine
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        machine = min(machine, int(text))
    return max(_LEAST_MEMORY_MB, int(machine * _SHARE_OF_MEMORY) >> 20)


@contextmanager
def _errors_into(log: Path) -> Iterator[None]:
    """Let the Java process inherit a file as its standard error: its log is no user's business."""
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
