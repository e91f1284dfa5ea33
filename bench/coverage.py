"""Do 95% intervals hold the truth 95% of the time? TPC-H queries over many random choices of blocks.

The partial results of every block are computed once by Spark; what a run with another seed would have
shown is then replayed from them. With --unscrambled the blocks are the row groups of the files as they are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from report import ROOT, record
from scipy import stats

import sooner
from sooner import tpch
from sooner.engine.streaming import Streaming
from sooner.explain import table_infos
from sooner.progressive.by_row_groups import ByRowGroups
from sooner.progressive.estimates import Rows, Varying
from sooner.progressive.evaluate import NotNumeric
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import CannotStream, stream_name
from sooner.progressive.states import Kept
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


class Replay:
    """One query, its partial results by block, and its truth."""

    def __init__(self, database: sooner.Database, text: str) -> None:
        frame = database.sql(text)
        tables = {name: database._bind(name) for name in frame.prepared.tables}
        infos = table_infos(tables.values())
        self.stream: Stream = choose_stream(frame.prepared.plan, tables, infos, None)
        self.parts: dict[str, pa.Table] = {}
        self.schemas: dict[str, pa.Schema] = {}
        with Streaming(database.spark) as streaming:
            for place, one in self.stream.scans.items():
                one.open(streaming, stream_name(place))
            for name, plan in self.stream.cut.statics.items():
                streaming.keep(name, plan)
            for state in self.stream.cut.states:
                schema = streaming.schema(state.aggregate or state.delta)
                kept = Kept(state, schema, self.replicates)
                pieces = [self._block(streaming, kept, block) for block in self.blocks]
                self.parts[state.name] = pa.concat_tables(pieces)
                self.schemas[state.name] = schema
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

    def _block(self, streaming: Streaming, kept: Kept, block: int) -> pa.Table:
        found = streaming.run(kept.batch, [block])
        return found.append_column(_BLOCK, pa.array([block] * found.num_rows, pa.int32()))

    def at(self, blocks: np.ndarray) -> Rows:
        """What an answer from these blocks shows."""
        states = {}
        for state in self.stream.cut.states:
            part = self.parts[state.name]
            chosen = part.filter(pc.is_in(part.column(_BLOCK), pa.array(blocks, pa.int32())))
            chosen, rows = self._dealt(chosen, state.counted, blocks)
            kept = Kept(state, self.schemas[state.name], self.replicates)
            chosen = chosen.drop_columns([_BLOCK])
            kept.add(chosen.slice(0, 0))
            kept.add(chosen)
            total = float(self.rows[state.counted].sum())
            states[state.name] = kept.estimated(Scaling(rows, total))
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


def keyed(rows: Rows) -> dict[tuple[object, ...], int]:
    fixed = [c.to_pylist() for c in rows.columns.values() if isinstance(c, pa.ChunkedArray)]
    return {key: place for place, key in enumerate(zip(*fixed, strict=True))} if fixed else {(): 0}


def cells(replay: Replay, share: float, seeds: int) -> Iterator[tuple[float, float, float, float]]:
    """Estimate, low, high and truth of every cell that no estimate chose, for each seed."""
    truth = keyed(replay.truth)
    number = max(1, round(share * len(replay.blocks)))
    for seed in range(seeds):
        blocks = np.random.default_rng(seed).permutation(len(replay.blocks))[:number]
        rows = replay.at(blocks)
        progress = replay.share(blocks)
        for name, column in rows.columns.items():
            if not isinstance(column, Varying):
                continue
            found = column.interval(progress, CONFIDENCE)
            exact = replay.truth.columns[name]
            assert isinstance(exact, Varying)
            for key, place in keyed(rows).items():
                if key in truth and not rows.chosen[place]:
                    value = float(exact.theta[0, truth[key]])
                    yield float(column.theta[0, place]), found.low[place], found.high[place], value


def tally(replay: Replay, share: float, seeds: int) -> Tally:
    found = Tally()
    for estimate, low, high, truth in cells(replay, share, seeds):
        if np.isnan(low) or np.isnan(high):
            found.unknown += 1
            continue
        found.known += 1
        # A count that is not scaled has no width, only rounding.
        found.covered += low - 1e-9 * abs(truth) <= truth <= high + 1e-9 * abs(truth)
        found.widths.append((high - low) / 2 / abs(estimate) if estimate else 0.0)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--unscrambled", action="store_true")
    parser.add_argument("--queries", type=int, nargs="*", default=list(tpch.QUERIES))
    options = parser.parse_args()
    place = ROOT / ".demo" / f"scale-{options.scale:g}"
    data = tpch.generate(place / "tpch", options.scale)
    table, verdicts = [], []
    with tempfile.TemporaryDirectory(dir=place) as home, sooner.connect(home) as database:
        tpch.register(database, data)
        if not options.unscrambled:
            tpch.scramble(database, more=True)
        for number in options.queries:
            try:
                replay = Replay(database, tpch.query(number))
            except (CannotStream, NotNumeric) as reason:
                print(f"Q{number}: no intervals ({reason})")
                continue
            for share in SHARES:
                found = tally(replay, share, options.seeds)
                if not found.known + found.unknown:
                    continue
                missing = found.unknown / (found.known + found.unknown)
                line = {"query": number, "share": share, "unknown": missing}
                if found.known:
                    line["coverage"] = found.covered / found.known
                    line["width"] = float(np.median(found.widths))
                    line["verdict"] = verdict(found, options.seeds, 3 * len(options.queries))
                    verdicts.append(line["verdict"])
                table.append(line)
                print(line, flush=True)
    holds = sum(v == "holds" for v in verdicts)
    layout = ", not scrambled" if options.unscrambled else ""
    record(
        f"coverage-{options.scale:g}{'-unscrambled' if options.unscrambled else ''}",
        f"95% intervals compatible with 93–97%, TPC-H scale {options.scale:g}{layout}, "
        f"{options.seeds} seeds, at 2, 10 and 50%",
        "all",
        f"{holds} of {len(verdicts)} (too low: {verdicts.count('too low')}, wide: {verdicts.count('wide')})",
        {"cells": table},
    )


if __name__ == "__main__":
    main()
