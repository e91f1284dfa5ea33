"""How much sooner than exact Spark do first estimates, 1% answers and exact answers come?

Both sides alternate in one process. The error of an answer is that of DeepOLA: the mean over its cells of
|estimate − truth| / |truth|. Of a list that still grows DeepOLA says two things: that error, of the rows
shown that are in the exact answer too, and recall and precision. So "under 1%" is counted in two ways: by
that error alone, as DeepOLA does, with the recall at that moment beside it; and strictly, where lists, and
rows that an estimate chose, are under 1% only when they are complete.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa
from report import ROOT, record, write_tables

import sooner
import sooner.frame
from sooner import tpch
from sooner.answer import Status
from sooner.explain import table_infos
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.parts import CannotStream
from sooner.progressive.streams import choose_stream

ONE_PERCENT = 0.01
SCALE = 10.0  # at which the figures are required
# More than so many bytes read before the first block is a large static read.
LARGE_STATIC = 100e6


@dataclass
class Run:
    """Seconds of one query."""

    number: int
    exact: float
    first: float
    total: float
    first_error: float | None
    first_known_error: float | None
    within_one_percent: float | None
    shown_within_one_percent: float | None
    recall_then: float | None
    recall: tuple[float, float] | None
    static_bytes: float
    answers: int


def plain(database: sooner.Database, text: str) -> tuple[pa.Table, float]:
    start = perf_counter()
    table = database.spark.sql(text).toArrow()
    return table, perf_counter() - start


def error_of(
    answer: sooner.Answer,
    truth: dict[tuple[object, ...], dict[str, float]],
    with_unknown: bool = True,
) -> float | None:
    """The mean relative error of the uncertain cells; ``None`` if there are none."""
    names = [name for name in answer.table.column_names if name in answer.uncertain]
    statuses = {name: answer.status(name) for name in names}
    errors = []
    for number, row in enumerate(answer.table.to_pylist()):
        key = tuple(value for name, value in row.items() if name not in names)
        for name in names:
            right = truth.get(key, {}).get(name)
            shown = with_unknown or statuses[name][number] is Status.ESTIMATE
            if right and row[name] is not None and shown:
                errors.append(abs(float(row[name]) - right) / abs(right))
    return statistics.fmean(errors) if errors else None


def keyed(exact: pa.Table, answer: sooner.Answer) -> dict[tuple[object, ...], dict[str, float]]:
    found = {}
    for row in exact.to_pylist():
        key = tuple(value for name, value in row.items() if name not in answer.uncertain)
        found[key] = {
            name: float(row[name])
            for name in answer.uncertain
            if isinstance(row[name], int | float) or hasattr(row[name], "as_tuple")
        }
    return found


def of_shown(
    shown: pa.Table, exact: pa.Table, open_places: list[int]
) -> tuple[float | None, float]:
    """The mean relative error of open columns in rows that the exact answer has too; and how many it has.

    ``None`` without such a row; 0 without open columns: the rows of a list are right once they are there.
    """

    def by_key(table: pa.Table) -> dict[tuple[object, ...], list[object]]:
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        key = [place for place in range(table.num_columns) if place not in open_places]
        return {tuple(row[p] for p in key): [row[p] for p in open_places] for row in rows}

    truth, found = by_key(exact), by_key(shown)
    both = truth.keys() & found.keys()
    errors = [
        abs(float(value) - float(right)) / abs(float(right))
        for key in both
        for value, right in zip(found[key], truth[key], strict=True)
        if value is not None and right
    ]
    nothing = 0.0 if both and not open_places else None
    return statistics.fmean(errors) if errors else nothing, len(both) / max(1, len(truth))


def recall_of(answer: sooner.Answer, exact: pa.Table) -> tuple[float, float] | None:
    """Of a list: the share of the exact rows that it has, and the share of its rows that are exact."""
    if any(Status.ESTIMATE in answer.status(name) for name in answer.table.column_names):
        return None
    rows = {str(row) for row in exact.to_pylist()}
    shown = {str(row) for row in answer.table.to_pylist()}
    both = len(rows & shown)
    return both / max(1, len(rows)), both / max(1, len(shown))


def measure(database: sooner.Database, number: int, seed: int) -> Run:
    text = tpch.query(number)
    frame = database.sql(text)  # from here on Spark knows the tables
    exact, seconds = plain(database, text)
    static, chosen, open_places = known_before(database, frame)
    start = perf_counter()
    first = total = 0.0
    first_error = first_known = within = shown_within = recall_then = recall = None
    count = 0
    for answer in frame.progress(seed=seed):
        elapsed = perf_counter() - start
        count += 1
        error: float | None = 0.0
        truth = keyed(exact, answer)
        shown, found = of_shown(answer.table, exact, open_places)
        if not answer.final:
            error = None if chosen else error_of(answer, truth)
        if count == 1:
            first, first_error, recall = elapsed, error, recall_of(answer, exact)
            if not (answer.final or chosen):
                first_known = error_of(answer, truth, with_unknown=False)
        if within is None and error is not None and error <= ONE_PERCENT:
            within = elapsed
        if shown_within is None and shown is not None and shown <= ONE_PERCENT:
            shown_within, recall_then = elapsed, found
        total = elapsed
    return Run(
        number=number,
        exact=seconds,
        first=first,
        total=total,
        first_error=first_error,
        first_known_error=first_known,
        within_one_percent=within,
        shown_within_one_percent=shown_within,
        recall_then=recall_then,
        recall=recall,
        static_bytes=static,
        answers=count,
    )


def known_before(
    database: sooner.Database, frame: sooner.frame.Frame
) -> tuple[float, bool, list[int]]:
    """What is read before the first answer, whether estimates choose its rows, and which columns they are."""
    tables = {name: database._bind(name) for name in frame.prepared.tables}
    infos = table_infos(tables.values())
    try:
        stream = choose_stream(frame.prepared.plan, tables, infos, None)
    except CannotStream:
        return float("inf"), False, []
    cut = stream.cut
    chosen = selects_by_estimate(cut.top, cut.states)
    return stream.static_bytes, chosen, uncertain_columns(cut.top, cut.states)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--home", type=Path, help="a home that has been scrambled already")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=int, nargs="*", default=list(tpch.QUERIES))
    options = parser.parse_args()
    place = ROOT / ".demo" / f"scale-{options.scale:g}"
    data = tpch.generate(place / "tpch", options.scale)
    with sooner.connect(options.home or place / "progressive", progress=False) as database:
        if not database.tables():
            tpch.register(database, data)
        tpch.scramble(database, more=True)
        runs = {}
        for number in options.queries:
            rounds = [measure(database, number, seed) for seed in range(options.rounds)]
            runs[number] = rounds
            for run in rounds:
                print(run, flush=True)
    report(runs, options.scale)


def report(runs: dict[int, list[Run]], scale: float) -> None:
    def middle(value: object) -> list[float]:
        found = []
        for rounds in runs.values():
            values = [v for v in map(value, rounds) if v is not None]  # type: ignore[arg-type, call-overload]
            if values:
                found.append(statistics.median(values))
        return found

    details = {str(n): [vars(run) for run in rounds] for n, rounds in runs.items()}
    sooner_by = middle(lambda run: run.exact / run.first)
    long = [
        statistics.median(run.exact / run.first for run in rounds)
        for rounds in runs.values()
        if statistics.median(run.exact for run in rounds) > 10
        and rounds[0].static_bytes < LARGE_STATIC
    ]
    errors = middle(lambda run: run.first_error)
    known = middle(lambda run: run.first_known_error)
    one = middle(lambda run: run.exact / run.within_one_percent if run.within_one_percent else None)
    estimated = [
        statistics.median(run.exact / (run.within_one_percent or run.total) for run in rounds)
        for rounds in runs.values()
        if rounds[0].first_error is not None
    ]
    shown = middle(lambda run: run.exact / (run.shown_within_one_percent or run.total))
    recall = middle(lambda run: run.recall_then)
    total = middle(lambda run: run.total / run.exact)
    where = f"median of {len(runs)} TPC-H queries, scale {scale:g}"
    figures = [
        (
            "first",
            "first estimate sooner than exact Spark",
            "≥ 12×",
            f"{statistics.median(sooner_by):.1f}×",
        ),
        (
            "long",
            "the same, queries over 10 s without a large static read",
            "≥ 20×",
            f"{statistics.median(long):.1f}×" if long else "–",
        ),
        ("error", "error of the first estimate", "≤ 2.7%", f"{statistics.median(errors):.2%}"),
        (
            "known",
            "the same, of the cells that have an interval",
            "–",
            f"{statistics.median(known):.2%}",
        ),
        (
            "one",
            "under 1% error sooner than exact Spark, lists only when complete",
            "≥ 4×",
            f"{statistics.median(one):.1f}×",
        ),
        (
            "one_shown",
            "the same by the mean error of what is shown, as DeepOLA counts",
            "≥ 4×",
            f"{statistics.median(shown):.1f}× ({sum(r < 1 for r in recall)} of them lists that still grow)",
        ),
        (
            "one_estimated",
            f"the same, the {len(estimated)} queries with estimates",
            "≥ 4×",
            f"{statistics.median(estimated):.1f}×",
        ),
        (
            "total",
            "exact answer against exact Spark",
            "≤ 1.15×",
            f"{statistics.median(total):.2f}×",
        ),
    ]
    for name, figure, required, measured in figures:
        wanted = required if scale == SCALE else "–"
        record(f"progressive-{name}-{scale:g}", f"{figure}, {where}", wanted, measured, details)
    if scale == SCALE and len(runs) == len(tpch.QUERIES):
        write_tables("benchmarks_progressive.md", "queries", query_table(runs))
    compare_scales()


def query_table(runs: dict[int, list[Run]]) -> list[str]:
    """A line for each query, medians of its rounds."""
    lines = [
        "| query | exact Spark | first | sooner | off by | under 1% | whole |",
        "|---" * 7 + "|",
    ]
    for number, rounds in runs.items():
        exact, first, total = (
            statistics.median(getattr(run, time) for run in rounds)
            for time in ("exact", "first", "total")
        )
        sooner_by = statistics.median(run.exact / run.first for run in rounds)
        against = statistics.median(run.total / run.exact for run in rounds)
        off = [run.first_error for run in rounds if run.first_error is not None]
        close = statistics.median(
            run.exact / (run.shown_within_one_percent or run.total) for run in rounds
        )
        there = statistics.median(
            1.0 if run.recall_then is None else run.recall_then for run in rounds
        )
        told = f"{close:.1f}×" + (f" ({there:.0%} of the list)" if there < 1 else "")
        error = f"{statistics.median(off):.1%}" if off else "a list"
        lines.append(
            f"| Q{number} | {exact:.1f} s | {first:.1f} s | {sooner_by:.1f}× | {error} | {told}"
            f" | {total:.1f} s, {against:.2f}× |"
        )
    return lines


def compare_scales() -> None:
    """How much later the first estimate comes with ten times the data, once both were run."""
    results = [ROOT / "bench" / "results" / f"progressive-first-{scale}.json" for scale in (1, 10)]
    if not all(file.exists() for file in results):
        return
    small, large = (json.loads(file.read_text()) for file in results)
    ratios = [
        statistics.median(run["first"] for run in large[number])
        / statistics.median(run["first"] for run in small[number])
        for number in map(str, tpch.QUERIES)
        if number in small and number in large
    ]
    record(
        "progressive-scales",
        "first estimate at scale 10 against scale 1, median of the TPC-H queries",
        "≤ 1.5×",
        f"{statistics.median(ratios):.2f}×",
        {"ratios": ratios},
    )


if __name__ == "__main__":
    main()
