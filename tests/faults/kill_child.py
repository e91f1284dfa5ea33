"""A process of its own that changes a table until it is killed, and notes what was acknowledged.

Run as ``python kill_child.py HOME LOG SEED TARGET MODEL``: the log gets a line before each operation
and one after it returned, each on disk before the next begins. Every other operation is TARGET.
"""

from __future__ import annotations

import json
import os
import random
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import sooner

MOST_SCRAMBLES = 2


class Log:
    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 — open until the end

    def write(self, **entry: Any) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def small_spark(home: str) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(Path(home).parent / "warehouse"))
        .getOrCreate()
    )


def leave_litter(home: Path) -> None:
    """What many abandoned writes would leave, so that a vacuum lasts long enough to be killed."""
    parent = next((home / "data").glob("t-*"), home / "data" / "new")
    for _ in range(300):
        directory = parent / f"scramble-{uuid.uuid4().hex}"
        directory.mkdir(parents=True)
        for number in range(10):
            (directory / f"part-{number}.parquet").write_bytes(b"PAR1")


def chosen(dice: random.Random, what: str, model: dict[int, int], scrambles: int) -> Any:
    """The arguments of an operation, or None where it cannot be done now."""
    if what == "insert":
        free = [key for key in range(200) if key not in model]
        return [[key, dice.randrange(1000)] for key in dice.sample(free, dice.randint(1, 20))]
    known = sorted(model)
    some = dice.sample(known, min(len(known), dice.randint(1, 10)))
    if what == "update":
        return [[key, dice.randrange(1000)] for key in some] or None
    if what == "delete":
        return some or None
    if what == "scramble":
        return dice.randrange(2**40) if scrambles < MOST_SCRAMBLES else None
    if what == "drop_scramble":
        return 0 if scrambles else None
    return 0


def main(home: str, log_path: str, seed: str, target: str, model_text: str) -> None:
    dice = random.Random(int(seed))
    model = {int(key): value for key, value in json.loads(model_text).items()}
    log = Log(log_path)
    database = sooner.connect(home, spark=small_spark(home), progress=False)
    number = 0
    log.write(ready=True)
    while True:
        scrambles = database._catalog.table("t").scrambles
        usual = ["insert", "update", "delete", "scramble", "drop_scramble", "vacuum"]
        what = dice.choice(usual) if number % 2 else target
        arguments = chosen(dice, what, model, len(scrambles))
        if arguments is None:
            # Make room for what is wanted, as an operation of its own.
            what = "drop_scramble" if what == "scramble" else "insert"
            arguments = chosen(dice, what, model, len(scrambles))
        if what == "vacuum":
            leave_litter(Path(home))
        log.write(begin=number, what=what, arguments=arguments)
        if what in ("insert", "update"):
            getattr(database, what)("t", [tuple(row) for row in arguments])
            model.update(dict(arguments))
        elif what == "delete":
            database.delete("t", arguments)
            for key in arguments:
                del model[key]
        elif what == "scramble":
            database.scramble("t", "id", blocks=8, salt=arguments)
        elif what == "drop_scramble":
            database._catalog.drop_scramble(database._catalog.table("t"), scrambles[0].id)
        else:
            database.vacuum(older_than=timedelta(0))
        log.write(done=number)
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
