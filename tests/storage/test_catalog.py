from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from sooner.algebra.schema import Column
from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.errors import (
    CatalogError,
    InvalidArgument,
    TableExists,
    UnknownColumn,
    UnknownTable,
    WriteConflict,
)
from sooner.storage import Catalog, Change, DataFile, Scramble, Source, Table

Make = Callable[..., Table]
Write = Callable[..., tuple[str, DataFile]]


def test_a_new_table_reads_back_as_it_was_made(catalog: Catalog) -> None:
    columns = (Column("id", "bigint"), Column("naïve ü", "decimal(15,2)"), Column("v", None))
    files = (
        DataFile("/a/1.parquet", 5, 50, 2**60, (2, 3), None, '[["id", "int64"]]'),
        DataFile("/a/2.parquet", 1, 10, None, (1,), 4, '[["id", "int32"]]'),
        DataFile("s3a://bucket/3.parquet", 1, 10, None, (1,), None, '[["id", "int64"]]'),
    )
    source = Source("csv", ("a/*.csv", "b"), {"header": "true"})
    facts = TableFacts(6, 60, {"id": ColumnFacts(1, 9, 0, 6)})
    made = catalog.create_table("Sales_2024", columns, ["ID"], source, files, facts=facts)
    assert made == Table(made.id, "Sales_2024", columns, ("id",), source, 1, files, (), (), facts)
    assert catalog.table("sales_2024") == made
    assert catalog.tables() == (made,)
    assert catalog.version("SALES_2024") == (made.id, 1)


def test_rows_come_from_the_files_where_no_facts_are_given(make_table: Make) -> None:
    assert make_table().facts == TableFacts(100, 1000)


def test_a_view_needs_no_files(catalog: Catalog) -> None:
    table = catalog.create_table("v", (Column("a", "int"),), (), Source("view", ("v",)))
    assert (table.files, table.facts) == ((), TableFacts())


def test_a_taken_name_says_what_to_do(catalog: Catalog, make_table: Make) -> None:
    first = make_table("t")
    with pytest.raises(TableExists, match="replace=True"):
        make_table("T")
    again = make_table("T", replace=True)
    assert again.id > first.id
    assert [table.name for table in catalog.tables()] == ["T"]


def test_ids_are_never_given_twice(catalog: Catalog, make_table: Make) -> None:
    first = make_table()
    catalog.drop_table("t")
    assert make_table().id > first.id


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "a;drop", "ä", "x" * 129, "a\n"])
def test_names_are_plain(make_table: Make, name: str) -> None:
    with pytest.raises(InvalidArgument, match="table name"):
        make_table(name)


def test_columns_and_keys_are_checked(catalog: Catalog) -> None:
    source = Source("view", ("v",))
    with pytest.raises(UnknownColumn, match="Did you mean 'order_id'"):
        catalog.create_table("t", (Column("order_id"),), ["orderid"], source)
    with pytest.raises(InvalidArgument, match="twice"):
        catalog.create_table("t", (Column("a"),), ["a", "A"], source)
    with pytest.raises(InvalidArgument, match="Two columns"):
        catalog.create_table("t", (Column("a"), Column("A")), [], source)
    with pytest.raises(InvalidArgument, match="at least one column"):
        catalog.create_table("t", (), [], source)
    assert catalog.tables() == ()


def test_an_unknown_table_suggests_the_nearest(catalog: Catalog, make_table: Make) -> None:
    make_table("lineitem")
    for ask in (catalog.table, catalog.version, catalog.drop_table, catalog.history):
        with pytest.raises(UnknownTable, match="Did you mean 'lineitem'"):
            ask("lineitm")


def test_a_dropped_table_is_gone(catalog: Catalog, make_table: Make, insert: Make) -> None:
    insert(make_table())
    catalog.drop_table("T")
    assert catalog.tables() == ()
    make_table()
    assert len(catalog.history("t")) == 1


def test_a_change_is_the_next_version(catalog: Catalog, make_table: Make, insert: Make) -> None:
    first = make_table()
    second = insert(first, rows=10)
    third = insert(second, rows=4, kind="delete")
    assert [second.version, third.version] == [2, 3]
    assert [table.facts.rows for table in (first, second, third)] == [100, 110, 106]
    assert [(change.version, change.kind, change.rows) for change in third.changes] == [
        (2, "insert", 10),
        (3, "delete", 4),
    ]
    assert catalog.table("t") == third
    assert catalog.table("t", version=2) == second
    assert catalog.table("t", version=1) == first
    for version in (0, 4, -1):
        with pytest.raises(InvalidArgument, match="versions 1 to 3"):
            catalog.table("t", version=version)


