"""Tables of which rows may be missing: whatever is asked of them, the answer says how far it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING

from sooner.algebra.schema import Schema
from sooner.answer import Answer
from sooner.engine.exact import arrow_contract
from sooner.engine.session import session_zone
from sooner.engine.streaming import Streaming
from sooner.errors import ConstraintViolation, InvalidArgument, NotSupported
from sooner.missing.answering import missing_answer
from sooner.missing.asked import asked_of
from sooner.missing.bounds import Missing, require_constraints
from sooner.missing.conflicts import conflicting, described
from sooner.missing.constraint import Constraint
from sooner.missing.files import constraints_of, constraints_text
from sooner.missing.joins import Declared
from sooner.missing.space import space_of
from sooner.missing.unread import Unread, on_the_way
from sooner.prepare import Prepared
from sooner.progressive.request import Request
from sooner.progressive.shared import Answers
from sooner.storage import Table
from sooner.storage.views import read_through

if TYPE_CHECKING:
    from sooner.database import Database


def declaration(name: str, columns: Schema, given: Sequence[Constraint]) -> str:
    """What may be missing from a new table, as the catalog keeps it. Refuses what cannot be."""
    require_constraints(given)
    for one in given:
        if not one.is_about(name):
            raise InvalidArgument(f"{one.label} is about {one.table!r}, not about {name!r}.")
    space = space_of(columns, given, [], [], session_zone(None))
    if conflict := conflicting(space, given):
        raise ConstraintViolation(described(conflict))
    return constraints_text(given)


@lru_cache(maxsize=1000)
def _declared(text: str, name: str) -> tuple[Constraint, ...]:
    return tuple(replace(one, table=name) for one in constraints_of(text, name))


def declared(tables: Iterable[Table]) -> list[Constraint]:
    """What may be missing from some tables, as it was said when they were registered."""
    told = [table for table in tables if table.missing is not None]
    return [one for table in told for one in _declared(table.missing or "", table.name)]


class Incomplete:
    """Answers over tables of which rows may be missing; plain ones where nothing was said."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def exact(self, prepared: Prepared) -> Answer:
        """The exact answer, with the range it can have if rows may be missing."""
        told = declared(self._database._tables(prepared.tables))
        if not told:
            return self.without_range(self._database._exact(prepared), prepared.tables)
        try:
            return self.bounds(prepared, told, closed=True)
        except NotSupported as reason:
            return _without_range(self._database._exact(prepared), str(reason))

    def without_range(self, answer: Answer, tables: Sequence[str]) -> Answer:
        """The answer as it is; of views made from tables that rows may be missing from it is told."""
        catalog = self._database._catalog
        behind = read_through(catalog, tables) - {name.lower() for name in tables}
        if not behind:
            return answer
        there = [name for name in catalog.names() if name.lower() in behind]
        told = [one.name for one in self._database._tables(there) if one.missing is not None]
        if not told:
            return answer
        return _without_range(answer, f"it reads a view that is made from {', '.join(told)}.")

    def bounds(self, prepared: Prepared, given: Sequence[Constraint], closed: bool) -> Answer:
        """The answer over the rows there are, and its range."""
        start = perf_counter()
        database = self._database
        self._require_tables(given)
        tables = database._tables(prepared.tables)
        found = missing_answer(
            prepared.plan,
            {one.name.lower(): Declared(one.columns, one.key) for one in tables},
            given,
            session_zone(database._session),
            arrow_contract(database.spark, prepared.columns),
            lambda text: database._exact(database._prepare(text, {})).to_arrow(),
            lambda: database._exact(prepared).to_arrow(),
            closed,
        )
        versions = {table.name: table.version for table in tables}
        return replace(found, as_of=versions, elapsed=perf_counter() - start)

    def answers(
        self, prepared: Prepared, request: Request, given: Sequence[Constraint] | None
    ) -> Answers:
        """Answers that refine, with both the interval and the hard range of all rows."""
        told = given
        if told is None:
            told = declared(self._database._tables(prepared.tables))
        if given is None and not told:
            for answer in self._database._known_answers(prepared, request):
                yield self.without_range(answer, prepared.tables) if answer.final else answer
            return
        self._require_tables(told)
        try:
            missing = self._missing(prepared, told)
        except NotSupported as reason:
            if given is not None:
                raise
            for answer in self._database._known_answers(prepared, request):
                yield _without_range(answer, str(reason)) if answer.final else answer
            return
        yield from self._on_the_way(missing, prepared, request)

    def _require_tables(self, given: Sequence[Constraint]) -> None:
        """Refuse what is about a table that there is not: it would count for nothing."""
        require_constraints(given)
        self._database._tables(sorted({one.table for one in given if one.table is not None}))

    def _missing(self, prepared: Prepared, told: Sequence[Constraint]) -> Missing:
        asked = asked_of(prepared.plan)
        (table,) = self._database._tables([asked.table])
        return Missing(
            asked,
            told,
            table.columns,
            arrow_contract(self._database.spark, prepared.columns),
            session_zone(self._database._session),
        )

    def _on_the_way(self, missing: Missing, prepared: Prepared, request: Request) -> Answers:
        database = self._database
        known = database._prepare(missing.asked.text, {})
        with Streaming(database.spark) as streaming:
            inner = replace(request, confidence=_of_both(missing, request.confidence))
            progress = database._open_progress(streaming, known, inner)
            if progress is None:
                yield self.bounds(prepared, missing.constraints, closed=True)
                return
            for answer in progress.answers():
                if answer.final:
                    found = missing.over(answer.table)
                    yield replace(found, as_of=answer.as_of, elapsed=answer.elapsed)
                    return
                seen = progress.seen()
                unread = None
                if seen is not None:
                    unread = Unread(seen, progress.unread, progress.facts)
                estimate = replace(answer, confidence=request.confidence)
                yield on_the_way(missing, estimate, unread)


def _of_both(missing: Missing, confidence: float) -> float:
    """An average goes by a count and a sum: both intervals have to hold at once."""
    if any(one.function == "avg" for one in missing.asked.outputs):
        return 1 - (1 - confidence) / 2
    return confidence


def _without_range(answer: Answer, reason: str) -> Answer:
    note = f"rows may be missing, and there is no range for this query: {reason}"
    notes = (*answer.details.get("notes", ()), note)
    method = "exact over the known rows" if answer.final else answer.method
    return replace(answer, method=method, details={**answer.details, "notes": notes})
