"""Between the catalog's rows and its records. Runs inside the caller's transaction."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, delete, insert, select

from sooner.algebra.schema import Column
from sooner.analysis.facts import TableFacts
from sooner.storage import definitions as d
from sooner.storage import protection
from sooner.storage.encoding import decode_facts, encode_facts
from sooner.storage.home import Home
from sooner.storage.records import (
    Change,
    ChangeKind,
    DataFile,
    Scramble,
    Source,
    Table,
    What,
)

Stamp: TypeAlias = tuple[int, int, str, tuple[int, ...], str | None]


def table_stamp(connection: Connection, row: Row[Any]) -> Stamp:
    """What changes whenever :func:`load_table` would give another current table than before.

    Files are recorded with a version or a scramble and never change; facts do when they are counted anew.
    """
    scrambles = select(d.scrambles.c.id).where(d.scrambles.c.table_id == row.id)
    ids = connection.execute(scrambles.order_by(d.scrambles.c.id)).scalars().all()
    facts = _facts(connection, row.id, row.version)
    return row.id, row.version, facts, tuple(ids), _missing(connection, row.id)


def _facts(connection: Connection, table_id: int, version: int) -> str:
    same = (d.versions.c.table_id == table_id, d.versions.c.version == version)
    return str(connection.execute(select(d.versions.c.facts).where(*same)).scalar_one())


def _missing(connection: Connection, table_id: int) -> str | None:
    query = select(d.missing.c.text).where(d.missing.c.table_id == table_id)
    return connection.execute(query).scalar()


def load_table(connection: Connection, home: Home, row: Row[Any], version: int) -> Table:
    """The table of a row of ``tables``, as it was at ``version``."""
    files = _load_files(connection, home, row.id)
    scrambles = tuple(
        Scramble(
            id=found.id,
            by=tuple(json.loads(found.by)),
            types=tuple(json.loads(found.types)),
            salt=found.salt,
            blocks=found.blocks,
            replicates=found.replicates,
            base_version=found.base_version,
            directory=home.absolute(found.directory),
            files=tuple(files[found.id, None]),
        )
        for found in connection.execute(
            select(d.scrambles)
            .where(d.scrambles.c.table_id == row.id, d.scrambles.c.base_version <= version)
            .order_by(d.scrambles.c.id)
        )
    )
    usable = {scramble.id for scramble in scrambles} | {None}
    changes = tuple(
        Change(
            version=found.version,
            kind=found.kind,
            scramble_id=found.scramble_id,
            directory=home.absolute(found.directory),
            files=tuple(files[None, found.id]),
        )
        for found in connection.execute(
            select(d.changes)
            .where(d.changes.c.table_id == row.id, d.changes.c.version <= version)
            .order_by(d.changes.c.version, d.changes.c.id)
        )
        if found.scramble_id in usable
    )
    columns = json.loads(row.columns)
    return Table(
        id=row.id,
        name=row.name,
        columns=tuple(Column(name, kind) for name, kind, *hidden in columns if not hidden),
        key=tuple(json.loads(row.key)),
        source=Source(
            row.source_format,
            tuple(json.loads(row.source_location)),
            json.loads(row.source_options),
        ),
        version=version,
        files=tuple(files[None, None]),
        scrambles=scrambles,
        changes=changes,
        facts=decode_facts(_facts(connection, row.id, version)),
        missing=_missing(connection, row.id),
        hidden=tuple(Column(name, kind) for name, kind, *hidden in columns if hidden),
    )


def _load_files(
    connection: Connection, home: Home, table_id: int
) -> dict[tuple[int | None, int | None], list[DataFile]]:
    """The files of a table by scramble and change, in the order they were recorded."""
    texts = select(d.file_schemas).where(d.file_schemas.c.table_id == table_id)
    schemas: dict[int, str] = {row.id: row.text for row in connection.execute(texts)}
    found: dict[tuple[int | None, int | None], list[DataFile]] = defaultdict(list)
    query = select(d.files).where(d.files.c.table_id == table_id).order_by(d.files.c.id)
    for row in connection.execute(query):
        found[row.scramble_id, row.change_id].append(
            DataFile(
                path=home.absolute(row.path),
                rows=row.rows,
                bytes=row.bytes,
                modified_ns=row.modified_ns,
                row_groups=tuple(json.loads(row.row_groups)),
                block=row.block,
                schema=schemas.get(row.schema_id),
            )
        )
    return found


def insert_files(
    connection: Connection,
    home: Home,
    files: Sequence[DataFile],
    table_id: int,
    *,
    scramble_id: int | None = None,
    change_id: int | None = None,
) -> None:
    """Record files as the table's base, or of a scramble, or of a change."""
    if not files:
        return
    schema_ids = _schema_ids(connection, table_id, {file.schema for file in files} - {None})
    rows = [
        {
            "table_id": table_id,
            "scramble_id": scramble_id,
            "change_id": change_id,
            "path": home.stored(file.path),
            "rows": file.rows,
            "bytes": file.bytes,
            "modified_ns": file.modified_ns,
            "row_groups": json.dumps(file.row_groups),
            "block": file.block,
            "schema_id": schema_ids.get(file.schema),
        }
        for file in files
    ]
    connection.execute(insert(d.files), rows)


