"""Blocks read in order and folded into states, the next being read meanwhile; for one query or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Event
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from sooner.algebra import Join
from sooner.analysis import estimate
from sooner.engine.streaming import HeldRows, Streaming
from sooner.progressive.answers import Moment, answer_of
from sooner.progressive.batches import batches, blocks_at_once
from sooner.progressive.by_row_groups import ByRowGroups
from sooner.progressive.distinct_counts import KeptDistinct, kept
from sooner.progressive.estimates import Deferred, Rows
from sooner.progressive.gated import Gated
from sooner.progressive.hints import batch_infos, join_hints
from sooner.progressive.large_states import LargeState, outgrows
from sooner.progressive.lookups import Lookup
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State, stream_name
from sooner.progressive.read_once import read_once
from sooner.progressive.request import Request
from sooner.progressive.sampled import Function, Sampled
from sooner.progressive.states import Kept
from sooner.progressive.streams import Stream
from sooner.sql import Hint
from sooner.statistics.evaluate import NotNumeric

Keeper: TypeAlias = Kept | KeptDistinct | Gated | Sampled | LargeState
# What a batch gave: rows, or rows that stay in Spark.
Read: TypeAlias = pa.Table | HeldRows

# While one batch is merged and shown, the next is read: with two in flight no core waits.
# More would end sooner as a whole, but each answer on the way comes later: they share the cores.
_IN_FLIGHT = 2
# Of the states of one batch so many are read side by side.
_JOBS_AT_ONCE = 2

Result = TypeVar("Result")
_Jobs: TypeAlias = dict[str, tuple[int, Future[Read]]]


class Reading:
    """The states of a stream, and the way through its blocks, over an open :class:`Streaming`."""

    def __init__(
        self,
        streaming: Streaming,
        stream: Stream,
        request: Request,
        functions: Mapping[str, Function] | None = None,
        is_shared: bool = False,
    ) -> None:
        """``functions`` are the user's aggregates, by name."""
        self.streaming = streaming
        # Those who share a stream have found what they have in common.
        self.stream = stream if is_shared else read_once(stream)
        self.kept: list[Keeper] = []
        self.start = perf_counter()
        # When to give up waiting for the next batch.
        self.deadline: float | None = None
        self._stopping = Event()
        self._request = request
        self._functions = functions or {}
        self._is_shared = is_shared
        self._rows = {place: np.zeros(stream.replicates) for place in stream.scans}
        self._left = stream.blocks
        self._unread = {
            place: set(one.edges)
            for place, one in stream.scans.items()
            if isinstance(one, ByRowGroups)
        }
        self._lookups: dict[str, Lookup] = {}
        self._dropped: set[str] = set()
        self._estimates: dict[str, Rows] = {}
        self._exact: dict[str, pa.Table] = {}

    def open(self) -> None:
        """Make tables and static parts readable, at the versions that are bound now."""
        for place, streamed in self.stream.scans.items():
            streamed.open(self.streaming, stream_name(place))
        for name, plan in self.stream.cut.statics.items():
            self.streaming.keep(name, plan)
        for name, plan in self.stream.cut.commons.items():
            self.streaming.define(name, plan)
        for state in self.stream.cut.states:
            if state.late is not None:
                self._lookups[state.name] = Lookup(state.name, state.late, self.streaming)
            if state.gates:
                self.kept.append(self._gated(state))
            elif state.samplers:
                self.kept.append(self._sampled(state))
            else:
                self.kept.append(kept(state, self.streaming.schema, self.stream.replicates))

    def _gated(self, state: State) -> Gated:
        """Raises :class:`CannotGate` for values that are no numbers."""
        schema = self.streaming.schema(state.aggregate or state.delta)
        for one in self.kept:  # what the gates read
            self.streaming.provide(one.state.name, one.schema.empty_table())
        tops = [self.streaming.schema(gate.top) for gate in state.gates]
        types = [{field.name: field.type for field in top} for top in tops]
        gated = Gated(state, schema, self.stream.replicates, types, self._request.slack)
        gated.provide(self.streaming)
        gated.require_numbers(self.streaming.schema(gated.batch))
        return gated

    def _sampled(self, state: State) -> Sampled:
        schema = self.streaming.schema(state.aggregate or state.delta)
        merged = [one for one in self.kept if one.state.name == state.beside]
        beside = merged[0] if merged and isinstance(merged[0], Kept) else None
        finish = self.streaming.finish
        one = Sampled(state, schema, self.stream.replicates, beside, self._functions, finish)
        one.require_readable(self.streaming.schema(one.batch))
        return one

    @property
    def is_done(self) -> bool:
        """Whether all blocks have been read."""
        return self._left == 0

    def progress(self, places: Collection[int]) -> float:
        """The share of the rows of some streamed scans that has been read."""
        total = sum(self._total(place) for place in places)
        read = sum(float(self._rows[place].sum()) for place in places)
        return read / total if total else 1.0

    def unread(self, places: Collection[int]) -> int:
        """The rows of some streamed scans that have not been read."""
        return round(sum(self._total(place) - float(self._rows[place].sum()) for place in places))

    def named(self, names: Collection[str]) -> list[Keeper]:
        """The keepers of some states, in order."""
        return [one for one in self.kept if one.state.name in names]

    def holds(self, names: Iterable[str]) -> bool:
        """Whether all these states have everything that has been read."""
        return self._dropped.isdisjoint(names)

    def keep_only(self, names: Collection[str]) -> None:
        """Read no more for states that nobody needs."""
        self._dropped |= {one.state.name for one in self.kept} - set(names)

    def steps(self) -> Generator[None, None, None]:
        """Read on, batch by batch. Closing it stops what is being read."""
        with self._pool() as pool:
            for blocks, parts in self._read(pool):
                self._add(blocks, parts)
                self._count(blocks)
                self.streaming.release(blocks)
                yield

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        at_once = min(_JOBS_AT_ONCE, max(1, len(self.kept)))
        pool = ThreadPoolExecutor(_IN_FLIGHT * at_once, thread_name_prefix="sooner")
        self._stopping.clear()
        try:
            yield pool
        finally:
            # First what waits, then what runs: nothing may start in between.
            self._stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            self.streaming.cancel()
            pool.shutdown(wait=True)

    def _read(self, pool: ThreadPoolExecutor) -> Iterator[tuple[tuple[int, ...], _Jobs]]:
        """Batches in order with their jobs, the next ones being read meanwhile."""
        waiting: deque[tuple[tuple[int, ...], _Jobs]] = deque()
        at_once = 1  # the first answer should not have to share the machine
        shown, pause = deque([perf_counter()], maxlen=3), 0.0
        for blocks in self._batches():
            self.streaming.hold(blocks, self._hint(blocks))
            before = [job for _, jobs in waiting for _, job in jobs.values()]
            jobs = {
                one.state.name: (
                    _generation(one),
                    pool.submit(self._run_after, before, pause, one, blocks),
                )
                for one in self.kept
                if one.state.name not in self._dropped
            }
            waiting.append((blocks, jobs))
            if len(waiting) == at_once:
                yield waiting.popleft()
                # A batch begins when the one before is well on its way: jobs that begin together end
                # together, and the first of both answers would come as late as the second.
                # Of two answers that come together the second took no time: two say how long one takes.
                shown.append(perf_counter())
                pause = (shown[-1] - shown[0]) / (len(shown) - 1) / 2
                if at_once == 1:
                    shown.popleft()  # the first also waits for static parts
                at_once = _IN_FLIGHT
        yield from waiting

    def _add(self, blocks: tuple[int, ...], jobs: _Jobs) -> None:
        self._estimates, self._exact = {}, {}
        for one in self.kept:
            if one.state.name in self._dropped:
                continue
            generation, job = jobs[one.state.name]
            read = self.result(job)
            # What was decided when it was asked for may have been taken back since.
            part = read if generation == _generation(one) else self._run(one, blocks)
            if isinstance(one, Gated):
                one.add(part, blocks)
            else:
                one.add(part)
        self.kept = [self._or_in_spark(one) for one in self.kept]

    def _or_in_spark(self, one: Keeper) -> Keeper:
        """The state, or the same in Spark if it has become too large for the driver.

        Gates and samples need the values of other states on the driver, and so do queries that share
        them.
        """
        if self._is_shared or any(isinstance(other, Gated | Sampled) for other in self.kept):
            return one
        if isinstance(one, Kept) and outgrows(one, self.stream.cut.top):
            return LargeState(one, self.streaming)
        return one

    def _run_after(
        self, before: Sequence[Future[Read]], seconds: float, one: Keeper, blocks: Collection[int]
    ) -> Read:
        """As :meth:`_run`, after some seconds, or sooner if these jobs are done."""
        wait(before, timeout=seconds)
        if self._stopping.is_set():
            raise CancelledError
        return self._run(one, blocks)

    def _run(self, one: Keeper, blocks: Collection[int]) -> Read:
        streaming = self.streaming
        run = streaming.run_there if isinstance(one, LargeState) else streaming.run
        return run(one.batch, blocks, self._hint(blocks))

    def _hint(self, blocks: Collection[int]) -> Callable[[Join], Hint | None]:
        return join_hints(self.stream, len(blocks) / self.stream.blocks)

    def _batches(self) -> Iterator[tuple[int, ...]]:
        """The blocks of each batch: not too many at once where their rows come to the driver."""
        stream, request = self.stream, self._request
        most = first = stream.blocks
        for one in self.kept:
            if isinstance(one, Sampled):
                rows = self._total(one.state.counted)
                most = min(most, blocks_at_once(rows, stream.blocks))
            elif isinstance(one, Gated):
                # Of the first batch nothing can be decided yet: all its rows wait.
                rows = estimate(one.rows, batch_infos(stream, 1.0)).rows
                first = min(first, blocks_at_once(rows, stream.blocks))
        sizes = (stream.block_bytes, stream.static_bytes if stream.has_estimates else 0.0)
        found = batches(stream.blocks, request.seed, request.batches, *sizes)
        if len(found) > 1:
            found[:1] = [part for part in (found[0][:first], found[0][first:]) if part]
        for batch in found:
            yield from (batch[start : start + most] for start in range(0, len(batch), most))

    def result(self, job: Future[Result]) -> Result:
        """What a job gave. Raises ``TimeoutError`` after the deadline."""
        left = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        return job.result(timeout=left)

    def in_time(self, work: Callable[[], Result]) -> Result:
        """What some work gives after all reading. Raises ``TimeoutError`` after the deadline."""
        with self._pool() as pool:
            return self.result(pool.submit(work))

    def _count(self, blocks: tuple[int, ...]) -> None:
        self._left -= len(blocks)
        for place, streamed in self.stream.scans.items():
            self._rows[place] += streamed.rows_of(blocks)
            self._unread.get(place, set()).difference_update(blocks)

    def _total(self, place: int) -> float:
        return float(self.stream.scans[place].rows)

    def estimates(self, names: Collection[str]) -> dict[str, Rows]:
        """What some states are worth as it looks now; gates go by the states before them."""
        found: dict[str, Rows] = {}
        for one in self.named(names):
            name = one.state.name
            if isinstance(one, LargeState):
                read = float(self._rows[one.state.counted].sum())
                one.provide(self._total(one.state.counted) / read)
                continue
            if name not in self._estimates:
                self._estimates[name] = self._estimate(one, found)
            found[name] = self._estimates[name]
        return found

    def _estimate(
        self, one: Kept | KeptDistinct | Gated | Sampled, before: Mapping[str, Rows]
    ) -> Rows:
        place = one.state.counted
        fewest = self.stream.scans[place].fewest
        scaling = Scaling(self._rows[place], self._total(place), fewest)
        if isinstance(one, Gated):
            try:
                one.settle(before, self.progress(self.stream.scans), self.streaming)
                rows = one.estimated(scaling)
            except NotNumeric:
                rows = one.guessed(scaling, self.tables(before), self.streaming)
        else:
            rows = one.estimated(scaling)
        if self._unread.get(place):
            rows = rows.without_intervals
        late = self._lookups.get(one.state.name)
        return rows if late is None else late.complete(rows)

    def tables(self, states: Mapping[str, Rows]) -> dict[str, pa.Table]:
        """Estimates as tables of the types that the exact values will have."""
        schemas = {one.state.name: one.schema for one in self.kept}
        return {name: _table(_own(rows), schemas[name]) for name, rows in states.items()}

    def exact(self, names: Collection[str]) -> dict[str, pa.Table] | None:
        """What some states are worth once everything has been read; ``None`` if that is not sure."""
        mine = self.named(names)
        gated = [one for one in mine if isinstance(one, Gated)]
        if gated:
            # What was decided by ranges that do not hold is taken back.
            last = gated[-1]
            before = self.estimates([one.state.name for one in mine[: mine.index(last)]])
            if last.state.name not in self._estimates:
                with suppress(NotNumeric):
                    last.settle(before, self.progress(self.stream.scans), self.streaming)
            if not all(one.is_sure for one in gated):
                return None
        found: dict[str, pa.Table] = {}
        for one in mine:
            name = one.state.name
            if isinstance(one, LargeState):
                one.provide()
                continue
            if name not in self._exact:
                self._exact[name] = (
                    one.exact(found, self.streaming) if isinstance(one, Gated) else one.exact()
                )
            found[name] = self._exact[name]
        return found


def _generation(one: Keeper) -> int:
    """Changes when decisions were taken back: what was asked for before is then no longer right."""
    return one.recoveries if isinstance(one, Gated) else 0


def _own(rows: Rows) -> Rows:
    """Rows without the columns that are looked up."""
    own = {n: column for n, column in rows.columns.items() if not isinstance(column, Deferred)}
    return Rows(own, rows.chosen)


def _table(rows: Rows, schema: pa.Schema) -> pa.Table:
    moment = Moment(schema, 0.0, 0.95, 0.0, {}, {})
    return answer_of(rows, moment).table
