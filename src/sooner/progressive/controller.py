"""The answers of a progressive query over a reading of blocks: estimates on the way, exactly in the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from time import perf_counter

import pyarrow as pa

from sooner.algebra import Aggregate, walk
from sooner.analysis.facts import TableFacts
from sooner.answer import Answer
from sooner.errors import QueryFailed
from sooner.progressive.answers import METHOD, Moment, answer_of, unknown_answer, widest
from sooner.progressive.details import details
from sooner.progressive.distinct_counts import KeptDistinct
from sooner.progressive.estimates import Rows
from sooner.progressive.gated import Gated
from sooner.progressive.large_states import LargeState
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.reading import Keeper, Reading
from sooner.progressive.request import Request
from sooner.progressive.sampled import Sampled
from sooner.progressive.states import Kept, SumTooLarge, TooManyRows
from sooner.progressive.streams import Stream
from sooner.progressive.top import over_estimates
from sooner.statistics.evaluate import NotNumeric


class Progress:
    """One progressive query: its own top over states of a :class:`Reading`, which others may share."""

    def __init__(
        self,
        reading: Reading,
        stream: Stream,
        schema: pa.Schema,
        request: Request,
        as_of: Mapping[str, int],
        as_written: Callable[[], Answer],
    ) -> None:
        """``as_written`` answers by Spark alone, should the plan turn out to have other types."""
        self._reading = reading
        self._stream = stream
        self._schema = schema
        self._request = request
        self._as_of = as_of
        self._as_written = as_written
        self.states = frozenset(state.name for state in stream.cut.states)

    def answers(self) -> Iterator[Answer]:
        """Answers that get better; the last one is exact, unless the request was met before.

        For a reading that nobody shares.
        """
        try:
            is_met = yield from self._on_the_way()
            if not is_met:
                # From the beginning it may take longer than there is time.
                yield self.last() if self._is_kept else self._reading.in_time(self.last)
        except (SumTooLarge, TooManyRows):
            yield self.as_written()
        except TimeoutError:
            return

    def _on_the_way(self) -> Generator[Answer, None, bool]:
        """Answers while blocks are read; in the end whether the request was met by one of them."""
        with closing(self._reading.steps()) as steps:
            for _ in steps:
                if self._reading.is_done:
                    break
                rows, answer = self._estimate()
                if answer is not None:
                    self._limit_time()
                    yield answer
                if self._met(rows):
                    return True
                if self.is_full:
                    break
        return False

    def _limit_time(self) -> None:
        """From the first answer on, nobody waits longer than was asked for."""
        if self._request.within is not None:
            self._reading.deadline = self._reading.start + self._request.within

    @property
    def is_full(self) -> bool:
        """Whether reading on would make nothing better: what does not merge has a full sample."""
        return any(one.is_full for one in self._samples)

    @property
    def _is_kept(self) -> bool:
        """Whether the exact answer follows from what is kept, once everything has been read."""
        return all(one.is_exact for one in self._samples)

    @property
    def _kept(self) -> list[Keeper]:
        return self._reading.named(self.states)

    @property
    def _samples(self) -> list[Sampled]:
        return [one for one in self._kept if isinstance(one, Sampled)]

    @property
    def progress(self) -> float:
        """The share of the streamed rows that has been read."""
        return self._reading.progress(self._stream.scans)

    @property
    def unread(self) -> int:
        """The streamed rows that have not been read."""
        return self._reading.unread(self._stream.scans)

    @property
    def facts(self) -> TableFacts:
        """What is known of the table that is streamed, if it is one, at the version that is read."""
        found = [one.table.facts for one in self._stream.scans.values()]
        return found[0] if len(found) == 1 else TableFacts()

    def seen(self) -> pa.Table | None:
        """The exact answer over the rows that have been read alone; ``None`` if it is not at hand."""
        if not self._is_kept or any(isinstance(one, LargeState | Gated) for one in self._kept):
            return None
        tables = self._reading.exact(self.states)
        assert tables is not None, "without gates everything is sure"
        table = self._reading.streaming.finish(self._stream.cut.top, tables)
        return table.rename_columns(self._schema.names)

    def now(self) -> Answer | None:
        """The answer as it looks now; ``None`` where Spark finds none in what has been read."""
        return self._estimate()[1]

    def _estimate(self) -> tuple[Rows | None, Answer | None]:
        states = self._reading.estimates(self.states)
        if not any(isinstance(node, Aggregate) for node in walk(self._stream.cut.top)):
            states = {name: rows.grown for name, rows in states.items()}
        try:
            rows = over_estimates(self._stream.cut.top, states, self._request.slack)
        except NotNumeric:
            try:
                return None, self._by_spark(states)
            except QueryFailed:
                # What holds of all rows (a divisor that is not zero) need not hold of some of them.
                return None, None
        return rows, answer_of(rows, self._moment(states, rows.count))

    def _by_spark(self, states: Mapping[str, Rows]) -> Answer:
        """The top by Spark over the estimates alone: nothing is said of how far off they are."""
        top, reading = self._stream.cut.top, self._reading
        table = reading.streaming.finish(top, reading.tables(states))
        states_cut = self._stream.cut.states
        return unknown_answer(
            table.rename_columns(self._schema.names),
            uncertain_columns(top, states_cut),
            selects_by_estimate(top, states_cut),
            self._moment(states, table.num_rows),
        )

    def _moment(self, states: Mapping[str, Rows], shown: int) -> Moment:
        kept = self._kept
        about = details(
            self._stream.cut,
            states,
            shown,
            self.progress,
            [one.unseen_share() for one in kept if isinstance(one, Kept | KeptDistinct)],
            self._request.confidence,
        )
        return Moment(
            self._schema,
            self.progress,
            self._request.confidence,
            self._elapsed,
            self._as_of,
            {"state_bytes": sum(one.bytes for one in kept), **self._open_rows(), **about},
        )

    @property
    def _elapsed(self) -> float:
        return perf_counter() - self._reading.start

    def _met(self, rows: Rows | None) -> bool:
        request = self._request
        if request.within is not None and self._elapsed >= request.within:
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

    def last(self) -> Answer:
        """The exact answer, once reading on gives nothing more."""
        if not self._is_kept:
            return replace(self._as_written(), method=METHOD, elapsed=self._elapsed)
        tables = self._reading.exact(self.states)
        if tables is None:
            return self._as_written()
        table = self._reading.streaming.finish(self._stream.cut.top, tables)
        if table.schema.types != self._schema.types:
            # The plan's types are not Spark's: only Spark's own reading is right.
            return self._as_written()
        return Answer(
            pa.Table.from_arrays(table.columns, schema=self._schema),
            METHOD,
            as_of=self._as_of,
            elapsed=self._elapsed,
            details=self._open_rows(),
        )

    def as_written(self) -> Answer:
        """The exact answer by Spark alone."""
        return self._as_written()
