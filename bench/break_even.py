"""From how much data on does a first estimate come much sooner than Spark's exact answer?

What is found here is ``_WORTH_BYTES`` in ``progressive/streams.py``.
"""

from __future__ import annotations

import argparse
import statistics
from time import perf_counter

from report import ROOT, record

import sooner
from sooner import tpch
from sooner.explain import table_infos
from sooner.progressive.streams import choose_stream

QUERIES = (1, 3, 5, 6, 12, 14)
SOONER = 2.0


def times(database: sooner.Database, number: int) -> tuple[float, float, float]:
    """Bytes that are streamed, seconds of Spark's exact answer, seconds to the first estimate."""
    text = tpch.query(number)
    frame = database.sql(text)
    tables = {name: database._bind(name) for name in frame.prepared.tables}
    stream = choose_stream(frame.prepared.plan, tables, table_infos(tables.values()), None)
    exact, first = [], []
    for seed in range(4):
        start = perf_counter()
        database.spark.sql(text).toArrow()
        exact.append(perf_counter() - start)
        start = perf_counter()
        answers = frame.progress(batches=16, seed=seed)
        next(answers)
        first.append(perf_counter() - start)
        answers.close()  # type: ignore[attr-defined]
    # The first round compiles.
    return stream.bytes, statistics.median(exact[1:]), statistics.median(first[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=float, nargs="*", default=[0.02, 0.1, 0.3, 1.0])
    options = parser.parse_args()
    found = []
    for scale in options.scales:
        place = ROOT / ".demo" / f"scale-{scale:g}"
        data = tpch.generate(place / "tpch", scale)
        with sooner.connect(place / "break-even", progress=False) as database:
            if not database.tables():
                tpch.register(database, data)
            tpch.scramble(database, blocks=16)
            for number in QUERIES:
                size, exact, first = times(database, number)
                found.append({"query": number, "bytes": size, "sooner": exact / first})
                print(found[-1], flush=True)
    record_break_even(found)


def record_break_even(found: list[dict[str, float]]) -> None:
    """The smallest size of the first scale at which half of the queries come so much sooner."""
    sizes = sorted({one["bytes"] for one in found})
    enough = [
        size
        for size in sizes
        if statistics.median(one["sooner"] for one in found if size <= one["bytes"] < 2 * size)
        >= SOONER
    ]
    measured = f"{min(enough) / 1e6:.0f} MB" if enough else "more than was tried"
    record(
        "break_even",
        f"streamed bytes from which a first estimate comes {SOONER:g}× sooner",
        "–",
        measured,
        {"runs": found},
    )


if __name__ == "__main__":
    main()
