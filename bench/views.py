"""Views: how fast they are brought up to date and a sample of them cleaned, and how close its answers are.

Stale View Cleaning, §7 and §12.2: a join view of lineitem and orders with Zipf skew, the 12 queries of it,
the outlier index on a view like Q3, and the data cube with its 13 roll-ups. Changes are inserts of whole
orders and updates of existing ones, half each; new prices are drawn like the old ones, or half as high
again. Truth and stale answers are DuckDB's.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from statistics import mean, median
from time import perf_counter
from typing import Any, TypeAlias
from unittest.mock import patch

import duckdb
import numpy as np
from report import ROOT, record, write_tables
from skewed_tpch import Split, generate, split

import sooner
from sooner.engine.view_rows import hashed, write_rows
from sooner.engine.writing import reservation
from sooner.storage.views import redefine
from sooner.views import choose_unit
from sooner.views.definition import as_text
from sooner.views.refreshing import write
from sooner.views.unit import HASH, Portion, unit_of
from sooner.views.upkeep import Upkeep

JOIN = "SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
Q3 = """SELECT l_orderkey, o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue,
        count(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        GROUP BY l_orderkey, o_orderdate, o_shippriority"""
CUBE = """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue, c_custkey, n_nationkey, r_regionkey,
          l_partkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
          JOIN region ON n_regionkey = r_regionkey
          GROUP BY c_custkey, n_nationkey, r_regionkey, l_partkey"""
ROLL_UPS = {
    "Q1": (),
    "Q2": ("c_custkey",),
    "Q3": ("n_nationkey",),
    "Q4": ("r_regionkey",),
    "Q5": ("l_partkey",),
    "Q6": ("c_custkey", "n_nationkey"),
    "Q7": ("c_custkey", "r_regionkey"),
    "Q8": ("c_custkey", "l_partkey"),
    "Q9": ("n_nationkey", "r_regionkey"),
    "Q10": ("n_nationkey", "l_partkey"),
    "Q11": ("c_custkey", "n_nationkey", "r_regionkey"),
    "Q12": ("c_custkey", "n_nationkey", "l_partkey"),
    "Q13": ("n_nationkey", "r_regionkey", "l_partkey"),
}
# Of sums and of medians: how far off each way to answer is, and whether it is exact.
RollUp: TypeAlias = dict[str, dict[str, float]]
KEYS = {"lineitem": ["l_orderkey", "l_linenumber"], "orders": ["o_orderkey"]}
ORDER_KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
# The share of changes that figures are for, those of the sweep, and other sampling ratios than a tenth.
SHARE, SHARES, RATIOS = 0.1, (0.025, 0.05, 0.1, 0.2, 0.4), (0.02, 0.05, 0.2)
# How often a speed is taken: of views that take seconds the first rounds still warm Spark up.
ROUNDS = {"clean": 3, "join": 3, "Q3": 9}
# All that the 12 queries read of the join view.
READ = (
    *("l_extendedprice", "l_discount", "l_quantity", "l_shipmode", "l_shipdate", "l_commitdate"),
    *("l_receiptdate", "l_returnflag", "l_shipinstruct", "o_orderdate", "o_orderpriority"),
    *("o_orderstatus", "o_shippriority"),
)
REVENUE = "sum(l_extendedprice * (1 - l_discount))"


def queries(seed: int) -> dict[str, str]:
    """The 12 TPC-H queries over lineitem and orders, of columns of the view, with random parameters."""
    rng = np.random.default_rng(seed)
    year = int(rng.integers(1993, 1998))
    month = int(rng.integers(1, 11))
    day, quarter = f"DATE'{year}-{month:02}-01'", f"DATE'{year}-{month + 2:02}-01'"
    small = int(rng.integers(1, 10))
    modes = rng.choice(["AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"], 2, replace=False)
    both = ", ".join(f"'{mode}'" for mode in modes)
    within = f"o_orderdate >= {day} AND o_orderdate < {quarter}"
    late = "l_commitdate < l_receiptdate"
    return {
        "Q3": f"SELECT o_shippriority, {REVENUE} AS v FROM lo WHERE o_orderdate < {day}"
        f" AND l_shipdate > {day} GROUP BY o_shippriority",
        "Q4": f"SELECT o_orderpriority, count(*) AS v FROM lo WHERE {within} AND {late}"
        " GROUP BY o_orderpriority",
        "Q5": f"SELECT o_orderstatus, {REVENUE} AS v FROM lo WHERE year(o_orderdate) = {year}"
        " GROUP BY o_orderstatus",
        "Q7": f"SELECT year(l_shipdate) AS y, {REVENUE} AS v FROM lo WHERE l_shipmode IN ({both})"
        " GROUP BY year(l_shipdate)",
        "Q8": f"SELECT year(o_orderdate) AS y, avg(l_discount) AS v FROM lo WHERE l_shipmode IN ({both})"
        " GROUP BY year(o_orderdate)",
        "Q9": f"SELECT year(o_orderdate) AS y, {REVENUE} AS v FROM lo GROUP BY year(o_orderdate)",
        "Q10": f"SELECT o_orderpriority, {REVENUE} AS v FROM lo WHERE {within} AND l_returnflag = 'R'"
        " GROUP BY o_orderpriority",
        "Q12": f"SELECT l_shipmode, count(*) AS v FROM lo WHERE l_shipmode IN ({both}) AND {late}"
        f" AND year(l_receiptdate) = {year} GROUP BY l_shipmode",
        "Q14": f"SELECT {REVENUE} AS v FROM lo WHERE l_shipdate >= {day} AND l_shipdate < {quarter}",
        "Q18": "SELECT o_orderpriority, sum(l_quantity) AS v FROM lo GROUP BY o_orderpriority",
        "Q19": f"SELECT {REVENUE} AS v FROM lo WHERE l_quantity >= {small} AND l_shipmode IN ({both})"
        " AND l_shipinstruct = 'DELIVER IN PERSON'",
        "Q21": "SELECT o_orderstatus, count(*) AS v FROM lo WHERE l_receiptdate > l_commitdate"
        " GROUP BY o_orderstatus",
    }


class Oracle:
    """Tables before and after the changes, in DuckDB."""

    def __init__(self, parts: Split) -> None:
        self._duck = duckdb.connect()
        self._duck.execute("SET threads = 2")
        for table, place in parts.base.items():
            base = f"'{place}/*.parquet'"
            self._duck.execute(f"CREATE VIEW old_{table} AS SELECT * FROM {base}")
            if table not in KEYS:
                self._duck.execute(f"CREATE VIEW new_{table} AS SELECT * FROM {base}")
                continue
            new, came = f"'{parts.updates[table]}/*.parquet'", f"'{parts.inserts[table]}/*.parquet'"
            self._duck.execute(
                f"CREATE VIEW new_{table} AS SELECT * FROM {base} ANTI JOIN {new} USING"
                f" ({', '.join(KEYS[table])}) UNION ALL SELECT * FROM {new} UNION ALL SELECT * FROM {came}"
            )

    def materialize(self, name: str, text: str) -> None:
        """Keep a view's rows before and after, so that many questions cost one join."""
        for when in ("old", "new"):
            query = text
            for table in ("lineitem", "orders", "customer", "nation", "region"):
                query = query.replace(f"FROM {table} ", f"FROM {when}_{table} {table} ")
                query = query.replace(f"JOIN {table} ", f"JOIN {when}_{table} {table} ")
            self._duck.execute(f"CREATE OR REPLACE TABLE {when}_{name} AS {query}")

    def asked(self, when: str, name: str, text: str) -> dict[tuple[Any, ...], float]:
        found = self._duck.execute(text.replace(f"FROM {name}", f"FROM {when}_{name}")).fetchall()
        return by_group(found)


def by_group(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], float]:
    return {tuple(row[:-1]): float(row[-1]) for row in rows if row[-1] is not None}


