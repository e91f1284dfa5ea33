"""What does each idea bring? Nested queries with and without it, as in iOLAP §8.

``recomputed``: the whole query over all blocks so far, for every answer. ``all rows kept``: rows that
meet an open aggregate are not decided by ranges. ``outer read again``: the inner aggregate is kept, but
the rows above it are read from the blocks again for every answer instead of waiting with their lineage.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from report import ROOT, record
from tables import prepared_sessions, prepared_tpch

import sooner
from sooner import tpch
from sooner.algebra import Scan, walk
from sooner.algebra.traversal import transform_up
from sooner.engine.exact import arrow_contract
from sooner.engine.streaming import Streaming
from sooner.explain import table_infos
from sooner.progressive.batches import batches
from sooner.progressive.controller import Progress
from sooner.progressive.gated import Gated
from sooner.progressive.gates import CannotGate
from sooner.progressive.hints import join_hints
from sooner.progressive.parts import CannotStream, stream_name
from sooner.progressive.reading import Reading
from sooner.progressive.request import Request
from sooner.progressive.streams import Stream, choose_stream

SLOW = """SELECT avg(l_extendedprice) AS price FROM lineitem
WHERE l_discount * l_extendedprice > (SELECT avg(l_discount * l_extendedprice) FROM lineitem)"""
QUERIES: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "slow buffering": (SLOW, ("lineitem",)),
    **{f"Q{number}": (tpch.query(number), None) for number in (11, 17, 18, 20, 22)},
}
# Of a query of some seconds a single run may have a step that the machine held up; not of one of minutes.
_RUNS, _ENOUGH_SECONDS = 3, 100
# The nested ones.
SESSION_QUERIES = ("SBI", "C1", "C2", "C4", "C6", "C7")


class Run:
    """A query opened for steps, with or without gates."""

    def __init__(self, database: sooner.Database, text: str, request: Request, gated: bool) -> None:
        self.database = database
        self.frame = database.sql(text)
        self.request = request
        self.gated = gated

    @contextmanager
    def open(self) -> Iterator[tuple[Progress, Streaming, Stream]]:
        prepared, database = self.frame.prepared, self.database
        tables = {name: database._bind(name) for name in prepared.tables}
        infos = table_infos(tables.values())
        stream = choose_stream(
            prepared.plan, tables, infos, self.request.stream, self.request.seed, self.gated
        )
        schema = arrow_contract(database.spark, prepared.columns)
        with Streaming(database.spark) as streaming:
            reading = Reading(streaming, stream, self.request)
            reading.open()
            progress = Progress(reading, stream, schema, self.request, {}, self.frame.exact)
            yield progress, streaming, stream

    def total(self) -> tuple[float, dict[str, float]]:
        """Seconds to the exact answer, and what the answers on the way said of the state."""
        start = perf_counter()
        seen: list[dict[str, float]] = []
        times: list[tuple[float, float]] = []
        with self.open() as (progress, _, _):
            for answer in progress.answers():
                times.append((answer.progress, perf_counter() - start))
                seen.append({"progress": answer.progress, **answer.details})
        judged = [
            one.get("rows_judged_again", 0.0) / one["progress"]
            for one in seen[-(-len(seen) // 4) :]  # the batches after the first quarter of them
        ]
        return times[-1][1], {
            "judged_per_read": max(judged, default=0.0),
            "recoveries": seen[-1].get("recoveries", 0),
            "state_bytes": max(one.get("state_bytes", 0) for one in seen),
            "slower_per_row": _slower(times),
        }

    def recomputed(self) -> float:
        """Seconds for the whole query over all blocks so far, at every step."""
        with self.open() as (_, streaming, stream):
            places = iter(range(sum(isinstance(n, Scan) for n in walk(self.frame.prepared.plan))))

            def as_stream(node: Scan) -> Scan:
                place = next(places)
                name = stream_name(place) if place in stream.scans else node.table
                return Scan(name, node.sources, node.columns)

            plan = transform_up(
                self.frame.prepared.plan, lambda n: as_stream(n) if isinstance(n, Scan) else n
            )
            for node in walk(plan):
                if isinstance(node, Scan) and node.table not in streaming._views:
                    streaming._views[node.table] = node.table
            return self._prefixes(streaming, stream, plan)

    def outer_again(self) -> float:
        """Seconds for what is above the gates over all blocks so far, at every step."""
        with self.open() as (progress, streaming, stream):
            plans = [one.batch for one in progress._kept if isinstance(one, Gated)]
            return sum(self._prefixes(streaming, stream, plan) for plan in plans)

    def _prefixes(self, streaming: Streaming, stream: Stream, plan: object) -> float:
        start, read = perf_counter(), []
        for blocks in batches(
            stream.blocks,
            self.request.seed,
            self.request.batches,
            stream.block_bytes,
            stream.static_bytes if stream.has_estimates else 0.0,
        ):
            read += blocks
            streaming.run(plan, read, join_hints(stream, len(read) / stream.blocks))
        return perf_counter() - start


def _slower(times: list[tuple[float, float]]) -> float:
    """Seconds for each row in the second half of what is read after the first batch, against the first half.

    Single steps say little: with two batches in flight answers may come close together.
    """
    if len(times) < 3:
        return 1.0
    (begun, start), (_, end) = times[0], times[-1]
    middle = min(range(1, len(times) - 1), key=lambda i: abs(times[i][0] - (1 + begun) / 2))
    share, seconds = times[middle]
    return ((end - seconds) / (1 - share)) / ((seconds - start) / (share - begun))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--queries", nargs="*")
    parser.add_argument("--seeds", type=int, default=10, help="for the slack")
    parser.add_argument("--unscrambled", action="store_true", help="by row groups of the files")
    parser.add_argument("--by-order", action="store_true", help="scrambled by order key only")
    parser.add_argument("--against-again", action="store_true", help="only against running again")
    parser.add_argument("--sessions", type=int, help="so many video sessions instead of TPC-H")
    options = parser.parse_args()
    what = f"sessions-{options.sessions}" if options.sessions else f"scale-{options.scale:g}"
    layout = (
        "unscrambled" if options.unscrambled else "by-order" if options.by_order else "progressive"
    )
    table: dict[str, dict[str, float]] = {}
    with sooner.connect(options.home or ROOT / ".demo" / what / layout, progress=False) as database:
        if options.sessions:
            texts = prepared_sessions(database, options.sessions, not options.unscrambled)
            queries = {name: (texts[name], None) for name in SESSION_QUERIES}
        else:
            prepared_tpch(
                database, options.scale, not options.unscrambled, more=not options.by_order
            )
            queries = QUERIES
        for name in options.queries or queries:
            text, stream = queries[name]
            try:
                request = Request(batches=options.batches, stream=stream)
                table[name] = compare(database, text, request, not options.against_again)
            except (CannotStream, CannotGate) as reason:
                print(f"{name}: not in steps ({reason})", flush=True)
                continue
            print(name, {key: round(value, 3) for key, value in table[name].items()}, flush=True)
        is_main = layout == "progressive" and not (options.sessions or options.against_again)
        slacks = by_slack(database, options.seeds) if is_main else []
        sizes = by_batches(database) if is_main else []
    where = f"{what}, {layout}, {options.batches} batches"
    again = statistics.median(one["recomputed"] / one["ours"] for one in table.values())
    judged = max(one["judged_share"] for one in table.values())
    slower = max(one["slower_per_row"] for one in table.values())
    details = {"queries": table, "slack": slacks, "batches": sizes, "peak_kb": peak()}
    for name, figure, required, measured in (
        (
            "recomputed",
            "nested queries against running them again at each step",
            "≥ 5×",
            f"{again:.1f}×",
        ),
        (
            "judged",
            "rows judged again per batch after the first quarter, worst nested query",
            "< 2%",
            f"{judged:.2%} of the rows read",
        ),
        (
            "slower",
            "time per row, second half of the reading against the first, worst nested query",
            "≤ 1.3×",
            f"{slower:.2f}×",
        ),
    ):
        record(
            f"ablations-{name}-{what}-{layout}", f"{figure}, {where}", required, measured, details
        )


def compare(
    database: sooner.Database, text: str, request: Request, without_parts: bool
) -> dict[str, float]:
    run = Run(database, text, request, gated=True)
    run.total()  # compiled and cached by the file system
    runs, again = [], []
    for _ in range(_RUNS):
        runs.append(run.total())
        if sum(again) < _ENOUGH_SECONDS:
            again.append(run.recomputed())
    seconds = statistics.median(one for one, _ in runs)
    state = {key: statistics.median(one[key] for _, one in runs) for key in runs[0][1]}
    with run.open() as (_, _, stream):
        rows = max(one.rows for one in stream.scans.values())
    found = {"ours": seconds, **state, "judged_share": state["judged_per_read"] / rows}
    found["recomputed"] = statistics.median(again)
    if not without_parts:
        return found
    found["outer read again"] = run.outer_again()
    kept, all_rows = Run(database, text, request, gated=False).total()
    return {**found, "all rows kept": kept, "all_rows_bytes": all_rows["state_bytes"]}


def by_slack(database: sooner.Database, seeds: int) -> list[dict[str, float]]:
    """Recoveries and waiting rows of the slow-buffering query against the slack."""
    found = []
    for slack in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5):
        states = [
            Run(
                database,
                SLOW,
                Request(batches=16, seed=seed, slack=slack, stream=("lineitem",)),
                True,
            ).total()[1]
            for seed in range(seeds)
        ]
        found.append(
            {
                "slack": slack,
                "recoveries": statistics.mean(one["recoveries"] for one in states),
                "judged_per_read": statistics.median(one["judged_per_read"] for one in states),
            }
        )
        print(found[-1], flush=True)
    return found


def by_batches(database: sooner.Database) -> list[dict[str, float]]:
    """Seconds to the exact answer against the number of batches."""
    found = []
    for count in (1, 4, 16, 64):
        request = Request(batches=count, stream=("lineitem",))
        found.append({"batches": count, "seconds": Run(database, SLOW, request, True).total()[0]})
        print(found[-1], flush=True)
    return found


def peak() -> int:
    """The most memory this process has held, in kilobytes; Spark's own is not in it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
