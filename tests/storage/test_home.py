from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sooner.errors import CatalogError, InvalidArgument
from sooner.storage import Catalog, Home, Table, vacuum
from sooner.storage.home import unit_of


def test_directories_are_new_every_time_and_not_yet_made(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    made = {home.new_directory("t", 3, "insert") for _ in range(100)}
    assert len(made) == 100
    assert all(Path(path).parent == home.data / "t-3" for path in made)
    assert not home.data.exists()
    with pytest.raises(InvalidArgument, match="label"):
        home.new_directory("t", 3, "../x")


def test_paths_below_the_home_are_stored_relative(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    for path in ("data/t-1/x/a b.parquet", "catalog.sqlite"):
        assert home.stored(str(home.path / path)) == path
        assert home.absolute(path) == str(home.path / path)
    assert home.stored(f"file://{home.path}/data/a%20b") == "data/a b"
    for path in ("/elsewhere/a", str(tmp_path / "house"), "s3a://bucket/a", ""):
        assert home.absolute(home.stored(path)) == path
    assert home.stored("a") == os.path.abspath("a")


def test_a_home_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Home(tmp_path / "link").stored(str(tmp_path / "real" / "data" / "x")) == "data/x"


def test_file_names_that_are_not_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="UTF-8"):
        Home(tmp_path).stored(os.fsdecode(b"/a/\xff.parquet"))


def test_units(tmp_path: Path) -> None:
    home = Home(tmp_path)
    directory = home.new_directory("t", 1, "insert")
    unit = home.stored(directory)
    assert home.unit(directory) == home.unit(directory + "/a/b.parquet") == unit
    for path in ("data", "data/t-1", "data/mine/photos", "/elsewhere/x", "other/t-1/x"):
        assert unit_of(path) is None


def test_a_home_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="Cannot use"):
        Home(tmp_path / "file")


def test_a_home_can_be_moved(
    tmp_path: Path, make_table: Callable[..., Table], insert: Callable[..., Table],
    scramble: Callable[..., Table], catalog: Catalog,
) -> None:  # fmt: skip
    before = insert(scramble(make_table()))
    catalog.close()
    moved = tmp_path / "moved"
    shutil.move(catalog.home.path, moved)
    url = catalog.database.url
    where = url.render_as_string(hide_password=False)
    if url.get_backend_name() == "sqlite":
        where = str(moved / "catalog.sqlite")
    with Catalog(where, home=moved) as opened:
        after = opened.table("t")
        assert after.files == before.files
        ours = [*after.scrambles[0].files, *(f for c in after.changes for f in c.files)]
        assert len(ours) == 3
        for file in ours:
            assert file.path.startswith(str(moved))
            assert Path(file.path).exists()
        assert after.scrambles[0].directory.startswith(str(moved))
        assert vacuum(opened.home, opened).directories == ()


def test_a_home_belongs_to_one_catalog(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Catalog(home).close()
    with pytest.raises(CatalogError, match="another catalog"):
        Catalog(tmp_path / "other.sqlite")
    Catalog(home).close()


def test_a_catalog_that_another_process_opens_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has noted the claim of both after we looked for it."""
    home = Home(tmp_path / "home")
    claims = Home._claims

    def after_the_other(self: Home) -> set[Path]:
        (self.data / ".catalog-mine").touch()
        return claims(self)

    monkeypatch.setattr(Home, "_claims", after_the_other)
    home.claim("mine")
    with pytest.raises(CatalogError, match="another catalog"):
        home.claim("another")
