"""What must hold before anything is written into the catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sooner.algebra.schema import Schema, names
from sooner.errors import CatalogError, InvalidArgument, UnknownColumn, nearest
from sooner.storage.home import Home
from sooner.storage.records import Change, DataFile, Scramble, Table, total_rows

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def check_name(name: str) -> None:
    """A table name must be usable in SQL without quotes."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{name!r} cannot be a table name: use up to 128 letters, digits and _, not beginning "
            "with a digit."
        )


def check_columns(columns: Schema) -> None:
    """A table has columns, and no two with the same name, letter case aside."""
    if not columns:
        raise InvalidArgument("A table needs at least one column.")
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise InvalidArgument(f"Two columns are called {column.name!r}: rename one.")
        seen.add(column.name.lower())


def spelled_as(columns: Schema, wanted: Sequence[str], what: str) -> tuple[str, ...]:
    """The wanted columns in the schema's own spelling; each must exist and occur once."""
    spelling = {name.lower(): name for name in names(columns)}
    found = []
    for name in wanted:
        if name.lower() not in spelling:
            known = nearest(name, spelling.values())
            raise UnknownColumn(f"There is no column {name!r} for the {what}.{known}")
        found.append(spelling[name.lower()])
    if len(set(found)) < len(found):
        raise InvalidArgument(f"The {what} names a column twice: {', '.join(wanted)}.")
    return tuple(found)


def check_changes(table: Table, changes: Sequence[Change]) -> None:
    """A commit holds the same rows once for every layout the table has."""
    if not changes:
        raise InvalidArgument("There is nothing to commit: no changes given.")
    layouts = {None, *(scramble.id for scramble in table.scrambles)}
    for kind in ("insert", "delete"):
        these = [change for change in changes if change.kind == kind]
        written = [change.scramble_id for change in these]
        if these and (len(written) != len(set(written)) or set(written) != layouts):
            raise InvalidArgument(
                f"A commit needs one {kind} for the plain layout and one for each scramble of "
                f"{table.name!r}: wanted {_listed(layouts)}, got {_listed(written)}."
            )
        if len({change.rows for change in these} - {None}) > 1:
            counts = ", ".join(f"{change.scramble_id}: {change.rows}" for change in these)
            raise InvalidArgument(
                f"The layouts of one {kind} hold unlike numbers of rows: {counts}."
            )
    for change in changes:
        if change.version != table.version + 1:
            raise InvalidArgument(
                f"The next version of {table.name!r} is {table.version + 1}, not {change.version}."
            )


def check_scramble(table: Table, scramble: Scramble) -> None:
    """A scramble holds every row of the version it was made from."""
    if scramble.base_version != table.version:
        raise InvalidArgument(
            f"A scramble of version {scramble.base_version} cannot be added to version "
            f"{table.version} of {table.name!r}."
        )
    held, wanted = total_rows(scramble.files), table.facts.rows
    if held is not None and wanted is not None and held != wanted:
        raise CatalogError(
            f"The scramble holds {held} rows, but {table.name!r} has {wanted}. Its files may have "
            "changed while they were read: register the table again with replace=True."
        )


def check_reserved(
    home: Home, directories: Sequence[str], files: Sequence[DataFile], reserved: Sequence[str]
) -> None:
    """Files in Sooner's own directories must be protected from vacuum until they are committed."""
    protected = {home.unit(directory) for directory in reserved}
    for path in [*directories, *(file.path for file in files)]:
        unit = home.unit(path)
        if unit is not None and unit not in protected:
            raise InvalidArgument(f"{path} was not reserved: call reserve() before writing there.")


def _listed(layouts: Sequence[int | None] | set[int | None]) -> str:
    return ", ".join(sorted("plain" if layout is None else str(layout) for layout in layouts))
