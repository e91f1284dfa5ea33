"""How close and how fast are synopses? The experiments of PASS §2.5 on the real data beside the project.

Table 2.1 (64 leaves, 0.5%), Table 2.3 and Figure 2.3 (4 to 128 leaves), Figures 2.4 and 2.5 (sample rates),
Figures 2.6 and 2.7 (adversarial data and challenging questions), Figures 2.8 and 2.9 (1-D to 5-D, and a tree
asked about other columns), coverage and hard ranges of random questions, and the time to build and to ask.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from report import record
from synopsis_data import SHARED, Dataset, many_columns, one_column, spark_type, summary_of
from synopsis_rivals import AqpPlusPlus, combine, stratified, uniform

import sooner
from sooner.answer import Status
from sooner.synopses.axes import Axis
from sooner.synopses.cells import Cell
from sooner.synopses.measures import Measure
from sooner.synopses.partition import (
    balanced_kd_tree,
    equal_depth,
    fast_program,
    hill_climbing,
    items_of,
    worst_interval,
)
from sooner.synopses.question import Function
from sooner.synopses.spans import Spans, spans_of
from sooner.synopses.summary import Summary

RATE = 0.005
LEAVES = 64
FUNCTIONS: tuple[Function, ...] = ("sum", "count", "avg")
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Estimator = Callable[[int, int, str], tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A table in the order of one column, for questions about spans of it."""

    name: str
    rows: pa.Table
    over: str
    measure: str
    codes: Ints
    values: Floats
    there: npt.NDArray[np.bool_]

    @staticmethod
    def of(name: str, rows: pa.Table, over: str, measure: str) -> Line:
        """The rows of a table in order, those with a value: the rivals know no nulls."""
        rows = rows.drop_null()
        codes = Axis(over, spark_type(rows.schema.field(over).type)).codes(rows.column(over))
        kept = Measure(measure, spark_type(rows.schema.field(measure).type))
        values, there = kept.values(rows.column(measure))
        order = np.argsort(codes, kind="stable")
        numbers = values[order].astype(np.float64)
        return Line(name, rows, over, measure, codes[order], numbers, there[order])

    def questions(
        self, count: int, seed: int, low: int | None = None, high: int | None = None
    ) -> Ints:
        """Random spans between values of the column, of all or of a part."""
        known = np.unique(self.codes)
        if low is not None and high is not None:
            known = known[(known >= low) & (known <= high)]
        chosen = np.random.default_rng(seed).choice(known, (count, 2))
        return np.sort(chosen, axis=1)

    def truth(self, questions: Ints) -> dict[str, Floats]:
        """The exact answers."""
        sums = np.concatenate([[0.0], np.cumsum(self.values)])
        counts = np.concatenate([[0], np.cumsum(self.there)])
        first = np.searchsorted(self.codes, questions[:, 0])
        last = np.searchsorted(self.codes, questions[:, 1], side="right")
        total, number = sums[last] - sums[first], (counts[last] - counts[first]).astype(np.float64)
        return {"sum": total, "count": number, "avg": total / np.maximum(1.0, number)}


def cell_of(
    summary: Summary, box: dict[str, Spans], what: Function, confidence: float
) -> tuple[Cell, int]:
    """One number from a summary, and how many sampled rows it took."""
    look = summary.look(box)
    return look.cell(what, summary.definition.measures[0].name, confidence), look.read


def pass_estimator(summary: Summary) -> Estimator:
    """A summary as an estimator of spans of its column, with a 99% half-width."""
    name = summary.definition.over[0].name

    def estimate(low: int, high: int, what: str) -> tuple[float, float]:
        cell, _ = cell_of(summary, {name: spans_of([(low, high)])}, what, 0.99)
        half = 0.0 if cell.low is None else (float(cell.high) - float(cell.low)) / 2
        return float(cell.value if cell.value is not None else np.nan), half

    return estimate


