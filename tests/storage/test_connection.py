from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import select, update
from storage_places import Place

from sooner.errors import CatalogError, InvalidArgument
from sooner.storage import Catalog, Home
from sooner.storage import definitions as d
from sooner.storage.connection import catalog_url


def test_a_catalog_can_be_opened_again(place: Place) -> None:
    with place.open() as one, place.open() as two:
        assert one.database.id == two.database.id


def test_sqlite_is_set_up_for_many_processes(tmp_path: Path) -> None:
    with Catalog(Home(tmp_path)) as catalog, catalog.database.reading() as connection:
        asked = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        }
    assert asked == {
        "journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 30_000, "synchronous": 2,
    }  # fmt: skip


def test_a_newer_catalog_says_so(place: Place) -> None:
    with place.open() as catalog, catalog.database.writing() as connection:
        connection.execute(
            update(d.meta).where(d.meta.c.name == "schema_version").values(value="99")
        )
    with pytest.raises(CatalogError, match=r"newer Sooner.*99.*Upgrade"):
        place.open()


def test_a_full_disk_is_said_to_be_that(tmp_path: Path) -> None:
    with Catalog(Home(tmp_path)) as catalog:
        with (
            pytest.raises(CatalogError, match=r"full.*Make room.*nothing has changed"),
            catalog.database.writing() as connection,
        ):
            connection.execute(update(d.meta).values(value="gone"))
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
            connection.exec_driver_sql("CREATE TABLE more AS SELECT zeroblob(1000000) AS x")
        assert catalog.tables() == ()
        assert Catalog(Home(tmp_path)).database.id == catalog.database.id


def test_files_that_are_no_catalog(tmp_path: Path) -> None:
    text = tmp_path / "notes.sqlite"
    text.write_text("not a database, but long enough to be looked at " * 100)
    with pytest.raises(CatalogError, match="not a Sooner catalog"):
        Catalog(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    before = other.read_bytes()
    with pytest.raises(CatalogError, match="not a Sooner catalog"):
        Catalog(other)
    assert other.read_bytes() == before
    with sqlite3.connect(tmp_path / "half.sqlite") as connection:
        connection.execute("CREATE TABLE sooner_meta (name, value)")
    with pytest.raises(CatalogError, match="not a Sooner catalog"):
        Catalog(tmp_path / "half.sqlite")
    with pytest.raises(CatalogError, match="Cannot use"):
        Catalog(tmp_path)


def test_a_catalog_that_is_lost_while_open(tmp_path: Path) -> None:
    catalog = Catalog(Home(tmp_path))
    for found in tmp_path.glob("catalog.sqlite*"):
        found.unlink()
    with pytest.raises(CatalogError, match="Cannot use"):
        catalog.tables()


def test_an_exception_undoes_the_whole_transaction(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.database.writing() as connection:
        connection.execute(update(d.meta).values(value="gone"))
        raise ZeroDivisionError
    with catalog.database.reading() as connection:
        assert "gone" not in set(connection.execute(select(d.meta.c.value)).scalars())


def test_a_reader_sees_one_moment(place: Place) -> None:
    with (
        place.open() as reader,
        place.open() as writer,
        reader.database.reading() as connection,
    ):
        before = connection.execute(select(d.meta)).all()
        with writer.database.writing() as other:
            other.execute(d.meta.insert().values(name="new", value="x"))
        assert connection.execute(select(d.meta)).all() == before


@pytest.mark.parametrize(
    "url", ["mysql://host/x", "sqlite://", "sqlite:///:memory:", "://", "a://["]
)
def test_urls_that_cannot_be(url: str) -> None:
    with pytest.raises(InvalidArgument):
        catalog_url(url)


def test_urls_that_can() -> None:
    assert catalog_url("postgres://u:p@h/db").drivername == "postgresql+psycopg"
    assert catalog_url("sqlite:////tmp/c.sqlite").database == "/tmp/c.sqlite"
    with pytest.raises(InvalidArgument, match="home"):
        Catalog("postgresql://localhost/x")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as failed:
        Catalog("postgresql://user:secret@127.0.0.1:1/x", home=tmp_path)
    assert "secret" not in str(failed.value)
