"""Which directories vacuum must leave alone. Runs inside the caller's transaction.

A directory is protected by a row that refers to it, or by a pending row: because somebody writes
there and has not committed, or because it was dropped a moment ago and may still be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from sooner.errors import CatalogError, WriteConflict
from sooner.storage import definitions as d
from sooner.storage.home import unit_of

_WRITING = "writing"
_DROPPED = "dropped"


def begin_writing(connection: Connection, unit: str) -> None:
    """Protect a directory before the first file is written there."""
    if connection.execute(select(d.pending).where(d.pending.c.directory == unit)).first():
        raise CatalogError(f"{unit} is reserved already: every write needs a new directory.")
    _insert(connection, unit, _WRITING)


def keep_writing(connection: Connection, unit: str) -> None:
    """Make a protection young again."""
    found = connection.execute(
        update(d.pending)
        .where(d.pending.c.directory == unit, d.pending.c.purpose == _WRITING)
        .values(since=datetime.now(UTC))
    )
    if not found.rowcount:
        raise _taken(unit)


def finish_writing(connection: Connection, units: Iterable[str]) -> None:
    """End the protection as the rows that refer to the directories are written."""
    for unit in set(units):
        if not stop_writing(connection, unit):
            raise _taken(unit)


def stop_writing(connection: Connection, unit: str) -> bool:
    """End the protection; whether there was one."""
    found = connection.execute(
        delete(d.pending).where(d.pending.c.directory == unit, d.pending.c.purpose == _WRITING)
    )
    return found.rowcount > 0


def retire(connection: Connection, units: Iterable[str]) -> None:
    """Protect for a while what is about to lose the rows that refer to it."""
    for unit in set(units):
        connection.execute(delete(d.pending).where(d.pending.c.directory == unit))
        _insert(connection, unit, _DROPPED)


def stale(connection: Connection, before: datetime) -> set[str]:
    """The directories whose pending row is older than ``before``."""
    query = select(d.pending.c.directory).where(d.pending.c.since <= before)
    return set(connection.execute(query).scalars())


def forget(connection: Connection, units: Iterable[str]) -> None:
    """Remove pending rows, so that a writer who is still at it cannot commit."""
    for unit in units:
        connection.execute(delete(d.pending).where(d.pending.c.directory == unit))


def waiting(connection: Connection) -> set[str]:
    """All directories with a pending row."""
    return set(connection.execute(select(d.pending.c.directory)).scalars())


def referenced(
    connection: Connection, table_id: int | None = None, scramble_id: int | None = None
) -> set[str]:
    """The directories that rows of the catalog, of a table or of a scramble refer to."""
    directories = select(d.scrambles.c.directory)
    summaries = select(d.synopses.c.directory)
    samples = select(d.views.c.directory).where(d.views.c.directory.is_not(None))
    changed = select(d.changes.c.directory)
    paths = select(d.files.c.path).outerjoin(d.changes, d.files.c.change_id == d.changes.c.id)
    if table_id is not None:
        directories = directories.where(d.scrambles.c.table_id == table_id)
        summaries = summaries.where(d.synopses.c.table_id == table_id)
        samples = samples.where(d.views.c.table_id == table_id)
        changed = changed.where(d.changes.c.table_id == table_id)
        paths = paths.where(d.files.c.table_id == table_id)
    if scramble_id is not None:
        directories = directories.where(d.scrambles.c.id == scramble_id)
        changed = changed.where(d.changes.c.scramble_id == scramble_id)
        paths = paths.where(
            (d.files.c.scramble_id == scramble_id) | (d.changes.c.scramble_id == scramble_id)
        )
    queries: tuple[Select[Any], ...] = (directories, changed, paths)
    if scramble_id is None:
        queries += (summaries, samples)
    units: set[str] = set()
    for query in queries:
        for stored in connection.execute(query.distinct()).scalars():
            unit = unit_of(stored)
            if unit is not None:
                units.add(unit)
    return units


def _insert(connection: Connection, unit: str, purpose: str) -> None:
    row = {"directory": unit, "purpose": purpose, "since": datetime.now(UTC)}
    connection.execute(insert(d.pending).values(**row))


def _taken(unit: str) -> WriteConflict:
    return WriteConflict(
        f"{unit} is no longer reserved: a vacuum took it because the write lasted too long, or it "
        "was released. Nothing was committed; write again into a new directory."
    )