def errors(estimate: Estimator, line: Line, questions: Ints, what: str) -> tuple[float, float]:
    """The median relative error and the median half-width over the truth."""
    truth = line.truth(questions)[what]
    off, wide = [], []
    for (low, high), right in zip(questions, truth, strict=True):
        if right == 0:
            continue
        value, half = estimate(int(low), int(high), what)
        # No sampled row that passes is no answer: all of it is missed.
        off.append(1.0 if np.isnan(value) else abs(value - right) / abs(right))
        wide.append(half / abs(right))
    return float(np.median(off)), float(np.median(wide))


def rivals(line: Line, kept: int, leaves: int, seed: int) -> dict[str, Estimator]:
    """US, ST and AQP++ with so many rows and partitions."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(line.codes), min(4096, len(line.codes)), replace=False))
    items = items_of(line.codes[chosen], line.values[chosen])
    boundaries = hill_climbing(items, leaves, "sum", 0.01)
    return {
        "US": uniform(line.codes, line.values, kept, seed).estimate,
        "ST": stratified(line.codes, line.values, kept, leaves, seed).estimate,
        "AQP++": AqpPlusPlus.of(line.codes, line.values, boundaries, kept, seed).estimate,
    }


def table_2_1(line: Line, questions: Ints) -> dict[str, dict[str, float]]:
    """Median relative errors of all approaches for SUM, COUNT and AVG."""
    kept = int(RATE * len(line.codes))
    of = lambda **knobs: pass_estimator(  # noqa: E731
        summary_of(line.rows, line.measure, (line.over,), leaves=LEAVES, **knobs)
    )
    approaches = {
        **rivals(line, kept, LEAVES, seed=1),
        "PASS effective": of(effective=kept),
        "PASS stored": of(sample=RATE),
        "PASS stored 2×": of(sample=2 * RATE),
        "PASS stored 10×": of(sample=10 * RATE),
    }
    found = {
        name: {what: errors(one, line, questions, what)[0] for what in FUNCTIONS}
        for name, one in approaches.items()
    }
    for name, row in found.items():
        print(
            f"{line.name:10} {name:16} " + "  ".join(f"{w} {e:.4%}" for w, e in row.items()),
            flush=True,
        )
    return found


def by_leaves(line: Line, questions: Ints) -> list[dict[str, float]]:
    """Table 2.3 and Figure 2.3: errors and times against the number of leaves."""
    kept = int(RATE * len(line.codes))
    found = []
    for leaves in (4, 8, 16, 32, 64, 128):
        start = perf_counter()
        summary = summary_of(line.rows, line.measure, (line.over,), leaves=leaves, effective=kept)
        built = perf_counter() - start
        estimate = pass_estimator(summary)
        times = []
        for low, high in questions[:300]:
            start = perf_counter()
            estimate(int(low), int(high), "sum")
            times.append(perf_counter() - start)
        row = {
            "leaves": leaves,
            "build_s": built,
            "ask_ms": 1000 * statistics.median(times),
            "most_ms": 1000 * max(times),
            "PASS": errors(estimate, line, questions, "sum")[0],
        }
        for name, one in rivals(line, kept, leaves, seed=1).items():
            row[name] = errors(one, line, questions, "sum")[0]
        found.append(row)
        print(line.name, {k: round(v, 6) for k, v in row.items()}, flush=True)
    return found


def by_rate(line: Line, questions: Ints) -> list[dict[str, float]]:
    """Figures 2.4 and 2.5: errors and half-widths against the share of a leaf's rows that is sampled."""
    found = []
    for rate in (0.001, 0.005, 0.02, 0.1, 0.5, 1.0):
        kept = int(rate * len(line.codes))
        summary = summary_of(line.rows, line.measure, (line.over,), leaves=LEAVES, sample=rate)
        row: dict[str, float] = {"rate": rate}
        approaches = {"PASS": pass_estimator(summary), **rivals(line, kept, LEAVES, seed=1)}
        for name, one in approaches.items():
            row[name], row[f"{name} half-width"] = errors(one, line, questions[:300], "sum")
        found.append(row)
        print(line.name, {k: round(v, 6) for k, v in row.items()}, flush=True)
    return found


