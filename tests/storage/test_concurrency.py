"""Several processes and threads at once: one wins, the others are told, nothing is lost."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from storage_places import COLUMNS, Place

from sooner.errors import SoonerError, TableExists, WriteConflict
from sooner.storage import Change, DataFile, Scramble, Source, Table

PROCESSES = 4


def _in_processes(work: Callable[[int], Any]) -> list[Any]:
    """Run the work in forked processes that all start at the same moment."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(PROCESSES), context.SimpleQueue()

    def run(number: int) -> None:
        barrier.wait(30)
        try:
            results.put(work(number))
        except BaseException as error:
            results.put(f"{type(error).__name__}: {error}")

    processes = [context.Process(target=run, args=(number,)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return found


def test_a_new_home_opened_by_many_at_once(place: Place) -> None:
    def work(number: int) -> str:
        with place.open() as catalog:
            catalog.create_table(f"t{number}", COLUMNS, (), Source("view", ("v",)))
            return catalog.database.id

    found = _in_processes(work)
    with place.open() as catalog:
        assert found == [catalog.database.id] * PROCESSES
        assert len(catalog.tables()) == PROCESSES


def test_one_commit_wins_each_version(place: Place) -> None:
    rounds = 3
    with place.open() as catalog:
        catalog.create_table("t", COLUMNS, (), Source("view", ("v",)))

    def work(number: int) -> list[int]:
        won = []
        with place.open() as catalog:
            while len(won) < rounds:
                table = catalog.table("t")
                directory = catalog.home.new_directory(table.name, table.id, "insert")
                catalog.reserve(directory)
                file = DataFile(f"{directory}/part.parquet", number, 1)
                change = Change(table.version + 1, "insert", None, directory, (file,))
                try:
                    catalog.commit_change(table, [change], reserved=[directory])
                    won.append(table.version + 1)
                except WriteConflict:
                    catalog.release(directory)
        return won

    found = _in_processes(work)
    last = rounds * PROCESSES + 1
    assert sorted(version for won in found for version in won) == list(range(2, last + 1))
    with place.open() as catalog:
        table = catalog.table("t")
        assert table.version == last
        assert len({change.directory for change in table.changes}) == len(table.changes) == last - 1


def test_the_same_version_by_many_threads(place: Place) -> None:
    with place.open() as catalog:
        table = catalog.create_table("t", COLUMNS, (), Source("view", ("v",)))
        barrier = threading.Barrier(8)

        def work(number: int) -> bool:
            barrier.wait(30)
            try:
                catalog.commit_change(table, [Change(2, "insert", None, "", ())])
            except WriteConflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(work, range(8))) == [False] * 7 + [True]
        assert catalog.version("t") == (table.id, 2)


def test_a_scramble_and_a_change_at_once(place: Place) -> None:
    """Whichever comes second must fail, else the scramble would miss the change."""
    with place.open() as catalog:
        for number in range(4):
            table = catalog.create_table(f"t{number}", COLUMNS, (), Source("view", ("v",)))
            barrier = threading.Barrier(2)
            scramble = Scramble(0, ("id",), ("bigint",), 1, 2, 32, 1, "", ())
            works: list[Callable[[], Table]] = [
                lambda table=table: catalog.commit_change(
                    table, [Change(2, "insert", None, "", ())]
                ),
                lambda table=table, scramble=scramble: catalog.commit_scramble(table, scramble),
            ]

            def run(work: Callable[[], Table], barrier: threading.Barrier = barrier) -> str:
                barrier.wait(30)
                try:
                    work()
                except SoonerError as error:
                    return type(error).__name__
                return "won"

            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(run, works)) == ["WriteConflict", "won"]


def test_a_name_taken_by_many_at_once(place: Place) -> None:
    with place.open() as catalog:
        barrier = threading.Barrier(4)

        def work(replace: bool) -> str:
            barrier.wait(30)
            try:
                catalog.create_table("t", COLUMNS, (), Source("view", ("v",)), replace=replace)
            except TableExists:
                return "taken"
            return "made"

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(work, [False] * 4)) == ["made", "taken", "taken", "taken"]
            assert list(pool.map(work, [True] * 4)) == ["made"] * 4
        assert len(catalog.tables()) == 1


def test_readers_see_whole_versions(place: Place) -> None:
    with place.open() as catalog:
        table = catalog.create_table("t", COLUMNS, (), Source("view", ("v",)))
        stop = threading.Event()
        wrong: list[Table] = []

        def read() -> None:
            while not stop.is_set():
                seen = catalog.table("t")
                if [change.version for change in seen.changes] != list(range(2, seen.version + 1)):
                    wrong.append(seen)

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(15):
            change = Change(table.version + 1, "insert", None, "", ())
            table = catalog.commit_change(table, [change])
        stop.set()
        reader.join()
    assert wrong == []
