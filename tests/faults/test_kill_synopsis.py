"""Killed while it makes a synopsis: the one that was there, or the new one, and never a half of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sooner

pytestmark = pytest.mark.spark

CHILD = Path(__file__).parent / "synopsis_child.py"
ROWS = 20_000


def killed(home: Path, log: Path, after: float) -> list[int]:
    """Run the child, kill it a moment after it began its work, and say what it had acknowledged."""
    log.unlink(missing_ok=True)
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(home), str(log)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text()) and time.monotonic() < deadline:
        assert child.poll() is None, "the child died by itself"
        time.sleep(0.05)
    time.sleep(after)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    return [entry["done"] for entry in entries if "done" in entry]


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_a_synopsis_is_whole_or_not_there(spark, tmp_path: Path, kills: int) -> None:
    dice = random.Random(7)
    values = [float(number % 100) for number in range(ROWS)]
    pq.write_table(pa.table({"id": range(ROWS), "v": values}), tmp_path / "t.parquet")
    home = tmp_path / "home"
    with sooner.connect(home, spark=spark, progress=False) as database:
        database.register("t", tmp_path / "t.parquet", key="id")
    acknowledged = False
    for _ in range(kills):
        done = killed(home, tmp_path / "log", dice.uniform(1.0, 9.0))
        acknowledged = acknowledged or bool(done)
        with sooner.connect(home, spark=spark, progress=False) as database:
            found = list(database.synopses("t"))
            assert len(found) == 1 or (not found and not acknowledged)
            for synopsis in found:
                total = (
                    synopsis.answer("SELECT sum(v) AS s FROM t").to_arrow().column("s")[0].as_py()
                )
                assert total == sum(values)
                if done:
                    assert synopsis.definition.knobs.seed >= done[-1]
            database.vacuum(older_than=timedelta(0))
            for synopsis in database.synopses("t"):
                assert synopsis.answer("SELECT count(*) AS n FROM t").final, "vacuum took its files"