def challenging(line: Line, count: int) -> dict[str, float]:
    """Figures 2.6 and 2.7: questions inside the span with the largest variance, for both partitionings."""
    kept = int(RATE * len(line.codes))
    rng = np.random.default_rng(2)
    chosen = np.sort(rng.choice(len(line.codes), 4096, replace=False))
    items = items_of(line.codes[chosen], line.values[chosen])
    low, high = worst_interval(items, equal_depth(items, 8), "sum", 0.02, exact=False)
    found = {}
    for name in ("fast", "equal"):
        summary = summary_of(
            line.rows,
            line.measure,
            (line.over,),
            leaves=LEAVES,
            effective=kept,
            partitioning=name,
            delta=1 / (8 * LEAVES),
        )
        for kind, questions in (
            ("random", line.questions(count, 5)),
            ("challenging", line.questions(count, 6, low, high)),
        ):
            found[f"{name}, {kind}"] = errors(pass_estimator(summary), line, questions, "sum")[1]
    print(line.name, {k: round(v, 6) for k, v in found.items()}, flush=True)
    return found


def adversarial() -> Line:
    """Figure 2.6's data: a million rows, seven eighths zero, the rest normal."""
    rng = np.random.default_rng(4)
    rows, quiet = 1_000_000, 875_000
    values = np.concatenate([np.zeros(quiet), rng.normal(100, 30, rows - quiet)])
    return Line.of("Adversarial", pa.table({"k": np.arange(rows), "v": values}), "k", "v")


def boxes(rows: pa.Table, columns: Sequence[str], count: int, seed: int) -> list[dict[str, Spans]]:
    """Random boxes over some columns, between values that occur."""
    rng = np.random.default_rng(seed)
    codes = {
        name: Axis(name, spark_type(rows.schema.field(name).type)).codes(rows.column(name))
        for name in columns
    }
    found = []
    for _ in range(count):
        box = {}
        for name, known in codes.items():
            low, high = np.sort(rng.choice(known, 2))
            box[name] = spans_of([(int(low), int(high))])
        found.append(box)
    return found


def same_effort(
    rows: pa.Table,
    measure: str,
    over: tuple[str, ...],
    keep: tuple[str, ...],
    asked: list[dict[str, Spans]],
) -> Summary:
    """A synopsis that reads about as many rows for a question as a uniform sample has (§2.5.1, ESS)."""
    first = summary_of(rows, measure, over, keep, leaves=1024, sample=RATE)
    read = np.mean([first.look(box).read for box in asked[:100]]) / first.samples.count
    share = min(1.0, RATE / max(float(read), RATE))
    return summary_of(rows, measure, over, keep, leaves=1024, sample=share)


