"""A home and a catalog for each test, on SQLite and, where there is one, on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from storage_places import COLUMNS, Place

from sooner.storage import Catalog, Change, DataFile, Home, Scramble, Source, Table


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    home = tmp_path / "home"
    if request.param == "sqlite":
        yield Place(str(home / "catalog.sqlite"), home)
        return
    server = os.environ.get("SOONER_TEST_POSTGRES")
    if not server:
        pytest.skip("SOONER_TEST_POSTGRES names no PostgreSQL server")
    schema = f"sooner_test_{uuid.uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(server).update_query_dict({"options": f"-csearch_path={schema}"})
    try:
        yield Place(url.render_as_string(hide_password=False), home)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
        admin.dispose()


@pytest.fixture(scope="session")
def empty_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite file of a catalog without tables."""
    home = tmp_path_factory.mktemp("empty")
    Catalog(home / "catalog.sqlite").close()
    assert [path.name for path in home.iterdir() if path.is_file()] == ["catalog.sqlite"]
    return home / "catalog.sqlite"


@pytest.fixture
def catalog(place: Place, empty_catalog: Path) -> Iterator[Catalog]:
    if "://" not in place.url:
        # Tests of what makes a new one take the place; to the others a copy is one, and sooner made.
        place.home.mkdir()
        shutil.copyfile(empty_catalog, place.url)
    with place.open() as opened:
        yield opened


@pytest.fixture
def home(catalog: Catalog) -> Home:
    return catalog.home


@pytest.fixture
def write(catalog: Catalog) -> Callable[..., tuple[str, DataFile]]:
    """Reserve a directory and write a file of the given number of bytes there, as a writer does."""

    def write(
        table: Table | None, label: str, rows: int = 1, size: int = 10, block: int | None = None
    ) -> tuple[str, DataFile]:
        name, table_id = ("new", None) if table is None else (table.name, table.id)
        directory = catalog.home.new_directory(name, table_id, label)
        catalog.reserve(directory)
        path = Path(directory) / "part.parquet"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * size)
        return directory, DataFile(str(path), rows, size, path.stat().st_mtime_ns, (rows,), block)

    return write


@pytest.fixture
def make_table(catalog: Catalog) -> Callable[..., Table]:
    def make_table(name: str = "t", **more: object) -> Table:
        files = (DataFile("/elsewhere/a.parquet", 100, 1000, 1, (60, 40)),)
        source = Source("parquet", ("/elsewhere/*.parquet",))
        return catalog.create_table(name, COLUMNS, ("id",), source, files, **more)  # type: ignore[arg-type]

    return make_table


@pytest.fixture
def insert(catalog: Catalog, write: Callable[..., tuple[str, DataFile]]) -> Callable[..., Table]:
    """Commit an insert (or a delete) of some rows into every layout of a table."""

    def insert(table: Table, rows: int = 1, kind: str = "insert", **more: object) -> Table:
        changes, reserved = [], []
        for layout in (None, *(scramble.id for scramble in table.scrambles)):
            directory, file = write(table, kind, rows, block=None if layout is None else 0)
            changes.append(Change(table.version + 1, kind, layout, directory, (file,)))  # type: ignore[arg-type]
            reserved.append(directory)
        return catalog.commit_change(table, changes, reserved=reserved, **more)  # type: ignore[arg-type]

    return insert


@pytest.fixture
def scramble(catalog: Catalog, write: Callable[..., tuple[str, DataFile]]) -> Callable[..., Table]:
    def scramble(table: Table, by: tuple[str, ...] = ("id",), salt: int = 7) -> Table:
        directory, file = write(table, "scramble", table.facts.rows or 1, block=3)
        made = Scramble(0, by, ("bigint",), salt, 8, 32, table.version, directory, (file,))
        return catalog.commit_scramble(table, made, reserved=[directory])

    return scramble
