"""Rows of all kinds that a user may hand over."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sooner import Database, InvalidArgument, SoonerError
from sooner.engine.frames import to_spark

pytestmark = pytest.mark.spark

KINDS: dict[str, Callable[[Database], Any]] = {
    "list of tuples": lambda db: [(7, "x"), (8, None)],
    "list of lists": lambda db: [[7, "x"], [8, None]],
    "tuple of tuples": lambda db: ((7, "x"), (8, None)),
    "list of dicts": lambda db: [{"id": 7, "v": "x"}, {"v": None, "id": 8}],
    "dicts in other case": lambda db: [{"ID": 7, "V": "x"}, {"ID": 8, "V": None}],
    "dicts with a value left out": lambda db: [{"id": 7, "v": "x"}, {"id": 8}],
    "texts to be cast": lambda db: [("7", "x"), ("8", None)],
    "arrow table": lambda db: pa.table({"id": [7, 8], "v": ["x", None]}),
    "arrow table with an empty piece": lambda db: pa.concat_tables(
        [
            pa.table({"id": [7], "v": ["x"]}),
            pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())}),
            pa.table({"id": [8], "v": pa.array([None], pa.string())}),
        ]
    ),
    "arrow batch": lambda db: pa.record_batch({"id": [7, 8], "v": ["x", None]}),
    "arrow in another order": lambda db: pa.table({"v": ["x", None], "id": [7, 8]}),
    "arrow dictionary": lambda db: pa.table(
        {"id": [7, 8], "v": pa.array(["x", None]).dictionary_encode()}
    ),
    "pandas": lambda db: pd.DataFrame({"id": [7, 8], "v": ["x", None]}),
    "pandas with an index": lambda db: pd.DataFrame({"id": [7, 8], "v": ["x", None]}, index=[5, 6]),
    "pandas categories": lambda db: pd.DataFrame(
        {"id": np.array([7, 8], np.int8), "v": pd.Categorical(["x", None])}
    ),
    "spark": lambda db: db.spark.sql("SELECT * FROM VALUES (7, 'x'), (8, NULL) AS t(id, v)"),
    "frame": lambda db: db.sql("SELECT * FROM VALUES (7, 'x'), (8, NULL) AS t(id, v)"),
    "frame of itself": lambda db: db.sql(
        "SELECT id + 6 AS id, IF(id = 1, 'x', NULL) AS v FROM t WHERE id < 3"
    ),
}


@pytest.fixture
def t(database: Database, tmp_path: Path) -> Database:
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet", key="id")
    return database


def rows(database: Database) -> list[tuple[Any, ...]]:
    found = database.sql("SELECT id, v FROM t").exact().to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_kind(t: Database, kind: str) -> None:
    assert t.insert("t", KINDS[kind](t)) == 2
    assert rows(t) == [(1, "a"), (2, "b"), (7, "x"), (8, None)]


@pytest.mark.parametrize("keys", [[1], [(1,)], [{"id": 1}], pa.table({"id": [1]}), (1, 99)])
def test_keys_of_a_kind(t: Database, keys: Any) -> None:
    assert t.delete("t", keys) == 1
    assert rows(t) == [(2, "b")]


EMPTY: dict[str, Any] = {
    "list": [],
    "arrow": pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())}),
    "pandas": pd.DataFrame({"id": [], "v": []}),
    "untyped": pa.table({"id": pa.nulls(0), "v": pa.nulls(0)}),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_no_rows_are_no_version(t: Database, kind: str) -> None:
    assert t.insert("t", EMPTY[kind]) == 0
    assert t._catalog.table("t").version == 1


def test_no_rows_for_columns_of_any_type(database: Database, tmp_path: Path) -> None:
    some = pa.table({"id": [1], "list": [[1]], "struct": [{"a": 1}], "word": [b"a"]})
    pq.write_table(some, tmp_path / "nested.parquet")
    database.register("nested", tmp_path / "nested.parquet", key="id")
    assert database.insert("nested", []) == 0
    assert database.update("nested", some.to_pandas().iloc[:0]) == 0
    assert database._catalog.table("nested").version == 1


def test_a_column_of_nulls(t: Database) -> None:
    assert t.insert("t", [(7, None), (8, None)]) == 2
    assert rows(t)[2:] == [(7, None), (8, None)]


NO_ROWS: dict[str, Any] = {
    "number": 7,
    "nothing": None,
    "text": "rows",
    "bytes": b"rows",
    "dict": {"id": 7},
    "too short": [(7,)],
    "too long": [(7, "x", 1)],
    "mixed list": [(7, "x"), ("seven", b"x")],
    "mixed pandas": pd.DataFrame({"id": [7, 8], "v": ["x", 3]}),
    "objects": [(7, object())],
    "arrow type that Spark lacks": pa.table({"id": pa.array([7], pa.uint64()), "v": ["x"]}),
    "pandas without columns": pd.DataFrame(),
    "pandas with a column twice": pd.DataFrame([[7, "x", "x"]], columns=["id", "v", "v"]),
    "a number of more than 64 bits": [(2**63, "x")],
    "no time, in a list": [(7, pd.NaT)],
}


@pytest.mark.parametrize("kind", NO_ROWS)
def test_what_is_no_rows_is_refused(t: Database, kind: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        t.insert("t", NO_ROWS[kind])
    assert len(str(caught.value)) > 20
    assert t._catalog.table("t").version == 1


def test_two_columns_of_a_name_are_refused(t: Database) -> None:
    twice = pa.Table.from_arrays([pa.array([7]), pa.array([8]), pa.array(["x"])], ["id", "id", "v"])
    with pytest.raises(SoonerError, match="id"):
        t.insert("t", twice)
    assert t._catalog.table("t").version == 1


def test_values_of_all_types(database: Database) -> None:
    values = {
        "i": 2**62,
        "f": float("inf"),
        "s": "é\n'\"`",
        "b": True,
        "d": datetime.date(1582, 10, 20),
        "t": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
        "n": Decimal("1.20"),
        "x": b"\x00\xff",
        "a": [1, None],
    }
    (row,) = to_spark(database.spark, [values], list(values)).collect()
    got = row.asDict()
    assert got["t"].replace(tzinfo=None) in (values["t"], datetime.datetime(2024, 2, 29, 12))
    assert {k: v for k, v in got.items() if k != "t"} == {
        k: v for k, v in values.items() if k != "t"
    }
