"""Frames that were made from one another: those that evolve share the reading of their tables.

A family is a Frame of a table or of SQL text, and every Frame derived from it. When one of them is asked
for its first answer, the others that are in use and can come along do so: the blocks are read once for all.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sooner.above import above
from sooner.algebra import Relation
from sooner.engine import aggregates, binding
from sooner.engine.exact import arrow_contract
from sooner.engine.streaming import Streaming
from sooner.errors import SoonerError
from sooner.explain import table_infos
from sooner.incomplete import declared
from sooner.prepare import Prepared
from sooner.progressive.controller import Progress
from sooner.progressive.gates import CannotGate
from sooner.progressive.joint import CannotShare, Joint, alone
from sooner.progressive.parts import CannotStream
from sooner.progressive.reading import Reading
from sooner.progressive.request import Request
from sooner.progressive.shared import Answers, Shared
from sooner.progressive.streams import Stream, choose_stream
from sooner.storage import Table

if TYPE_CHECKING:
    from sooner.database import Database
    from sooner.frame import Frame

_AS_USUAL = Request()


@dataclass(frozen=True)
class _Query:
    """A query over its tables as they are now, and how it would be read alone."""

    prepared: Prepared
    tables: Sequence[Table]
    stream: Stream

    @property
    def as_of(self) -> dict[str, int]:
        return {table.name: table.version for table in self.tables}


class Family:
    """The Frames of a family that are in use, and the reading that they share. For one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._frames: weakref.WeakValueDictionary[int, Frame] = weakref.WeakValueDictionary()
        self._added = 0
        self._running: weakref.ref[Shared] | None = None

    def add(self, frame: Frame) -> None:
        """One more Frame, for as long as it is in use."""
        self._added += 1
        self._frames[self._added] = frame

    def evolve(self, asked: Frame) -> None:
        """Give a Frame its answers to come, and those Frames theirs that can share its reading."""
        if self._is_incomplete(asked):
            asked._evolving = self._database._answers(asked.prepared, _AS_USUAL)
            return
        answers = self._joined(asked)
        found = {asked: answers} if answers else self._begun(self._with_others(asked))
        for frame, theirs in found.items():
            frame._evolving = theirs
        if not found:
            asked._evolving = self._database._answers(asked.prepared, _AS_USUAL)

    def companions(self, asked: Frame) -> int:
        """How many Frames would share the reading of one, were it asked for now."""
        with binding.lock, suppress(SoonerError):  # such as of a table that is gone
            queries, _ = self._together(self._with_others(asked), gated=True)
            return max(0, len(queries) - 1)
        return 0

    def _with_others(self, asked: Frame) -> list[Frame]:
        """A Frame, and the others that have not begun, in the order they were made."""
        others = [one for one in self._frames.values() if one is not asked]
        return [
            asked,
            *(one for one in others if one._evolving is None and not self._is_incomplete(one)),
        ]

    def _is_incomplete(self, frame: Frame) -> bool:
        """Whether rows may be missing: such a Frame has more to say than what is read."""
        with suppress(SoonerError):  # such as of a table that is gone
            return bool(declared(self._database._tables(frame.prepared.tables)))
        return False

    def _joined(self, asked: Frame) -> Answers | None:
        """The answers of a Frame for which all that it needs is kept already."""
        shared = None if self._running is None else self._running()
        if shared is None:
            return None
        others = [one.prepared for one in self._frames.values() if one is not asked]
        with binding.lock:
            for query in self._ways(asked.prepared, others, gated=True):
                if query.as_of.items() <= shared.as_of.items():
                    with suppress(CannotShare):
                        return self._member(shared, query, shared.join(query.stream))
        return None

    def _begun(self, frames: Sequence[Frame]) -> dict[Frame, Answers]:
        """The answers of the first Frame and of those that share its reading; none if it has no steps."""
        for gated in (True, False):
            for taken in (frames, frames[:1])[: len(frames)]:
                try:
                    return self._opened(taken, gated)
                except (CannotGate, CannotStream):
                    continue  # with what Spark says of types
        return {}

    def _opened(self, frames: Sequence[Frame], gated: bool) -> dict[Frame, Answers]:
        with binding.lock:
            queries, joint = self._together(frames, gated)
            if joint is None:
                return {}
            as_of = {name: v for query in queries.values() for name, v in query.as_of.items()}
            shared = Shared(self._read(joint), joint, as_of)
            self._running = weakref.ref(shared)
            members = zip(queries.items(), joint.members, strict=True)
            return {
                frame: self._member(shared, query, stream) for (frame, query), stream in members
            }

    def _together(
        self, frames: Sequence[Frame], gated: bool
    ) -> tuple[dict[Frame, _Query], Joint | None]:
        """The first Frame and those that can share its reading, and what is read for them."""
        queries: dict[Frame, _Query] = {}
        joint: Joint | None = None
        for frame in frames:
            ways = self._ways(frame.prepared, [one.prepared for one in queries.values()], gated)
            if joint is not None:
                with suppress(CannotShare, SoonerError):  # an error is for whom it concerns
                    queries[frame], joint = _taken(joint, list(ways))
            elif (first := next(ways, None)) is not None:
                queries[frame], joint = first, alone(first.stream)
            else:
                break
        return queries, joint

    def _ways(
        self, prepared: Prepared, others: Sequence[Prepared], gated: bool
    ) -> Iterator[_Query]:
        """A query as it would be alone, and over each of the others that it was made from."""
        own = self._query(prepared, prepared.plan, gated)
        if own is None:
            return
        yield own
        plans = (above(prepared, other, self._database._without) for other in others)
        for plan in plans:
            query = None if plan is None else self._query(prepared, plan, gated)
            if query is not None:
                yield query

    def _query(self, prepared: Prepared, plan: Relation, gated: bool) -> _Query | None:
        """A query that goes in steps by a plan; ``None`` for one that is answered at once."""
        tables = {name: self._database._bind(name) for name in prepared.tables}
        infos = table_infos(tables.values())
        try:
            stream = choose_stream(plan, tables, infos, None, _AS_USUAL.seed, gated)
        except CannotStream:
            return None
        return _Query(prepared, list(tables.values()), stream) if stream.is_worth_it else None

    def _read(self, joint: Joint) -> Reading:
        spark = self._database.spark
        streaming = Streaming(spark)
        try:
            functions = aggregates.functions(spark)
            reading = Reading(streaming, joint.whole, _AS_USUAL, functions, is_shared=True)
            reading.open()
            return reading
        except BaseException:
            streaming.close()
            raise

    def _member(self, shared: Shared, query: _Query, stream: Stream) -> Answers:
        database, prepared = self._database, query.prepared
        schema = arrow_contract(database.spark, prepared.columns)
        as_written = partial(database._exact, prepared, query.tables)
        reading = shared.reading
        member = Progress(reading, stream, schema, _AS_USUAL, query.as_of, as_written)
        return shared.answers(
            member,
            lambda: database._versions(prepared.tables) == query.as_of,
            lambda: database._answers(prepared, _AS_USUAL),
        )


def _taken(joint: Joint, ways: Sequence[_Query]) -> tuple[_Query, Joint]:
    """What is read with one more query: by a way that needs nothing more, else as it would be alone."""
    for query in ways:
        with suppress(CannotShare):
            return query, joint.joined_late(query.stream)
    if not ways:
        raise CannotShare("it is answered at once")
    return ways[0], joint.taking(ways[0].stream)
