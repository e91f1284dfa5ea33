"""Ranges for missing rows on real data: do they ever fail, how wide are they, how long do they take?

Rows with the largest values are removed; constraints that hold for them are the only thing known. As in the
paper, only the missing rows are asked about. The rivals get as many numbers to remember (missing_rivals.py).
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC
from time import perf_counter

import numpy as np
import pyarrow.parquet as pq
from missing_rivals import Rival, Rows, histogram, mixture, sampled, stratified
from report import ROOT, record

from sooner.algebra import Column
from sooner.missing.cells import decompose
from sooner.missing.constraint import Constraint
from sooner.missing.parts import Parts, correlated_columns
from sooner.missing.program import Contradiction
from sooner.missing.ranges import RANGES, Known, Span
from sooner.missing.space import Space, space_of
from sooner.missing.worlds import (
    MOST_CELLS,
    Separate,
    Split,
    Worlds,
    told,
    worlds,
)
from sooner.synopses.axes import float_codes
from sooner.synopses.spans import Spans, spans_of

SHARED = ROOT.parent / "shared" / "data"
ABOUT = """# Ranges for missing rows, beside other ways to a range

Written by `bench/missing.py`. Each cell says how many ranges did not hold the truth, and the median of
upper end against truth. Rows with the largest values are missing. Corr-PC are constraints along the
columns that the measure goes with, Rand-PC 20 and Overlapping-PC 10 boxes at random places; US and ST are
uniform and stratified samples with as many rows as there are constraints (1) or ten times that (10), by
the normal approximation (p) or Hoeffding's bound (n) at 99%; then an equi-width histogram and a mixture
of Gaussians.
"""
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
# A rounded sum in another order.
SLIP = 1e-9


@dataclass(frozen=True)
class Dataset:
    """Rows, the measure, and the columns that questions go by, all as numbers."""

    name: str
    over: tuple[str, ...]
    measure: str
    constraints: int
    every: int = 1  # of so many rows one is taken
    others: tuple[str, ...] = ()  # columns that the measure may go with as well

    def read(self, over: Sequence[str] = ()) -> Rows:
        names = [*(over or self.over), self.measure]
        table = pq.read_table(SHARED / self.name, columns=names).drop_null()
        columns = [_numbers(table.column(name).to_numpy()) for name in names]
        *places, measure = (column[:: self.every] for column in columns)
        return Rows(np.column_stack(places).astype(float), measure.astype(float))


INTEL = ("temperature", "humidity", "voltage")
AIRBNB = ("neighbourhood", "room_type", "minimum_nights", "number_of_reviews", "availability_365")
FLIGHTS = ("origin", "destination")


def _numbers(values: np.ndarray) -> np.ndarray:
    """Moments by minute, words by their place."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[m]").astype(int)
    return np.unique(values, return_inverse=True)[1] if values.dtype.kind == "O" else values


DATASETS = [
    Dataset("intel_lab.parquet", ("moteid", "epoch"), "light", 2000, 1, INTEL),
    Dataset("airbnb_nyc_2019.parquet", ("latitude", "longitude"), "price", 1500, 1, AIRBNB),
    Dataset("flights_3m.parquet", ("date", "distance"), "delay", 2000, 6, FLIGHTS),
]


@dataclass
class Tally:
    """Of many questions: how many ranges failed, and upper ends against the truth."""

    asked: int = 0
    failed: int = 0
    over: list[float] = field(default_factory=list)

    def add(self, low: float, high: float, truth: float) -> None:
        slip = SLIP * max(1.0, abs(truth))
        self.asked += 1
        self.failed += not (low - slip <= truth <= high + slip)
        if truth > 0:
            self.over.append(high / truth)

    def __str__(self) -> str:
        width = statistics.median(self.over) if self.over else math.nan
        return f"{self.failed / max(1, self.asked):.2%} of {self.asked:,} failed, {width:.2f}×"


class Asked:
    """Constraints laid out over some columns of numbers, to be asked again and again."""

    def __init__(self, constraints: Sequence[Constraint], names: Sequence[str]) -> None:
        schema = tuple(Column(name, "double") for name in (*names, "m"))
        self.names = names
        self.constraints = constraints
        self.space: Space = space_of(schema, constraints, [], [], UTC)
        self.worlds: Worlds | None = None

    def question(self, low: np.ndarray, high: np.ndarray) -> list[dict[str, Spans]]:
        first, last = float_codes(low).tolist(), float_codes(high).tolist()
        return [{n: spans_of([ends]) for n, *ends in zip(self.names, first, last, strict=True)}]

    def ranges(self, low: np.ndarray, high: np.ndarray, functions: Sequence[str]) -> list[Span]:
        question = self.question(low, high)
        if not isinstance(self.worlds, Separate):  # else the space is cut along each question
            self.worlds = worlds(self.space, self.constraints, [question], ["m"])
        found = []
        for function in functions:
            measure = None if function == "count" else self.space.axis("m")
            reach = self.worlds.reach(question, measure)
            found.append(RANGES[function](self.worlds.program, reach, Known()))
        return found


