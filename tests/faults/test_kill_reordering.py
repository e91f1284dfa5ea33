"""Killed while Arrow writes a scramble, in tasks and in the driver: it is there whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner.storage.catalog import Catalog
from sooner.storage.home import Home

pytestmark = pytest.mark.spark

ROWS = 400_000
CHILD = """
import sys, sooner
from sooner.engine import reordering
home, salt, small = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
reordering._SMALL_BYTES = small
reordering._PIECE_BYTES = 200_000
with sooner.connect(home, progress=False) as database:
    if not database.tables():
        database.register("t", home + "/../t.parquet", key="id")
    print("ready", flush=True)
    while True:
        database.scramble("t", "id", blocks=64, salt=salt)
        print("done", flush=True)
        salt += 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("small", [0, 2**40])
def test_killed_while_arrow_writes(tmp_path: Path, small: int) -> None:
    numbers = np.arange(ROWS)
    rows = pa.table({"id": numbers, "text": [f"row {n}" for n in numbers]})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=20_000)
    chance = random.Random(small)
    home = tmp_path / "home"
    kills = int(os.environ.get("SOONER_TEST_KILLS", "50")) // 5
    for attempt in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(home), str(attempt * 100), str(small)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(chance.uniform(0.0, 6.0))
        os.killpg(child.pid, signal.SIGKILL)
        acknowledged = child.stdout.read().count("done")
        child.wait()
        with Catalog(Home(home)) as catalog:
            mine = [s for s in catalog.table("t").scrambles if s.salt // 100 == attempt]
        assert acknowledged <= len(mine) <= acknowledged + 1
        for scramble in mine:
            found = [pq.read_table(file.path, columns=["id"]) for file in scramble.files]
            ids = np.concatenate([one["id"].to_numpy() for one in found])
            assert np.array_equal(np.sort(ids), numbers)
