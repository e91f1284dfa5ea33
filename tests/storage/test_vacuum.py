from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from sooner.algebra.schema import Column
from sooner.errors import CatalogError, InvalidArgument, WriteConflict
from sooner.storage import Catalog, Change, DataFile, Home, Source, Table, vacuum

Make = Callable[..., Table]
Write = Callable[..., tuple[str, DataFile]]
NOW = timedelta(0)


def test_an_empty_home_has_nothing_to_remove(home: Home, catalog: Catalog) -> None:
    report = vacuum(home, catalog)
    assert (report.directories, report.files, report.bytes) == ((), 0, 0)


def test_what_tables_need_is_kept(
    catalog: Catalog, make_table: Make, insert: Make, scramble: Make, write: Write
) -> None:
    home = catalog.home
    directory, file = write(None, "base")
    source = Source("parquet", (directory,))
    ours = catalog.create_table("ours", (Column("id"),), (), source, [file], reserved=[directory])
    table = insert(insert(scramble(insert(make_table()))), kind="delete")
    assert vacuum(home, catalog, NOW).directories == ()
    for found in (*ours.files, *(f for c in table.changes for f in c.files)):
        assert found.path.startswith("/elsewhere") or Path(found.path).exists()


def test_an_abandoned_write_is_removed_when_it_is_old(
    home: Home, catalog: Catalog, make_table: Make, write: Write
) -> None:
    directory, _ = write(make_table(), "insert", size=123)
    assert vacuum(home, catalog).directories == ()
    assert Path(directory).exists()
    report = vacuum(home, catalog, NOW)
    assert (report.directories, report.files, report.bytes) == ((directory,), 1, 123)
    assert not Path(directory).exists()


def test_a_released_write_is_removed_at_once(
    home: Home, catalog: Catalog, make_table: Make, write: Write
) -> None:
    directory, _ = write(make_table(), "insert")
    catalog.release(directory)
    assert vacuum(home, catalog).directories == (directory,)


def test_a_writer_that_was_too_slow_is_told(
    home: Home, catalog: Catalog, make_table: Make, write: Write
) -> None:
    table = make_table()
    directory, file = write(table, "insert")
    vacuum(home, catalog, NOW)
    with pytest.raises(WriteConflict, match="vacuum"):
        catalog.renew(directory)
    with pytest.raises(WriteConflict, match="vacuum"):
        catalog.commit_change(
            table, [Change(2, "insert", None, directory, (file,))], reserved=[directory]
        )
    assert catalog.table("t") == table


def test_a_write_that_is_renewed_is_kept(
    home: Home, catalog: Catalog, make_table: Make, write: Write
) -> None:
    directory, _ = write(make_table(), "insert")
    catalog.renew(directory)
    assert vacuum(home, catalog, timedelta(seconds=30)).directories == ()


