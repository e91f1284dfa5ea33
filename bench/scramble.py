"""How long does it take to scramble TPC-H lineitem and orders?"""

from __future__ import annotations

import argparse
import tempfile
from time import perf_counter

from report import ROOT, record

import sooner
from sooner import tpch

REQUIRED = {"lineitem": 130, "orders": 43}


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
            scramble = done.scrambles[-1]
            rows = sum(file.rows or 0 for file in scramble.files)
            assert rows == done.facts.rows, "a scramble holds every row once"
            required = f"≤ {REQUIRED[table]} s" if options.scale == 10 else "–"
            record(
                f"scramble-{table}-{options.scale:g}",
                f"scrambling TPC-H {table}, scale {options.scale:g} ({rows:,} rows)",
                required,
                f"{seconds:.0f} s",
                {"seconds": seconds, "rows": rows, "bytes": sum(f.bytes for f in scramble.files)},
            )


if __name__ == "__main__":
    main()
