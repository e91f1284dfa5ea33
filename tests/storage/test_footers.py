from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.errors import CatalogError, MissingFile
from sooner.storage import arrow_schema, facts_of, read_footers, schema_text, survey
from sooner.storage.encoding import decode_facts, encode_facts


def _file(path: Path, columns: dict[str, Any], **options: Any) -> str:
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def test_files_as_the_catalog_records_them(tmp_path: Path) -> None:
    path = _file(tmp_path / "a.parquet", {"a": list(range(10))}, row_group_size=4)
    (file,) = read_footers([f"file://{path}"], block_of=len)
    status = Path(path).stat()
    assert (file.path, file.rows, file.row_groups) == (path, 10, (4, 4, 2))
    assert (file.bytes, file.modified_ns) == (status.st_size, status.st_mtime_ns)
    assert (file.block, file.schema) == (len(path), '[["a", "int64"]]')
    assert schema_text(arrow_schema(path)) == file.schema


def test_bounds_and_nulls_of_every_type(tmp_path: Path) -> None:
    moment = datetime(2020, 1, 1, 1, 2, 3, 4)
    columns = {
        "i": pa.array([1, None, -5]),
        "u": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "f": pa.array([1.5, float("nan"), -2.0]),
        "s": pa.array(["b", "é", None]),
        "b": pa.array([b"\xff", b"\x00", b""]),
        "yes": pa.array([True, False, None]),
        "dec": pa.array([Decimal("1.20"), Decimal("-3.00"), None], pa.decimal128(20, 2)),
        "day": pa.array([date(2020, 1, 1), None, date(1969, 1, 1)]),
        "local": pa.array([moment, None, None], pa.timestamp("us")),
        "utc": pa.array([moment, None, None], pa.timestamp("us", tz="UTC")),
        "clock": pa.array([time(1, 2), time(3, 4), None]),
        "none": pa.nulls(3, pa.int64()),
        "a.b": pa.array([1, 2, 3]),
    }
    nested = {"list": pa.array([[1], [2], None]), "struct": pa.array([{"x": 1}, None, None])}
    facts = facts_of([_file(tmp_path / "a.parquet", columns | nested)])
    assert facts.columns == {
        "i": ColumnFacts(-5, 1, 1),
        "u": ColumnFacts(1, 2**64 - 1, 0),
        "f": ColumnFacts(-2.0, 1.5, 0),
        "s": ColumnFacts("b", "é", 1),
        "b": ColumnFacts(b"", b"\xff", 0),
        "yes": ColumnFacts(False, True, 1),
        "dec": ColumnFacts(Decimal("-3.00"), Decimal("1.20"), 1),
        "day": ColumnFacts(date(1969, 1, 1), date(2020, 1, 1), 1),
        "local": ColumnFacts(moment, moment, 2),
        "utc": ColumnFacts(moment.replace(tzinfo=UTC), moment.replace(tzinfo=UTC), 2),
        "clock": ColumnFacts(time(1, 2), time(3, 4), 1),
        "none": ColumnFacts(None, None, 3),
        "a.b": ColumnFacts(1, 3, 0),
    }
    assert decode_facts(encode_facts(facts)) == facts


def test_nanoseconds_are_rounded_outwards(tmp_path: Path) -> None:
    column = pa.array([1_001, 2_001], pa.timestamp("ns"))
    found = facts_of([_file(tmp_path / "a.parquet", {"t": column})]).column("t")
    assert (found.minimum, found.maximum) == (
        datetime(1970, 1, 1, 0, 0, 0, 1),
        datetime(1970, 1, 1, 0, 0, 0, 3),
    )
    assert type(found.minimum) is datetime


def test_dates_beyond_pythons_calendar_are_unknown(tmp_path: Path) -> None:
    days = pa.array([0, 10_000_000], pa.int32()).cast(pa.date32())
    found = facts_of([_file(tmp_path / "a.parquet", {"d": days})]).column("d")
    assert found == ColumnFacts(None, None, 0)


def test_only_nan_has_no_bounds(tmp_path: Path) -> None:
    found = facts_of([_file(tmp_path / "a.parquet", {"f": [float("nan")]})])
    assert found.column("f") == ColumnFacts(None, None, 0)


def test_absent_statistics_are_unknown(tmp_path: Path) -> None:
    known = _file(tmp_path / "a.parquet", {"a": [1], "b": [1]})
    silent = _file(tmp_path / "b.parquet", {"a": [2], "b": [2]}, write_statistics=["b"])
    facts = facts_of([known, silent])
    assert facts.columns == {"a": ColumnFacts(), "b": ColumnFacts(1, 2, 0)}
    assert facts.rows == 2


def test_files_together(tmp_path: Path) -> None:
    paths = [
        _file(tmp_path / f"{n}.parquet", {"a": [n, None], "b": [n, n]}, row_group_size=1)
        for n in range(20)
    ]
    files, facts = survey(paths)
    size = sum(Path(path).stat().st_size for path in paths)
    assert [file.path for file in files] == paths
    assert facts == TableFacts(40, size, {"a": ColumnFacts(0, 19, 20), "b": ColumnFacts(0, 19, 0)})


def test_empty_files(tmp_path: Path) -> None:
    empty = _file(tmp_path / "a.parquet", {"a": pa.array([], pa.int64())})
    assert facts_of([empty]).rows == 0
    full = _file(tmp_path / "b.parquet", {"a": [7]})
    assert facts_of([empty, full]).column("a") == ColumnFacts(7, 7, 0)
    assert facts_of([]) == TableFacts(0, 0, {})


def test_files_that_disagree(tmp_path: Path) -> None:
    one = _file(tmp_path / "a.parquet", {"a": [1], "b": [1]})
    two = _file(tmp_path / "b.parquet", {"a": ["x"]})
    facts = facts_of([one, two])
    assert facts.columns == {"a": ColumnFacts(None, None, 0), "b": ColumnFacts()}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.parquet")
    for call in (arrow_schema, lambda path: read_footers([path])):
        with pytest.raises(MissingFile, match=r"missing\.parquet"):
            call(missing)
    for content in (b"", b"PAR1", b"not parquet at all, though long enough", b"x" * 100 + b"PAR1"):
        broken = tmp_path / "broken.parquet"
        broken.write_bytes(content)
        with pytest.raises(CatalogError, match=r"broken\.parquet"):
            read_footers([str(broken)])
    with pytest.raises(CatalogError):
        read_footers([str(tmp_path)])
