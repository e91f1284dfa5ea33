"""Where the tests of storage keep their catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sooner.algebra.schema import Column
from sooner.storage import Catalog

COLUMNS = (Column("id", "bigint"), Column("Name", "string"), Column("x", "double"))


@dataclass(frozen=True)
class Place:
    """Where a test's catalog is; open() gives a catalog of its own to whoever asks."""

    url: str
    home: Path

    def open(self) -> Catalog:
        return Catalog(self.url, home=self.home)
