"""The catalog: which tables there are, their versions, and the files that make them up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, delete, insert, select, update

from sooner.algebra.schema import Schema
from sooner.analysis.facts import TableFacts
from sooner.errors import (
    CatalogError,
    InvalidArgument,
    TableExists,
    WriteConflict,
)
from sooner.storage import definitions as d
from sooner.storage import protection
from sooner.storage.checks import (
    check_changes,
    check_columns,
    check_name,
    check_reserved,
    check_scramble,
    spelled_as,
)
from sooner.storage.connection import Database, catalog_url
from sooner.storage.encoding import encode_facts
from sooner.storage.home import Home
from sooner.storage.lookup import facts_at, find, get, same_table, unmoved
from sooner.storage.records import (
    Change,
    ChangeKind,
    DataFile,
    HistoryEntry,
    Scramble,
    Source,
    Table,
    What,
    total_rows,
)
from sooner.storage.rows import (
    Stamp,
    delete_table,
    insert_change,
    insert_files,
    insert_row,
    insert_scramble,
    insert_version,
    load_table,
    table_stamp,
)
from sooner.storage.widen import after_change

# What else belongs to a commit, given the table as it then is.
Also: TypeAlias = Callable[[Connection, Table], None]


class Catalog:
    """The record of all tables, in a SQLite file or a PostgreSQL database.

    ``where`` is a home, the path of a SQLite file (its directory is then the home) or a PostgreSQL
    URL, which needs ``home`` beside it. Every method is one transaction: all of it or nothing.
    Safe to use from several threads and processes.

    >>> from sooner.algebra.schema import Column
    >>> catalog = Catalog("/tmp/sooner-example-home/catalog.sqlite")
    >>> columns = (Column("id", "bigint"),)
    >>> table = catalog.create_table("t", columns, (), Source("view", ("t",)), replace=True)
    >>> table.version
    1
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | Home,
        home: str | os.PathLike[str] | Home | None = None,
    ) -> None:
        if isinstance(where, Home):
            where, home = where.catalog_path, where
        if not isinstance(where, str | os.PathLike):
            raise InvalidArgument(f"A catalog is a path or a URL, as text, not {where!r}.")
        url = catalog_url(os.fspath(where))
        if home is None:
            if url.get_backend_name() != "sqlite":
                raise InvalidArgument(
                    "A PostgreSQL catalog needs a home directory for the data files: give home."
                )
            home = Path(str(url.database)).parent
        self.home = home if isinstance(home, Home) else Home(home)
        self.database = Database(url)
        self.home.claim(self.database.id)
        self._read: dict[str, tuple[Stamp, Table]] = {}

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def create_table(
        self,
        name: str,
        columns: Schema,
        key: Sequence[str],
        source: Source,
        files: Sequence[DataFile] = (),
        *,
        facts: TableFacts | None = None,
        replace: bool = False,
        reserved: Sequence[str] = (),
        missing: str | None = None,
        hidden: Schema = (),
        also: Also | None = None,
    ) -> Table:
        """Register a table; it starts at version 1, and under a new id even when it replaces one.

        ``reserved`` are the directories that were reserved to write ``files``, if Sooner did,
        ``missing`` are constraints as a file has them, ``hidden`` columns that no query sees, and ``also``
        is done in the same transaction.
        """
        check_name(name)
        check_columns(columns + hidden)
        key = spelled_as(columns + hidden, key, "key")
        check_reserved(self.home, (), files, reserved)
        facts = facts or TableFacts()
        if files:
            facts = TableFacts(
                total_rows(files) if facts.rows is None else facts.rows,
                sum(file.bytes for file in files) if facts.bytes is None else facts.bytes,
                facts.columns,
            )
        with self.database.writing() as connection:
            old = find(connection, name)
            if old is not None:
                if not replace:
                    raise TableExists(
                        f"There is a table {old.name!r} already. "
                        "Use replace=True to replace it, or another name."
                    )
                _step_aside(connection, old.id)
            protection.finish_writing(connection, self._units(reserved))
            table_id = insert_row(
                connection,
                d.tables,
                {
                    "name": name,
                    "folded": name.lower(),
                    "columns": json.dumps(
                        [
                            *([column.name, column.type] for column in columns),
                            *([column.name, column.type, "hidden"] for column in hidden),
                        ]
                    ),
                    "key": json.dumps(key),
                    "source_format": source.format,
                    "source_location": json.dumps(source.location),
                    "source_options": json.dumps(dict(source.options)),
                    "version": 1,
                },
            )
            added: dict[ChangeKind, int | None] = {"insert": facts.rows}
            insert_version(connection, table_id, facts, version=1, what="register", rows=added)
            insert_files(connection, self.home, files, table_id)
            _say_missing(connection, table_id, missing)
            table = self._load(connection, table_id, 1)
            if also is not None:
                also(connection, table)
            if old is not None:
                delete_table(connection, old)
            return table

    def table(self, name: str, version: int | None = None) -> Table:
        """The table at its current version, or at an earlier one."""
        with self.database.reading() as connection:
            row = get(connection, name)
            if version is not None and not 1 <= version <= row.version:
                raise InvalidArgument(
                    f"Table {row.name!r} has versions 1 to {row.version}, not {version}."
                )
            if version is not None and version != row.version:
                return load_table(connection, self.home, row, version)
            return self.loaded(connection, row)

    def loaded(self, connection: Connection, row: Row[Any]) -> Table:
        """The table of a row of ``tables`` at its current version, inside the caller's transaction."""
        # A query asks for its tables several times, and a scrambled one has thousands of files.
        stamp = table_stamp(connection, row)
        known = self._read.get(row.folded)
        if known is not None and known[0] == stamp:
            return known[1]
        table = load_table(connection, self.home, row, row.version)
        self._read[row.folded] = (stamp, table)
        return table

    def names(self) -> tuple[str, ...]:
        """The names of all tables."""
        with self.database.reading() as connection:
            return tuple(connection.execute(select(d.tables.c.name)).scalars())

    def tables(self) -> tuple[Table, ...]:
        """All tables at their current versions, by name, as of one moment."""
        with self.database.reading() as connection:
            rows = connection.execute(select(d.tables).order_by(d.tables.c.folded)).all()
            return tuple(load_table(connection, self.home, row, row.version) for row in rows)

    def version(self, name: str) -> tuple[int, int]:
        """The id and current version: cheap, to see whether a table that was read is current."""
        with self.database.reading() as connection:
            row = get(connection, name)
            return row.id, row.version

    def history(self, name: str) -> list[HistoryEntry]:
        """Every version of a table, oldest first."""
        with self.database.reading() as connection:
            row = get(connection, name)
            query = select(d.versions).where(d.versions.c.table_id == row.id)
            return [
                HistoryEntry(
                    found.version, found.committed_at, found.what, found.inserted, found.deleted
                )
                for found in connection.execute(query.order_by(d.versions.c.version))
            ]

    def drop_table(self, name: str) -> None:
        """Forget a table. Its files stay until a vacuum; the user's own files stay for good."""
        with self.database.writing() as connection:
            delete_table(connection, get(connection, name))

    def reserve(self, directory: str) -> None:
        """Say, before writing the first file, that a directory of :class:`Home` is in use."""
        with self.database.writing() as connection:
            protection.begin_writing(connection, self._unit(directory))

    def renew(self, directory: str) -> None:
        """Say that a long write is still going on, so that vacuum does not take it for dead."""
        with self.database.writing() as connection:
            protection.keep_writing(connection, self._unit(directory))

    def release(self, directory: str) -> bool:
        """Give up a reservation after a failed write; vacuum may then remove the directory.

        False if there was none any more: the write was committed, or vacuum took the directory.
        """
        with self.database.writing() as connection:
            return protection.stop_writing(connection, self._unit(directory))

    def commit_change(
        self,
        table: Table,
        changes: Sequence[Change],
        facts: TableFacts | None = None,
        reserved: Sequence[str] = (),
        also: Also | None = None,
    ) -> Table:
        """Make changes the next version of the table they were written for.

        ``facts`` are those of the inserted rows alone; ``also`` is done in the same transaction. Raises
        WriteConflict if the table has moved on since it was read: the reservations then still stand, to
        be released.
        """
        check_changes(table, changes)
        for change in changes:
            within = (change.directory,) if change.files else ()
            check_reserved(self.home, within, change.files, reserved)
        version = table.version + 1
        plain = [change for change in changes if change.scramble_id is None]
        rows = {change.kind: change.rows for change in plain}
        what: What = "update" if len(rows) > 1 else plain[0].kind
        with self.database.writing() as connection:
            row = unmoved(connection, table)
            query = select(d.scrambles.c.id).where(d.scrambles.c.table_id == table.id)
            present = set(connection.execute(query).scalars())
            if present != {scramble.id for scramble in table.scrambles}:
                raise WriteConflict(
                    f"A scramble of {table.name!r} was added or dropped while this change was "
                    "being written. Nothing was committed; try again."
                )
            protection.finish_writing(connection, self._units(reserved))
            # Not the facts of `table`: distinct counts may have been recorded since it was read.
            known = after_change(facts_at(connection, table), plain, facts)
            insert_version(connection, table.id, known, version=version, what=what, rows=rows)
            for change in changes:
                insert_change(connection, self.home, table.id, change)
            connection.execute(
                update(d.tables).where(d.tables.c.id == row.id).values(version=version)
            )
            new = self._load(connection, table.id, version)
            if also is not None:
                also(connection, new)
            return new

    def commit_scramble(
        self, table: Table, scramble: Scramble, reserved: Sequence[str] = ()
    ) -> Table:
        """Add a second layout of the table's content; the version stays, as the content does."""
        scramble = replace(scramble, by=spelled_as(table.columns, scramble.by, "scramble"))
        check_scramble(table, scramble)
        check_reserved(self.home, (scramble.directory,), scramble.files, reserved)
        with self.database.writing() as connection:
            row = unmoved(connection, table)
            current = load_table(connection, self.home, row, row.version)
            if any(scramble.same_layout(other) for other in current.scrambles):
                known = any(scramble.same_layout(other) for other in table.scrambles)
                raise (CatalogError if known else WriteConflict)(
                    f"Table {table.name!r} has a scramble by {', '.join(scramble.by)} into "
                    f"{scramble.blocks} blocks already. Use it, or drop it first."
                )
            protection.finish_writing(connection, self._units(reserved))
            insert_scramble(connection, self.home, table.id, scramble)
            return self._load(connection, table.id, table.version)

    def drop_scramble(self, table: Table, scramble_id: int) -> Table:
        """Forget a scramble; the table's content stays. Returns the table as it now is."""
        with self.database.writing() as connection:
            row = same_table(connection, table)
            units = protection.referenced(connection, table.id, scramble_id)
            found = connection.execute(
                delete(d.scrambles).where(
                    d.scrambles.c.id == scramble_id, d.scrambles.c.table_id == table.id
                )
            )
            if not found.rowcount:
                raise CatalogError(f"Table {table.name!r} has no scramble {scramble_id}.")
            protection.retire(connection, units)
            return load_table(connection, self.home, row, row.version)

    def record_distinct(self, table: Table, counts: Mapping[str, int]) -> Table:
        """Note how many distinct values columns have at the table's version."""
        spelled = spelled_as(table.columns, list(counts), "distinct count")
        if any(count < 0 for count in counts.values()):
            raise InvalidArgument("A distinct count cannot be negative.")
        with self.database.writing() as connection:
            same_table(connection, table)
            facts = facts_at(connection, table)
            columns = dict(facts.columns)
            for name, count in zip(spelled, counts.values(), strict=True):
                columns[name] = replace(facts.column(name), distinct=count)
            connection.execute(
                update(d.versions)
                .where(d.versions.c.table_id == table.id, d.versions.c.version == table.version)
                .values(facts=encode_facts(replace(facts, columns=columns)))
            )
            return self._load(connection, table.id, table.version)

    def record_missing(self, table: Table, text: str | None) -> Table:
        """Note which rows may be missing, as a file of constraints says it; ``None`` takes it back."""
        with self.database.writing() as connection:
            same_table(connection, table)
            _say_missing(connection, table.id, text)
            return self._load(connection, table.id, table.version)

    def _load(self, connection: Connection, table_id: int, version: int) -> Table:
        row = connection.execute(select(d.tables).where(d.tables.c.id == table_id)).one()
        return load_table(connection, self.home, row, version)

    def _unit(self, directory: str) -> str:
        unit = self.home.unit(directory)
        if unit is None or unit != self.home.stored(directory):
            raise InvalidArgument(
                f"{directory} is not a directory that Home.new_directory() gave: use one."
            )
        return unit

    def _units(self, directories: Sequence[str]) -> list[str]:
        return [self._unit(directory) for directory in directories]


def _step_aside(connection: Connection, table_id: int) -> None:
    """Let another table have this one's name, while what belongs to it can still be handed over."""
    aside = f"#{table_id}"  # no table can be called that
    connection.execute(update(d.tables).where(d.tables.c.id == table_id).values(folded=aside))


def _say_missing(connection: Connection, table_id: int, text: str | None) -> None:
    connection.execute(delete(d.missing).where(d.missing.c.table_id == table_id))
    if text is not None:
        connection.execute(insert(d.missing).values(table_id=table_id, text=text))