def _schema_ids(
    connection: Connection, table_id: int, texts: set[str | None]
) -> dict[str | None, int]:
    query = select(d.file_schemas).where(d.file_schemas.c.table_id == table_id)
    known: dict[str | None, int] = {row.text: row.id for row in connection.execute(query)}
    for text in texts - known.keys():
        known[text] = insert_row(connection, d.file_schemas, {"table_id": table_id, "text": text})
    return known


def insert_scramble(connection: Connection, home: Home, table_id: int, scramble: Scramble) -> None:
    """Record a scramble and its files; the database gives it its id."""
    scramble_id = insert_row(
        connection,
        d.scrambles,
        {
            "table_id": table_id,
            "by": json.dumps(scramble.by),
            "types": json.dumps(scramble.types),
            "salt": scramble.salt,
            "blocks": scramble.blocks,
            "replicates": scramble.replicates,
            "base_version": scramble.base_version,
            "directory": home.stored(scramble.directory),
        },
    )
    insert_files(connection, home, scramble.files, table_id, scramble_id=scramble_id)


def insert_change(connection: Connection, home: Home, table_id: int, change: Change) -> None:
    """Record a change and its files."""
    change_id = insert_row(
        connection,
        d.changes,
        {
            "table_id": table_id,
            "version": change.version,
            "kind": change.kind,
            "scramble_id": change.scramble_id,
            "directory": home.stored(change.directory),
        },
    )
    insert_files(connection, home, change.files, table_id, change_id=change_id)


def insert_row(connection: Connection, table: Any, values: dict[str, Any]) -> int:
    """Insert one row and return the id the database gave it."""
    key = connection.execute(insert(table).values(**values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def insert_version(
    connection: Connection,
    table_id: int,
    facts: TableFacts,
    *,
    version: int,
    what: What,
    rows: Mapping[ChangeKind, int | None],
) -> None:
    """Record a version: what it did to how many rows, and the facts that hold from then on."""
    connection.execute(
        insert(d.versions).values(
            table_id=table_id,
            version=version,
            committed_at=datetime.now(UTC),
            what=what,
            inserted=rows.get("insert", 0),
            deleted=rows.get("delete", 0),
            facts=encode_facts(facts),
        )
    )


def delete_table(connection: Connection, row: Row[Any]) -> None:
    """Forget a table and all that belongs to it; its directories are then vacuum's."""
    protection.retire(connection, protection.referenced(connection, row.id))
    connection.execute(delete(d.views).where(d.views.c.table_id == row.id))
    connection.execute(delete(d.tables).where(d.tables.c.id == row.id))
