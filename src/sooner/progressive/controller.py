"""The loop of a progressive query: read the next blocks, fold them in, answer; exactly in the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from sooner.answer import Answer
from sooner.engine.streaming import HeldRows, Streaming
from sooner.errors import InvalidArgument, QueryFailed
from sooner.progressive.answers import METHOD, Moment, answer_of, unknown_answer, widest
from sooner.progressive.batches import batches
from sooner.progressive.details import details
from sooner.progressive.distinct_counts import KeptDistinct, kept
from sooner.progressive.estimates import Deferred, Rows
from sooner.progressive.evaluate import NotNumeric
from sooner.progressive.gated import Gated
from sooner.progressive.hints import join_hints
from sooner.progressive.large_states import LargeState, outgrows
from sooner.progressive.lookups import Lookup
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State, stream_name
from sooner.progressive.sampled import Function, Sampled, blocks_at_once
from sooner.progressive.states import Kept, SumTooLarge, TooManyRows
from sooner.progressive.streams import Stream
from sooner.progressive.top import over_estimates

Keeper: TypeAlias = Kept | KeptDistinct | Gated | Sampled | LargeState
# What a batch gave: rows, or rows that stay in Spark.
Read: TypeAlias = pa.Table | HeldRows

# While one batch is merged and shown, the next is read: with two in flight no core waits.
_IN_FLIGHT = 2

Result = TypeVar("Result")


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    batches: int | None = None
    confidence: float = 0.95
    seed: int = 0
    error: float | None = None
    within: float | None = None
    slack: float = 2.0
    stream: Collection[str] | None = None

    def __post_init__(self) -> None:
        if self.batches is not None and not (_is_whole(self.batches) and self.batches >= 1):
            raise InvalidArgument(f"batches must be a whole number from 1, not {self.batches!r}.")
        if not (_is_whole(self.seed) and self.seed >= 0):
            raise InvalidArgument(f"seed must be a whole number from 0, not {self.seed!r}.")
        if not 0 < self.confidence < 1:
            raise InvalidArgument(f"confidence must be between 0 and 1, not {self.confidence}.")
        if self.error is not None and not self.error > 0:
            raise InvalidArgument(f"error must be above 0, as 0.01 for 1%, not {self.error}.")
        if self.within is not None and not self.within > 0:
            raise InvalidArgument(f"within must be above 0 seconds, not {self.within}.")
        if not self.slack >= 0:
            raise InvalidArgument(f"slack must not be negative, but is {self.slack}.")

    def require_reads(self, tables: Collection[str]) -> None:
        """Refuse to stream a table that the query does not read."""
        for name in self.stream or ():
            if name.lower() not in {table.lower() for table in tables}:
                raise InvalidArgument(f"stream= names {name!r}, which the query does not read.")


class Progress:
    """One run of a progressive query over an open :class:`Streaming`."""

    def __init__(
        self,
        streaming: Streaming,
        stream: Stream,
        schema: pa.Schema,
        request: Request,
        as_of: Mapping[str, int],
        as_written: Callable[[], Answer],
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        """``as_written`` answers by Spark alone, should the plan turn out to have other types.

        ``functions`` are the user's aggregates, by name.
        """
        self._streaming = streaming
        self._stream = stream
        self._schema = schema
        self._request = request
        self._as_of = as_of
        self._as_written = as_written
        self._functions = functions or {}
        self._start = perf_counter()
        self._replicates = stream.replicates
        self._rows = {place: np.zeros(self._replicates) for place in stream.scans}
        self._left = stream.blocks
        self._kept: list[Keeper] = []
        self._lookups: dict[str, Lookup] = {}
        self._has_answered = False

    def open(self) -> None:
        """Make tables and static parts readable, at the versions that are bound now."""
        for place, streamed in self._stream.scans.items():
            streamed.open(self._streaming, stream_name(place))
        for name, plan in self._stream.cut.statics.items():
            self._streaming.keep(name, plan)
        for state in self._stream.cut.states:
            if state.late is not None:
                self._lookups[state.name] = Lookup(state.name, state.late, self._streaming)
            if state.gates:
                self._kept.append(self._gated(state))
            elif state.samplers:
                self._kept.append(self._sampled(state))
            else:
                self._kept.append(kept(state, self._streaming.schema, self._replicates))

    def _gated(self, state: State) -> Gated:
        """Raises :class:`CannotGate` for values that are no numbers."""
        schema = self._streaming.schema(state.aggregate or state.delta)
        for one in self._kept:  # what the gates read
            self._streaming.provide(one.state.name, one.schema.empty_table())
        tops = [self._streaming.schema(gate.top) for gate in state.gates]
        types = [{field.name: field.type for field in top} for top in tops]
        gated = Gated(state, schema, self._replicates, types, self._request.slack)
        gated.provide(self._streaming)
        gated.require_numbers(self._streaming.schema(gated.batch))
        return gated

    def _sampled(self, state: State) -> Sampled:
        schema = self._streaming.schema(state.aggregate or state.delta)
        merged = [one for one in self._kept if one.state.name == state.beside]
        beside = merged[0] if merged and isinstance(merged[0], Kept) else None
        finish = self._streaming.finish
        one = Sampled(state, schema, self._replicates, beside, self._functions, finish)
        one.require_readable(self._streaming.schema(one.batch))
        return one

    def answers(self) -> Iterator[Answer]:
        """Answers that get better; the last one is exact, unless the request was met before."""
        try:
            yield from self._answers()
        except (SumTooLarge, TooManyRows):
            yield self._as_written()
        except TimeoutError:
            return

    def _answers(self) -> Iterator[Answer]:
        is_met = yield from self._on_the_way()
        if not is_met:
            exact = all(one.is_exact for one in self._samples)
            yield self._exact() if exact else self._by_one_run()

    def _on_the_way(self) -> Generator[Answer, None, bool]:
        """Answers while blocks are read; in the end whether the request was met by one of them."""
        with self._pool() as pool:
            for blocks, parts in self._read(pool):
                self._add(blocks, parts)
                self._count(blocks)
                if self._left == 0:
                    break
                rows, answer = self._estimate()
                if answer is not None:
                    self._has_answered = True
                    yield answer
                if self._met(rows):
                    return True
                if any(one.is_full for one in self._samples):
                    break
        return False

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        pool = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="sooner")
        try:
            yield pool
        finally:
            # First what waits, then what runs: nothing may start in between.
            pool.shutdown(wait=False, cancel_futures=True)
            self._streaming.cancel()
            pool.shutdown(wait=True)

    def _add(self, blocks: tuple[int, ...], parts: list[tuple[int, Read]]) -> None:
        for one, (generation, read) in zip(self._kept, parts, strict=True):
            current = generation == _generation(one)
            part = read if current else self._run(one, blocks)
            if isinstance(one, Gated):
                one.add(part, blocks)
            else:
                one.add(part)
        self._kept = [self._or_in_spark(one) for one in self._kept]

    def _or_in_spark(self, one: Keeper) -> Keeper:
        """The state, or the same in Spark if it has become too large for the driver.

        Gates and samples need the values of other states on the driver.
        """
        if any(isinstance(other, Gated | Sampled) for other in self._kept):
            return one
        if isinstance(one, Kept) and outgrows(one, self._stream.cut.top):
            return LargeState(one, self._streaming)
        return one

    def _run(self, one: Keeper, blocks: Collection[int]) -> Read:
        hint = join_hints(self._stream, len(blocks) / self._stream.blocks)
        run = self._streaming.hold if isinstance(one, LargeState) else self._streaming.run
        return run(one.batch, blocks, hint)

    def _read(
        self, pool: ThreadPoolExecutor
    ) -> Iterator[tuple[tuple[int, ...], list[tuple[int, Read]]]]:
        """Batches in order with the generation they belong to, the next ones being read meanwhile."""
        waiting: deque[tuple[tuple[int, ...], list[tuple[int, Future[Read]]]]] = deque()
        at_once = 1  # the first answer should not have to share the machine
        for blocks in self._batches():
            jobs = [(_generation(one), pool.submit(self._run, one, blocks)) for one in self._kept]
            waiting.append((blocks, jobs))
            if len(waiting) == at_once:
                at_once = _IN_FLIGHT
                done, first = waiting.popleft()
                yield done, [(number, self._result(job)) for number, job in first]
        for done, jobs in waiting:
            yield done, [(number, self._result(job)) for number, job in jobs]

    def _batches(self) -> Iterator[tuple[int, ...]]:
        """The blocks of each batch; of rows that are sampled not too many at once."""
        most = self._stream.blocks
        for one in self._samples:
            rows = self._total(one.state.counted)
            most = min(most, blocks_at_once(rows, self._stream.blocks))
        stream, request = self._stream, self._request
        sizes = (stream.block_bytes, stream.static_bytes)
        for batch in batches(stream.blocks, request.seed, request.batches, *sizes):
            yield from (batch[first : first + most] for first in range(0, len(batch), most))

    @property
    def _samples(self) -> list[Sampled]:
        return [one for one in self._kept if isinstance(one, Sampled)]

    def _result(self, job: Future[Result]) -> Result:
        """What a job gave. Raises ``TimeoutError`` when the user's time is up, if he has an answer."""
        left = None
        if self._request.within is not None and self._has_answered:
            left = max(0.0, self._start + self._request.within - perf_counter())
        return job.result(timeout=left)

    def _count(self, blocks: tuple[int, ...]) -> None:
        self._left -= len(blocks)
        for place, streamed in self._stream.scans.items():
            self._rows[place] += streamed.rows_of(blocks)

    def _total(self, place: int) -> float:
        return float(self._stream.scans[place].rows)

    @property
    def progress(self) -> float:
        """The share of the streamed rows that has been read."""
        total = sum(self._total(place) for place in self._rows)
        return float(sum(rows.sum() for rows in self._rows.values())) / total if total else 1.0

    def _estimate(self) -> tuple[Rows | None, Answer | None]:
        states = self._states()
        try:
            rows = over_estimates(self._stream.cut.top, states, self._request.slack)
        except NotNumeric:
            try:
                return None, self._by_spark(states)
            except QueryFailed:
                # What holds of all rows (a divisor that is not zero) need not hold of some of them.
                return None, None
        return rows, answer_of(rows, self._moment(states, rows.count))

    def _states(self) -> dict[str, Rows]:
        """What each state is worth as it looks now; gates go by the states before them."""
        states: dict[str, Rows] = {}
        for one in self._kept:
            place = one.state.counted
            scaling = Scaling(self._rows[place], self._total(place))
            if isinstance(one, LargeState):
                one.provide(scaling.total / float(scaling.rows.sum()))
                continue
            if isinstance(one, Gated):
                try:
                    one.settle(states, self.progress, self._streaming)
                    states[one.state.name] = one.estimated(scaling)
                except NotNumeric:
                    tables = self._tables(states)
                    states[one.state.name] = one.guessed(scaling, tables, self._streaming)
            else:
                states[one.state.name] = one.estimated(scaling)
            if one.state.name in self._lookups:
                late = self._lookups[one.state.name]
                states[one.state.name] = late.complete(states[one.state.name])
        return states

    def _tables(self, states: Mapping[str, Rows]) -> dict[str, pa.Table]:
        schemas = {one.state.name: one.schema for one in self._kept}
        return {name: _table(_own(rows), schemas[name]) for name, rows in states.items()}

    def _by_spark(self, states: Mapping[str, Rows]) -> Answer:
        """The top by Spark over the estimates alone: nothing is said of how far off they are."""
        top = self._stream.cut.top
        table = self._streaming.finish(top, self._tables(states)).rename_columns(self._schema.names)
        states_cut = self._stream.cut.states
        uncertain = uncertain_columns(top, states_cut)
        chosen = selects_by_estimate(top, states_cut)
        return unknown_answer(table, uncertain, chosen, self._moment(states, table.num_rows))

    def _moment(self, states: Mapping[str, Rows], shown: int) -> Moment:
        about = details(
            self._stream.cut,
            states,
            shown,
            self.progress,
            [one.unseen_share() for one in self._kept if isinstance(one, Kept | KeptDistinct)],
            self._request.confidence,
        )
        return Moment(
            self._schema,
            self.progress,
            self._request.confidence,
            perf_counter() - self._start,
            self._as_of,
            {
                "state_bytes": sum(one.bytes for one in self._kept),
                **self._open_rows(),
                **about,
            },
        )

    def _met(self, rows: Rows | None) -> bool:
        request = self._request
        if request.within is not None and perf_counter() - self._start >= request.within:
            return True
        if request.error is None or rows is None:
            return False
        worst = widest(rows, self.progress, request.confidence)
        return worst is not None and worst <= request.error

    def _open_rows(self) -> dict[str, int]:
        """What conditions on open values cost, where there are any."""
        gated = [one for one in self._kept if isinstance(one, Gated)]
        if not gated:
            return {}
        return {
            "recoveries": sum(one.recoveries for one in gated),
            "rows_judged_again": sum(one.judged for one in gated),
        }

    def _exact(self) -> Answer:
        if any(isinstance(one, Gated) for one in self._kept):
            self._states()  # what was decided by ranges that do not hold is taken back
            if not all(one.is_sure for one in self._kept if isinstance(one, Gated)):
                return self._as_written()
        tables: dict[str, pa.Table] = {}
        for one in self._kept:
            if isinstance(one, Gated):
                tables[one.state.name] = one.exact(tables, self._streaming)
            elif isinstance(one, LargeState):
                one.provide()
            else:
                tables[one.state.name] = one.exact()
        table = self._streaming.finish(self._stream.cut.top, tables)
        if table.schema.types != self._schema.types:
            # The plan's types are not Spark's: only Spark's own reading is right.
            return self._as_written()
        return Answer(
            pa.Table.from_arrays(table.columns, schema=self._schema),
            METHOD,
            as_of=self._as_of,
            elapsed=perf_counter() - self._start,
            details=self._open_rows(),
        )

    def _by_one_run(self) -> Answer:
        """The exact answer by Spark from the beginning: what was sampled does not give it."""
        with self._pool() as pool:
            answer = self._result(pool.submit(self._as_written))
        return replace(answer, method=METHOD, elapsed=perf_counter() - self._start)


def _generation(one: Keeper) -> int:
    """Changes when decisions were taken back: what was asked for before is then no longer right."""
    return one.recoveries if isinstance(one, Gated) else 0


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _own(rows: Rows) -> Rows:
    """Rows without the columns that are looked up."""
    own = {n: column for n, column in rows.columns.items() if not isinstance(column, Deferred)}
    return Rows(own, rows.chosen)


def _table(rows: Rows, schema: pa.Schema) -> pa.Table:
    """Estimates as a table of the types that the exact values will have."""
    moment = Moment(schema, 0.0, 0.95, 0.0, {}, {})
    return answer_of(rows, moment).table
