"""Synopses in the catalog: named, replaced, dropped with their table, kept from vacuum."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, update
from storage_places import Place

from sooner.errors import SynopsisExists, UnknownSynopsis, WriteConflict
from sooner.storage import Catalog, Table, vacuum
from sooner.storage import definitions as d
from sooner.storage.synopses import (
    StoredSynopsis,
    commit_synopsis,
    drop_synopsis,
    require_free,
    stored_synopses,
    stored_synopsis,
)


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    return make_table()


def written(catalog: Catalog, table: Table, name: str, replace: bool = False) -> StoredSynopsis:
    directory = catalog.home.new_directory(table.name, table.id, "synopsis")
    catalog.reserve(directory)
    Path(directory).mkdir(parents=True)
    (Path(directory) / "nodes.parquet").write_bytes(b"here")
    stored = StoredSynopsis(name, table.name, table.version, '{"name": "s"}', directory)
    commit_synopsis(catalog, table, stored, [directory], replace)
    return stored


def test_they_are_found_by_name_and_by_table(catalog: Catalog, table: Table) -> None:
    stored = written(catalog, table, "Light")
    assert stored_synopsis(catalog, "LIGHT") == stored
    assert stored_synopses(catalog) == stored_synopses(catalog, table.name) == [stored]
    with pytest.raises(UnknownSynopsis, match="Did you mean 'Light'"):
        stored_synopsis(catalog, "ligt")


def test_a_second_of_the_same_name(catalog: Catalog, table: Table) -> None:
    first = written(catalog, table, "s")
    with pytest.raises(SynopsisExists, match="replace=True"):
        require_free(catalog, "S")
    with pytest.raises(SynopsisExists):
        written(catalog, table, "S")
    assert stored_synopses(catalog) == [first]
    second = written(catalog, table, "S", replace=True)
    assert stored_synopses(catalog) == [second]


def test_vacuum_leaves_them_alone_until_they_are_dropped(catalog: Catalog, table: Table) -> None:
    stored = written(catalog, table, "s")
    vacuum(catalog.home, catalog, timedelta(0))
    assert Path(stored.directory).exists()
    drop_synopsis(catalog, "s")
    vacuum(catalog.home, catalog, timedelta(hours=1))
    assert Path(stored.directory).exists(), "somebody may still be reading it"
    vacuum(catalog.home, catalog, timedelta(0))
    assert not Path(stored.directory).exists()


def test_they_go_with_their_table(catalog: Catalog, table: Table) -> None:
    stored = written(catalog, table, "s")
    catalog.drop_table(table.name)
    assert stored_synopses(catalog) == []
    with pytest.raises(WriteConflict):
        written(catalog, table, "other")
    vacuum(catalog.home, catalog, timedelta(0))
    assert not Path(stored.directory).exists()


def test_a_catalog_of_the_first_format_is_brought_up_to_date(place: Place) -> None:
    with Catalog(place.url, place.home) as catalog, catalog.database.writing() as connection:
        d.synopses.drop(connection)
        of_format = d.meta.c.name == "schema_version"
        connection.execute(update(d.meta).where(of_format).values(value="1"))
    with Catalog(place.url, place.home) as catalog:
        assert stored_synopses(catalog) == []
        with catalog.database.reading() as connection:
            assert inspect(connection).has_table(d.synopses.name)
            query = select(d.meta.c.value).where(d.meta.c.name == "schema_version")
            assert connection.execute(query).scalar_one() == str(d.SCHEMA_VERSION)
