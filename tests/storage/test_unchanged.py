from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner.errors import MissingFile, SchemaChanged, SourceChanged
from sooner.storage import DataFile, check_unchanged, compare_schemas, read_footers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.parquet"


def _record(path: Path, columns: dict[str, Any]) -> DataFile:
    pq.write_table(pa.table(columns), path)
    return read_footers([str(path)])[0]


def test_the_same_files_pass(path: Path) -> None:
    file = _record(path, {"a": [1]})
    check_unchanged([file, DataFile("s3a://bucket/x", 1, 1)])


def test_a_lost_file(path: Path) -> None:
    file = _record(path, {"a": [1]})
    path.unlink()
    with pytest.raises(MissingFile, match=r"a\.parquet is gone.*replace=True"):
        check_unchanged([file])


def test_other_content(path: Path) -> None:
    file = _record(path, {"a": [1]})
    _record(path, {"a": [1, 2, 3]})
    with pytest.raises(SourceChanged, match=r"a\.parquet.*replace=True") as failed:
        check_unchanged([file])
    assert not isinstance(failed.value, SchemaChanged)


def test_the_same_size_at_another_time(path: Path) -> None:
    file = _record(path, {"a": [1]})
    os.utime(path, ns=(0, 1))
    with pytest.raises(SourceChanged):
        check_unchanged([file])
    check_unchanged([DataFile(file.path, 1, file.bytes, None)])


def test_other_columns(path: Path) -> None:
    file = _record(path, {"a": [1], "b": [2], "c": [3]})
    _record(path, {"a": ["x"], "b": [2], "d": [3]})
    with pytest.raises(SchemaChanged) as failed:
        check_unchanged([file])
    for phrase in (
        "column 'a' was int64 and is string", "column 'c' is gone", "column 'd' (int64) is new",
    ):  # fmt: skip
        assert phrase in str(failed.value)


def test_columns_in_another_order() -> None:
    assert compare_schemas('[["a", "x"], ["b", "y"]]', '[["b", "y"], ["a", "x"]]') == [
        "the columns are in another order"
    ]
    assert compare_schemas('[["a", "x"]]', '[["a", "x"]]') == []


def test_no_longer_parquet(path: Path) -> None:
    file = _record(path, {"a": [1]})
    path.write_bytes(b"junk")
    with pytest.raises(SourceChanged):
        check_unchanged([file])
