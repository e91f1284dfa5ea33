"""Which views there are: their rows are a table's, and a row here says what they are made from.

What a refresh did to the rows and which versions of the tables they now reflect are one commit: a reader, or
a process that was killed, finds the view as it was or as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Row, insert, select, update

from sooner.errors import UnknownView, WriteConflict, nearest
from sooner.storage import definitions as d
from sooner.storage import protection
from sooner.storage.catalog import Catalog
from sooner.storage.home import unit_of
from sooner.storage.lookup import find
from sooner.storage.records import Table
from sooner.storage.rows import delete_table

Kind: TypeAlias = Literal["created", "incremental", "recomputed"]


@dataclass(frozen=True, slots=True)
class Reflected:
    """A table at the version that something was made from."""

    id: int
    version: int


# By the names of tables in lower case.
Reflects: TypeAlias = Mapping[str, Reflected]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a sample of a view has instead of its own rows: where it lies, how large, of which versions.

    ``certain`` are hashes that are in it besides.
    """

    reflects: Reflects
    ratio: float
    directory: str
    deleted: int
    inserted: int
    version: int
    certain: tuple[int, ...] = ()
    at: str = ""


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as the catalog knows it: what it is, and which versions of its tables its rows reflect."""

    id: int
    table: Table
    definition: str
    reflects: Reflects
    cleaned: Cleaned | None = None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """One refresh: how it was done and why so, how long it took, the rows that came and went."""

    kind: Kind
    why: str
    seconds: float
    inserted: int | None
    deleted: int | None
    at: datetime | None = None


def reflecting(tables: Sequence[Table]) -> dict[str, Reflected]:
    """The versions that these tables are at."""
    return {table.name.lower(): Reflected(table.id, table.version) for table in tables}


def stored_views(catalog: Catalog) -> list[StoredView]:
    """All views by name."""
    with catalog.database.reading() as connection:
        tables = {row.id: row for row in connection.execute(select(d.tables))}
        found = [
            _record(catalog, row, catalog.loaded(connection, tables[row.table_id]))
            for row in connection.execute(select(d.views))
        ]
    return sorted(found, key=lambda view: view.table.name.lower())


def stored_view(catalog: Catalog, name: str) -> StoredView:
    """The view of this name, letter case aside."""
    found = find_view(catalog, name)
    if found is None:
        with catalog.database.reading() as connection:
            known = connection.execute(select(d.tables.c.name).join(d.views)).scalars().all()
        raise UnknownView(f"There is no view {name!r}.{nearest(name, known)}")
    return found


def find_view(catalog: Catalog, name: str) -> StoredView | None:
    """The same, or ``None`` if a table or nothing has this name."""
    with catalog.database.reading() as connection:
        table = find(connection, name)
        if table is None:
            return None
        row = connection.execute(select(d.views).where(d.views.c.table_id == table.id)).first()
        if row is None:
            return None
        loaded = catalog.loaded(connection, table)
    return _record(catalog, row, loaded)


def add_view(
    connection: Connection, table: Table, definition: str, reflects: Reflects, done: Refreshed
) -> None:
    """Say, as its table is registered, that it is a view."""
    values = {"table_id": table.id, "definition": definition, "reflects": _as_text(reflects)}
    key = connection.execute(insert(d.views).values(**values)).inserted_primary_key
    assert key is not None
    _note(connection, int(key[0]), done)


def record_refresh(
    connection: Connection,
    table: Table,
    view: StoredView,
    definition: str,
    reflects: Reflects,
    done: Refreshed,
) -> None:
    """Say, as its rows are committed, which versions they reflect; a sample that was cleaned is no more."""
    row = connection.execute(select(d.views).where(d.views.c.id == view.id)).first()
    # What was made of older tables must not take the place of what is newer.
    same = row is not None and row.table_id in (table.id, view.table.id)
    if row is None or not same or row.reflects != _as_text(view.reflects):
        raise WriteConflict(
            f"The view {table.name!r} was dropped or refreshed by another while it was refreshed."
        )
    _retire_sample(connection, row)
    connection.execute(
        update(d.views)
        .where(d.views.c.id == view.id)
        .values(
            table_id=table.id,
            definition=definition,
            reflects=_as_text(reflects),
            cleaned=None,
            directory=None,
        )
    )
    _note(connection, view.id, done)


def record_cleaned(
    catalog: Catalog, view: StoredView, cleaned: Cleaned, reserved: Sequence[str]
) -> None:
    """Put a cleaned sample in place of the one before, if the view is still the one it was cleaned for."""
    with catalog.database.writing() as connection:
        row = connection.execute(select(d.views).where(d.views.c.id == view.id)).first()
        of = row and connection.execute(select(d.tables).where(d.tables.c.id == row.table_id)).one()
        if row is None or of is None or (of.id, of.version) != (view.table.id, cleaned.version):
            raise WriteConflict(f"The view {view.table.name!r} was refreshed meanwhile.")
        _retire_sample(connection, row)
        units = [catalog.home.unit(directory) for directory in reserved]
        protection.finish_writing(connection, [unit for unit in units if unit is not None])
        about = {
            "reflects": json.loads(_as_text(cleaned.reflects)),
            "ratio": cleaned.ratio,
            "deleted": cleaned.deleted,
            "inserted": cleaned.inserted,
            "version": cleaned.version,
            "certain": cleaned.certain,
            "at": cleaned.at,
        }
        stored = catalog.home.stored(cleaned.directory)
        values = {"cleaned": json.dumps(about), "directory": stored}
        connection.execute(update(d.views).where(d.views.c.id == view.id).values(**values))


def redefine(catalog: Catalog, view: StoredView, definition: str) -> None:
    """Change how a view is kept, not what it is."""
    with catalog.database.writing() as connection:
        changed = update(d.views).where(d.views.c.id == view.id).values(definition=definition)
        connection.execute(changed)


def read_through(catalog: Catalog, names: Iterable[str]) -> set[str]:
    """These tables and, of views among them, all that they are made from, in lower case."""
    found: set[str] = set()
    for name in names:
        found.add(name.lower())
        view = find_view(catalog, name)
        if view is not None:
            found |= read_through(catalog, view.reflects)
    return found


def refreshes(catalog: Catalog, view: StoredView) -> list[Refreshed]:
    """Every refresh of a view, oldest first."""
    with catalog.database.reading() as connection:
        query = select(d.refreshes).where(d.refreshes.c.view_id == view.id)
        return [
            Refreshed(row.kind, row.why, row.seconds, row.inserted, row.deleted, row.at)
            for row in connection.execute(query.order_by(d.refreshes.c.id))
        ]


def drop_view(catalog: Catalog, view: StoredView) -> None:
    """Forget a view; its files go at the next vacuum."""
    with catalog.database.writing() as connection:
        row = find(connection, view.table.name)
        if row is not None and row.id == view.table.id:
            delete_table(connection, row)


def _note(connection: Connection, view_id: int, done: Refreshed) -> None:
    values = {
        "view_id": view_id,
        "at": datetime.now(UTC),
        "kind": done.kind,
        "why": done.why,
        "seconds": done.seconds,
        "inserted": done.inserted,
        "deleted": done.deleted,
    }
    connection.execute(insert(d.refreshes).values(**values))


def _retire_sample(connection: Connection, row: Row[Any]) -> None:
    unit = unit_of(row.directory) if row.directory else None
    if unit is not None:
        protection.retire(connection, [unit])


def _as_text(reflects: Reflects) -> str:
    return json.dumps({name: [one.id, one.version] for name, one in reflects.items()})


def _as_reflects(found: Mapping[str, Sequence[int]]) -> dict[str, Reflected]:
    return {name: Reflected(*pair) for name, pair in found.items()}


def _record(catalog: Catalog, row: Row[Any], table: Table) -> StoredView:
    cleaned = None
    if row.cleaned is not None:
        about = json.loads(row.cleaned)
        about["reflects"] = _as_reflects(about["reflects"])
        about["certain"] = tuple(about["certain"])
        cleaned = Cleaned(directory=catalog.home.absolute(row.directory), **about)
    return StoredView(
        row.id, table, row.definition, _as_reflects(json.loads(row.reflects)), cleaned
    )
