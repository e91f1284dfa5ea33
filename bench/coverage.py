"""Do 95% intervals hold the truth 95% of the time? Queries over many random choices of blocks.

The partial results of every block are computed once by Spark; what a run with another seed would have
shown is then replayed from them. With --unscrambled the blocks are the row groups of the files as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from report import ROOT, record
from scipy import stats

import sooner
from sooner import tpch
from sooner.engine.streaming import Streaming
from sooner.explain import table_infos
from sooner.progressive.by_row_groups import ByRowGroups
from sooner.progressive.decomposed import Late
from sooner.progressive.distinct_counts import kept
from sooner.progressive.estimates import Guess, Rows, Varying
from sooner.progressive.evaluate import NotNumeric
from sooner.progressive.gated import Gated
from sooner.progressive.gates import CannotGate
from sooner.progressive.hints import join_hints
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import CannotStream
from sooner.progressive.places import places
from sooner.progressive.reading import Keeper, Reading
from sooner.progressive.request import Request
from sooner.progressive.streams import Stream, choose_stream
from sooner.progressive.top import over_estimates
from sooner.storage.layout import REPLICATE

SHARES = (0.02, 0.1, 0.5)
CONFIDENCE = 0.95
_BLOCK = "__replayed_block"


@dataclass
class Tally:
    """Cells of one query at one share of the data."""

    covered: int = 0
    known: int = 0
    unknown: int = 0
    widths: list[float] = field(default_factory=list)


class Nowhere:
    """Ranges go nowhere: a replayed answer has only one step."""

    def provide(self, name: str, table: pa.Table) -> None:
        pass


class Replay:
    """One query, its partial results by block, and its truth."""

    def __init__(self, database: sooner.Database, text: str) -> None:
        frame = database.sql(text)
        tables = {name: database._bind(name) for name in frame.prepared.tables}
        infos = table_infos(tables.values())
        self.stream: Stream = choose_stream(frame.prepared.plan, tables, infos, None)
        if any(state.samplers for state in self.stream.cut.states):
            raise CannotStream("samples are not replayed")
        self.parts: dict[str, pa.Table] = {}
        self.schemas: dict[int, pa.Schema] = {}
        self.key_types: dict[str, list[dict[str, pa.DataType]]] = {}
        with Streaming(database.spark) as streaming:
            reading = Reading(streaming, self.stream, Request())
            reading.open()
            for one in reading.kept:
                state = one.state
                for plan in (state.aggregate or state.delta, state.pairs and state.pairs.aggregate):
                    if plan is not None:
                        self.schemas[id(plan)] = streaming.schema(plan)
                tops = [streaming.schema(gate.top) for gate in state.gates]
                self.key_types[state.name] = [{f.name: f.type for f in top} for top in tops]
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    pieces = list(pool.map(partial(self._block, streaming, one), self.blocks))
                self.parts[state.name] = pa.concat_tables(pieces)
        self.rows = {
            place: np.array([one.rows_of([block]) for block in self.blocks])
            for place, one in self.stream.scans.items()
        }
        self.truth = self.at(np.array(self.blocks))

    @property
    def blocks(self) -> range:
        return range(self.stream.blocks)

    @property
    def replicates(self) -> int:
        return self.stream.replicates

    def _block(self, streaming: Streaming, kept: Keeper, block: int) -> pa.Table:
        hint = join_hints(self.stream, 1 / self.stream.blocks)
        found = streaming.run(kept.batch, [block], hint)
        return found.append_column(_BLOCK, pa.array([block] * found.num_rows, pa.int32()))

    def at(self, blocks: np.ndarray) -> Rows:
        """What an answer from these blocks shows."""
        states: dict[str, Rows] = {}
        for state in self.stream.cut.states:
            part = self.parts[state.name]
            chosen = part.filter(pc.is_in(part.column(_BLOCK), pa.array(blocks, pa.int32())))
            chosen, rows = self._dealt(chosen, state.counted, blocks)
            chosen = chosen.drop_columns([_BLOCK])
            scaling = Scaling(rows, float(self.rows[state.counted].sum()))
            if state.gates:
                schema = self.schemas[id(state.aggregate or state.delta)]
                gated = Gated(state, schema, self.replicates, self.key_types[state.name], 2.0)
                gated.add(chosen, ())
                gated.settle(states, min(self.share(blocks), 0.999), Nowhere())  # type: ignore[arg-type]
                states[state.name] = gated.estimated(scaling)
                continue
            one = kept(state, lambda plan: self.schemas[id(plan)], self.replicates)
            one.add(chosen.slice(0, 0))
            one.add(chosen)
            states[state.name] = one.estimated(scaling)
            if state.late is not None:
                states[state.name] = without_late(states[state.name], state.late)
        return over_estimates(self.stream.cut.top, states)

    def _dealt(
        self, chosen: pa.Table, place: int, blocks: np.ndarray
    ) -> tuple[pa.Table, np.ndarray]:
        """Partial results and rows by replicate; row groups are dealt in this run's order of reading."""
        rows = self.rows[place][blocks]
        if not isinstance(self.stream.scans[place], ByRowGroups):
            return chosen, rows.sum(axis=0)
        dealt = np.arange(len(blocks)) % self.replicates
        replicate = np.zeros(len(self.blocks), np.int8)
        replicate[blocks] = dealt
        if REPLICATE in chosen.column_names:
            labels = pa.array(replicate[chosen.column(_BLOCK).to_numpy()])
            chosen = chosen.set_column(chosen.column_names.index(REPLICATE), REPLICATE, labels)
        return chosen, np.bincount(dealt, weights=rows.sum(axis=1), minlength=self.replicates)

    def share(self, blocks: np.ndarray) -> float:
        read = sum(rows[blocks].sum() for rows in self.rows.values())
        return float(read / sum(rows.sum() for rows in self.rows.values()))


