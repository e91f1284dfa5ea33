"""Kill -9 in the middle of a write: what was acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import Database
from sooner.engine.rows import scramble_rows, table_rows
from sooner.storage import protection

pytestmark = pytest.mark.spark

CHILD = Path(__file__).with_name("kill_child.py")
START_SECONDS = 120
# How long each operation takes, about: the kill comes at any moment of it, or soon after.
LASTS = {"insert": 1.5, "delete": 1.2, "update": 2.0, "scramble": 1.5, "vacuum": 0.3}


@dataclass
class State:
    """What the table holds, as the log tells it."""

    rows: dict[int, int]
    scrambles: list[int] = field(default_factory=list)  # salts, in the order they were made

    def after(self, what: str, arguments: Any) -> State:
        rows, scrambles = dict(self.rows), list(self.scrambles)
        if what in ("insert", "update"):
            rows.update(dict(arguments))
        elif what == "delete":
            for key in arguments:
                del rows[key]
        elif what == "scramble":
            scrambles.append(arguments)
        elif what == "drop_scramble":
            scrambles.pop(0)
        return State(rows, scrambles)


@dataclass(frozen=True)
class Killed:
    """The states a killed child may have left, in which operation it died, its process group."""

    possible: list[State]
    where: str
    group: int


def entries(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    text = log.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]  # the last line may be half written
    return [json.loads(line) for line in whole.splitlines()]


def alive(group: int) -> bool:
    """Whether a process of the group runs, zombies aside."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(found) == group and state != "Z":
            return True
    return False


def wait(condition: Any, seconds: float, what: str) -> Any:
    limit = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < limit, what
        time.sleep(0.005)
    return found


def run_and_kill(home: Path, state: State, seed: int, target: str, whole_group: bool) -> Killed:
    """Let a child work and kill it inside an operation."""
    dice = random.Random(seed)
    log = home.parent / f"log-{seed}"
    errors = home.parent / f"errors-{seed}"
    command = [sys.executable, CHILD, home, log, str(seed), target, json.dumps(state.rows)]
    with errors.open("wb") as sink:
        child = subprocess.Popen(command, start_new_session=True, stdout=sink, stderr=sink)
    try:

        def targets() -> int:
            assert child.poll() is None, errors.read_text()
            return sum(entry.get("what") == target for entry in entries(log))

        # The first finds Spark cold and lasts longer.
        wanted = dice.choice([1, 2])
        wait(lambda: targets() >= wanted, START_SECONDS, f"no {target}: see {errors}")
        time.sleep(
            dice.uniform(0, LASTS[target] * (2 if wanted == 1 and target != "vacuum" else 1))
        )
        if whole_group:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()  # Spark's Java process goes on for a moment
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
    acknowledged = state
    noted = entries(log)
    done = {entry["done"] for entry in noted if "done" in entry}
    open_ones = []
    for entry in noted:
        if "begin" in entry:
            if entry["begin"] in done:
                acknowledged = acknowledged.after(entry["what"], entry["arguments"])
            else:
                open_ones.append(entry)
    assert len(open_ones) <= 1
    possible = [acknowledged]
    possible += [acknowledged.after(e["what"], e["arguments"]) for e in open_ones]
    place = open_ones[0]["what"] if open_ones else "between"
    return Killed(possible, place, child.pid)


def wait_for_end(group: int) -> None:
    """Python's death is noticed by its Java process, which must not write for ever."""
    limit = time.monotonic() + 60
    while alive(group):
        if time.monotonic() > limit:
            os.killpg(group, signal.SIGKILL)
            pytest.fail("Spark's Java process outlived its Python by a minute")
        time.sleep(0.05)


def contents(spark: SparkSession, database: Database) -> list[Counter[tuple[int, int]]]:
    """The rows of the plain layout and of each scramble, by one Spark job."""
    table = database._catalog.table("t")
    frame = table_rows(spark, table).selectExpr("0L AS at", "id", "v")
    for scramble in table.scrambles:
        rows = scramble_rows(spark, table, scramble)
        frame = frame.unionAll(rows.selectExpr(f"{scramble.id}L AS at", "id", "v"))
    found = frame.collect()
    layouts = [0, *(scramble.id for scramble in table.scrambles)]
    return [Counter((r.id, r.v) for r in found if r["at"] == layout) for layout in layouts]


def verify(spark: SparkSession, home: Path, killed: Killed, seed: int) -> State:
    """The home after a kill: one of the possible states, whole; then cleaned and changed again.

    It must be whole at once, while the child's Java process may still be at it.
    """
    with sooner.connect(home, spark=spark, progress=False) as database:
        table = database._catalog.table("t")
        salts = [scramble.salt for scramble in table.scrambles]
        plain, *scrambled = contents(spark, database)
        fitting = [
            state
            for state in killed.possible
            if Counter(state.rows.items()) == plain and state.scrambles == salts
        ]
        assert fitting, f"neither before nor after: {plain} {salts}, {killed}"
        state = fitting[-1]
        assert all(layout == plain for layout in scrambled)
        assert table.facts.rows == len(state.rows)
        answer = database.sql("SELECT count(*) AS n, sum(v) AS s FROM t").exact()
        total = sum(state.rows.values()) if state.rows else None
        assert answer.to_arrow().to_pylist() == [{"n": len(state.rows), "s": total}]

        wait_for_end(killed.group)
        database.vacuum(older_than=timedelta(0))
        with database._catalog.database.reading() as connection:
            assert protection.waiting(connection) == set()
            referenced = protection.referenced(connection)
        units = {f"data/{p.parent.name}/{p.name}" for p in (home / "data").glob("*/*")}
        assert units <= referenced
        assert database.vacuum(older_than=timedelta(0)).directories == ()

        row = [1000 + seed, seed]
        database.insert("t", [tuple(row)])
        state = state.after("insert", [row])
        assert contents(spark, database) == [Counter(state.rows.items())] * (len(salts) + 1)
        database.delete("t", [row[0]])
        return state.after("delete", [row[0]])


def survive(
    spark: SparkSession, place: Path, plan: list[tuple[str, bool]], seed: int
) -> Counter[str]:
    home = place / "home"
    state = State({key: key for key in range(40)})
    columns = {"id": list(state.rows), "v": list(state.rows.values())}
    pq.write_table(pa.table(columns), place / "t.parquet")
    with sooner.connect(home, spark=spark, progress=False) as database:
        database.register("t", place / "t.parquet", key="id")
    where: Counter[str] = Counter()
    for number, (target, whole_group) in enumerate(plan):
        killed = run_and_kill(home, state, seed + number, target, whole_group)
        where[killed.where] += 1
        state = verify(spark, home, killed, seed + number)
    return where


def test_a_few_kills(spark: SparkSession, tmp_path: Path) -> None:
    """Of the whole group, Java included, and of Python alone."""
    survive(spark, tmp_path, [("insert", True), ("scramble", False), ("delete", True)], seed=100)


@pytest.mark.slow
def test_fifty_kills(spark: SparkSession, tmp_path: Path) -> None:
    """At any moment of insert, delete, update, scramble and vacuum."""
    targets = ["insert", "delete", "scramble", "vacuum", "update"]
    kills = int(os.environ.get("SOONER_TEST_KILLS", "50"))
    plan = [(targets[i % 5], i // 5 % 2 == 0) for i in range(kills)]
    where = survive(spark, tmp_path, plan, seed=1000)
    print(f"killed in {dict(where)}")
    assert where.total() == kills
    # The kills did hit the operations, not only the moments between them.
    for target in ("insert", "delete", "scramble", "vacuum"):
        assert where[target] >= kills // 15, where