def errors(truth: dict[Any, float], found: dict[Any, float]) -> list[float]:
    """How far off each group is; one that is not there is off by all of it."""
    return [
        abs(found.get(group, 0.0) - value) / abs(value) for group, value in truth.items() if value
    ]


@contextmanager
def opened(parts: Split, tables: tuple[str, ...], scrambled: bool) -> Iterator[sooner.Database]:
    place = tempfile.mkdtemp(dir=ROOT / ".demo")
    try:
        with sooner.connect(place, progress=False) as database:
            for table in tables:
                key = KEYS.get(
                    table, [f"{table[0]}_{table[:4] if table == 'customer' else table}key"]
                )
                database.register(table, str(parts.base[table]), key=key)
            if scrambled:
                database.scramble("orders", by="o_orderkey")
                database.scramble("lineitem", by="l_orderkey", like="orders")
            yield database
    finally:
        shutil.rmtree(place, ignore_errors=True)


def change(database: sooner.Database, parts: Split, before: Split | None = None) -> None:
    """Insert and update what a share of changes has more than a smaller one."""
    for table, key in ORDER_KEYS.items():
        for bring, folders in ((database.insert, "inserts"), (database.update, "updates")):
            rows = database.spark.read.parquet(str(getattr(parts, folders)[table]))
            if before is not None:
                there = database.spark.read.parquet(str(getattr(before, folders)[table]))
                rows = rows.join(there.select(key).distinct(), key, "left_anti")
            bring(table, rows)


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def bring_in(upkeep: Upkeep, part: Portion | None = None) -> None:
    """Write what a refresh (or a cleaning) writes, and throw it away: to be done again and again."""
    with reservation(upkeep.catalog, upkeep.table) as reserved:
        write(upkeep, reserved.directory("bench"), part)
        reserved.give_up()


