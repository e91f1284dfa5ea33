"""A process of its own that changes tables and brings a view of them up to date until it is killed.

Run as ``python view_child.py HOME LOG SEED TARGET TABLES``: the log gets a line before each operation and one
after it returned. Every second operation on the view is TARGET; TABLES are the rows that the tables hold.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import timedelta
from typing import Any

from kill_child import Log, small_spark

import sooner
import sooner.view
from sooner import Database, View

OPERATIONS = ("incremental", "recompute", "progress", "clean", "vacuum")
QUESTION = "SELECT count(*) AS n, sum(bytes) AS b FROM visits"


def chosen(dice: random.Random, tables: dict[str, dict[int, list[int]]]) -> tuple[str, str, Any]:
    """A change: of which table, what, and its rows or keys."""
    if dice.random() < 0.2:
        key = dice.choice(sorted(tables["video"]))
        return "video", "update", [[key, dice.randrange(3)]]
    known = sorted(tables["log"])
    # Neither empty nor full: then there are keys of both kinds.
    likely = ["insert"] if len(known) < 20 else ["delete"] if len(known) > 150 else []
    what = dice.choice(likely or ["insert", "insert", "update", "delete"])
    if what == "insert":
        free = [key for key in range(200) if key not in tables["log"]]
        keys = dice.sample(free, dice.randint(1, 10))
    else:
        keys = dice.sample(known, dice.randint(1, 5))
    if what == "delete":
        return "log", what, keys
    return "log", what, [[key, dice.randrange(8), dice.randrange(1000)] for key in keys]


def change(database: Database, table: str, what: str, arguments: Any) -> None:
    rows = arguments if what == "delete" else [tuple(row) for row in arguments]
    getattr(database, what)(table, rows)


def changed(tables: dict[str, Any], table: str, what: str, arguments: Any) -> dict[str, Any]:
    """The rows that the tables hold after a change."""
    rows = dict(tables[table])
    if what == "delete":
        for key in arguments:
            del rows[key]
    else:
        rows.update({key: rest for key, *rest in arguments})
    return {**tables, table: rows}


def operate(database: Database, view: View, what: str) -> None:
    if what == "progress":
        for _ in view.refresh_progress(QUESTION):
            pass
    elif what == "clean":
        view.clean()
    elif what == "vacuum":
        database.vacuum(older_than=timedelta(0))
    else:
        view.refresh(what)  # type: ignore[arg-type]


def main(home: str, log_path: str, seed: str, target: str, tables_text: str) -> None:
    dice = random.Random(int(seed))
    tables = {
        name: {int(key): rest for key, rest in rows.items()}
        for name, rows in json.loads(tables_text).items()
    }
    sooner.view._PARTS = (0.3, 0.6, 1.0)  # few, so that many kills come at other moments
    log = Log(log_path)
    spark = small_spark(home)
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    database = sooner.connect(home, spark=spark, progress=False)
    view = database.view("visits")
    for number in range(10**6):
        table, what, arguments = chosen(dice, tables)
        log.write(begin=2 * number, what=what, table=table, arguments=arguments)
        change(database, table, what, arguments)
        log.write(done=2 * number)
        tables = changed(tables, table, what, arguments)
        operation = dice.choice(OPERATIONS) if number % 2 else target
        versions = {name: database._catalog.version(name)[1] for name in tables}
        log.write(begin=2 * number + 1, what=operation, versions=versions)
        operate(database, view, operation)
        log.write(done=2 * number + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
