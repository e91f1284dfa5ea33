"""Killed while it brings a view up to date: the view is as it was, or as it is, and nothing between."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from test_kill import START_SECONDS, entries, wait, wait_for_end
from view_child import change, changed

import sooner
from sooner import Database, View
from sooner.engine.rows import stored_rows, table_rows
from sooner.storage import protection
from sooner.storage.views import stored_view
from sooner.views.unit import HASH, Portion

pytestmark = pytest.mark.spark

CHILD = Path(__file__).with_name("view_child.py")
# Of few rows, so that some changes to the tables are none to the view.
VISITS = """SELECT videoId, ownerId, count(*) AS n, sum(bytes) AS bytes, max(bytes) AS most
            FROM {log} JOIN {video} USING (videoId) WHERE bytes > 300 GROUP BY videoId, ownerId"""
SAMPLE = 0.5
# How long each operation takes, about: the kill comes at any moment of it, or soon after.
LASTS = {"incremental": 1.5, "recompute": 0.7, "progress": 3.0, "clean": 1.2}
REFRESHES = ("incremental", "recompute", "progress")


@dataclass(frozen=True)
class Killed:
    """What a killed child may have left: rows of the tables, and which versions of them the view reflects."""

    tables: list[dict[str, Any]]
    reflects: list[dict[str, int]]
    where: str
    group: int


def run_and_kill(
    home: Path,
    tables: dict[str, Any],
    reflects: dict[str, int],
    seed: int,
    target: str,
    group: bool,
    most: int,
) -> Killed:
    """Let a child work and kill it inside an operation; its Java process too, or Python alone.

    That is one of the first ``most`` operations of this kind.
    """
    dice = random.Random(seed)
    log, errors = home.parent / f"log-{seed}", home.parent / f"errors-{seed}"
    command = [sys.executable, CHILD, home, log, str(seed), target, json.dumps(tables)]
    with errors.open("wb") as sink:
        child = subprocess.Popen(command, start_new_session=True, stdout=sink, stderr=sink)
    try:

        def targets() -> int:
            assert child.poll() is None, errors.read_text()
            return sum(entry.get("what") == target for entry in entries(log))

        # The first finds Spark cold and lasts longer.
        wanted = dice.randint(1, most)
        wait(lambda: targets() >= wanted, START_SECONDS, f"no {target}: see {errors}")
        time.sleep(dice.uniform(0, LASTS[target] * (2 if wanted == 1 else 1)))
        assert child.poll() is None, errors.read_text()
        if group:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()  # Spark's Java process goes on for a moment
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
    noted = entries(log)
    done = {entry["done"] for entry in noted if "done" in entry}
    open_ones = [one for one in noted if "begin" in one and one["begin"] not in done]
    assert len(open_ones) <= 1
    for one in noted:
        if one.get("begin") in done:
            if "table" in one:
                tables = changed(tables, one["table"], one["what"], one["arguments"])
            elif one["what"] in REFRESHES:
                reflects = one["versions"]
    possible, may_reflect, where = [tables], [reflects], "between"
    for one in open_ones:
        where = one["what"]
        if "table" in one:
            possible.append(changed(tables, one["table"], one["what"], one["arguments"]))
        elif where in REFRESHES:
            may_reflect.append(one["versions"])
    return Killed(possible, may_reflect, where, child.pid)


def counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def held(spark: SparkSession, database: Database) -> dict[str, Any]:
    """The rows of the tables, as the child is told them."""
    return {
        name: {
            key: rest for key, *rest in table_rows(spark, database._catalog.table(name)).collect()
        }
        for name in ("log", "video")
    }


def evaluated(
    spark: SparkSession, database: Database, versions: dict[str, int]
) -> Counter[tuple[Any, ...]]:
    """The view's query by Spark alone, over the tables at some versions."""
    frames = {
        name: table_rows(spark, database._catalog.table(name, version))
        for name, version in versions.items()
    }
    return counted(spark.sql(VISITS, **frames))


def all_stored(spark: SparkSession, database: Database, name: str) -> Counter[tuple[Any, ...]]:
    """A view's rows with the columns that no query sees."""
    table = database._catalog.table(name)
    return counted(stored_rows(spark, table).select(sorted(one.name for one in table.stored)))


def assert_cleaned(spark: SparkSession, database: Database, view: View) -> None:
    """A cleaned sample that is there is whole: with it, the sample is that of the fresh view."""
    upkeep = view._upkeep()
    cleaned = upkeep.cleaned
    if cleaned is None:
        return
    part = Portion(high=SAMPLE)
    stale = stored_rows(spark, upkeep.table)
    names = [name for name in stale.columns if name != HASH]
    sample = Counter(
        tuple(row[name] for name in names) for row in stale.collect() if part.holds(row[HASH])
    )
    for row in upkeep.changes_in(cleaned.directory).collect():
        sample[tuple(row[name] for name in names)] += row["__sign"]
    with upkeep.fresh() as rows:
        fresh = rows.selectExpr("*", f"{upkeep.unit.sql} AS {HASH}").collect()  # type: ignore[union-attr]
    shown = [one.name for one in upkeep.table.columns]
    expected = Counter(tuple(row[name] for name in shown) for row in fresh if part.holds(row[HASH]))
    places = [names.index(name) for name in shown]
    assert Counter(tuple(row[at] for at in places) for row in sample.elements()) == expected
    assert min(sample.values(), default=0) >= 0


