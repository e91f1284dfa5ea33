"""Removing the directories that no table needs any more."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, select

from sooner.errors import CatalogError, InvalidArgument
from sooner.storage import definitions as d
from sooner.storage import protection
from sooner.storage.catalog import Catalog
from sooner.storage.home import Home, unit_of


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum removed, or would remove: directories, and the files and bytes in them."""

    directories: tuple[str, ...]
    files: int
    bytes: int


def vacuum(
    home: Home,
    catalog: Catalog,
    older_than: timedelta = timedelta(hours=1),
    dry_run: bool = False,
) -> VacuumReport:
    """Remove directories of abandoned writes and of dropped tables and scrambles.

    A write that has not committed, and what was dropped, are left alone until ``older_than`` has
    passed. A writer slower than that, unless it renews its reservation, gets a WriteConflict when
    it commits. Only directories that :meth:`Home.new_directory` named are ever touched.
    """
    if os.path.realpath(catalog.home.path) != os.path.realpath(home.path):
        raise InvalidArgument(f"{home.path} is not the home of this catalog.")
    # The order makes this safe. A writer reserves before it writes and commits only while
    # reserved, and names are never used twice. So a directory seen here, before the transaction,
    # that has neither a reservation nor a reference in it, can never get either again.
    present = list(_units_on_disk(home))
    before = datetime.now(UTC) - older_than
    if dry_run:
        with catalog.database.reading() as connection:
            kept = _kept(connection, protection.stale(connection, before))
    else:
        with catalog.database.writing() as connection:
            stale = protection.stale(connection, before)
            protection.forget(connection, stale)
            kept = _kept(connection, stale)
            live = {
                home.table_directory(row.name, row.id)
                for row in connection.execute(select(d.tables.c.name, d.tables.c.id))
            }
    doomed = [home.path / unit for unit in present if unit not in kept]
    sizes = [_size(directory) for directory in doomed]
    if not dry_run:
        for directory in doomed:
            _remove(directory)
        _remove_empty_parents(home, live)
    return VacuumReport(
        tuple(str(directory) for directory in doomed),
        sum(files for files, _ in sizes),
        sum(size for _, size in sizes),
    )


def _kept(connection: Connection, stale: set[str]) -> set[str]:
    # Reservations before references: a commit turns the one into the other, never back.
    waiting = protection.waiting(connection) - stale
    return waiting | protection.referenced(connection)


def _units_on_disk(home: Home) -> Iterator[str]:
    if home.data.is_symlink():
        raise CatalogError(f"{home.data} is a symbolic link, and vacuum follows none.")
    for parent in _directories(home.data):
        for directory in _directories(parent):
            unit = unit_of(directory.relative_to(home.path).as_posix())
            if unit is not None:
                yield unit


def _directories(parent: Path) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:  # Another vacuum was here.
        return []
    return sorted(Path(path) for path in found)


def _size(directory: Path) -> tuple[int, int]:
    files = size = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
                files += 1
            except FileNotFoundError:
                continue
    return files, size


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTEMPTY):
            # Another vacuum, or a writer who was too slow, is at work in it: what is left after
            # this, the next vacuum finds.
            shutil.rmtree(directory, ignore_errors=True)
            return
        raise CatalogError(
            f"Cannot remove {directory}: {error.strerror}. Run vacuum again when that is mended."
        ) from error


def _remove_empty_parents(home: Home, live: set[str]) -> None:
    """Of dropped tables only: nobody starts a write for those."""
    for parent in _directories(home.data):
        if parent.name not in live and parent.name.rpartition("-")[2].isdigit():
            try:
                parent.rmdir()
            except OSError:  # Not empty.
                continue
