"""View: a query whose rows are kept, brought up to date exactly, and asked freshly while they are stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
from rich.console import Console

from sooner.algebra.schema import Schema
from sooner.analysis.facts import TableInfo
from sooner.answer import Answer
from sooner.display import rows_text
from sooner.engine.exact import arrow_contract, collect
from sooner.engine.jobs import job_group
from sooner.engine.rows import table_rows
from sooner.engine.sources import to_schema
from sooner.engine.view_rows import plan_types, stepped
from sooner.engine.writing import reservation, retried
from sooner.errors import (
    CannotAnswer,
    InvalidArgument,
    InvalidQuery,
    NotSupported,
    QueryCancelled,
    QueryFailed,
    SchemaChanged,
    UnknownColumn,
    UnknownTable,
)
from sooner.storage import Table
from sooner.storage.views import (
    Cleaned,
    Refreshed,
    StoredView,
    find_view,
    redefine,
    refreshes,
    stored_view,
)
from sooner.views.cleaned_sample import CleanedSample
from sooner.views.cleaning import clean, try_cleaning
from sooner.views.definition import Definition, as_text, from_text, share_within
from sooner.views.described import described
from sooner.views.estimates import Estimator, require_estimator
from sooner.views.form import Form, form_of
from sooner.views.fresh import Fresh
from sooner.views.fresh_rows import fresh_rows
from sooner.views.outliers import outliers_now
from sooner.views.question import Question, question_of
from sooner.views.refreshing import GONE, commit, refresh, write
from sooner.views.unit import Portion, Unit
from sooner.views.upkeep import Choice, How, Upkeep

if TYPE_CHECKING:
    from sooner.database import Database
    from sooner.prepare import Prepared

# A sample that is expected to have fewer rows is not asked.
_LEAST_DRAWS = 50
# Shares that are tried to see what cleaning costs.
_TRIED = (0.01, 0.05)
# How much of a view has been brought up to date at each answer on the way; small parts first.
_PARTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


class View:
    """A view: rows that are kept, exact as of the versions of its tables that they reflect.

    Its name is a table's in every query. :meth:`answer` tells what it would say if it were up to date;
    :meth:`refresh` brings it up to date.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = stored_view(database._catalog, name).table.name

    @property
    def text(self) -> str:
        """Its query."""
        return self._definition.text

    @property
    def columns(self) -> Schema:
        """Its columns as queries see them."""
        return self._stored.table.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell its rows apart, as far as queries see them."""
        seen = {column.name for column in self.columns}
        return tuple(name for name in self._stored.table.key if name in seen)

    @property
    def rows(self) -> int | None:
        """How many rows it has; ``None`` if nobody has counted."""
        return self._stored.table.facts.rows

    @property
    def sample(self) -> float | None:
        """The share of it that is cleaned; ``None`` if it is not sampled."""
        return self._definition.sample

    @property
    def is_stale(self) -> bool:
        """Whether a table that it is made from has changed since."""
        return self._upkeep().is_stale

    def history(self) -> list[Refreshed]:
        """Every refresh: its kind, why that, how long it took and how many rows came and went."""
        return refreshes(self._database._catalog, self._stored)

    def refresh(self, how: How = "auto") -> Refreshed | None:
        """Bring it up to date, exactly, and say how; ``None`` if it was.

        What changed is brought in, or all of it made again where that is less work; ``how`` may be
        "incremental" or "recompute". Views that it is made from are brought up to date first.
        """
        if how not in get_args(How):
            raise InvalidArgument(f"how must be auto, incremental or recompute, not {how!r}.")

        def attempt() -> Refreshed | None:
            # Anew each time: another process may have been faster.
            upkeep = self._upkeep().as_stored
            return refresh(upkeep, how) if upkeep.is_stale else None

        for below in self._upkeep().below:
            View(self._database, below).refresh()
        with job_group(self._database.spark, f"Refreshing {self.name}", self._database._progress):
            done = retried(attempt)
        if self._database._progress is not False:
            Console().print(_told(self.name, done), highlight=False, soft_wrap=True)
        return done

    def answer(
        self,
        sql: str,
        *,
        estimator: Estimator | Literal["exact"] = "auto",
        confidence: float = 0.95,
    ) -> Answer:
        """What a query of it would say if it were up to date, with an interval; it stays as it is.

        A sample of it is cleaned if none is that is fresh. ``estimator`` is "corr" (the stale view, corrected
        by the sample), "aqp" (the sample alone), "auto" (whichever varies less) or "exact". What a sample
        cannot tell, with "auto" also groups of a few rows, is answered exactly, of the rows that the view
        would have.
        """
        start = perf_counter()
        if estimator != "exact":
            require_estimator(estimator)
        _require_confidence(confidence)
        # From the beginning where somebody refreshed it meanwhile.
        found = retried(lambda: self._answered(sql, estimator, confidence))
        found = self._database._incomplete.without_range(found, [self.name])
        return replace(found, elapsed=perf_counter() - start)

    def _answered(
        self, sql: str, estimator: Estimator | Literal["exact"], confidence: float
    ) -> Answer:
        prepared = self._asked(sql)
        upkeep = self._upkeep()
        if not upkeep.is_stale:
            return self._database._exact(prepared)
        try:
            if estimator == "exact":
                raise CannotAnswer("")
            if estimator == "auto" and _is_tiny(upkeep):
                raise CannotAnswer("a sample of so few rows says nothing")
            question = self._question(upkeep, prepared)
        except NotSupported as reason:
            return self._exact(upkeep, prepared, str(reason))
        if self.sample == 1.0:
            self.clean()  # it is kept for questions to come, as any sample
            return self._exact(self._upkeep(), prepared, "its sample is all of it")
        try:
            return self._estimated(upkeep, prepared, question, estimator, confidence)
        except QueryFailed as error:
            if isinstance(error, QueryCancelled):
                raise
            return self._exact(upkeep, prepared, GONE)

    def _asked(self, sql: str) -> Prepared:
        if not isinstance(sql, str):
            raise InvalidArgument(f"Ask a view in SQL, as text, not {sql!r}.")
        prepared = self._database._prepare(sql, {})
        if self.name.lower() not in prepared.tables:
            raise InvalidArgument(f"The query does not read the view: write FROM {self.name}.")
        return prepared

    def _estimated(
        self,
        upkeep: Upkeep,
        prepared: Prepared,
        question: Question,
        estimator: Estimator,
        confidence: float,
    ) -> Answer:
        spark = self._database.spark
        cleaned = upkeep.cleaned
        with job_group(spark, f"Answering from {self.name}", self._database._progress):
            if cleaned is None:
                cleaned = clean(upkeep)
            sample = CleanedSample(spark, upkeep, cleaned.directory, cleaned.ratio, cleaned.certain)
            schema = arrow_contract(spark, prepared.columns)
            if not question.measures:
                return fresh_rows(question, sample, schema, confidence)
            try:
                return Fresh(sample, confidence, estimator).answer(
                    question, schema, tells=estimator == "auto"
                )
            except CannotAnswer as reason:
                why = str(reason)
        return self._exact(upkeep, prepared, why)

    def _exact(self, upkeep: Upkeep, prepared: Prepared, why: str) -> Answer:
        """The answer over the rows that the view would have."""
        try:
            return self._answered_of_all(upkeep, prepared, why)
        except QueryFailed as error:
            if not upkeep.can_merge or isinstance(error, QueryCancelled):
                raise
            return self._answered_of_all(upkeep, prepared, why or GONE, anew=True)

    def _answered_of_all(
        self, upkeep: Upkeep, prepared: Prepared, why: str, *, anew: bool = False
    ) -> Answer:
        spark = self._database.spark
        with upkeep.fresh(anew=anew) as rows:
            self._require_types(to_schema(rows.schema))
            others = {
                n: self._database._fresh(n) for n in prepared.tables if n != self.name.lower()
            }
            frames = {name: table_rows(spark, table) for name, table in others.items()}
            frames[self.name.lower()] = rows
            with stepped(spark, [("", prepared.plan)], frames, stand_ins=frames) as frame:
                bar = self._database._progress
                table = collect(spark, frame, prepared.columns, "Answering", bar)
        read = {**others, **upkeep.reflects}
        as_of = {name: one.version for name, one in read.items()}
        schema = arrow_contract(spark, prepared.columns)
        arrays = [a.cast(f.type) for a, f in zip(table.columns, schema, strict=True)]
        return Answer(
            pa.Table.from_arrays(arrays, schema=schema),
            "exact, of the view as it would be",
            as_of=as_of,
            details={
                "notes": [*([f"answered exactly: {why}"] if why else []), *self._others(prepared)]
            },
        )

    def _require_types(self, now: Schema) -> None:
        """Refuse fresh rows of other types than the stored ones, which the question was understood by."""
        for old, new in zip(self.columns, now, strict=True):
            if old.type != new.type:
                raise SchemaChanged(
                    f"The column {old.name!r} of the view {self.name!r} would be of type {new.type} now, not "
                    f"{old.type}, as its tables have changed. Bring it up to date with refresh(), then ask."
                )

    def _others(self, prepared: Prepared) -> list[str]:
        """Of other views that a question reads, in words, which are stale and read as they are."""
        catalog = self._database._catalog
        views = [find_view(catalog, name) for name in prepared.tables if name != self.name.lower()]
        stale = [view for view in views if view and upkeep_of(self._database, view).is_stale]
        return [f"{one.table.name} is stale itself, and was read as it is stored" for one in stale]

    def clean(self) -> Cleaned | None:
        """Clean a sample of it now, for questions to come; ``None`` if it is up to date."""

        def attempt() -> Cleaned | None:
            upkeep = self._upkeep()
            self._require_sampled(upkeep)
            if not upkeep.is_stale:
                return None
            if not upkeep.can_merge:
                raise NotSupported(
                    f"No sample of {self.name!r} can be cleaned: it has to be {upkeep.choice.why}."
                )
            return upkeep.cleaned or clean(upkeep)

        with job_group(self._database.spark, f"Cleaning {self.name}", self._database._progress):
            return retried(attempt)

    def refresh_progress(
        self, sql: str, *, confidence: float = 0.95, estimator: Estimator = "auto"
    ) -> Iterator[Answer]:
        """Answers that get closer while it is brought up to date; with the last one it is.

        Growing parts of it, by the hash of its key, are brought up to date, and each answer rests on all of
        them so far. Leave the loop to stop: it then stays as it was.
        """
        require_estimator(estimator)
        _require_confidence(confidence)
        prepared = self._asked(sql)
        for below in self._upkeep().below:
            View(self._database, below).refresh()
        upkeep = self._upkeep().as_stored
        if upkeep.is_stale:
            yield from self._in_parts(upkeep, prepared, confidence, estimator)
        yield self._database._incomplete.exact(self._database._prepare(sql, {}))

    def _in_parts(
        self, upkeep: Upkeep, prepared: Prepared, confidence: float, estimator: Estimator
    ) -> Iterator[Answer]:
        spark, start = self._database.spark, perf_counter()
        try:
            question = self._question(upkeep, prepared)
        except NotSupported:
            refresh(upkeep)
            return
        schema = arrow_contract(spark, prepared.columns)
        with reservation(self._database._catalog, upkeep.table) as reserved:
            directory = reserved.directory("refresh")
            with job_group(spark, f"Refreshing {self.name}", self._database._progress):
                certain = outliers_now(upkeep)
                if certain:
                    write(upkeep, directory, Portion(only=certain))
            for low, high in pairwise((0.0, *_PARTS)):
                with job_group(spark, f"Refreshing {self.name}", self._database._progress):
                    write(upkeep, directory, Portion(low, high, without=certain))
                    if high == 1.0:
                        break
                    sample = CleanedSample(spark, upkeep, directory, high, certain)
                    try:
                        found = (
                            Fresh(sample, confidence, estimator).answer(question, schema)
                            if question.measures
                            else fresh_rows(question, sample, schema, confidence)
                        )
                    except CannotAnswer:  # the last answer is exact in any case
                        continue
                yield replace(found, elapsed=perf_counter() - start)
            done = Choice(True, "changes brought in, in parts")
            commit(upkeep, directory, done, start, reserved)

    def is_due(self, kind: Literal["refresh", "clean"], refreshed: datetime, now: datetime) -> bool:
        """Whether a refresh or a cleaning is due by its schedule, if it was last refreshed then."""
        if getattr(self._definition, kind) is None:
            return False
        return self._upkeep().due(kind, refreshed, now)

    def sample_within(self, seconds: float) -> float:
        """Choose the share of it that is cleaned so that cleaning takes about so long; returns the share.

        Two small samples are cleaned to see what a share costs. It needs changes to be measured by.
        """
        upkeep = self._upkeep()
        self._require_sampled(upkeep)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise InvalidArgument(f"sample_within({seconds}): give a time above 0.")
        if not upkeep.is_stale:
            raise NotSupported(
                f"The view {self.name!r} is up to date: how long cleaning takes shows when rows have changed."
            )
        with job_group(self._database.spark, f"Trying {self.name}", self._database._progress):
            try_cleaning(upkeep, _TRIED[0])  # the first one also starts Spark's engine
            times = [try_cleaning(upkeep, share) for share in _TRIED]
        share = share_within(seconds, _TRIED, times)
        definition = replace(upkeep.definition, sample=share)
        redefine(self._database._catalog, upkeep.stored, as_text(definition))
        return share

    def explain(self) -> str:
        """How it will be brought up to date, how far sampling goes down, which estimator is likely."""
        return described(self._upkeep())

    def drop(self) -> None:
        """Forget it. Its rows go at the next vacuum; its tables stay."""
        self._database.drop_view(self.name)

    def __repr__(self) -> str:
        return f"View({self.name!r})"

    @property
    def _stored(self) -> StoredView:
        return stored_view(self._database._catalog, self.name)

    @property
    def _definition(self) -> Definition:
        return from_text(self._stored.definition)

    def _question(self, upkeep: Upkeep, prepared: Prepared) -> Question:
        """What a query asks of a sample. Raises ``NotSupported`` if none can tell."""
        unit = self._require_sampled(upkeep)
        if not upkeep.can_merge:
            raise CannotAnswer(upkeep.choice.why)
        names = [one.name for one in prepared.columns]
        if len(set(names)) < len(names):
            raise CannotAnswer("columns of one name, of which intervals could not be told apart")
        question = question_of(prepared.plan, self.name)
        question.require_shared(unit.columns)
        if question.measures:
            question.require_numbers(plan_types(self._database.spark, question.plan))
        return question

    def _require_sampled(self, upkeep: Upkeep) -> Unit:
        if upkeep.unit is None:
            raise NotSupported(
                f"The view {self.name!r} is not sampled: {upkeep.definition.why_not}. "
                "Use refresh() to bring it up to date."
            )
        return upkeep.unit

    def _upkeep(self) -> Upkeep:
        return upkeep_of(self._database, self._stored)


def upkeep_of(database: Database, stored: StoredView) -> Upkeep:
    """A view with its tables as they are now."""
    definition = from_text(stored.definition)
    try:
        prepared = database._prepare(definition.text, {})
        # Of a text that only Spark can read it is a guess which tables it names: none is newer than the view.
        names = [name for name in prepared.tables if name in stored.reflects]
        now = [database._fresh(name) for name in names]
    except (UnknownTable, InvalidQuery, UnknownColumn, SchemaChanged) as error:
        raise SchemaChanged(
            f"The view {stored.table.name!r} can no longer be made from its tables: {error} Its rows stay "
            "readable as they are. Bring the table back as it was, or drop the view."
        ) from error
    below = {}
    for place, table in enumerate(now):
        view = find_view(database._catalog, table.name)
        if view is not None:
            below[table.name.lower()] = upkeep_of(database, view)
            now[place] = view.table  # as one look saw both: it may be refreshed at any moment
    form = view_form(database, prepared, now)
    return Upkeep(database.spark, database._catalog, stored, definition, form, now, below)


def view_form(database: Database, prepared: Prepared, now: Sequence[Table]) -> Form:
    """A view's query, of tables as they are, in the form that its rows are kept in."""
    # Facts are of one version, and a view outlives it. That keys hold no null is looked at each time: a
    # view whose key rests on it is made again when it no longer holds.
    keys = {
        table.name.lower(): TableInfo(
            table.key,
            never_null=frozenset(n for n in table.key if table.facts.column(n).nulls == 0),
        )
        for table in now
    }
    types_of = partial(plan_types, database.spark)
    return form_of(prepared.written, prepared.columns, keys, types_of, database._without)


def _is_tiny(upkeep: Upkeep) -> bool:
    rows = upkeep.table.facts.rows
    return rows is not None and rows * (upkeep.definition.sample or 1.0) < _LEAST_DRAWS


def _require_confidence(confidence: float) -> None:
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidArgument(f"confidence must be between 0 and 1, not {confidence!r}.")


def _told(name: str, done: Refreshed | None) -> str:
    if done is None:
        return f"{name} is up to date."
    return (
        f"{name}: {rows_text(done.inserted or 0)} came and {done.deleted or 0:,} went in "
        f"{done.seconds:.2f} s ({done.why})."
    )
