"""Row groups as footers tell them, and which columns Arrow may read in Spark's place."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner.algebra import Column
from sooner.analysis.facts import ColumnFacts
from sooner.storage import Source, Table, survey
from sooner.storage.arrow_types import reads_alike
from sooner.storage.row_groups import row_groups, why_not_by_row_groups


def registered(place: Path, *columns: Column) -> Table:
    files, facts = survey([str(place)])
    source = Source("parquet", (str(place),))
    return Table(1, "t", columns, (), source, 1, files, (), (), facts)


def test_row_groups_and_their_bounds(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    rows = pa.table({"a": pa.array([1, 5, None, 9, 7], pa.int32()), "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    pq.write_table(rows, place, row_group_size=2)
    found = row_groups(registered(place, Column("a", "int"), Column("x", "double")))
    assert [(group.number, group.rows) for group in found] == [(0, 2), (1, 2), (2, 1)]
    assert [group.columns["a"] for group in found] == [
        ColumnFacts(1, 5, 0),
        ColumnFacts(9, 9, 1),
        ColumnFacts(7, 7, 0),
    ]
    assert all(group.bytes > 0 for group in found)


def test_a_file_without_rows_has_no_row_groups(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int32())}), place)
    assert row_groups(registered(place, Column("a", "int"))) == ()


@pytest.mark.parametrize(
    ("note", "is_spark"),
    [
        ({b"org.apache.spark.version": b"2.4.8"}, True),
        ({b"org.apache.spark.version": b"3.5.1", b"org.apache.spark.legacyDateTime": b""}, True),
        ({b"org.apache.spark.version": b"4.0.0"}, False),
        ({}, False),
    ],
)
def test_days_of_another_calendar_are_for_spark(
    tmp_path: Path, note: dict[bytes, bytes], is_spark: bool
) -> None:
    place = tmp_path / "t.parquet"
    rows = pa.table({"a": [1, 2], "day": [date(1500, 1, 1), date(2020, 1, 1)]})
    pq.write_table(rows.replace_schema_metadata(note), place)
    table = registered(place, Column("a", "bigint"), Column("day", "date"))
    assert why_not_by_row_groups(table, ["A"]) is None
    reason = why_not_by_row_groups(table, ["a", "day"])
    assert (reason == "column day of t (date) is for Spark to read") is is_spark


@pytest.mark.parametrize(
    ("type_", "arrow", "alike"),
    [
        ("int", pa.int32(), True),
        ("int", pa.int16(), False),
        ("bigint", pa.uint32(), False),
        ("decimal(20,0)", pa.uint64(), False),
        ("decimal(8,2)", pa.decimal128(8, 2), True),
        ("decimal(9,2)", pa.decimal128(8, 2), False),
        ("string", pa.dictionary(pa.int32(), pa.string()), True),
        ("string", pa.large_string(), True),
        ("string", pa.binary(), False),
        ("string collate UTF8_LCASE", pa.string(), False),
        ("timestamp", pa.timestamp("us", "Europe/Paris"), True),
        ("timestamp", pa.timestamp("us"), False),
        ("timestamp", pa.timestamp("ns", "UTC"), False),
        ("timestamp_ntz", pa.timestamp("ms"), True),
        ("timestamp_ntz", pa.timestamp("us", "UTC"), False),
        ("date", pa.date64(), False),
        ("array<int>", pa.list_(pa.int32()), False),
    ],
)
def test_types_that_both_read_alike(type_: str, arrow: pa.DataType, alike: bool) -> None:
    assert reads_alike(type_, arrow) is alike
