"""How long does it take to scramble TPC-H lineitem and orders, and how long Spark's plainest way?"""

from __future__ import annotations

import argparse
import tempfile
from time import perf_counter

from report import ROOT, record

import sooner
from sooner import tpch
from sooner.storage.records import Table

REQUIRED = {"lineitem": 130, "orders": 43}
BLOCKS = 128


def plainly(database: sooner.Database, table: Table, key: str, directory: str) -> float:
    """Seconds for the few lines anybody would write: they hash, shuffle, sort and write as we do."""
    rows = database.spark.read.parquet(*(file.path for file in table.files))
    block = f"pmod(xxhash64({key}), {BLOCKS})"
    start = perf_counter()
    (
        rows.selectExpr("*", f"{block} AS block", f"pmod(shiftright(xxhash64({key}), 32), 32) AS r")
        .repartition(BLOCKS, "block")
        .sortWithinPartitions("block", key)
        .write.partitionBy("block")
        .parquet(directory)
    )
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=10.0)
    options = parser.parse_args()
    place = ROOT / ".demo" / f"scale-{options.scale:g}"
    data = tpch.generate(place / "tpch", options.scale)
    with tempfile.TemporaryDirectory(dir=place) as home, sooner.connect(home) as database:
        tpch.register(database, data)
        for table, key in tpch.SCRAMBLES:
            start = perf_counter()
            done = database.scramble(table, key)
            seconds = perf_counter() - start
            plain = plainly(database, done, key, f"{home}/plain-{table}")
            scramble = done.scrambles[-1]
            rows = sum(file.rows or 0 for file in scramble.files)
            assert rows == done.facts.rows, "a scramble holds every row once"
            required = f"≤ {REQUIRED[table]} s" if options.scale == 10 else "–"
            record(
                f"scramble-{table}-{options.scale:g}",
                f"scrambling TPC-H {table}, scale {options.scale:g} ({rows:,} rows)",
                required,
                f"{seconds:.0f} s; Spark's plainest way {plain:.0f} s",
                {
                    "seconds": seconds,
                    "plain_seconds": plain,
                    "rows": rows,
                    "bytes": sum(f.bytes for f in scramble.files),
                },
            )


if __name__ == "__main__":
    main()
