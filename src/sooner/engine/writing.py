"""Writing files so that a crash leaves nothing half-done: reserve, write, commit, else give up."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame

from sooner.errors import CatalogError, WriteConflict
from sooner.storage.catalog import Catalog
from sooner.storage.footers import read_footers
from sooner.storage.layout import BLOCK
from sooner.storage.records import DataFile, Table

_RENEW_SECONDS = 600
_ATTEMPTS = 5

Result = TypeVar("Result")


class Reservation:
    """The directories one commit writes into. Nothing of it counts until the catalog says so."""

    def __init__(self, catalog: Catalog, table: Table | None) -> None:
        self._catalog = catalog
        self._table = table
        self.directories: list[str] = []

    def directory(self, label: str) -> str:
        """A new directory, reserved before the first file is written."""
        name, number = ("", None) if self._table is None else (self._table.name, self._table.id)
        path = self._catalog.home.new_directory(name, number, label)
        self._catalog.reserve(path)
        self.directories.append(path)
        return path

    def give_up(self) -> None:
        """Remove what was written and let go of the directories."""
        for directory in self.directories:
            # A commit ends the reservation: what is no longer reserved may be part of the table.
            if self._catalog.release(directory):
                shutil.rmtree(directory, ignore_errors=True)

    def renew(self) -> None:
        """Tell vacuum that the writer is alive."""
        for directory in list(self.directories):
            self._catalog.renew(directory)


@contextmanager
def reservation(catalog: Catalog, table: Table | None) -> Iterator[Reservation]:
    """Write inside; whatever was not committed when an error leaves the block is removed.

    Without a table the files are those of one that is to be.
    """
    reserved = Reservation(catalog, table)
    done = threading.Event()
    keeper = threading.Thread(target=_keep_alive, args=(reserved, done), daemon=True)
    keeper.start()
    try:
        yield reserved
    except BaseException:
        reserved.give_up()
        raise
    finally:
        done.set()
        keeper.join()


def _keep_alive(reserved: Reservation, done: threading.Event) -> None:
    while not done.wait(_RENEW_SECONDS):
        try:
            reserved.renew()
        except CatalogError:
            return  # the commit will find out and say so


def retried(attempt: Callable[[], Result]) -> Result:
    """Do it again from the start when somebody else changed the table meanwhile."""
    for remaining in reversed(range(_ATTEMPTS)):
        try:
            return attempt()
        except WriteConflict:
            if not remaining:
                raise
    raise AssertionError("unreachable")


def write_parquet(rows: DataFrame, directory: str) -> tuple[DataFile, ...]:
    """Write rows into a directory and return its files with their row counts; empty files are left out."""
    rows.write.mode("overwrite").parquet(directory)
    return written_files(directory)


def written_files(directory: str) -> tuple[DataFile, ...]:
    """The non-empty files of a directory that Spark wrote, with the block each belongs to."""
    paths = sorted(str(path) for path in Path(directory).rglob("*.parquet"))
    return tuple(file for file in read_footers(paths, _block_of) if file.rows)


def _block_of(path: str) -> int | None:
    parent = os.path.basename(os.path.dirname(path))
    name, _, value = parent.partition("=")
    return int(value) if name == BLOCK else None
