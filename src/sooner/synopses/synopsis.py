"""A synopsis that users hold: they ask it, and look at where its leaves are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

from sooner.answer import Answer
from sooner.errors import CannotAnswer, InvalidArgument
from sooner.synopses.definition import Definition
from sooner.synopses.plot import plot_leaves
from sooner.synopses.question import Question, question
from sooner.synopses.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Synopsis:
    """A tree of exact totals over samples of one table: answers in a millisecond, with hard ranges."""

    def __init__(self, load: Callable[[], Summary], definition: Definition, zone: tzinfo) -> None:
        """Moments in questions are read in ``zone``, unless they name another."""
        self.definition = definition
        self._load = load
        self._zone = zone
        self._loaded: Summary | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @property
    def summary(self) -> Summary:
        """What it holds, read from its files when it is first asked."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    @property
    def rows(self) -> int:
        """The rows that it summarizes."""
        return int(self.summary.tree.totals.rows.max())

    @property
    def leaves(self) -> int:
        """How many leaves it has."""
        return int(self.summary.tree.leaf.max()) + 1

    @property
    def sampled(self) -> int:
        """How many rows it has stored."""
        return self.summary.samples.count

    def answer(self, text: str, *, confidence: float = 0.95) -> Answer:
        """Answer COUNT, SUM, AVG, MIN and MAX over conditions on its columns, without reading the table.

        Raises :class:`CannotAnswer` with the reason where it cannot.
        """
        start = perf_counter()
        asked = question(text)
        return replace(self._ask(asked, confidence), elapsed=perf_counter() - start)

    def _ask(self, asked: Question, confidence: float) -> Answer:
        if not isinstance(confidence, int | float) or not 0 < confidence < 1:
            raise InvalidArgument(f"confidence={confidence!r}: give a share between 0 and 1.")
        try:
            if asked.table.lower() != self.definition.table.lower():
                raise CannotAnswer(f"it is asked about {asked.table!r}.")
            return self.summary.ask(asked, self._zone, confidence)
        except CannotAnswer as error:
            raise CannotAnswer(
                f"The synopsis {self.name!r} of {self.definition.table!r} cannot answer this, because {error}"
            ) from None

    def plot(self) -> Figure:
        """The leaves over the data: where they are narrow, questions are answered most closely."""
        return plot_leaves(self.summary)

    def __repr__(self) -> str:
        over = ", ".join(one.name for one in self.definition.over)
        of = ", ".join(one.name for one in self.definition.measures)
        return f"<Synopsis {self.name!r} of {of} over {over} in {self.definition.table!r}>"


class Synopses(Sequence[Synopsis]):
    """Several synopses; the one that answers a question most closely is asked."""

    def __init__(self, all_: Sequence[Synopsis]) -> None:
        self._all = tuple(all_)

    @overload
    def __getitem__(self, place: int) -> Synopsis: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Synopsis]: ...

    def __getitem__(self, place: Any) -> Any:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Synopsis]:
        return iter(self._all)

    def answer(self, text: str, *, confidence: float = 0.95) -> Answer:
        """The closest of the answers that they give."""
        start = perf_counter()
        asked = question(text)
        answers, reasons = [], []
        for one in self._all:
            if one.definition.table.lower() != asked.table.lower():
                continue
            try:
                answers.append(one._ask(asked, confidence))
            except CannotAnswer as error:
                reasons.append(str(error))
        if not answers:
            why = " ".join(reasons) or f"There is no synopsis of {asked.table!r}."
            raise CannotAnswer(why)
        best = min(answers, key=_how_far_off)
        return replace(best, elapsed=perf_counter() - start)


def _how_far_off(answer: Answer) -> tuple[bool, float]:
    widest = answer.relative_error
    return widest is None, widest or 0.0
