"""Opening the catalog's database, and transactions that mean the same on SQLite and PostgreSQL.

Reads see one snapshot. Writes go one at a time, on both: SQLite by ``BEGIN IMMEDIATE``, PostgreSQL
by an advisory lock, so that what a write has checked still holds when it commits.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    create_engine,
    create_mock_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from sooner.errors import CatalogError, InvalidArgument
from sooner.storage.definitions import SCHEMA_VERSION, meta, metadata

_WAIT_SECONDS = 30
_LOCK_SPACE = 0x500E  # Sets our advisory locks apart from those of other programs.


class Database:
    """The catalog's database: made if new, checked if not, then read or written.

    ``id`` is made with the database and tells it from every other one.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.engine = _engine(url)
        self._reader = self.engine
        if self.engine.dialect.name == "postgresql":
            self._reader = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        try:
            with self._translated():
                self.id = _prepare(self.engine, self._place())
        except BaseException:
            self.engine.dispose()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one snapshot and changes nothing."""
        with self._translated(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction with no other writer beside it; an exception undoes all of it."""
        with self._translated(), _writing(self.engine) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def _place(self) -> str:
        if self.url.get_backend_name() == "sqlite":
            return str(self.url.database)
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            if _is_busy(error):
                raise CatalogError(
                    f"The catalog {self._place()} was busy for {_WAIT_SECONDS} seconds. "
                    "Try again; if it stays busy, look for a stuck process that uses it."
                ) from error
            # SQLite calls it a disk I/O error where there is no room for what it writes beside the file.
            full = ". Is the disk full? Make room and try again: nothing has changed."
            advice = full if "disk" in str(error.orig) else ""
            raise CatalogError(
                f"Cannot use the catalog {self._place()}: {error.orig}{advice}"
            ) from error
        except DatabaseError as error:
            if "not a database" in str(error.orig):
                raise CatalogError(_not_a_catalog(self._place())) from error
            raise CatalogError(f"Cannot use the catalog {self._place()}: {error.orig}") from error
        except SQLAlchemyError as error:
            raise CatalogError(f"Cannot use the catalog {self._place()}: {error}") from error


def catalog_url(where: str) -> URL:
    """The SQLAlchemy URL for a path or URL that the user gave."""
    if "://" not in where:
        return URL.create("sqlite", database=os.path.abspath(where))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError) as error:
        raise InvalidArgument(f"{where!r} is not a catalog URL: {error}") from error
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not url.database or url.database == ":memory:":
        raise InvalidArgument(
            f"A catalog is a SQLite file or a PostgreSQL database, not {where!r}. "
            "Give a path, or a URL such as postgresql://user@host/database."
        )
    return url.set(drivername="sqlite", database=os.path.abspath(url.database))


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        try:
            # A connection may have died since the last query; the check costs one round trip.
            return create_engine(url, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise CatalogError(
                "A PostgreSQL catalog needs psycopg: pip install 'psycopg[binary]'."
            ) from error
    # No pool: opening SQLite costs well under a millisecond, and no connection is then carried
    # into a forked process, which SQLite forbids.
    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def _connected(raw: Any, _record: Any) -> None:
        raw.isolation_level = None  # The driver's own idea of when to BEGIN would get in the way.
        raw.execute(f"PRAGMA busy_timeout = {_WAIT_SECONDS * 1000}")
        raw.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that begins by reading cannot always turn into a writing one, so writers
        # say so at the start.
        immediate = connection.get_execution_options().get("sooner_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


@contextmanager
def _writing(engine: Engine) -> Iterator[Connection]:
    with engine.execution_options(sooner_write=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'"))
            lock = "SELECT pg_advisory_xact_lock(:space, hashtext(current_schema()))"
            connection.execute(text(lock), {"space": _LOCK_SPACE})
        yield connection


def _prepare(engine: Engine, place: str) -> str:
    """Make the tables if the database is new, and check that it is ours; return its id."""
    with engine.begin() as connection:
        if inspect(connection).has_table(meta.name):
            catalog_id, format_ = _check(connection, place)
            if format_ == SCHEMA_VERSION:
                return catalog_id
        elif engine.dialect.name == "sqlite" and inspect(connection).get_table_names():
            raise CatalogError(_not_a_catalog(place))
    if engine.dialect.name == "sqlite":
        _use_write_ahead_log(engine)
    with _writing(engine) as connection:
        # Another process may have made them since we looked.
        if not inspect(connection).has_table(meta.name):
            for statement in _definitions(engine.url.drivername):
                connection.exec_driver_sql(statement)
            about = {"schema_version": str(SCHEMA_VERSION), "id": uuid.uuid4().hex}
            rows = [{"name": name, "value": value} for name, value in about.items()]
            connection.execute(insert(meta), rows)
        catalog_id, format_ = _check(connection, place)
        if format_ < SCHEMA_VERSION:  # newer formats have more tables, so far
            metadata.create_all(connection)
            of_format = meta.c.name == "schema_version"
            connection.execute(update(meta).where(of_format).values(value=str(SCHEMA_VERSION)))
        return catalog_id


@cache
def _definitions(driver: str) -> tuple[str, ...]:
    """The statements that make all tables, kept: to put them into words takes longer than to run them."""
    said: list[str] = []
    dialect = make_url(f"{driver}://").get_dialect()()

    def say(statement: Any, *_: Any, **__: Any) -> None:
        said.append(str(statement.compile(dialect=dialect)))

    metadata.create_all(create_mock_engine(f"{driver}://", say), checkfirst=False)
    return tuple(said)


def _check(connection: Connection, place: str) -> tuple[str, int]:
    """The id of the catalog and its format."""
    query = select(meta.c.name, meta.c.value)
    about: dict[str, str] = {row.name: row.value for row in connection.execute(query)}
    stored, catalog_id = about.get("schema_version", ""), about.get("id", "")
    if not stored.isdigit() or not catalog_id:
        raise CatalogError(_not_a_catalog(place))
    if int(stored) > SCHEMA_VERSION:
        raise CatalogError(
            f"The catalog {place} was written by a newer Sooner (catalog format {stored}; this one "
            f"knows {SCHEMA_VERSION}). Upgrade Sooner, or use another home."
        )
    return catalog_id, int(stored)


def _use_write_ahead_log(engine: Engine) -> None:
    """Readers then never wait for a writer. SQLite remembers this in the file."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
            return
        # SQLite does not wait by itself here when several processes switch at the same moment.
        except engine.dialect.loaded_dbapi.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise CatalogError(f"Cannot use {engine.url.database}: {error}") from error
        finally:
            raw.close()
        time.sleep(0.01)


def _is_busy(error: OperationalError) -> bool:
    message = str(error.orig)
    return "locked" in message or "lock timeout" in message


def _not_a_catalog(place: str) -> str:
    return f"{place} is not a Sooner catalog. Give another home, or move that file away."