def without_late(rows: Rows, late: Late) -> Rows:
    """Rows with nothing where columns are looked up: no estimate depends on them."""
    nothing = Guess(pa.chunked_array([pa.nulls(rows.count)]))
    return Rows({name: rows.columns.get(name, nothing) for name in late.names}, rows.chosen)


def fixed(rows: Rows) -> pa.Table:
    """The columns that are no estimates: they say which row is which."""
    found = {n: c for n, c in rows.columns.items() if isinstance(c, pa.ChunkedArray)}
    return pa.table(found)


def cells(replay: Replay, share: float, seeds: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Estimates, lows, highs and truths of the cells that no estimate chose, for each seed."""
    known = fixed(replay.truth)
    number = max(1, round(share * len(replay.blocks)))
    for seed in range(seeds):
        blocks = np.random.default_rng(seed).permutation(len(replay.blocks))[:number]
        rows = replay.at(blocks)
        progress = replay.share(blocks)
        if known.num_columns:
            at = places(known, fixed(rows).select(known.column_names))
        else:
            at = np.zeros(rows.count, np.int64)
        usable = (at >= 0) & ~rows.chosen
        for name, column in rows.columns.items():
            exact = replay.truth.columns[name]
            if isinstance(column, Varying) and isinstance(exact, Varying):
                found = column.interval(progress, CONFIDENCE)
                yield (
                    column.theta[0, usable],
                    found.low[usable],
                    found.high[usable],
                    exact.theta[0, at[usable]],
                )


def tally(replay: Replay, share: float, seeds: int) -> Tally:
    found = Tally()
    for estimate, low, high, truth in cells(replay, share, seeds):
        known = ~(np.isnan(low) | np.isnan(high))
        # A count that is not scaled has no width, only rounding.
        slip = 1e-9 * np.abs(truth)
        found.unknown += int((~known).sum())
        found.known += int(known.sum())
        found.covered += int((known & (low - slip <= truth) & (truth <= high + slip)).sum())
        wide = known & (estimate != 0)
        found.widths += ((high - low)[wide] / 2 / np.abs(estimate[wide])).tolist()
    return found


def verdict(found: Tally, seeds: int, comparisons: int) -> str:
    """Whether the coverage is compatible with 93–97%; cells of one seed are not independent."""
    share = found.covered / found.known
    effective = min(found.known, seeds)
    level = 0.05 / comparisons
    successes = round(share * effective)
    below = stats.binomtest(successes, effective, 0.93, alternative="less").pvalue
    above = stats.binomtest(successes, effective, 0.97, alternative="greater").pvalue
    return "too low" if below < level else "wide" if above < level else "holds"


def prepared_tpch(database: sooner.Database, scale: float, scrambled: bool) -> dict[str, str]:
    """The TPC-H tables, and the queries by name."""
    if not database.tables():
        data = tpch.generate(ROOT / ".demo" / f"scale-{scale:g}" / "tpch", scale)
        tpch.register(database, data)
    if scrambled:
        tpch.scramble(database, more=True)
    return {f"Q{number}": tpch.query(number) for number in tpch.QUERIES}


def prepared_sessions(database: sooner.Database, rows: int, scrambled: bool) -> dict[str, str]:
    """The video sessions, sorted by day if they are not scrambled, and their queries by name."""
    sys.path.append(str(ROOT / "tests" / "differential"))
    import sessions

    sessions.register_functions(database.spark)
    if not database.tables():
        file = ROOT / ".demo" / f"sessions-{rows}.parquet"
        table = sessions.make_sessions(rows).sort_by("day")
        pq.write_table(table, file, row_group_size=max(1, rows // 100))
        database.register("sessions", file, key="session_id")
        if scrambled:
            database.scramble("sessions", "session_id", blocks=128)
    return dict(sessions.QUERIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--unscrambled", action="store_true")
    parser.add_argument("--sessions", type=int, help="so many video sessions instead of TPC-H")
    parser.add_argument("--queries", nargs="*", help="as Q1 or C3")
    options = parser.parse_args()
    layout = "unscrambled" if options.unscrambled else "progressive"
    what = f"sessions-{options.sessions}" if options.sessions else f"scale-{options.scale:g}"
    table, verdicts = [], []
    with sooner.connect(ROOT / ".demo" / what / layout, progress=False) as database:
        scrambled = not options.unscrambled
        if options.sessions:
            texts = prepared_sessions(database, options.sessions, scrambled)
        else:
            texts = prepared_tpch(database, options.scale, scrambled)
        chosen = options.queries or list(texts)
        for name in chosen:
            try:
                replay = Replay(database, texts[name])
            except (CannotStream, CannotGate, NotNumeric) as reason:
                print(f"{name}: no intervals ({reason})", flush=True)
                continue
            for share in SHARES:
                found = tally(replay, share, options.seeds)
                if not found.known + found.unknown:
                    continue
                missing = found.unknown / (found.known + found.unknown)
                line = {"query": name, "share": share, "unknown": missing}
                if found.known:
                    line["coverage"] = found.covered / found.known
                    line["width"] = float(np.median(found.widths)) if found.widths else 0.0
                    line["verdict"] = verdict(found, options.seeds, len(SHARES) * len(chosen))
                    verdicts.append(line["verdict"])
                table.append(line)
                print(line, flush=True)
    holds = sum(v == "holds" for v in verdicts)
    data = "video sessions" if options.sessions else f"TPC-H scale {options.scale:g}"
    where = ", not scrambled" if options.unscrambled else ""
    record(
        f"coverage-{what}-{layout}",
        f"95% intervals compatible with 93–97%, {data}{where}, "
        f"{options.seeds} seeds, at 2, 10 and 50%",
        "all",
        f"{holds} of {len(verdicts)} (too low: {verdicts.count('too low')}, wide: {verdicts.count('wide')})",
        {"cells": table},
    )


if __name__ == "__main__":
    main()
