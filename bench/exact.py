"""How much does Sooner's exact path cost over plain spark.sql? The 22 TPC-H queries, alternating.

Every answer is compared with Spark's and with DuckDB's on the way.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from statistics import median
from time import perf_counter

import duckdb
import pyarrow as pa
from report import ROOT, record

import sooner
from sooner import tpch
from sooner.algebra import Opaque

sys.path.insert(0, str(ROOT / "tests" / "differential"))
from comparison import assert_same_answer, assert_same_rows, rows_of
from differences import loosely

# Spark rounds an average of decimals to 6 digits, DuckDB gives a double.
DECIMAL_AVERAGES = 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    data = tpch.generate(ROOT / ".demo" / f"scale-{options.scale:g}" / "tpch", options.scale)
    oracle = duckdb.connect()
    for table in tpch.TABLES:
        oracle.execute(f"CREATE VIEW {table} AS SELECT * FROM '{data}/{table}/*.parquet'")
    with tempfile.TemporaryDirectory() as home, sooner.connect(home) as database:
        tpch.register(database, data)
        ratios = {}
        for number in range(1, 23):
            ratios[f"q{number:02}"] = _ratio(database, oracle, number, options.rounds)
    middle = median(ratio for ratio, _, _ in ratios.values())
    record(
        "exact",
        f"exact path over plain Spark, median of 22 TPC-H queries, scale {options.scale:g}",
        "≤ 1.10×",
        f"{middle:.3f}×",
        {
            "queries": {
                name: dict(zip(("ratio", "sooner_s", "spark_s"), r, strict=True))
                for name, r in ratios.items()
            }
        },
    )


def _ratio(
    database: sooner.Database, oracle: duckdb.DuckDBPyConnection, number: int, rounds: int
) -> tuple[float, float, float]:
    text = tpch.query(number)
    assert not isinstance(database.sql(text).prepared.plan, Opaque)

    def ours() -> pa.Table:
        return database.sql(text).exact().to_arrow()

    def plain() -> pa.Table:
        return database.spark.sql(text).toArrow()

    a, b = ours(), plain()  # the first runs warm up both sides
    assert_same_answer(a, b)
    known = rows_of(oracle.execute(text).to_arrow_table())
    assert_same_rows(loosely(rows_of(a)), loosely(known), tolerance=DECIMAL_AVERAGES)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(rounds):
        for mine in (turn % 2 == 0, turn % 2 == 1):  # neither side always goes first
            start = perf_counter()
            (ours if mine else plain)()
            seconds[mine].append(perf_counter() - start)
    mine, theirs = median(seconds[True]), median(seconds[False])
    print(f"q{number:02}: {mine:.2f} s against {theirs:.2f} s, {mine / theirs:.3f}×", flush=True)
    return mine / theirs, mine, theirs


if __name__ == "__main__":
    main()
