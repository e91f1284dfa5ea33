"""One reading for several queries: each has answers of its own, from blocks that are read once.

Whoever asks for more than has been read reads on; the others find it read. Those who use it hold it: when
the last of them has its last answer, or is gone, everything is given back. For one thread only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import replace

from sooner.answer import Answer
from sooner.engine.streaming import Streaming
from sooner.progressive.controller import Progress
from sooner.progressive.joint import CannotShare, Joint
from sooner.progressive.reading import Reading
from sooner.progressive.states import SumTooLarge, TooManyRows
from sooner.progressive.streams import Stream

Answers = Generator[Answer, None, None]


class _ReadingFailed(Exception):
    """The reading has come to an end that is not its own."""


class Shared:
    """An open reading and those who share it; ``as_of`` are the versions of all tables that are read."""

    def __init__(self, reading: Reading, joint: Joint, as_of: Mapping[str, int]) -> None:
        self.reading = reading
        self.as_of = as_of
        self._joint = joint
        self._steps = reading.steps()
        self._taken = 0
        self._members: weakref.WeakSet[Progress] = weakref.WeakSet()
        self._release = weakref.finalize(self, _release, self._steps, reading.streaming)
        self._release.atexit = False  # Spark is gone by then

    def join(self, stream: Stream) -> Stream:
        """A late member's own part of what is read. Raises :class:`CannotShare` if it needs more."""
        joint = self._joint.joined_late(stream)
        own = joint.members[-1]
        if not self._release.alive or not self.reading.holds(s.name for s in own.cut.states):
            raise CannotShare("what it needs is no longer kept")
        self._joint = joint
        return own

    def answers(
        self, member: Progress, is_current: Callable[[], bool], alone: Callable[[], Answers]
    ) -> Answers:
        """A member's answers, each from all that has been read when it is asked for.

        It goes ``alone`` if what is read is no longer current when it first asks, and should the reading
        fail: an error is only told to whom it concerns.
        """
        self._members.add(member)
        return self._answers(member, is_current, alone)

    def _answers(
        self, member: Progress, is_current: Callable[[], bool], alone: Callable[[], Answers]
    ) -> Answers:
        if is_current():
            with suppress(_ReadingFailed):
                yield from self._together(member)
                return
        self._members.discard(member)
        yield from alone()

    def _together(self, member: Progress) -> Answers:
        seen = 0
        try:
            while not (self.reading.is_done or member.is_full):
                if seen == self._taken:
                    self._step()
                    continue
                seen = self._taken
                answer = member.now()
                if answer is not None:
                    yield self._told(answer)
            yield self._told(member.last())
        except (SumTooLarge, TooManyRows):
            yield member.as_written()

    def _step(self) -> None:
        """Read on for those who are there. Raises :class:`_ReadingFailed` if others may do better alone."""
        if not self._release.alive:
            raise _ReadingFailed
        self.reading.keep_only({name for one in self._members for name in one.states})
        try:
            next(self._steps)
        except BaseException as error:
            self._release()
            if len(self._members) == 1 or not isinstance(error, Exception):
                raise
            raise _ReadingFailed from error
        self._taken += 1
        if self.reading.is_done:
            self._steps.close()

    def _told(self, answer: Answer) -> Answer:
        others = len(self._joint.parts) - 1
        if not others:
            return answer
        return replace(answer, details={**answer.details, "shared_with": others})


def _release(steps: Generator[None, None, None], streaming: Streaming) -> None:
    steps.close()
    streaming.close()
