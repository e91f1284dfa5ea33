"""The home directory: where the catalog and Sooner's own data files live."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from sooner.errors import CatalogError, InvalidArgument
from sooner.storage.expand import is_remote, local_path

_DATA = "data"
_NEW = "new"
_LABEL = re.compile(r"[A-Za-z0-9_]+")
_UNIT = re.compile(r"[A-Za-z0-9_]+-[0-9a-f]{32}")


class Home:
    """A home directory: ``catalog.sqlite`` and ``data/<table>-<id>/<label>-<unique>/``.

    Below it the catalog stores paths relative to it, so that a home can be moved.

    >>> home = Home("/tmp/sooner-example-home")
    >>> home.stored("/tmp/sooner-example-home/data/t-1/x/part.parquet")
    'data/t-1/x/part.parquet'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InvalidArgument(f"A home is a directory, as text or a path, not {path!r}.")
        self.path = Path(os.path.abspath(local_path(os.fspath(path))))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CatalogError(
                f"Cannot use {self.path} as a home directory: {error.strerror}. "
                "Give another directory as home."
            ) from error

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    @property
    def catalog_path(self) -> Path:
        """Where the SQLite catalog is, unless a URL says otherwise."""
        return self.path / "catalog.sqlite"

    @property
    def data(self) -> Path:
        """The parent of every directory that Sooner writes."""
        return self.path / _DATA

    def new_directory(self, name: str, table_id: int | None, label: str) -> str:
        """A directory name that was never used and never will be; nothing is created yet.

        ``table_id`` is ``None`` for the first files of a table that is not yet registered.
        """
        if not _LABEL.fullmatch(label):
            raise InvalidArgument(f"A label has letters, digits and _ only, not {label!r}.")
        unique = f"{label}-{uuid.uuid4().hex}"
        # Tables to be share one parent, which vacuum never removes: a parent named for the table
        # could vanish between a writer's two mkdirs.
        parent = _NEW if table_id is None else self.table_directory(name, table_id)
        return str(self.data / parent / unique)

    @staticmethod
    def table_directory(name: str, table_id: int) -> str:
        """The name, below ``data``, of the directory with everything written for a table."""
        return f"{name}-{table_id}"

    def stored(self, path: str) -> str:
        """A path as the catalog keeps it: relative to the home if below it, else absolute."""
        if not path or is_remote(path):
            return path
        absolute = os.path.abspath(local_path(path))
        try:
            absolute.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                f"The file name {absolute!r} is not valid UTF-8: rename the file."
            ) from error
        for home, candidate in (
            (str(self.path), absolute),
            # A home may be reached by several names: Spark, for one, resolves links.
            (os.path.realpath(self.path), os.path.realpath(absolute)),
        ):
            if candidate.startswith(home + os.sep):
                return Path(candidate).relative_to(home).as_posix()
        return absolute

    def absolute(self, stored: str) -> str:
        """The path that :meth:`stored` was given, for where the home is now."""
        return stored if not stored or is_remote(stored) else str(self.path / stored)

    def unit(self, path: str) -> str | None:
        """The directory, as stored, that is written, kept and vacuumed as a whole with ``path``.

        ``None`` for a path that Sooner did not make.
        """
        return unit_of(self.stored(path))

    def claim(self, catalog_id: str) -> None:
        """Note that this home's data belongs to this catalog; refuse if it is another's.

        Vacuum removes what its catalog does not know, so a home shared by two catalogs would
        lose the data of one.
        """
        mine = self.data / f".catalog-{catalog_id}"
        if mine.exists():
            return
        try:
            self.data.mkdir(exist_ok=True)
            # The same catalog may be opened by another process just now.
            others = self._claims() - {mine}
            if not others:
                mine.touch()
                # Two new catalogs may come here together: each then sees the other and gives way.
                others = self._claims() - {mine}
                if not others:
                    return
                mine.unlink(missing_ok=True)
        except OSError as error:
            raise CatalogError(f"Cannot write in {self.path}: {error.strerror}.") from error
        raise CatalogError(
            f"The data in {self.data} belongs to another catalog. Open that one, or use "
            f"another home; if it is gone for good, remove {min(others)} and try again."
        )

    def _claims(self) -> set[Path]:
        return set(self.data.glob(".catalog-*"))


def unit_of(stored: str) -> str | None:
    """Like :meth:`Home.unit`, of a path as the catalog stores it.

    >>> unit_of("data/t-1/insert-0123456789abcdef0123456789abcdef/block=3/a.parquet")
    'data/t-1/insert-0123456789abcdef0123456789abcdef'
    """
    parts = stored.split("/")
    if len(parts) >= 3 and parts[0] == _DATA and _UNIT.fullmatch(parts[2]):
        return "/".join(parts[:3])
    return None
