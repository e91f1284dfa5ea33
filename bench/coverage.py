"""Do 95% intervals hold the truth 95% of the time? Queries over many random choices of blocks.

The partial results of every block are computed once by Spark; what a run with another seed would have
shown is then replayed from them. With --unscrambled the blocks are the row groups of the files as they are.
Cells whose estimates have a long tail over the seeds are told apart from the others.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.functions import expr
from report import ROOT, record
from scipy import sparse, stats
from tables import prepared_sessions, prepared_tpch

import sooner
from sooner.engine.streaming import Streaming
from sooner.explain import table_infos
from sooner.progressive.by_row_groups import ByRowGroups
from sooner.progressive.decomposed import Late
from sooner.progressive.distinct_counts import kept
from sooner.progressive.estimates import Guess, Rows, Varying
from sooner.progressive.gated import Gated
from sooner.progressive.gates import CannotGate
from sooner.progressive.hints import join_hints
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import CannotStream, State, stream_name
from sooner.progressive.reading import Keeper, Reading
from sooner.progressive.request import Request
from sooner.progressive.states import Kept
from sooner.progressive.streams import Stream, choose_stream
from sooner.progressive.top import over_estimates
from sooner.statistics.arrays import Floats
from sooner.statistics.evaluate import NotNumeric
from sooner.statistics.places import places
from sooner.storage.layout import BLOCK, REPLICATE

SHARES = (0.02, 0.1, 0.5)
CONFIDENCE = 0.95
_BLOCK = "__replayed_block"
# A skewness that is moderate by the usual rule: the estimates of so few rows are not normal around the truth.
_SKEWED = 0.5


@dataclass
class Tally:
    """Cells of one query at one share of the data."""

    cells: int
    covered: int
    known: int
    unknown: int
    widths: Floats


class Column:
    """What all seeds said of each cell of one column."""

    def __init__(self, truth: Floats) -> None:
        self.truth = truth
        self.shown, self.known, self.covered = (np.zeros(len(truth), np.int64) for _ in range(3))
        self.powers = np.zeros((3, len(truth)))
        self.widths: list[tuple[npt.NDArray[np.int64], Floats]] = []

    def add(self, at: npt.NDArray[np.int64], estimate: Floats, low: Floats, high: Floats) -> None:
        """What one seed said of the cells at these places."""
        truth = self.truth[at]
        known = ~(np.isnan(low) | np.isnan(high))
        # A count that is not scaled has no width, only rounding.
        slip = 1e-9 * np.abs(truth)
        self.shown[at] += 1
        self.known[at] += known
        self.covered[at] += known & (low - slip <= truth) & (truth <= high + slip)
        ratio = np.divide(estimate, truth, out=np.zeros_like(truth), where=truth != 0)
        self.powers[:, at] += np.nan_to_num(ratio - 1.0) ** np.array([[1], [2], [3]])
        wide = known & (estimate != 0)
        self.widths.append((at[wide], (high - low)[wide] / 2 / np.abs(estimate[wide])))

    @property
    def is_heavy(self) -> npt.NDArray[np.bool_]:
        """The cells whose estimates have a long tail over the seeds, as where ten rows are all there is."""
        first, second, third = self.powers / np.maximum(1, self.shown)
        variance = np.maximum(second - first**2, 1e-24)
        skewness = (third - 3 * first * second + 2 * first**3) / variance**1.5
        return np.asarray(np.abs(skewness) > _SKEWED)


class Nowhere:
    """Ranges go nowhere: a replayed answer has only one step."""

    def provide(self, name: str, table: pa.Table) -> None:
        pass


class Summed:
    """Partial results that only add up: those of any blocks are one multiplication away."""

    def __init__(self, part: pa.Table, by: list[str], blocks: int) -> None:
        self.keys = part.group_by(by, use_threads=False).aggregate([]).select(by)
        # A total has no keys and one group.
        place = places(self.keys, part.select(by)) if by else np.zeros(part.num_rows, np.int64)
        block = part.column(_BLOCK).to_numpy()
        shape = (self.keys.num_rows if by else 1, blocks)
        ones = np.ones(part.num_rows)
        self.rows = sparse.csr_array((ones, (place, block)), shape)
        self.values = {}
        for name in part.column_names:
            if name not in (*by, _BLOCK):
                values = part.column(name).cast(pa.float64(), safe=False)
                there = values.is_valid().to_numpy().astype(np.float64)
                filled = pc.fill_null(values, 0.0).to_numpy()
                self.values[name] = tuple(
                    sparse.csr_array((data, (place, block)), shape) for data in (filled, there)
                )

    def of(self, blocks: np.ndarray, dealt: np.ndarray | None, replicates: int) -> pa.Table:
        """The partial results of these blocks; row groups are ``dealt`` to replicates."""
        chosen = np.zeros((self.rows.shape[1], 1 if dealt is None else replicates))
        chosen[blocks, 0 if dealt is None else dealt] = 1.0
        row, column = np.nonzero((self.rows @ chosen) > 0)
        columns = {
            name: self.keys.column(name).take(pa.array(row)) for name in self.keys.column_names
        }
        if dealt is not None:
            columns[REPLICATE] = pa.array(column, pa.int8())
        for name, (values, there) in self.values.items():
            summed, missing = (values @ chosen)[row, column], (there @ chosen)[row, column] == 0
            columns[name] = pa.array(summed, mask=missing)
        return pa.table(columns)


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
        self.summed: dict[str, Summed] = {}
        self.marked: set[str] = set()
        self.schemas: dict[int, pa.Schema] = {}
        self.key_types: dict[str, list[dict[str, pa.DataType]]] = {}
        with Streaming(database.spark) as streaming:
            # As shared: rows that two states have in common are read by each, marked with their block.
            reading = Reading(streaming, self.stream, Request(), is_shared=True)
            reading.open()
            for one in reading.kept:
                state = one.state
                for plan in (state.aggregate or state.delta, state.pairs and state.pairs.aggregate):
                    if plan is not None:
                        self.schemas[id(plan)] = streaming.schema(plan)
                tops = [streaming.schema(gate.top) for gate in state.gates]
                self.key_types[state.name] = [{f.name: f.type for f in top} for top in tops]
                self.parts[state.name] = self._by_block(streaming, one)
                if isinstance(one, Kept) and self._adds_up(one):
                    self.summed[state.name] = self._summed(one)
        self.rows = {
            place: np.array([one.rows_of([block]) for block in self.blocks])
            for place, one in self.stream.scans.items()
        }
        self.truth = self.at(np.array(self.blocks))

    def _summed(self, one: Kept) -> Summed:
        part, by = self.parts[one.state.name], list(one._grouping)
        if self._by_row_groups(one.state.counted) and REPLICATE in by:
            by.remove(REPLICATE)
            part = part.drop_columns([REPLICATE])
        return Summed(part, by, self.stream.blocks)

    def _by_row_groups(self, place: int) -> bool:
        return isinstance(self.stream.scans[place], ByRowGroups)

    def _adds_up(self, one: Kept) -> bool:
        return (
            one.state.aggregate is not None
            and one.is_replicated
            and set(one.merges.values()) == {"sum"}
            and all(accumulator.merge_together is None for accumulator in one.accumulators)
        )

    @property
    def blocks(self) -> range:
        return range(self.stream.blocks)

    @property
    def replicates(self) -> int:
        return self.stream.replicates

    def _by_block(self, streaming: Streaming, one: Keeper) -> pa.Table:
        """The partial results of all blocks, with the block of each, in one job where rows carry a mark."""
        hint = join_hints(self.stream, 1 / self.stream.blocks)
        if REPLICATE in one.batch.names:
            self._mark(streaming)
            found = streaming.run(one.batch, self.blocks, hint)
            mark = found.column(REPLICATE).to_numpy()
            block, replicate = np.divmod(mark, self.replicates)
            if self._by_row_groups(one.state.counted):
                block = replicate = mark  # they are dealt later
            at = found.column_names.index(REPLICATE)
            found = found.set_column(at, REPLICATE, pa.array(replicate.astype(np.int8)))
            return found.append_column(_BLOCK, pa.array(block.astype(np.int32)))
        pieces = [streaming.run(one.batch, [block], hint) for block in self.blocks]
        blocks = np.repeat(np.array(self.blocks, np.int32), [piece.num_rows for piece in pieces])
        return pa.concat_tables(pieces).append_column(_BLOCK, pa.array(blocks))

    def _mark(self, streaming: Streaming) -> None:
        """From now on the replicate of a row also says its block."""
        for place, streamed in self.stream.scans.items():
            name = stream_name(place)
            if isinstance(streamed, ByRowGroups):
                assert streamed.blocks < 128, "a mark is a byte"
                streaming._row_groups[name]._replicate = list(self.blocks)
            elif name not in self.marked:
                view = streaming._spark.table(streaming._views[name])
                mark = f"CAST({BLOCK} AS int) * {self.replicates} + {REPLICATE}"
                streaming._view(name, view.withColumn(REPLICATE, expr(mark)))
                self.marked.add(name)

    def at(self, blocks: np.ndarray) -> Rows:
        """What an answer from these blocks shows."""
        states: dict[str, Rows] = {}
        for state in self.stream.cut.states:
            part = self.parts[state.name]
            if state.name in self.summed:
                chosen, rows = self._added_up(state, blocks)
            else:
                chosen = part.filter(pc.is_in(part.column(_BLOCK), pa.array(blocks, pa.int32())))
                chosen, rows = self._dealt(chosen, state.counted, blocks)
                chosen = chosen.drop_columns([_BLOCK])
            fewest = self.stream.scans[state.counted].fewest
            scaling = Scaling(rows, float(self.rows[state.counted].sum()), fewest)
            if state.gates:
                schema = self.schemas[id(state.aggregate or state.delta)]
                gated = Gated(state, schema, self.replicates, self.key_types[state.name], 2.0)
                gated.add(chosen, ())
                gated.settle(states, min(self.share(blocks), 0.999), Nowhere())  # type: ignore[arg-type]
                states[state.name] = self._as_known(gated.estimated(scaling), state, blocks)
                continue
            one = kept(state, lambda plan: self.schemas[id(plan)], self.replicates)
            if state.name not in self.summed:
                one.add(chosen.slice(0, 0))
            one.add(chosen)
            states[state.name] = self._as_known(one.estimated(scaling), state, blocks)
            if state.late is not None:
                states[state.name] = without_late(states[state.name], state.late)
        return over_estimates(self.stream.cut.top, states)

    def _as_known(self, rows: Rows, state: State, blocks: np.ndarray) -> Rows:
        """Without intervals while row groups at the edge of a filter are not read."""
        streamed = self.stream.scans[state.counted]
        edges = streamed.edges if isinstance(streamed, ByRowGroups) else frozenset()
        return rows if edges <= set(blocks.tolist()) else rows.without_intervals

    def _added_up(self, state: State, blocks: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        rows = self.rows[state.counted][blocks]
        summed = self.summed[state.name]
        if not self._by_row_groups(state.counted):
            return summed.of(blocks, None, self.replicates), rows.sum(axis=0)
        dealt = np.arange(len(blocks)) % self.replicates
        weights = np.bincount(dealt, weights=rows.sum(axis=1), minlength=self.replicates)
        return summed.of(blocks, dealt, self.replicates), weights

    def _dealt(
        self, chosen: pa.Table, place: int, blocks: np.ndarray
    ) -> tuple[pa.Table, np.ndarray]:
        """Partial results and rows by replicate; row groups are dealt in this run's order of reading."""
        rows = self.rows[place][blocks]
        if not self._by_row_groups(place):
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