def test_a_commit_during_the_vacuum_is_kept(
    home: Home, catalog: Catalog, make_table: Make, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is listed as pending, and committed before the vacuum asks the catalog."""
    table = make_table()
    directory, file = write(table, "insert")
    listed = vacuum.__globals__["_units_on_disk"]

    def then_commit(home: Home) -> list[str]:
        units = list(listed(home))
        assert len(units) == 1
        catalog.commit_change(
            table, [Change(2, "insert", None, directory, (file,))], reserved=[directory]
        )
        return units

    monkeypatch.setitem(vacuum.__globals__, "_units_on_disk", then_commit)
    assert vacuum(home, catalog, NOW).directories == ()
    assert Path(file.path).exists()


def test_a_write_that_begins_during_the_vacuum_is_kept(
    home: Home, catalog: Catalog, make_table: Make, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table()
    old, _ = write(table, "insert")
    started: list[str] = []
    remove = vacuum.__globals__["_remove"]

    def write_then_remove(directory: Path) -> None:
        started.append(write(table, "insert")[0])
        remove(directory)

    monkeypatch.setitem(vacuum.__globals__, "_remove", write_then_remove)
    assert vacuum(home, catalog, NOW).directories == (old,)
    assert Path(started[0]).exists()


@pytest.mark.parametrize("moment", ["before", "half"])
def test_a_vacuum_that_was_killed_is_finished_by_the_next(
    catalog: Catalog, make_table: Make, write: Write, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    home = catalog.home
    table = make_table()
    directories = sorted(write(table, "insert")[0] for _ in range(3))

    def killed(directory: Path) -> None:
        if moment == "half":
            (directory / "part.parquet").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(vacuum.__globals__, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            vacuum(home, catalog, NOW)
    # The stale reservations are gone: their age matters no more.
    assert vacuum(home, catalog).directories == tuple(directories)
    assert not any(Path(directory).exists() for directory in directories)


def test_a_dropped_table_is_removed_when_its_readers_had_time(
    home: Home, catalog: Catalog, make_table: Make, insert: Make, scramble: Make
) -> None:
    table = insert(scramble(make_table()))
    catalog.drop_table("t")
    assert vacuum(home, catalog).directories == ()
    report = vacuum(home, catalog, NOW)
    assert len(report.directories) == 3
    assert not (home.data / f"t-{table.id}").exists()


def test_a_replaced_table_and_a_dropped_scramble_too(
    home: Home, catalog: Catalog, make_table: Make, insert: Make, scramble: Make
) -> None:
    insert(make_table())
    kept = insert(scramble(make_table(replace=True)))
    assert len(vacuum(home, catalog, NOW).directories) == 1
    kept = catalog.drop_scramble(kept, kept.scrambles[0].id)
    assert vacuum(home, catalog).directories == ()
    assert len(vacuum(home, catalog, NOW).directories) == 2
    assert Path(kept.changes[0].files[0].path).exists()
    assert catalog.table("t") == kept


def test_a_dry_run_only_reports(
    home: Home, catalog: Catalog, make_table: Make, write: Write
) -> None:
    table = make_table()
    directory, file = write(table, "insert", size=5)
    report = vacuum(home, catalog, NOW, dry_run=True)
    assert (report.directories, report.files, report.bytes) == ((directory,), 1, 5)
    catalog.commit_change(
        table, [Change(2, "insert", None, directory, (file,))], reserved=[directory]
    )
    assert Path(file.path).exists()


def test_what_is_not_ours_is_not_touched(home: Home, catalog: Catalog, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_text("precious")
    mine = home.data / "mine" / "photos"
    mine.mkdir(parents=True)
    (mine / "a.jpg").touch()
    (home.data / "note.txt").touch()
    (home.data / "mine" / "note.txt").touch()
    # Links with the names of directories of ours, and one inside a directory of ours.
    name = os.path.basename(home.new_directory("t", 1, "insert"))
    (home.data / "mine" / name).symlink_to(outside)
    (home.data / "t-1").symlink_to(outside)
    (outside / name).mkdir()
    doomed = Path(home.new_directory("t", 2, "insert"))
    doomed.mkdir(parents=True)
    (doomed / "link").symlink_to(outside)
    (doomed / "file").symlink_to(outside / "precious.parquet")
    assert vacuum(home, catalog, NOW).directories == (str(doomed),)
    assert (outside / "precious.parquet").read_text() == "precious"
    assert (outside / name).is_dir()
    assert (mine / "a.jpg").exists()
    assert (home.data / "mine" / name).is_symlink()


def test_data_behind_a_link_is_refused(home: Home, catalog: Catalog, tmp_path: Path) -> None:
    shutil.move(home.data, tmp_path / "moved")
    home.data.symlink_to(tmp_path / "moved")
    with pytest.raises(CatalogError, match="symbolic link"):
        vacuum(home, catalog)


def test_the_home_must_be_the_catalogs(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="not the home"):
        vacuum(Home(tmp_path / "other"), catalog)


def test_writers_and_vacuums_at_once_lose_nothing(
    home: Home, catalog: Catalog, make_table: Make
) -> None:
    """Vacuums that wait for nobody, against writers in a hurry: what is committed is there."""
    make_table()
    done = threading.Event()

    def write_some(rows: int) -> int:
        won = 0
        for _ in range(4):
            table = catalog.table("t")
            directory = Path(home.new_directory(table.name, table.id, "insert"))
            catalog.reserve(str(directory))
            try:
                directory.mkdir(parents=True, exist_ok=True)
                (directory / "part.parquet").write_bytes(b"x")
                file = DataFile(str(directory / "part.parquet"), rows, 1)
                change = Change(table.version + 1, "insert", None, str(directory), (file,))
                catalog.commit_change(table, [change], reserved=[str(directory)])
                won += 1
            except (WriteConflict, FileNotFoundError):
                catalog.release(str(directory))
        return won

    def vacuum_on() -> int:
        removed = 0
        while not done.is_set():
            removed += len(vacuum(home, catalog, NOW).directories)
        return removed

    with ThreadPoolExecutor(4) as pool:
        vacuums = [pool.submit(vacuum_on) for _ in range(2)]
        writers = [pool.submit(write_some, rows) for rows in (1, 2)]
        won = sum(writer.result() for writer in writers)
        done.set()
        removed = sum(each.result() for each in vacuums)
    changes = catalog.table("t").changes
    assert len(changes) == won
    assert all(Path(change.files[0].path).exists() for change in changes)
    vacuum(home, catalog, NOW)
    left = [path for path in home.data.glob("*/*") if path.is_dir()]
    assert sorted(map(str, left)) == sorted(change.directory for change in changes)
    assert won + removed > 0