def make_again(upkeep: Upkeep) -> None:
    with upkeep.whole() as rows, reservation(upkeep.catalog, None) as reserved:
        sql = None if upkeep.unit is None else upkeep.unit.sql
        write_rows(hashed(rows, upkeep.form.plan.names, sql, HASH), reserved.directory("bench"))
        reserved.give_up()


def alternating(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            took = timed(work)
            if turn:  # the first round warms Spark up
                times[name].append(took)
    return {name: median(all_) for name, all_ in times.items()}


def asked(view: sooner.View, text: str, estimator: str) -> dict[tuple[Any, ...], float]:
    return by_group(rows_of(view.answer(text, estimator=estimator)))


def rows_of(answer: sooner.Answer) -> list[tuple[Any, ...]]:
    columns = (column.to_pylist() for column in answer.to_arrow().columns)
    return list(zip(*columns, strict=True))


def prices(rise: float) -> str:
    return "prices as before" if rise == 1 else f"new prices {rise:g} times as high"


def suffix(rise: float) -> str:
    return "" if rise == 1 else f"-rise-{rise:g}"


def join_view(scale: float, instances: int, rise: float) -> None:
    """Cleaning against maintenance, and how close 12 queries are, as the changes and the sample grow."""
    data = generate(scale, 2)
    before: Split | None = None
    lines: dict[str, list[str]] = {"speed": [], "share": [], "ratio": []}
    first = split(data, SHARE, rise=rise)
    with opened(first, ("orders", "lineitem"), scrambled=True) as database:
        view = database.view("lo", JOIN, sample=0.1)
        for share in SHARES:
            parts = split(data, share, rise=rise)
            change(database, parts, before)
            before = parts
            times = speed(view)
            lines["speed"].append(f"{share:.3g}: {times['incremental'] / times['clean']:.1f}×")
            oracle = Oracle(parts)
            oracle.materialize("lo", JOIN.replace("*", ", ".join(READ)))
            close = closeness(view, oracle, instances if share == SHARE else 1)
            lines["share"].append(close.line(f"{share:.3g}"))
            if share == SHARE:
                record_speed(scale, times, view, rise)
                record_closeness(scale, close, rise)
                for ratio in RATIOS:
                    took = resample(view, ratio)
                    again = closeness(view, oracle, 1)
                    lines["ratio"].append(again.line(f"{ratio:.3g} ({took:.1f} s)"))
                resample(view, 0.1)
            print(share, lines, flush=True)
    for what, name in (
        (
            "speed",
            "cleaning 10% of the join view against exact maintenance, by the share of changes",
        ),
        ("share", "errors of stale, corrected and sample-only answers, by the share of changes"),
        ("ratio", "errors of corrected and sample-only answers, by the sampling ratio"),
    ):
        record(
            f"views-sweep-{what}{suffix(rise)}",
            f"{name}, {prices(rise)}, scale {scale:g}",
            "shown",
            "; ".join(lines[what]),
            {},
        )


def speed(view: sooner.View) -> dict[str, float]:
    upkeep = view._upkeep()
    works = {
        "clean": lambda: bring_in(upkeep, Portion(high=0.1)),
        "incremental": lambda: bring_in(upkeep),
    }
    return alternating(ROUNDS["clean"], works)


def resample(view: sooner.View, ratio: float) -> float:
    """Clean another share of a view from now on; the seconds that it takes."""
    upkeep = view._upkeep()
    redefine(
        upkeep.catalog, upkeep.stored, as_text(dataclasses.replace(upkeep.definition, sample=ratio))
    )
    return timed(view.clean)


@dataclasses.dataclass
class Closeness:
    """Median errors over groups of each query, for every draw of its parameters, by how it was answered."""

    errors: dict[str, dict[str, list[float]]]
    worst: dict[str, list[float]]

    def mean(self, how: str) -> float:
        return mean(mean(rows[how]) for rows in self.errors.values())

    def ratios(self, one: str, other: str) -> dict[str, float]:
        """How much further off one is than another, by query."""
        return {
            name: mean(rows[one]) / max(1e-12, mean(rows[other]))
            for name, rows in self.errors.items()
        }

    def line(self, of: str) -> str:
        told = ", ".join(f"{how} {self.mean(how):.2%}" for how in ("stale", "corr", "aqp"))
        ahead = {
            how: sum(ratio > 1 for ratio in self.ratios(how, "corr").values())
            for how in ("stale", "aqp")
        }
        return (
            f"{of}: {told}, corrected closer than stale for {ahead['stale']} and than a sample alone for"
            f" {ahead['aqp']} of {len(self.errors)}"
        )


def closeness(view: sooner.View, oracle: Oracle, instances: int) -> Closeness:
    found = Closeness({}, {"stale": [], "corr": []})
    for seed in range(instances):
        for name, text in queries(seed).items():
            truth = oracle.asked("new", "lo", text)
            if not truth:
                continue
            rows = found.errors.setdefault(name, {"stale": [], "corr": [], "aqp": []})
            answers = {"stale": oracle.asked("old", "lo", text)}
            answers |= {how: asked(view, text, how) for how in ("corr", "aqp")}
            for how, answer in answers.items():
                off = errors(truth, answer)
                rows[how].append(median(off))
                if how in found.worst:
                    found.worst[how].append(max(off))
    return found


def record_speed(scale: float, times: dict[str, float], view: sooner.View, rise: float) -> None:
    record(
        f"views-clean{suffix(rise)}",
        "cleaning a 10% sample of the join view against exact maintenance, 10% changed,"
        f" {prices(rise)}, scale {scale:g}",
        "≥ 5×",
        f"{times['incremental'] / times['clean']:.1f}×"
        f" ({times['clean']:.1f} s against {times['incremental']:.1f} s)",
        {"times": times, "why": view._upkeep().choice.why},
    )


def record_closeness(scale: float, close: Closeness, rise: float) -> None:
    of = f"12 queries of the join view, 10% changed, {prices(rise)}, scale {scale:g}"
    against = {"stale": ("stale ones", "≥ 10× closer"), "aqp": ("a sample alone", "≥ 3× closer")}
    for how, (words, reach) in against.items():
        ratios = close.ratios(how, "corr")
        record(
            f"views-{how}{suffix(rise)}",
            f"corrected answers against {words}, {of}",
            reach,
            f"{mean(ratios.values()):.1f}× by the mean of ratios, {median(ratios.values()):.1f}× the median"
            f" query, {close.mean(how) / close.mean('corr'):.1f}× by mean errors ({close.line('errors')})",
            {"errors": close.errors, "ratios": ratios},
        )
    worst = close.worst
    record(
        f"views-worst{suffix(rise)}",
        f"largest error over groups, stale against corrected, {of}",
        "shown",
        f"{max(worst['stale']):.0%} against {max(worst['corr']):.0%} (mean over queries"
        f" {mean(worst['stale']):.1%} against {mean(worst['corr']):.1%},"
        f" median {median(worst['stale']):.1%} against {median(worst['corr']):.1%})",
        {"worst": worst},
    )


def incremental(scale: float, views: Sequence[str]) -> None:
    """Exact maintenance of 1% of changes against making views again."""
    parts = split(generate(scale, 2), 0.01)
    with opened(parts, ("orders", "lineitem"), scrambled=False) as database:
        for name in views:
            database.view(f"v_{name}", {"join": JOIN, "Q3": Q3}[name], sample=0.1)
        change(database, parts)
        for name in views:
            upkeep = database.view(f"v_{name}")._upkeep()
            times = alternating(
                ROUNDS[name],
                {
                    "incremental": lambda u=upkeep: bring_in(u),
                    "again": lambda u=upkeep: make_again(u),
                },  # type: ignore[misc]
            )
            record(
                f"views-incremental-{name}-scale-{scale:g}",
                f"exact maintenance of 1% of changes against making the view again, {name} view,"
                f" scale {scale:g}",
                "≥ 5×",
                f"{times['again'] / times['incremental']:.1f}×"
                f" ({times['incremental']:.1f} s against {times['again']:.1f} s)",
                {"times": times, "why": upkeep.choice.why},
            )


def outliers(scale: float, seeds: int, skews: Sequence[float], rise: float) -> None:
    """The error of sums over a view like Q3 at growing skew, with and without the 100 largest prices kept."""
    lines = []
    for z in skews:
        parts = split(generate(scale, z), 0.1, rise=rise)
        oracle = Oracle(parts)
        oracle.materialize("q3", Q3)
        found: dict[str, list[float]] = {"without": [], "with": []}
        for salt in range(seeds):
            with opened(parts, ("orders", "lineitem"), scrambled=False) as database:
                # Another salt is another sample.
                database.scramble("orders", by="o_orderkey", salt=salt)
                kept = {"l_extendedprice": 100}
                views = {
                    "without": database.view("q3", Q3, sample=0.1),
                    "with": database.view("q3o", Q3, sample=0.1, outliers=kept),
                }
                change(database, parts)
                for year in range(1992, 1999):
                    text = f"SELECT sum(revenue) AS v FROM q3 WHERE year(o_orderdate) = {year}"
                    truth = oracle.asked("new", "q3", text)
                    for how, view in views.items():
                        answer = asked(view, text.replace("q3", view.name), "corr")
                        found[how] += errors(truth, answer)
        quartile = {how: float(np.quantile(all_, 0.75)) for how, all_ in found.items()}
        lines.append((z, quartile, found))
        print(z, quartile)
    z, quartile, _ = lines[-1]
    told = "; ".join(f"z={z:g}: {q['without']:.2%} and {q['with']:.2%}" for z, q, _ in lines)
    record(
        f"views-outliers-scale-{scale:g}{suffix(rise)}",
        f"outlier index, 75th percentile of errors at skew {z:g}, without against with, {prices(rise)},"
        f" scale {scale:g}",
        "≥ 2× lower",
        f"{quartile['without'] / max(1e-12, quartile['with']):.1f}× ({told})",
        {"by_skew": [{"z": z, "quartiles": q, "errors": e} for z, q, e in lines]},
    )


def cube(
    scale: float, skews: Sequence[float], rises: Sequence[float], draws: Sequence[int]
) -> None:
    """The data cube of §12.7.3 with its 13 roll-ups: sums and medians, stale and corrected.

    Updates draw prices like the old ones, which leaves medians as they are, or half as much again. What a
    tenth of few rows says is luck, so that errors are means over several draws of changes and sample, as many
    as ``draws`` says of each skew.
    """
    tables: list[str] = []
    for (z, times), rise in product(zip(skews, draws, strict=True), rises):
        each = [roll_ups(scale, z, rise, draw) for draw in range(times)]
        rows = {name: averaged([one[name] for one in each]) for name in ROLL_UPS}
        of = f"data cube, 10% changed, {prices(rise)}, z={z:g}, scale {scale:g}"
        for what, how in product(("sum", "median"), ("corr", "default")):
            reach = "closer in every one" if (what, how) == ("median", "corr") else "shown"
            exact = sum(row[what][f"{how} exact"] == 1 for row in rows.values())
            lines = [row[what] for row in rows.values()]
            closer = sum(line[how] < line["stale"] for line in lines)
            # Where most groups have not changed, nothing has a smaller median error than the stale answer.
            even = sum(line[how] == line["stale"] == 0 for line in lines)
            by_mean = sum(line[f"{how} mean"] < line["stale mean"] for line in lines)
            which = "corrected ones" if how == "corr" else "default answers"
            record(
                f"views-cube-{what}-{how}-rise-{rise:g}-z-{z:g}",
                f"{what}s of the {of}: roll-ups in which {which} are closer than stale ones",
                reach,
                f"by the mean error over groups in {by_mean} of {len(rows)}, by the median error in {closer},"
                f" with both 0% in {even}; {exact} answered exactly (draws: {times})",
                {"rows": rows, "draws": each},
            )
        tables += ["", f"z = {z:g}, {prices(rise)}, draws: {times}", "", *cube_table(rows)]
    write_tables("benchmarks_views.md", "cube", tables)


def averaged(draws: Sequence[RollUp]) -> RollUp:
    """The mean of each figure."""
    return {
        what: {name: mean(one[what][name] for one in draws) for name in draws[0][what]}
        for what in draws[0]
    }


def cube_table(rows: Mapping[str, RollUp]) -> list[str]:
    """A line for each roll-up: what sums and medians are off by."""
    sides = [(what, how) for what in ("sum", "median") for how in ("stale", "corr", "default")]
    words = {"stale": "stale", "corr": "corrected", "default": "default"}
    titles = " | ".join(f"{what}s, {words[how]}" for what, how in sides)
    lines = [f"| groups by | {titles} |", "|---" * 7 + "|"]
    for name, row in rows.items():
        told = []
        for what, how in sides:
            line = row[what]
            exact = how != "stale" and line[f"{how} exact"] == 1
            off = f"{100 * line[how]:.2f} ({100 * line[f'{how} mean']:.2f})"
            told.append("**exact**" if exact else off)
        keys = ", ".join(key.partition("_")[2].removesuffix("key") for key in ROLL_UPS[name])
        lines.append(f"| {keys or 'nothing'} | {' | '.join(told)} |")
    return lines


def roll_ups(scale: float, z: float, rise: float, draw: int) -> dict[str, RollUp]:
    parts = split(generate(scale, z), 0.1, draw, rise=rise)
    tables = ("orders", "lineitem", "customer", "nation", "region")
    oracle = Oracle(parts)
    oracle.materialize("cube", CUBE)
    found: dict[str, RollUp] = {}
    # Another salt is another sample.
    salted = patch.object(choose_unit, "unit_of", partial(unit_of, salt=draw))
    with salted, opened(parts, tables, scrambled=False) as database:
        view = database.view("cube", CUBE, sample=0.1)
        change(database, parts)
        for name, keys in ROLL_UPS.items():
            found[name] = {}
            for what in ("sum", "median"):
                # Without skew the finest have millions of groups: a hundredth of them is enough.
                finest = [key for key in ("l_partkey", "c_custkey") if key in keys and z == 1]
                few = f" WHERE {finest[0]} % 100 = 7" if finest else ""
                shown = ", ".join((*keys, f"{what}(revenue) AS v"))
                group = f" GROUP BY {', '.join(keys)}" if keys else ""
                text = f"SELECT {shown} FROM cube{few}{group}"
                truth = oracle.asked("new", "cube", text)
                corrected = view.answer(text, estimator="corr")
                answers = {
                    "corr": corrected,
                    # What must be answered exactly is so with any estimator.
                    "default": corrected if corrected.final else view.answer(text),
                }
                off = {how: errors(truth, by_group(rows_of(one))) for how, one in answers.items()}
                off["stale"] = errors(truth, oracle.asked("old", "cube", text))
                line: dict[str, float] = {how: median(all_) for how, all_ in off.items()}
                line |= {f"{how} mean": mean(all_) for how, all_ in off.items()}
                line |= {f"{how} worst": max(all_) for how, all_ in off.items()}
                line |= {f"{how} exact": one.final for how, one in answers.items()}
                found[name][what] = line
            print(z, rise, draw, name, found[name], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=3.0)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--views", nargs="*", default=["join", "Q3"], help="for incremental")
    parser.add_argument("--seeds", type=int, default=4, help="samples for the outlier index")
    parser.add_argument("--skews", type=float, nargs="*", default=[1, 2, 3, 4])
    parser.add_argument("--cubes", type=float, nargs="*", default=[1.0, 2.0], help="its skews")
    parser.add_argument("--rises", type=float, nargs="*", default=[1.0, 1.5])
    parser.add_argument("--draws", type=int, nargs="*", default=[1, 5], help="for each cube")
    parser.add_argument("--only", nargs="*", default=["join", "incremental", "outliers", "cube"])
    options = parser.parse_args()
    if "join" in options.only:
        for rise in options.rises:
            join_view(options.scale, options.instances, rise)
    if "incremental" in options.only:
        incremental(options.scale, options.views)
    if "outliers" in options.only:
        for rise in options.rises:
            outliers(options.scale, options.seeds, options.skews, rise)
    if "cube" in options.only:
        cube(options.scale, options.cubes, options.rises, options.draws)


if __name__ == "__main__":
    main()
