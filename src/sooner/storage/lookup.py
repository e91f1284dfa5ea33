"""Finding a table's row, or saying why not. Runs inside the caller's transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from sooner.analysis.facts import TableFacts
from sooner.errors import InvalidArgument, UnknownTable, WriteConflict, nearest
from sooner.storage import definitions as d
from sooner.storage.encoding import decode_facts
from sooner.storage.records import Table


def find(connection: Connection, name: str) -> Row[Any] | None:
    """The row of the table of this name, letter case aside."""
    if not isinstance(name, str):
        raise InvalidArgument(f"Give the name of a table as text, not {name!r}.")
    return connection.execute(select(d.tables).where(d.tables.c.folded == name.lower())).first()


def get(connection: Connection, name: str) -> Row[Any]:
    """Like :func:`find`, but there must be one."""
    row = find(connection, name)
    if row is None:
        known = connection.execute(select(d.tables.c.name)).scalars()
        raise UnknownTable(f"There is no table {name!r}.{nearest(name, known)}")
    return row


def same_table(connection: Connection, table: Table) -> Row[Any]:
    """The row of a table that was read before: not of one that has its name since."""
    row = connection.execute(select(d.tables).where(d.tables.c.id == table.id)).first()
    if row is None:
        raise WriteConflict(
            f"Table {table.name!r} was dropped or replaced since it was read. Nothing was "
            "committed; read the table again."
        )
    return row


def unmoved(connection: Connection, table: Table) -> Row[Any]:
    """The row of a table that is still at the version at which it was read."""
    row = same_table(connection, table)
    if row.version != table.version:
        raise WriteConflict(
            f"Table {table.name!r} is at version {row.version}, and this was written for version "
            f"{table.version}. Nothing was committed; try again."
        )
    return row


def facts_at(connection: Connection, table: Table) -> TableFacts:
    """What is known by now about a table at the version at which it was read."""
    query = select(d.versions.c.facts).where(
        d.versions.c.table_id == table.id, d.versions.c.version == table.version
    )
    return decode_facts(connection.execute(query).scalar_one())