def verify(
    spark: SparkSession, home: Path, killed: Killed, seed: int, closely: bool
) -> dict[str, Any]:
    """The home after a kill: the view of one moment, whole; then cleaned, changed and refreshed.

    It must be whole at once, while the child's Java process may still be at it.
    """
    dice = random.Random(seed)
    with sooner.connect(home, spark=spark, progress=False) as database:
        tables = held(spark, database)
        assert tables in killed.tables, f"the tables lost or gained something: {killed.where}"
        stored = stored_view(database._catalog, "visits")
        reflected = {name: one.version for name, one in stored.reflects.items()}
        assert reflected in killed.reflects, (reflected, killed)
        now = {name: database._catalog.version(name) for name in tables}
        assert {name: one.id for name, one in stored.reflects.items()} == {
            name: of for name, (of, _) in now.items()
        }
        as_reflected = evaluated(spark, database, reflected)
        assert counted(table_rows(spark, stored.table)) == as_reflected, killed.where
        view = database.view("visits")
        assert view.rows == as_reflected.total()
        versions = {name: version for name, (_, version) in now.items()}
        assert view.is_stale == (reflected != versions)
        assert_cleaned(spark, database, view)

        wait_for_end(killed.group)
        database.vacuum(older_than=timedelta(0))
        with database._catalog.database.reading() as connection:
            assert protection.waiting(connection) == set()
            referenced = protection.referenced(connection)
        units = {f"data/{p.parent.name}/{p.name}" for p in (home / "data").glob("*/*")}
        assert units <= referenced
        answer = database.sql("SELECT * FROM visits").exact().to_arrow().to_pylist()
        assert Counter(tuple(row.values()) for row in answer) == as_reflected

        row = [1000 + seed, dice.randrange(8), 900]
        change(database, "log", "insert", [row])
        tables = changed(tables, "log", "insert", [row])
        fresh = {name: database._catalog.version(name)[1] for name in tables}
        expected = evaluated(spark, database, fresh)
        if closely:
            asked = view.answer("SELECT count(*) AS n FROM visits", estimator="exact")
            assert asked.to_arrow().to_pylist() == [{"n": expected.total()}]
        assert view.refresh(dice.choice(["incremental", "incremental", "recompute"])) is not None
        assert not view.is_stale
        assert counted(table_rows(spark, database._catalog.table("visits"))) == expected
        if closely:
            database.view("again", view.text, sample=SAMPLE, replace=True)
            assert all_stored(spark, database, "visits") == all_stored(spark, database, "again")
            database.drop_view("again")
        return tables


def survive(
    spark: SparkSession, place: Path, plan: list[tuple[str, bool]], seed: int, closely: bool
) -> Counter[str]:
    home = place / "home"
    tables: dict[str, Any] = {
        "log": {key: [key % 8, key * 25 % 1000] for key in range(40)},
        "video": {key: [key % 3] for key in range(8)},
    }
    names = {"log": ["sessionId", "videoId", "bytes"], "video": ["videoId", "ownerId"]}
    with sooner.connect(home, spark=spark, progress=False) as database:
        for name, rows in tables.items():
            values = list(zip(*([key, *rest] for key, rest in rows.items()), strict=True))
            columns = dict(zip(names[name], values, strict=True))
            pq.write_table(pa.table(columns), place / f"{name}.parquet")
            database.register(name, place / f"{name}.parquet", key=names[name][0])
        database.view("visits", VISITS.format(log="log", video="video"), sample=SAMPLE)
    where: Counter[str] = Counter()
    for number, (target, group) in enumerate(plan):
        with sooner.connect(home, spark=spark, progress=False) as database:
            reflects = {name: database._catalog.version(name)[1] for name in tables}
        most = 2 if closely else 1
        killed = run_and_kill(home, tables, reflects, seed + number, target, group, most)
        where[killed.where] += 1
        tables = verify(spark, home, killed, seed + number, closely)
    return where


def test_a_few_kills(small_spark: SparkSession, tmp_path: Path) -> None:
    """Of the whole group, Java included, and of Python alone."""
    plan = [("incremental", True), ("progress", False)]
    survive(small_spark, tmp_path, plan, seed=100, closely=False)


@pytest.mark.slow
def test_fifty_kills(small_spark: SparkSession, tmp_path: Path) -> None:
    """At any moment of bringing changes in, all at once or in parts, of making it again and of cleaning."""
    targets = list(LASTS)
    kills = int(os.environ.get("SOONER_TEST_KILLS", "50"))
    plan = [(targets[i % 4], i // 4 % 2 == 0) for i in range(kills)]
    where = survive(small_spark, tmp_path, plan, seed=1000, closely=True)
    print(f"killed in {dict(where)}")
    assert where.total() == kills
    # The kills did hit the operations, not only the moments between them.
    for target in targets:
        assert where[target] >= kills // 15, where