def templates(dataset: Dataset, count: int) -> list[dict[str, float]]:
    """Figures 2.8 and 2.9: one to five columns by a k-d tree of 1,024 leaves, and by that of two columns."""
    rows = dataset.read().drop_null()
    values = rows.column(dataset.measure).to_numpy().astype(np.float64)
    codes = {
        n: Axis(n, spark_type(rows.schema.field(n).type)).codes(rows.column(n))
        for n in dataset.over
    }
    kept = int(RATE * rows.num_rows)
    found = []
    for width in range(1, 6):
        columns = dataset.over[:width]
        asked = boxes(rows, columns, count, seed=width)
        own = same_effort(rows, dataset.measure, columns, (), asked)
        two = same_effort(rows, dataset.measure, dataset.over[:2], dataset.over[2:], asked)
        baseline = KdUs(np.column_stack([codes[n] for n in columns]), values, kept)
        row: dict[str, float] = {"columns": width}
        sums: dict[str, list[float]] = {
            name: [] for name in ("own", "two", "KD-US", "own off", "KD-US off")
        }
        skipped = {"own": [], "two": []}  # type: dict[str, list[float]]
        for box in asked:
            inside = np.ones(rows.num_rows, np.bool_)
            for name, spans in box.items():
                inside &= spans.hold(codes[name])
            truth = float(values[inside].sum())
            if truth == 0:
                continue
            for name, summary in (("own", own), ("two", two)):
                cell, read = cell_of(summary, box, "sum", 0.99)
                if cell.low is not None:
                    sums[name].append((float(cell.high) - float(cell.low)) / 2 / truth)
                skipped[name].append(1 - read / summary.samples.count)
                if name == "own":
                    sums["own off"].append(abs(float(cell.value) - truth) / truth)
            value, half = baseline.estimate([box[n] for n in columns])
            sums["KD-US"].append(half / truth)
            sums["KD-US off"].append(abs(value - truth) / truth)
        for name, one in sums.items():
            row[name] = float(np.median(one)) if one else float("nan")
        row["skipped"], row["skipped by two"] = (float(np.mean(skipped[n])) for n in ("own", "two"))
        found.append(row)
        print(dataset.name, {k: round(v, 4) for k, v in row.items()}, flush=True)
    return found


class KdUs:
    """KD-US: exact sums of a balanced k-d tree's leaves, and a uniform sample for what they do not cover."""

    def __init__(self, codes: Ints, values: Floats, kept: int) -> None:
        rng = np.random.default_rng(1)
        tree = balanced_kd_tree(codes[rng.choice(len(codes), 10_000, replace=False)], 1024)
        leaf = tree.assign(codes)
        size = tree.leaves
        self.sums, self.counts = np.bincount(leaf, values, size), np.bincount(leaf, minlength=size)
        self.low = np.full((size, codes.shape[1]), np.iinfo(np.int64).max)
        self.high = np.full((size, codes.shape[1]), np.iinfo(np.int64).min)
        np.minimum.at(self.low, leaf, codes)
        np.maximum.at(self.high, leaf, codes)
        chosen = rng.choice(len(codes), kept, replace=False)
        self.codes, self.values, self.leaf = codes[chosen], values[chosen], leaf[chosen]
        self.rows = float(len(codes))

    def estimate(self, box: Sequence[Spans]) -> tuple[float, float]:
        """The estimate and its 99% half-width."""
        whole = self.counts > 0
        inside = np.ones(len(self.codes), np.bool_)
        for place, spans in enumerate(box):
            whole &= spans.contain(self.low[:, place], self.high[:, place])
            inside &= spans.hold(self.codes[:, place])
        inside &= ~whole[self.leaf]
        chosen = self.values[inside]
        parts = [
            np.array([float(one)])
            for one in (self.rows, len(self.codes), inside.sum(), chosen.sum())
        ]
        squares = np.array([float(np.square(chosen).sum())])
        return combine(*parts, squares, "sum", float(self.sums[whole].sum()), 0.0)