def test_history_says_what_each_version_did(
    catalog: Catalog, make_table: Make, insert: Make, write: Write
) -> None:
    table = insert(insert(make_table(), 10), 4, kind="delete")
    (one, added), (two, removed) = write(table, "insert", 2), write(table, "delete", 2)
    changes = [Change(4, "insert", None, one, (added,)), Change(4, "delete", None, two, (removed,))]
    assert catalog.commit_change(table, changes, reserved=[one, two]).facts.rows == 106
    found = catalog.history("T")
    assert [(h.version, h.what, h.inserted, h.deleted) for h in found] == [
        (1, "register", 100, 0),
        (2, "insert", 10, 0),
        (3, "delete", 0, 4),
        (4, "update", 2, 2),
    ]
    assert all(entry.committed_at.tzinfo is UTC for entry in found)
    assert abs(found[-1].committed_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_stale_reader_cannot_commit(make_table: Make, insert: Make) -> None:
    table = make_table()
    insert(table)
    with pytest.raises(WriteConflict, match="version 2"):
        insert(table)


def test_nor_can_the_reader_of_a_replaced_table(make_table: Make, insert: Make) -> None:
    table = make_table()
    make_table(replace=True)
    with pytest.raises(WriteConflict, match="replaced"):
        insert(table)


def test_a_change_must_be_complete(catalog: Catalog, make_table: Make, scramble: Make) -> None:
    table = scramble(make_table())
    layout = table.scrambles[0].id

    def change(scramble_id: int | None, rows: int = 1, version: int = 2) -> Change:
        file = DataFile("/elsewhere/x.parquet", rows, 1)
        return Change(version, "insert", scramble_id, "/elsewhere", (file,))

    for wrong, why in [
        ([], "nothing to commit"),
        ([change(None)], f"wanted {layout}, plain, got plain"),
        ([change(layout)], "got"),
        ([change(None), change(layout), change(None)], "got"),
        ([change(None), change(layout + 1)], "got"),
        ([change(None, rows=2), change(layout, rows=1)], "unlike numbers of rows"),
        ([change(None, version=3), change(layout, version=3)], "next version"),
    ]:
        with pytest.raises(InvalidArgument, match=why):
            catalog.commit_change(table, wrong)
    assert catalog.table("t") == table


def test_files_of_ours_must_be_reserved(catalog: Catalog, make_table: Make, write: Write) -> None:
    table = make_table()
    directory, file = write(table, "insert")
    changes = [Change(2, "insert", None, directory, (file,))]
    with pytest.raises(InvalidArgument, match="not reserved"):
        catalog.commit_change(table, changes)
    catalog.release(directory)
    with pytest.raises(WriteConflict, match="no longer reserved"):
        catalog.commit_change(table, changes, reserved=[directory])
    assert catalog.table("t") == table


def test_reservations(catalog: Catalog) -> None:
    directory = catalog.home.new_directory("t", 1, "insert")
    catalog.reserve(directory)
    with pytest.raises(CatalogError, match="reserved already"):
        catalog.reserve(directory)
    catalog.renew(directory)
    catalog.release(directory)
    catalog.release(directory)
    with pytest.raises(WriteConflict):
        catalog.renew(directory)
    for wrong in ("/elsewhere", str(catalog.home.data), directory + "/deeper"):
        with pytest.raises(InvalidArgument, match="new_directory"):
            catalog.reserve(wrong)


def test_a_table_of_our_own_files(catalog: Catalog, write: Write) -> None:
    directory, file = write(None, "base", rows=3)
    source = Source("parquet", (directory,))
    columns = (Column("a", "int"),)
    with pytest.raises(InvalidArgument, match="not reserved"):
        catalog.create_table("t", columns, (), source, [file])
    table = catalog.create_table("t", columns, (), source, [file], reserved=[directory])
    assert table.files == (file,)


def test_a_scramble_is_a_second_layout(catalog: Catalog, make_table: Make, scramble: Make) -> None:
    table = scramble(make_table(), by=("ID",))
    (made,) = table.scrambles
    assert (table.version, made.by, made.base_version) == (1, ("id",), 1)
    assert made.files[0].block == 3
    assert catalog.table("t") == table
    assert table.scramble_by(["Id"]) == made
    assert table.scramble_by(["x"]) is None
    assert table.scramble(made.id) == made
    with pytest.raises(CatalogError, match="no scramble 999"):
        table.scramble(999)


def test_changes_of_a_layout(make_table: Make, scramble: Make, insert: Make) -> None:
    second = insert(make_table())
    third = insert(scramble(second))
    layout = third.scrambles[0].id
    assert [change.version for change in third.changes_of(None)] == [2, 3]
    assert [change.version for change in third.changes_of(layout)] == [3]


def test_an_older_version_cannot_use_a_newer_scramble(
    catalog: Catalog, make_table: Make, scramble: Make, insert: Make
) -> None:
    first = make_table()
    insert(scramble(insert(first)))
    assert catalog.table("t", version=1) == first
    assert len(catalog.table("t", version=2).scrambles) == 1


def test_equal_scrambles_are_refused(make_table: Make, scramble: Make) -> None:
    plain = make_table()
    table = scramble(plain)
    with pytest.raises(CatalogError, match="already") as refused:
        scramble(table)
    assert not isinstance(refused.value, WriteConflict)
    with pytest.raises(WriteConflict, match="already"):
        scramble(plain)
    assert len(scramble(plain, salt=8).scrambles) == 2


def test_a_scramble_of_a_table_that_moved_is_refused(
    catalog: Catalog, make_table: Make, scramble: Make, insert: Make
) -> None:
    table = make_table()
    moved = insert(table)
    with pytest.raises(WriteConflict, match="version 2"):
        scramble(table)
    wrong = Scramble(0, ("id",), ("bigint",), 0, 1, 1, 1, "", ())
    with pytest.raises(InvalidArgument, match="cannot be added"):
        catalog.commit_scramble(moved, wrong)
    with pytest.raises(UnknownColumn):
        scramble(moved, by=("nope",))


def test_a_scramble_holds_every_row(catalog: Catalog, make_table: Make, write: Write) -> None:
    table = make_table()
    directory, file = write(table, "scramble", rows=99, block=0)
    short = Scramble(0, ("id",), ("bigint",), 0, 1, 1, 1, directory, (file,))
    with pytest.raises(CatalogError, match="holds 99 rows, but 't' has 100"):
        catalog.commit_scramble(table, short, reserved=[directory])


def test_a_change_that_misses_a_new_scramble_is_refused(
    make_table: Make, scramble: Make, insert: Make
) -> None:
    table = make_table()
    scramble(table)
    with pytest.raises(WriteConflict, match="added or dropped"):
        insert(table)


def test_a_dropped_scramble_takes_its_changes_along(
    catalog: Catalog, make_table: Make, scramble: Make, insert: Make
) -> None:
    table = insert(scramble(make_table()))
    layout = table.scrambles[0].id
    after = catalog.drop_scramble(table, layout)
    assert (after.scrambles, len(after.changes), after.version) == ((), 1, 2)
    assert catalog.table("t") == after
    with pytest.raises(CatalogError, match="no scramble"):
        catalog.drop_scramble(after, layout)
    with pytest.raises(WriteConflict, match="added or dropped"):
        insert(table)


def test_distinct_counts_belong_to_a_version(
    catalog: Catalog, make_table: Make, insert: Make
) -> None:
    table = make_table()
    counted = catalog.record_distinct(table, {"ID": 100, "x": 3})
    assert counted.facts.column("id").distinct == 100
    assert catalog.table("t").facts.column("x").distinct == 3
    later = insert(table)
    assert later.facts.column("id").distinct is None
    assert catalog.table("t", version=1) == counted
    with pytest.raises(UnknownColumn):
        catalog.record_distinct(table, {"y": 1})
    with pytest.raises(InvalidArgument):
        catalog.record_distinct(table, {"x": -1})
    catalog.drop_table("t")
    with pytest.raises(WriteConflict):
        catalog.record_distinct(table, {"x": 1})


def test_facts_are_widened_by_inserts(make_table: Make, insert: Make) -> None:
    facts = TableFacts(100, 1000, {"id": ColumnFacts(1, 100, 0), "x": ColumnFacts(0.5, 2.0, 3)})
    table = make_table(facts=facts)
    more = TableFacts(10, None, {"id": ColumnFacts(50, 400, 0), "x": ColumnFacts(1.0, 1.0, 1)})
    second = insert(table, 10, facts=more)
    assert second.facts == TableFacts(
        110, 1010, {"id": ColumnFacts(1, 400, 0), "x": ColumnFacts(0.5, 2.0, 4)}
    )
    third = insert(second, 1, kind="delete")
    assert third.facts == TableFacts(
        109, 1020, {"id": ColumnFacts(1, 400, 0), "x": ColumnFacts(0.5, 2.0, None)}
    )
    unknown = insert(third, 1)
    assert unknown.facts.column("id") == ColumnFacts()
