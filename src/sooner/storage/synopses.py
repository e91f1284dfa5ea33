"""Which synopses there are: a row in the catalog for each, its files in a directory of the table's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, select

from sooner.errors import CatalogError, InvalidArgument, SynopsisExists, UnknownSynopsis, nearest
from sooner.storage import definitions as d
from sooner.storage import protection
from sooner.storage.catalog import Catalog
from sooner.storage.checks import check_name
from sooner.storage.home import unit_of
from sooner.storage.lookup import get, same_table
from sooner.storage.records import Table
from sooner.storage.rows import insert_row


@dataclass(frozen=True, slots=True)
class StoredSynopsis:
    """A synopsis as the catalog knows it: of which table and version, how it is defined, where it lies."""

    name: str
    table: str
    version: int
    definition: str
    directory: str


def commit_synopsis(
    catalog: Catalog,
    table: Table,
    stored: StoredSynopsis,
    reserved: Sequence[str],
    replace: bool = False,
) -> None:
    """Add a synopsis whose files are complete."""
    check_name(stored.name)
    units = [catalog.home.unit(directory) for directory in reserved]
    if catalog.home.unit(stored.directory) not in units:
        raise InvalidArgument(f"{stored.directory} was not reserved for this synopsis.")
    with catalog.database.writing() as connection:
        same_table(connection, table)
        old = _find(connection, stored.name)
        if old is not None:
            if not replace:
                raise SynopsisExists(
                    f"There is a synopsis {old.name!r} already. "
                    "Use replace=True to replace it, or another name."
                )
            _delete(connection, old)
        protection.finish_writing(connection, [unit for unit in units if unit is not None])
        insert_row(
            connection,
            d.synopses,
            {
                "table_id": table.id,
                "name": stored.name,
                "folded": stored.name.lower(),
                "version": stored.version,
                "definition": stored.definition,
                "directory": catalog.home.stored(stored.directory),
            },
        )


def require_free(catalog: Catalog, name: str) -> None:
    """Raise :class:`SynopsisExists` early, before work is done for a name that is taken."""
    check_name(name)
    with catalog.database.reading() as connection:
        if _find(connection, name) is not None:
            raise SynopsisExists(
                f"There is a synopsis {name!r} already. "
                "Use replace=True to replace it, or another name."
            )


def stored_synopses(catalog: Catalog, table: str | None = None) -> list[StoredSynopsis]:
    """All synopses by name, or those of a table."""
    with catalog.database.reading() as connection:
        query = _query()
        if table is not None:
            query = query.where(d.synopses.c.table_id == get(connection, table).id)
        return [_record(catalog, row) for row in connection.execute(query)]


def stored_synopsis(catalog: Catalog, name: str) -> StoredSynopsis:
    """The synopsis of this name, letter case aside."""
    with catalog.database.reading() as connection:
        return _record(catalog, _get(connection, name))


def drop_synopsis(catalog: Catalog, name: str) -> None:
    """Forget a synopsis; its files go at the next vacuum."""
    with catalog.database.writing() as connection:
        _delete(connection, _get(connection, name))


def _query() -> Select[Any]:
    columns = (d.synopses, d.tables.c.name.label("of_table"))
    joined = select(*columns).join(d.tables, d.synopses.c.table_id == d.tables.c.id)
    return joined.order_by(d.synopses.c.folded)


def _find(connection: Connection, name: str) -> Row[Any] | None:
    if not isinstance(name, str):
        raise InvalidArgument(f"Give the name of a synopsis as text, not {name!r}.")
    return connection.execute(_query().where(d.synopses.c.folded == name.lower())).first()


def _get(connection: Connection, name: str) -> Row[Any]:
    row = _find(connection, name)
    if row is None:
        known = connection.execute(select(d.synopses.c.name)).scalars()
        raise UnknownSynopsis(f"There is no synopsis {name!r}.{nearest(name, known)}")
    return row


def _delete(connection: Connection, row: Row[Any]) -> None:
    unit = unit_of(row.directory)
    if unit is None:
        raise CatalogError(
            f"The synopsis {row.name!r} lies in {row.directory}, which is not Sooner's."
        )
    connection.execute(delete(d.synopses).where(d.synopses.c.id == row.id))
    protection.retire(connection, [unit])


def _record(catalog: Catalog, row: Row[Any]) -> StoredSynopsis:
    return StoredSynopsis(
        row.name, row.of_table, row.version, row.definition, catalog.home.absolute(row.directory)
    )