def coverage(lines: Sequence[Line], count: int) -> dict[str, dict[str, float]]:
    """Whether intervals hold as often as they say, and hard ranges always."""
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        held = {0.95: [0, 0], 0.99: [0, 0]}
        wrong = asked = 0
        for seed in range(4):
            summary = summary_of(
                line.rows, line.measure, (line.over,), leaves=LEAVES, sample=0.02, seed=seed
            )
            questions = line.questions(count // 4, 100 + seed)
            truths = line.truth(questions)
            for number, (low, high) in enumerate(questions):
                box = {line.over: spans_of([(int(low), int(high))])}
                for what in FUNCTIONS:
                    truth = truths[what][number]
                    for confidence, tally in held.items():
                        cell, read = cell_of(summary, box, what, confidence)
                        slack = 1e-9 * max(1.0, abs(truth))
                        asked += 1
                        if cell.hard_low is not None:
                            low_end, high_end = float(cell.hard_low), float(cell.hard_high)
                            wrong += not low_end - slack <= truth <= high_end + slack
                        if cell.status is Status.ESTIMATE and read >= 30:
                            tally[0] += float(cell.low) - slack <= truth <= float(cell.high) + slack
                            tally[1] += 1
        found[line.name] = {
            "95%": held[0.95][0] / held[0.95][1],
            "99%": held[0.99][0] / held[0.99][1],
            "questions": asked,
            "hard ranges that do not hold": wrong,
        }
        print(line.name, found[line.name], flush=True)
    return found


def speed(count: int) -> dict[str, float]:
    """Building over three million rows against one exact scan by Spark, and asking, as users do."""
    with tempfile.TemporaryDirectory() as home, sooner.connect(home, progress=False) as database:
        database.register("flights", SHARED / "flights_3m.parquet")
        database.sql("SELECT count(*) FROM flights").exact()
        scan = "SELECT sum(distance), min(date), max(date) FROM flights"
        scans, builds = [], []
        for turn in range(count + 1):
            start = perf_counter()
            database.spark.sql(scan).toArrow()
            middle = perf_counter()
            database.synopsis(
                "s", "flights", "distance", "date", leaves=LEAVES, sample=RATE, replace=True
            )
            if turn:  # the first compiles, and starts Python beside Spark
                scans.append(middle - start)
                builds.append(perf_counter() - middle)
        loaded, times = in_a_process_of_its_own(home)
    return {
        "scan_s": statistics.median(scans),
        "build_s": statistics.median(builds),
        "load_ms": 1000 * loaded,
        "median_ms": 1000 * float(np.median(times)),
        "p99_ms": 1000 * float(np.quantile(times, 0.99)),
    }


def in_a_process_of_its_own(home: str) -> tuple[float, list[float]]:
    """Seconds to load the synopsis and to ask it, where no Spark runs beside."""
    script = (
        "import json, sooner, synopses\n"
        "from time import perf_counter\n"
        f"with sooner.connect({home!r}, progress=False) as database:\n"
        "    database.synopsis('s').summary\n"  # Arrow loads pandas when it first converts anything
        "    start = perf_counter()\n"
        "    synopsis = database.synopsis('s')\n"
        "    synopsis.summary\n"
        "    loaded = perf_counter() - start\n"
        "    print(json.dumps([loaded, synopses.asked(synopsis, 2000)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, check=True
    )
    loaded, times = json.loads(done.stdout)
    return loaded, times


def asked(synopsis: Any, count: int) -> list[float]:
    """Seconds for each of some random questions, from the text to the Answer."""
    rng = np.random.default_rng(8)
    days = np.sort(rng.integers(1, 180 * 24, (count, 2)), axis=1)
    start = np.datetime64("2001-01-01T00:00:00")
    times = []
    for first, last in days:
        low, high = (
            str(start + np.timedelta64(int(n), "h")).replace("T", " ") for n in (first, last)
        )
        text = f"SELECT SUM(distance) FROM flights WHERE date BETWEEN '{low}' AND '{high}'"
        began = perf_counter()
        synopsis.answer(text)
        times.append(perf_counter() - began)
    return times


def partitioning() -> float:
    """Seconds to choose 128 leaves."""
    line = adversarial()
    rng = np.random.default_rng(2)
    chosen = np.sort(rng.choice(len(line.codes), 4096, replace=False))
    items = items_of(line.codes[chosen], line.values[chosen] + rng.random(4096))
    times = []
    for _ in range(5):
        start = perf_counter()
        fast_program(items, 128, "sum", 0.002)
        times.append(perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--only", nargs="*", help="parts by name, such as speed")
    options = parser.parse_args()
    datasets = one_column()
    if not datasets:
        print("There is no ../shared/data: nothing to measure.")
        return

    def wanted(part: str) -> bool:
        return not options.only or part in options.only

    lines = [Line.of(one.name, one.read(), one.over[0], one.measure) for one in datasets]
    if wanted("table"):
        tables = {one.name: table_2_1(one, one.questions(options.questions, 3)) for one in lines}
        sums = {
            name: {way: row["sum"] for way, row in table.items()} for name, table in tables.items()
        }
        worst = max(one["PASS effective"] for one in sums.values())

        def closer(than: str, way: str) -> float:
            return min(one[than] / one[way] for one in sums.values())

        details = {"errors": tables}
        for name, figure, required, measured in (
            (
                "error",
                "1-D SUM, 64 leaves, effective sample 0.5%: worst median error",
                "≤ 0.07%",
                f"{worst:.3%}",
            ),
            (
                "uniform",
                "… closer than uniform sampling, same effective sample",
                "≥ 15×",
                f"{closer('US', 'PASS effective'):.0f}×",
            ),
            (
                "stored",
                "… closer than uniform sampling, same stored sample",
                "≥ 4×",
                f"{closer('US', 'PASS stored'):.1f}×",
            ),
            (
                "aqp",
                "… closer than AQP++, same effective sample",
                "≥ 4×",
                f"{closer('AQP++', 'PASS effective'):.1f}×",
            ),
        ):
            record(f"synopses-{name}", f"synopses: {figure}", required, measured, details)
    if wanted("coverage"):
        found = coverage(lines, options.questions)
        far = max(
            abs(one[key] - float(key[:-1]) / 100)
            for one in found.values()
            for key in ("95%", "99%")
        )
        wrong = sum(one["hard ranges that do not hold"] for one in found.values())
        number = sum(one["questions"] for one in found.values())
        record(
            "synopses-coverage",
            "synopses: 95% and 99% intervals, furthest from nominal",
            "≤ 2 points",
            f"{100 * far:.1f} points",
            {"coverage": found},
        )
        record(
            "synopses-hard",
            f"synopses: hard ranges that do not hold, of {number:,.0f}",
            "0",
            f"{wrong:.0f}",
            {"coverage": found},
        )
    if wanted("speed"):
        times = speed(5)
        record(
            "synopses-ask",
            "synopses: one question, 64 leaves, median / p99",
            "≤ 1 ms / 5 ms",
            f"{times['median_ms']:.2f} / {times['p99_ms']:.2f} ms",
            times,
        )
        record(
            "synopses-build",
            "synopses: building over 3 million rows against one exact scan",
            "≤ 4×",
            f"{times['build_s'] / times['scan_s']:.1f}×",
            times,
        )
        record(
            "synopses-load",
            "synopses: loading one",
            "< 100 ms",
            f"{times['load_ms']:.0f} ms",
            times,
        )
        record(
            "synopses-partitioning",
            "synopses: choosing 128 leaves",
            "≤ 1 s",
            f"{partitioning():.2f} s",
            {},
        )
    more: dict[str, Any] = {}
    if wanted("leaves"):
        more["leaves"] = {
            one.name: by_leaves(one, one.questions(options.questions // 4, 3)) for one in lines
        }
    if wanted("rate"):
        more["rate"] = {
            one.name: by_rate(one, one.questions(options.questions // 4, 3)) for one in lines
        }
    if wanted("challenging"):
        more["challenging"] = {
            one.name: challenging(one, options.questions // 4) for one in (adversarial(), *lines)
        }
    if wanted("templates") and (dataset := many_columns()):
        more["templates"] = templates(dataset, options.questions // 4)
    if more:
        record(
            "synopses-more",
            "synopses: leaves, rates, challenging questions, templates",
            "–",
            ", ".join(more),
            more,
        )


if __name__ == "__main__":
    main()