def boxed(rows: Rows, names: Sequence[str], inside: np.ndarray, name: str) -> Constraint:
    """What holds for some rows: the box they are in, their values, their number."""
    over, measure = rows.over[inside], rows.measure[inside]
    ends = zip(names, over.min(axis=0).tolist(), over.max(axis=0).tolist(), strict=True)
    where = " AND ".join(f"{n} BETWEEN {low!r} AND {high!r}" for n, low, high in ends)
    count = len(measure)
    return Constraint(
        where, {"m": (float(measure.min()), float(measure.max()))}, (count, count), name
    )


def correlated(
    rows: Rows, names: Sequence[str], count: int
) -> tuple[list[Constraint], list[np.ndarray]]:
    """Corr-PC: equally many rows in each part."""
    codes = {name: float_codes(rows.over[:, n].copy()) for n, name in enumerate(names)}
    parts = Parts(codes, rows.measure, count).rows
    return [boxed(rows, names, part, f"part {n}") for n, part in enumerate(parts)], parts


def overlapping(
    rows: Rows, names: Sequence[str], count: int, rng: np.random.Generator, reach: float
) -> list[Constraint]:
    """Boxes at random places that overlap, and one around everything, so that each row is in one."""
    made = [boxed(rows, names, np.arange(len(rows.measure)), "all")]
    while len(made) < count:
        at = rng.random((rows.over.shape[1], 1)) + np.array([-reach, reach])
        ends = [np.quantile(c, np.clip(q, 0, 1)) for c, q in zip(rows.over.T, at, strict=True)]
        low, high = np.array(ends).T
        inside = np.flatnonzero(rows.inside(low, high))
        if not len(inside):
            continue
        own = rows.measure[inside]
        where = " AND ".join(
            f"{n} BETWEEN {a!r} AND {b!r}"
            for n, a, b in zip(names, low.tolist(), high.tolist(), strict=True)
        )
        number = len(inside)
        ends_of = {"m": (float(own.min()), float(own.max()))}
        made.append(Constraint(where, ends_of, (number, number), f"box {len(made)}"))
    return made


def noisy(
    constraints: Sequence[Constraint], spread: float, rng: np.random.Generator
) -> list[Constraint]:
    """Values that somebody remembers wrongly."""
    made = []
    for one in constraints:
        low, high = sorted(np.array(one.values["m"]) + rng.normal(0, spread, 2))
        made.append(Constraint(one.where, {"m": (float(low), float(high))}, one.rows, one.name))
    return made


