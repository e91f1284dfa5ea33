"""Database: the front door. Each public call is one short pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sooner.algebra.relation import Map, Opaque
from sooner.answer import Answer
from sooner.create_view import create_view
from sooner.engine import aggregates, binding, changes
from sooner.engine.exact import arrow_contract, collect, keeps_contract
from sooner.engine.failures import plain_errors
from sooner.engine.frames import to_spark
from sooner.engine.hashed_rows import HashedRows
from sooner.engine.jobs import job_group
from sooner.engine.lowering import lower
from sooner.engine.rows import table_rows
from sooner.engine.scramble import plan_scramble, write_scramble
from sooner.engine.session import open_session, session_zone
from sooner.engine.sources import inspect
from sooner.engine.statistics import count_distinct
from sooner.engine.streaming import Streaming
from sooner.engine.writing import reservation, retried
from sooner.errors import (
    CatalogError,
    InvalidArgument,
    InvalidQuery,
    NotSupported,
    QueryCancelled,
    QueryFailed,
    SchemaChanged,
    SoonerError,
)
from sooner.explain import table_infos
from sooner.frame import Frame
from sooner.incomplete import Incomplete, declaration
from sooner.keeper import Keeper, keeping
from sooner.missing.constraint import Constraint
from sooner.prepare import Prepared, prepare
from sooner.progressive.controller import Progress
from sooner.progressive.gates import CannotGate
from sooner.progressive.parts import CannotStream
from sooner.progressive.reading import Reading
from sooner.progressive.request import Request
from sooner.progressive.shared import Answers
from sooner.progressive.streams import choose_stream
from sooner.sql import quote
from sooner.storage import Catalog, HistoryEntry, Home, Table, VacuumReport, check_unchanged, vacuum
from sooner.storage.synopses import (
    StoredSynopsis,
    drop_synopsis,
    require_free,
    stored_synopses,
    stored_synopsis,
)
from sooner.storage.views import drop_view, find_view, stored_view, stored_views
from sooner.synopses.create import define, save, summarize
from sooner.synopses.definition import knobs_of
from sooner.synopses.files import from_text, read
from sooner.synopses.synopsis import Synopses, Synopsis
from sooner.view import View
from sooner.views.schedule import Schedule

Rows = Any  # a Frame, a Spark or pandas DataFrame, an Arrow table, or a list of dicts or tuples


def connect(
    home: str | os.PathLike[str] = ".sooner",
    *,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    progress: bool | None = None,
    without: Collection[str] = (),
) -> Database:
    """Open a home directory, with a local Spark of its own or a session that is given.

    ``catalog`` is the URL of a PostgreSQL database that a team shares; by default the catalog is a
    file in the home. ``progress`` shows bars on long work (by default where a person is watching);
    ``without`` switches rewrite rules off by name.
    """
    return Database(home, spark=spark, catalog=catalog, progress=progress, without=without)


class Database:
    """Registered tables and the questions one can ask of them."""

    def __init__(
        self,
        home: str | os.PathLike[str] = ".sooner",
        *,
        spark: SparkSession | None = None,
        catalog: str | None = None,
        progress: bool | None = None,
        without: Collection[str] = (),
    ) -> None:
        self._home = Home(home)
        self._catalog = Catalog(catalog, self._home) if catalog else Catalog(self._home)
        self._session: SparkSession | None = spark and open_session(spark, self._log)
        self._progress = progress
        self._without = tuple(without)
        self._incomplete = Incomplete(self)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog. Spark goes on until the program ends."""
        self._catalog.close()

    @property
    def spark(self) -> SparkSession:
        """The Spark session; a local one starts when it is first needed."""
        if self._session is None:
            self._session = open_session(None, self._log)
        return self._session

    def register(
        self,
        name: str,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame,
        *,
        key: str | Sequence[str] = (),
        format: str | None = None,
        schema: str | None = None,
        options: Mapping[str, str] | None = None,
        replace: bool = False,
        missing: Sequence[Constraint] | None = None,
    ) -> Table:
        """Make files or a Spark view known under a name. Nothing is copied; the files stay yours.

        ``key`` is the primary key: columns that no two rows share, needed to delete or update rows.
        ``missing`` says which rows may be missing: answers then always come with their range.
        """
        keys = _names(key)
        if not isinstance(options or {}, Mapping):
            raise InvalidArgument(f"options are pairs, as {{'sep': ';'}}, not {options!r}.")
        with job_group(self.spark, f"Registering {name}", self._progress):
            found = inspect(self.spark, name, source, format, schema, options or {})
        table = self._catalog.create_table(
            name,
            found.columns,
            keys,
            found.source,
            found.files,
            facts=found.facts,
            replace=replace,
            missing=None if missing is None else declaration(name, found.columns, missing),
        )
        return table

    def scramble(
        self,
        name: str,
        by: str | Sequence[str],
        *,
        blocks: int = 128,
        salt: int = 0,
        like: str | None = None,
    ) -> Table:
        """Store the table a second time in blocks by the hash of a key, for fast honest samples.

        Scrambles with the same salt, number of blocks and kind of key fit together: their tables join
        block by block. ``like`` takes salt and blocks from another table and checks that keys fit.
        """
        by = _names(by)
        self._require_no_view(name, "Scramble these.")

        def attempt() -> Table:
            table = self._fresh(name)
            scramble = plan_scramble(table, by, blocks, salt, self._model(like))
            if any(scramble.same_layout(other) for other in table.scrambles):
                raise CatalogError(
                    f"{table.name!r} is scrambled by {', '.join(scramble.by)} into {scramble.blocks} "
                    "blocks already. Use that, or give another salt for an independent one."
                )
            with reservation(self._catalog, table) as reserved:
                written = write_scramble(self.spark, table, scramble, reserved)
                return self._catalog.commit_scramble(table, written, reserved.directories)

        with job_group(self.spark, f"Scrambling {name}", self._progress):
            return retried(attempt)

    def insert(self, name: str, rows: Rows) -> int:
        """Add rows; returns how many. A key that is there already is refused, and nothing changed."""
        return self._change(name, rows, changes.insert, "Inserting into").inserted

    def update(self, name: str, rows: Rows) -> int:
        """Put whole rows in place of those with the same keys; returns how many."""
        return self._change(name, rows, changes.update, "Updating").inserted

    def delete(self, name: str, keys: Rows) -> int:
        """Take away the rows with these keys; returns how many there were."""
        return self._change(name, keys, changes.delete, "Deleting from", key_only=True).deleted

    def drop(self, name: str) -> None:
        """Forget a table. Your own files stay; Sooner's go at the next vacuum."""
        self._require_no_view(name, "Drop it with db.drop_view(), or sooner view drop.")
        self._catalog.drop_table(name)
        binding.unbind(self.spark, name)

    def missing(self, name: str, constraints: Sequence[Constraint] | None) -> Table:
        """Say which rows may be missing from a table, in place of what was said before; ``None``: no more."""
        self._require_no_view(name, "Say it of these.")
        table = self._catalog.table(name)
        text = None if constraints is None else declaration(name, table.columns, constraints)
        return self._catalog.record_missing(table, text)

    def analyze(self, name: str) -> Table:
        """Count the distinct values of each column, for better plans."""
        table = self._fresh(name)
        with job_group(self.spark, f"Analyzing {name}", self._progress):
            counts = count_distinct(self.spark, table, table_rows(self.spark, table))
        return self._catalog.record_distinct(table, counts)

    def synopsis(
        self,
        name: str,
        table: str | None = None,
        measure: str | Sequence[str] = (),
        over: str | Sequence[str] = (),
        *,
        keep: str | Sequence[str] = (),
        build_within: float | None = None,
        query_within: float | None = None,
        size: int | str | None = None,
        replace: bool = False,
        **knobs: Any,
    ) -> Synopsis:
        """Summarize a table for answers in a millisecond; with a name alone, open one that was made.

        ``measure`` are the columns to aggregate, ``over`` those that conditions go by; ``keep`` are in the
        samples only. ``leaves``, ``sample`` (the share of rows that is stored) or ``effective`` (rows read
        for a question), and the other knobs of :class:`sooner.synopses.Knobs` say how fine it is; budgets
        in seconds (``build_within``, ``query_within``) or bytes (``size``) may take their place.
        """
        if table is None:
            return self._open_synopsis(stored_synopsis(self._catalog, name))
        if not replace:
            require_free(self._catalog, name)
        summarized = self._fresh(table)
        definition = define(
            name, summarized, _names(measure), _names(over), _names(keep), knobs_of(knobs)
        )
        with job_group(self.spark, f"Summarizing {table}", self._progress):
            rows_of = partial(HashedRows, self.spark, summarized)
            summary = summarize(rows_of, definition, build_within, query_within, size)
        return self._open_synopsis(save(self._catalog, summarized, summary, replace))

    def view(
        self,
        name: str,
        sql: str | None = None,
        *,
        sample: float | None = 0.1,
        sample_by: str | Sequence[str] = (),
        outliers: Mapping[str, int | str] | None = None,
        refresh: Schedule | None = None,
        clean: Schedule | None = None,
        replace: bool = False,
    ) -> View:
        """Keep the rows of a query under a name; with a name alone, open a view that was made.

        ``sample`` is the share of it that is cleaned when it is asked while stale, ``sample_by`` the columns
        whose values are in a sample together (by default its key, or a part of it). ``outliers`` names
        columns of its tables whose largest values are never left to chance: ``{"price": 100}`` for the 100
        largest, ``{"price": "3 sd"}`` for those 3 standard deviations above the mean. ``refresh`` and
        ``clean`` say when :meth:`work` and :meth:`keeping` do so: ``sooner.every("1h")``,
        ``sooner.after(rows=10_000)``.
        """
        if sql is None:
            return View(self, name)
        chosen = _names(sample_by)
        create_view(self, name, sql, sample, chosen, outliers, refresh, clean, replace)
        return View(self, name)

    def views(self) -> list[View]:
        """All views."""
        return [View(self, one.table.name) for one in stored_views(self._catalog)]

    def work(self) -> list[tuple[str, str]]:
        """Refresh and clean every view that is due by its schedule; what was done, for which view."""
        keeper = Keeper(self)
        keeper.work("refresh")
        keeper.work("clean")
        if keeper.failed:
            raise keeper.failed[0][2]
        return list(keeper.done)

    def keeping(self) -> AbstractContextManager[Keeper]:
        """Do so in the background, refreshing and cleaning side by side: ``with db.keeping(): …``."""
        return keeping(self)

    def drop_view(self, name: str) -> None:
        """Forget a view; its rows go at the next vacuum, its tables stay."""
        drop_view(self._catalog, stored_view(self._catalog, name))
        binding.unbind(self.spark, name)

    def synopses(self, table: str | None = None) -> Synopses:
        """All synopses, or those of a table: asked together, the closest answer counts."""
        found = stored_synopses(self._catalog, table)
        return Synopses([self._open_synopsis(one) for one in found])

    def drop_synopsis(self, name: str) -> None:
        """Forget a synopsis; its files go at the next vacuum."""
        drop_synopsis(self._catalog, name)

    def _open_synopsis(self, stored: StoredSynopsis) -> Synopsis:
        definition = from_text(stored.definition)
        return Synopsis(
            partial(read, definition, stored.directory), definition, session_zone(self._session)
        )

    def tables(self) -> tuple[Table, ...]:
        """All registered tables."""
        return self._catalog.tables()

    def history(self, name: str) -> list[HistoryEntry]:
        """Every version of a table and what made it."""
        return self._catalog.history(name)

    def vacuum(
        self, older_than: timedelta = timedelta(hours=1), dry_run: bool = False
    ) -> VacuumReport:
        """Remove files of Sooner's own that nothing refers to any more."""
        if not isinstance(older_than, timedelta) or older_than < timedelta(0):
            raise InvalidArgument(f"older_than must be a timedelta from 0, not {older_than!r}.")
        return vacuum(self._home, self._catalog, older_than, dry_run)

    def table(self, name: str) -> Frame:
        """A registered table as a Frame."""
        return Frame(self, f"SELECT * FROM {quote(self._catalog.table(name).name)}")

    def sql(self, text: str) -> Frame:
        """A query as a Frame: checked at once, run when asked."""
        if not isinstance(text, str):
            raise InvalidArgument("db.sql() takes the query as text.")
        return Frame(self, text)

    def aggregate(self, name: str, function: Callable[[Any], Any], type: str = "double") -> None:
        """Make a function of yours an aggregate in SQL: it takes a group's values and gives one.

        The values come as a pandas Series without nulls; ``type`` is what the function gives, as Spark
        calls it. The name belongs to the Spark session, for all who use it; a second function of the same
        name takes the place of the first.
        """
        aggregates.register(self.spark, name, function, type)

    @property
    def _log(self) -> Any:
        return self._home.path / "spark.log"

    def _fresh(self, name: str) -> Table:
        """A table as it is now, its own files unchanged since they were registered."""
        table = self._catalog.table(name)
        check_unchanged(table.files)
        return table

    def _versions(self, names: Sequence[str]) -> dict[str, int]:
        return {table.name: table.version for table in self._tables(names)}

    def _tables(self, names: Sequence[str]) -> list[Table]:
        return [self._catalog.table(name) for name in names]

    def _bind(self, name: str) -> Table:
        table = self._fresh(name)
        binding.bind(self.spark, self._catalog, table)
        return table

    def _require_no_view(self, name: str, instead: str) -> None:
        if find_view(self._catalog, name) is not None:
            raise NotSupported(f"{name!r} is a view, made from other tables. {instead}")

    def _model(self, like: str | None) -> Any:
        if like is None:
            return None
        other = self._catalog.table(like)
        if not other.scrambles:
            raise InvalidArgument(f"like={like!r}: that table is not scrambled yet.")
        return other, other.scrambles[-1]

    def _change(
        self, name: str, rows: Rows, change: Any, doing: str, key_only: bool = False
    ) -> changes.Changed:
        self._require_no_view(name, "Change these, and refresh it.")

        def attempt() -> changes.Changed:
            table = self._fresh(name)
            if change is not changes.insert:
                changes.require_key(table, doing.lower())
            needed = table.key if key_only else [column.name for column in table.columns]
            given = rows.prepared if isinstance(rows, Frame) else rows
            frame = self._spark_rows(given, needed)
            if needed:
                changes.require_columns(table, frame.columns, needed)
            result: changes.Changed = change(self.spark, self._catalog, table, frame)
            return result

        with job_group(self.spark, f"{doing} {name}", self._progress):
            return retried(attempt)

    def _spark_rows(self, rows: Any, columns: Sequence[str]) -> DataFrame:
        if isinstance(rows, Prepared):
            frame, _ = self._lowered(rows)
            return frame.toDF(*(column.name for column in rows.columns))
        return to_spark(self.spark, rows, columns)

    def _prepare(self, text: str, maps: Mapping[str, Map]) -> Prepared:
        mine = aggregates.functions(self.spark)
        names = self._catalog.names
        return prepare(self.spark, names, self._bind, text, maps, self._without, mine)

    def _lowered(
        self, prepared: Prepared, tables: Sequence[Table] | None = None
    ) -> tuple[DataFrame, dict[str, int]]:
        """The query over its tables as given, else as they are now, and which versions those are."""
        with binding.lock:
            if tables is None:
                tables = [self._bind(name) for name in prepared.tables]
            else:
                for table in tables:
                    binding.bind(self.spark, self._catalog, table)
            versions = {table.name: table.version for table in tables}
            with plain_errors(prepared.text):
                frame = lower(self.spark, prepared.plan)
            if not keeps_contract(frame, prepared.columns):
                # The plan would give other types than Spark's: Spark's own reading of the text is right.
                as_written = prepared.as_written("types that Sooner's plan would change")
                with plain_errors(prepared.text):
                    frame = lower(self.spark, as_written.plan)
                if not keeps_contract(frame, prepared.columns):
                    raise SchemaChanged(
                        "A table has other columns than when this Frame was made. Make it again."
                    )
        return frame, versions

    def _exact(
        self,
        prepared: Prepared,
        tables: Sequence[Table] | None = None,
        group: str | None = None,
    ) -> Answer:
        start = perf_counter()
        try:
            frame, versions = self._lowered(prepared, tables)
            table = collect(self.spark, frame, prepared.columns, "Answering", self._progress, group)
        except (QueryFailed, InvalidQuery) as error:
            if not _may_do_as_written(prepared, error):
                raise
            # A plan may meet a row that the text as written does not, such as a 0 to divide by.
            return self._exact(prepared.as_written("an error in Sooner's plan"), tables, group)
        method = "exact, by Spark as written" if isinstance(prepared.plan, Opaque) else "exact"
        return Answer(table, method, as_of=versions, elapsed=perf_counter() - start)

    def _answers(
        self,
        prepared: Prepared,
        request: Request,
        missing: Sequence[Constraint] | None = None,
    ) -> Answers:
        """Answers that refine, with the range of all rows where some may be missing."""
        return self._incomplete.answers(prepared, request, missing)

    def _known_answers(self, prepared: Prepared, request: Request) -> Answers:
        """Answers that refine, or the exact one at once where there is nothing to stream."""
        with Streaming(self.spark) as streaming:
            progress = self._open_progress(streaming, prepared, request)
            if progress is None:
                yield self._exact(prepared)
            else:
                try:
                    yield from progress.answers()
                except QueryFailed as error:
                    if not _may_do_as_written(prepared, error):
                        raise
                    try:
                        answer = self._exact(prepared)
                    except QueryFailed:
                        raise error from None  # it says where on the way
                    yield answer

    def _open_progress(
        self, streaming: Streaming, prepared: Prepared, request: Request
    ) -> Progress | None:
        with binding.lock:
            tables = {name: self._bind(name) for name in prepared.tables}
            infos = table_infos(tables.values())
            versions = {name: table.version for name, table in tables.items()}
            schema = arrow_contract(self.spark, prepared.columns)
            as_written = partial(self._exact, prepared, list(tables.values()), streaming.group)
            functions = aggregates.functions(self.spark)
            for gated in (True, False):
                try:
                    stream = choose_stream(
                        prepared.plan, tables, infos, request.stream, request.seed, gated
                    )
                    if not (request.batches or stream.is_worth_it):
                        return None
                    reading = Reading(streaming, stream, request, functions)
                    reading.open()
                    return Progress(reading, stream, schema, request, versions, as_written)
                except CannotGate:
                    continue
                except CannotStream:
                    return None
        return None


def _may_do_as_written(prepared: Prepared, error: SoonerError) -> bool:
    """Whether Spark may be asked as the text stands, after an error; not if a user's function failed."""
    stopped = isinstance(error, QueryCancelled)
    return not (stopped or prepared.maps or isinstance(prepared.plan, Opaque))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"Give the name of a column, or a list of names, not {given!r}.")
    return tuple(names)