def replayed(replay: Replay, share: float, seeds: int) -> list[Column]:
    """What all seeds say of the cells that no estimate chose."""
    known = fixed(replay.truth)
    number = max(1, round(share * len(replay.blocks)))
    columns = {
        name: Column(column.theta[0])
        for name, column in replay.truth.columns.items()
        if isinstance(column, Varying)
    }
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
            if isinstance(column, Varying) and name in columns:
                found = column.interval(progress, CONFIDENCE)
                said = (column.theta[0, usable], found.low[usable], found.high[usable])
                columns[name].add(at[usable], *said)
    return list(columns.values())


def tally(columns: list[Column], heavy: bool) -> Tally:
    """The cells with a long tail, or the others."""
    chosen = [one.is_heavy == heavy for one in columns]
    pairs = list(zip(columns, chosen, strict=True))

    def total(counts: str) -> int:
        return sum(int(getattr(one, counts)[these].sum()) for one, these in pairs)

    widths = [width[these[at]] for one, these in pairs for at, width in one.widths]
    return Tally(
        sum(int((these & (one.shown > 0)).sum()) for one, these in pairs),
        total("covered"),
        total("known"),
        total("shown") - total("known"),
        np.concatenate([np.zeros(0), *widths]),
    )


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
    parser.add_argument("--sessions", type=int, help="so many video sessions instead of TPC-H")
    parser.add_argument("--queries", nargs="*", help="as Q1 or C3")
    options = parser.parse_args()
    layout = "unscrambled" if options.unscrambled else "progressive"
    what = f"sessions-{options.sessions}" if options.sessions else f"scale-{options.scale:g}"
    table: list[dict[str, object]] = []
    verdicts: dict[bool, list[str]] = {False: [], True: []}
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
                columns = replayed(replay, share, options.seeds)
                for heavy in (False, True):
                    found = tally(columns, heavy)
                    if not found.known + found.unknown:
                        continue
                    missing = found.unknown / (found.known + found.unknown)
                    line = {"query": name, "share": share, "heavy": heavy, "cells": found.cells}
                    line["unknown"] = missing
                    if found.known:
                        line["coverage"] = found.covered / found.known
                        line["width"] = float(np.median(found.widths)) if len(found.widths) else 0.0
                        line["verdict"] = verdict(found, options.seeds, len(SHARES) * len(chosen))
                        verdicts[heavy].append(line["verdict"])
                    table.append(line)
                    print(line, flush=True)
    data = "video sessions" if options.sessions else f"TPC-H scale {options.scale:g}"
    where = ", not scrambled" if options.unscrambled else ""
    for heavy, said in verdicts.items():
        holds = sum(v == "holds" for v in said)
        record(
            f"coverage-{what}-{layout}{'-heavy' if heavy else ''}",
            f"95% intervals compatible with 93–97%, {data}{where}, {options.seeds} seeds, at 2, 10 and 50%"
            f"{', cells with a long tail' if heavy else ''}",
            "shown" if heavy else "all",
            f"{holds} of {len(said)} (too low: {said.count('too low')}, wide: {said.count('wide')})",
            {"cells": [line for line in table if line["heavy"] == heavy]},
        )


if __name__ == "__main__":
    main()