def questions(
    rows: Rows, count: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random ranges of all columns, or of one of them."""
    sorted_columns = np.sort(rows.over, axis=0)
    found = []
    for number in range(count):
        places = np.sort(rng.integers(0, len(sorted_columns), (2, rows.over.shape[1])), axis=0)
        low, high = np.take_along_axis(sorted_columns, places, axis=0)
        free = number % 3  # every third time the first or the second column alone
        if free < rows.over.shape[1]:
            low[free], high[free] = sorted_columns[0, free], sorted_columns[-1, free]
        found.append((low, high))
    return found


def truths(rows: Rows, low: np.ndarray, high: np.ndarray) -> dict[str, float | None]:
    values = rows.measure[rows.inside(low, high)]
    found: dict[str, float | None] = {"count": float(len(values))}
    if not len(values):
        return {**found, "sum": None, "avg": None, "min": None, "max": None}
    total = math.fsum(values)
    return {
        **found,
        "sum": total,
        "avg": total / len(values),
        "min": float(values.min()),
        "max": float(values.max()),
    }


def holds(found: Span, truth: float | None) -> bool:
    if truth is None:
        return found.may_be_null
    if found.low is None or found.high is None:
        return False
    slip = SLIP * max(1.0, abs(truth))
    return found.low - slip <= truth <= found.high + slip


# Which share is missing, which columns the question goes by, who answers what.
Key = tuple[float, str, str, str]


def run(data: Dataset, asked: int, rng: np.random.Generator) -> tuple[dict[Key, Tally], int, int]:
    """Ranges and rivals on one dataset; how many ranges were asked for in all, and how many failed."""
    everything = data.read()
    order = np.argsort(-everything.measure, kind="stable")
    tallies: dict[Key, Tally] = {}
    ranges = failed = 0
    names = [f"x{n}" for n in range(len(data.over))]
    for share in SHARES:
        gone = order[: int(share * len(order))]
        rows = Rows(everything.over[gone], everything.measure[gone])
        constraints, parts = correlated(rows, names, data.constraints)
        sets = {
            "Corr-PC": Asked(constraints, names),
            "Rand-PC": Asked(overlapping(rows, names, 20, rng, 0.2), names),
            "Overlapping-PC": Asked(overlapping(rows, names, 10, rng, 0.4), names),
        }
        n = len(constraints)
        rivals: dict[str, Rival] = {
            "US-1p": sampled(rows, n, True, rng),
            "US-10p": sampled(rows, 10 * n, True, rng),
            "US-1n": sampled(rows, n, False, rng),
            "US-10n": sampled(rows, 10 * n, False, rng),
            "ST-1n": stratified(rows, parts, 1, False, rng),
            "ST-10n": stratified(rows, parts, 10, False, rng),
            "Histogram": histogram(rows, n),
            "Mixture": mixture(rows, 5, 5, rng),
        }
        for number, (low, high) in enumerate(questions(rows, asked, rng)):
            right = truths(rows, low, high)
            by = (data.over[1], data.over[0], ", ".join(data.over))[number % 3]
            for name, one in sets.items():
                if name != "Corr-PC" and number >= asked // 20:
                    continue  # each of these questions cuts the space anew
                for function, span in zip(RANGES, one.ranges(low, high, list(RANGES)), strict=True):
                    ranges += 1
                    failed += not holds(span, right[function])
                    if right[function] is not None:
                        assert span.low is not None and span.high is not None
                        key = (share, by, name, function)
                        tallies.setdefault(key, Tally()).add(
                            span.low, span.high, right[function] or 0.0
                        )
            for name, rival in rivals.items():
                for function in ("sum", "count"):
                    key = (share, by, name, function)
                    ends = rival(low, high, function == "sum")
                    tallies.setdefault(key, Tally()).add(*ends, right[function] or 0.0)
        print(
            f"{data.name} {share:.0%} missing: {failed} of {ranges:,} ranges failed so far",
            flush=True,
        )
    return tallies, ranges, failed


def found_columns(
    data: Dataset, asked: int, rng: np.random.Generator
) -> tuple[set[tuple[str, ...]], Tally, int]:
    """Corr-PC along the columns that are found to go with the measure: which, SUM, and what failed of all."""
    names = (*data.over, *data.others)
    everything = data.read(names)
    order = np.argsort(-everything.measure, kind="stable")
    chosen: set[tuple[str, ...]] = set()
    sums, failed = Tally(), 0
    for share in SHARES:
        gone = order[: int(share * len(order))]
        measure = everything.measure[gone]
        codes = {n: float_codes(everything.over[gone, k].copy()) for k, n in enumerate(names)}
        best = tuple(correlated_columns(codes, measure))
        chosen.add(best)
        rows = Rows(everything.over[gone][:, [names.index(name) for name in best]], measure)
        one = Asked(correlated(rows, best, data.constraints)[0], best)
        for low, high in questions(rows, asked, rng):
            right = truths(rows, low, high)
            spans = dict(zip(RANGES, one.ranges(low, high, list(RANGES)), strict=True))
            failed += sum(not holds(span, right[name]) for name, span in spans.items())
            total = spans["sum"]
            if right["sum"] is not None and total.low is not None and total.high is not None:
                sums.add(total.low, total.high, right["sum"])
    return chosen, sums, failed


def together(tallies: dict[Key, Tally], *wanted: str | float) -> Tally:
    """One tally of all whose keys have these parts."""
    found = Tally()
    for key, one in tallies.items():
        if all(part in key for part in wanted):
            found.asked, found.failed = found.asked + one.asked, found.failed + one.failed
            found.over += one.over
    return found


def by_share(name: str, tallies: dict[Key, Tally]) -> list[str]:
    """Failures and over-estimation against the share that is missing (Figures 4.3, 4.4, 4.10, 4.11)."""
    methods = list(dict.fromkeys(key[2] for key in tallies))
    lines = [f"| {name} | {' | '.join(f'{share:.0%} missing' for share in SHARES)} |"]
    lines.append("|---|" + "---|" * len(SHARES))
    for function in ("count", "sum"):
        for method in methods:
            cells = [str(together(tallies, share, method, function)) for share in SHARES]
            lines.append(f"| {method}, {function.upper()} | {' | '.join(cells)} |")
    return lines


def failures(all_: dict[str, dict[Key, Tally]]) -> list[str]:
    """Failures in a thousand questions by what they go by (Table 4.2)."""
    methods = list(dict.fromkeys(key[2] for one in all_.values() for key in one))
    lines = [f"| failures in 1,000 | {' | '.join(methods)} |", "|---|" + "---|" * len(methods)]
    for name, tallies in all_.items():
        for function in ("count", "sum"):
            for by in dict.fromkeys(key[1] for key in tallies):
                found = [together(tallies, by, method, function) for method in methods]
                cells = [f"{1000 * one.failed / max(1, one.asked):.0f}" for one in found]
                lines.append(f"| {name} {function.upper()} by {by} | {' | '.join(cells)} |")
    return lines


def half_missing() -> Rows:
    everything = DATASETS[0].read()
    gone = np.argsort(-everything.measure, kind="stable")[: len(everything.measure) // 2]
    return Rows(everything.over[gone], everything.measure[gone])


def samples(asked: int, rng: np.random.Generator) -> list[str]:
    """A uniform sample with other confidences (Table 4.1) and of other sizes (Figure 4.5), SUM, Intel."""
    rows = half_missing()
    confidences = (0.8, 0.85, 0.9, 0.95, 0.99, 0.999, 0.9999)
    rivals = {
        **{f"US-1n at {c:.4g}": sampled(rows, 2000, False, rng, c) for c in confidences},
        **{f"US-{n}n": sampled(rows, n * 2000, False, rng) for n in (1, 2, 5, 10)},
    }
    tallies = {name: Tally() for name in rivals}
    for low, high in questions(rows, asked, rng):
        right = truths(rows, low, high)["sum"] or 0.0
        for name, rival in rivals.items():
            tallies[name].add(*rival(low, high, True), right)
    return [f"| {name} | {tally} |" for name, tally in tallies.items()]


def noise(asked: int, rng: np.random.Generator) -> dict[str, list[float]]:
    """How often ranges fail when constraints are remembered wrongly (Figure 4.6)."""
    rows = half_missing()
    names = ["x0", "x1"]
    constraints, _ = correlated(rows, names, 2000)
    boxes = overlapping(rows, names, 10, rng, 0.4)
    found: dict[str, list[float]] = {"Corr-PC": [], "Overlapping-PC": [], "US-10n": []}
    for deviations in (0, 1, 2, 3):
        spread = deviations * float(rows.measure.std())
        rival = sampled(rows, 20_000, False, rng, noise=spread)
        sets = [Asked(noisy(given, spread, rng), names) for given in (constraints, boxes)]
        wrong = dict.fromkeys(found, 0)
        for low, high in questions(rows, asked, rng):
            right = truths(rows, low, high)["sum"]
            for name, one in zip(found, sets, strict=False):
                try:
                    (span,) = one.ranges(low, high, ["sum"])
                    wrong[name] += not holds(span, right)
                except Contradiction:
                    wrong[name] += 1
            least, most = rival(low, high, True)
            wrong["US-10n"] += not least <= (right or 0.0) <= most
        for name, number in wrong.items():
            found[name].append(number / asked)
    return found


def decisions(rng: np.random.Generator) -> tuple[int, float]:
    """Cells that are looked at for 20 constraints that overlap, and the seconds it takes (Figure 4.7)."""
    heavy = overlapping(DATASETS[0].read(), ["x0", "x1"], 20, rng, 0.4)
    asked = Asked(heavy, ["x0", "x1"])
    regions = told(asked.space, heavy).regions
    grid = Split(regions, [], *np.zeros((2, 20)), True).grid
    parts = [grid.part(region.where) for region in regions]
    start = perf_counter()
    decompose(grid.whole, parts, MOST_CELLS)
    taken = perf_counter() - start
    looked = sum(len(decompose(grid.whole, parts[:n], MOST_CELLS).cells) for n in range(1, 21))
    return looked, taken


def by_size(rng: np.random.Generator) -> dict[int, float]:
    """Milliseconds of a question against the number of disjoint constraints (Figure 4.8)."""
    rows = DATASETS[0].read()
    found = {}
    for count in (100, 500, 1000, 2000, 4000):
        asked = Asked(correlated(rows, ["x0", "x1"], count)[0], ["x0", "x1"])
        times = []
        for low, high in questions(rows, 60, rng):
            start = perf_counter()
            asked.ranges(low, high, ["sum"])
            times.append(perf_counter() - start)
        found[count] = 1e3 * statistics.median(times[5:])
    return found


def speeds(rng: np.random.Generator) -> tuple[float, float]:
    """Seconds of one question over 2,000 disjoint constraints, and of a whole answer over 20 that overlap."""
    everything = DATASETS[0].read()
    constraints, _ = correlated(everything, ["x0", "x1"], 2000)
    asked = Asked(constraints, ["x0", "x1"])
    times = []
    for low, high in questions(everything, 200, rng):
        start = perf_counter()
        asked.ranges(low, high, ["sum"])
        times.append(perf_counter() - start)
    heavy = overlapping(everything, ["x0", "x1"], 20, rng, 0.4)
    whole = []
    for low, high in questions(everything, 20, rng):
        for function in RANGES:
            start = perf_counter()
            Asked(heavy, ["x0", "x1"]).ranges(low, high, [function])
            whole.append(perf_counter() - start)
    return statistics.median(times[5:]), statistics.median(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--questions", type=int, default=1000, help="for each share of missing rows"
    )
    options = parser.parse_args()
    if not SHARED.exists():
        print(f"{SHARED} is not here: nothing to do.")
        return
    rng = np.random.default_rng(4)
    one, many = speeds(rng)
    record(
        "missing-one",
        "missing rows: a question over 2,000 disjoint constraints",
        "≤ 2 ms",
        f"{one * 1e3:.2f} ms",
        {},
    )
    record(
        "missing-many",
        "missing rows: a whole answer over 20 overlapping constraints",
        "≤ 0.5 s",
        f"{many:.2f} s",
        {},
    )
    ranges = failed = 0
    all_: dict[str, dict[Key, Tally]] = {}
    for data in DATASETS:
        name = data.name.partition("_")[0].capitalize()
        all_[name], asked, wrong = run(data, options.questions, rng)
        ranges, failed = ranges + asked, failed + wrong
    page = [line for name, one in all_.items() for line in (*by_share(name, one), "")]
    page += [*failures(all_), ""]
    intel = all_["Intel"]
    page += [
        f"- {function.upper()}, Intel, Corr-PC: {together(intel, 'Corr-PC', function)}"
        for function in ("min", "max", "avg")
    ]
    page += ["", "| sample, SUM, Intel, half missing | |", "|---|---|"]
    page += samples(options.questions, rng)
    (ROOT / "docs" / "benchmarks_missing.md").write_text("\n".join([ABOUT, *page]) + "\n")
    record(
        "missing-failures",
        f"missing rows: ranges that failed, of {ranges:,} on real data",
        "0",
        str(failed),
        {},
    )
    width = statistics.median(together(intel, "Corr-PC", "sum").over)
    record(
        "missing-over",
        "missing rows: upper end of SUM against the truth, Corr-PC, Intel, median",
        "≤ 2.2",
        f"{width:.2f}",
        {},
    )
    wrongs = noise(options.questions // 5, rng)
    shown = "; ".join(
        f"{name} {', '.join(f'{x:.0%}' for x in each)}" for name, each in wrongs.items()
    )
    record(
        "missing-noise",
        "missing rows: failures with noise of 0, 1, 2, 3 deviations",
        "–",
        shown,
        wrongs,
    )
    shown, failed = [], 0
    for data in DATASETS:
        columns, sums, wrong = found_columns(data, options.questions, rng)
        named = " or ".join(" and ".join(each) for each in sorted(columns))
        shown.append(f"{data.measure} along {named}: SUM {sums}")
        failed += wrong
    record(
        "missing-found",
        "missing rows: Corr-PC along columns that are found, ranges that failed",
        "0",
        f"{failed} of {len(DATASETS) * len(SHARES) * options.questions * len(RANGES):,}; "
        + "; ".join(shown),
        {},
    )
    looked, taken = decisions(rng)
    record(
        "missing-cells",
        "missing rows: cells looked at for 20 overlapping constraints, of 2²⁰ combinations",
        "–",
        f"{looked:,} in {taken * 1e3:.0f} ms",
        {},
    )
    sizes = by_size(rng)
    record(
        "missing-sizes",
        "missing rows: a question over 100, 500, 1,000, 2,000, 4,000 disjoint constraints",
        "–",
        ", ".join(f"{each:.2f}" for each in sizes.values()) + " ms",
        {},
    )


if __name__ == "__main__":
    main()
