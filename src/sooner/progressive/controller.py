"""The loop of a progressive query: read the next blocks, fold them in, answer; exactly in the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from sooner.answer import Answer
from sooner.engine.streaming import Streaming
from sooner.errors import InvalidArgument, QueryFailed
from sooner.progressive.answers import METHOD, Moment, answer_of, unknown_answer, widest
from sooner.progressive.batches import batches
from sooner.progressive.cut import stream_name
from sooner.progressive.describe import selects_by_estimate, uncertain_columns
from sooner.progressive.estimates import Rows
from sooner.progressive.evaluate import NotNumeric
from sooner.progressive.partials import Scaling
from sooner.progressive.states import Kept, SumTooLarge
from sooner.progressive.streams import Stream
from sooner.progressive.top import over_estimates

# While one batch is merged and shown, the next is read: with two in flight no core waits.
_IN_FLIGHT = 2


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
    ) -> None:
        """``as_written`` answers by Spark alone, should the plan turn out to have other types."""
        self._streaming = streaming
        self._stream = stream
        self._schema = schema
        self._request = request
        self._as_of = as_of
        self._as_written = as_written
        self._start = perf_counter()
        self._replicates = stream.replicates
        self._rows = {place: np.zeros(self._replicates) for place in stream.scans}
        self._left = stream.blocks
        self._kept: list[Kept] = []
        self._has_answered = False

    def open(self) -> None:
        """Make tables and static parts readable, at the versions that are bound now."""
        for place, streamed in self._stream.scans.items():
            streamed.open(self._streaming, stream_name(place))
        for name, plan in self._stream.cut.statics.items():
            self._streaming.keep(name, plan)
        for state in self._stream.cut.states:
            schema = self._streaming.schema(state.aggregate or state.delta)
            self._kept.append(Kept(state, schema, self._replicates))

    def answers(self) -> Iterator[Answer]:
        """Answers that get better; the last one is exact, unless the request was met before."""
        try:
            yield from self._answers()
        except SumTooLarge:
            yield self._as_written()
        except TimeoutError:
            return

    def _answers(self) -> Iterator[Answer]:
        pool = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="sooner")
        try:
            for blocks, parts in self._read(pool):
                for one, part in zip(self._kept, parts, strict=True):
                    one.add(part)
                self._count(blocks)
                if self._left == 0:
                    break
                rows, answer = self._estimate()
                if answer is not None:
                    self._has_answered = True
                    yield answer
                if self._met(rows):
                    return
            yield self._exact()
        finally:
            # First what waits, then what runs: nothing may start in between.
            pool.shutdown(wait=False, cancel_futures=True)
            self._streaming.cancel()
            pool.shutdown(wait=True)

    def _read(self, pool: ThreadPoolExecutor) -> Iterator[tuple[tuple[int, ...], list[pa.Table]]]:
        """Batches in order, the next ones being read meanwhile."""
        waiting: deque[tuple[tuple[int, ...], list[Future[pa.Table]]]] = deque()
        at_once = 1  # the first answer should not have to share the machine
        for blocks in batches(self._stream.blocks, self._request.seed, self._request.batches):
            jobs = [pool.submit(self._streaming.run, one.batch, blocks) for one in self._kept]
            waiting.append((blocks, jobs))
            if len(waiting) == at_once:
                at_once = _IN_FLIGHT
                done, first = waiting.popleft()
                yield done, self._results(first)
        for done, jobs in waiting:
            yield done, self._results(jobs)

    def _results(self, jobs: list[Future[pa.Table]]) -> list[pa.Table]:
        """What a batch gave. Raises ``TimeoutError`` when the user's time is up, if he has an answer."""
        left = None
        if self._request.within is not None and self._has_answered:
            left = max(0.0, self._start + self._request.within - perf_counter())
        return [job.result(timeout=left) for job in jobs]

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
        states = {
            one.state.name: one.estimated(
                Scaling(self._rows[one.state.counted], self._total(one.state.counted))
            )
            for one in self._kept
        }
        try:
            rows = over_estimates(self._stream.cut.top, states, self._request.slack)
        except NotNumeric:
            try:
                return None, self._by_spark(states)
            except QueryFailed:
                # What holds of all rows (a divisor that is not zero) need not hold of some of them.
                return None, None
        return rows, answer_of(rows, self._moment())

    def _by_spark(self, states: Mapping[str, Rows]) -> Answer:
        """The top by Spark over the estimates alone: nothing is said of how far off they are."""
        tables = {one.state.name: _table(states[one.state.name], one.schema) for one in self._kept}
        top = self._stream.cut.top
        table = self._streaming.finish(top, tables).rename_columns(self._schema.names)
        states_cut = self._stream.cut.states
        uncertain = uncertain_columns(top, states_cut)
        chosen = selects_by_estimate(top, states_cut)
        return unknown_answer(table, uncertain, chosen, self._moment())

    def _moment(self) -> Moment:
        details = {"state_bytes": sum(one.bytes for one in self._kept)}
        return Moment(
            self._schema,
            self.progress,
            self._request.confidence,
            perf_counter() - self._start,
            self._as_of,
            details,
        )

    def _met(self, rows: Rows | None) -> bool:
        request = self._request
        if request.within is not None and perf_counter() - self._start >= request.within:
            return True
        if request.error is None or rows is None:
            return False
        worst = widest(rows, self.progress, request.confidence)
        return worst is not None and worst <= request.error

    def _exact(self) -> Answer:
        tables = {one.state.name: one.exact() for one in self._kept}
        table = self._streaming.finish(self._stream.cut.top, tables)
        if table.schema.types != self._schema.types:
            # The plan's types are not Spark's: only Spark's own reading is right.
            return self._as_written()
        return Answer(
            pa.Table.from_arrays(table.columns, schema=self._schema),
            METHOD,
            as_of=self._as_of,
            elapsed=perf_counter() - self._start,
        )


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _table(rows: Rows, schema: pa.Schema) -> pa.Table:
    """Estimates as a table of the types that the exact values will have."""
    moment = Moment(schema, 0.0, 0.95, 0.0, {}, {})
    return answer_of(rows, moment).table
