"""Rows and keys are stored, and found, as what they were given as, or refused with nothing changed."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from sooner.errors import InvalidArgument, SoonerError

if TYPE_CHECKING:
    from pathlib import Path

    from sooner import Database

pytestmark = pytest.mark.spark

LARGE = 2**53


@pytest.fixture
def opened(database: Database, tmp_path: Path) -> Database:
    tables = {
        "whole": ("bigint", [(1,), (3,), (LARGE,), (LARGE + 1,)]),
        "text": ("string", [("1",), ("01",), ("true",)]),
        "dec": ("decimal(20,19)", [(Decimal("0.1"),), (Decimal("0.1000000000000000055"),)]),
        "day": ("date", [(datetime.date(2024, 1, 1),)]),
    }
    for name, (type_, rows) in tables.items():
        whole = [(*row, n) for n, row in enumerate(rows)]
        place = str(tmp_path / name)
        frame = database.spark.createDataFrame(whole, f"k {type_}, n int")
        frame.coalesce(1).write.parquet(place)
        database.register(name, place, key="k")
    return database


def keys(database: Database, name: str) -> list[Any]:
    found = database.sql(f"SELECT k FROM {name} ORDER BY k").exact().to_arrow()
    return found.column("k").to_pylist()


def test_a_key_deletes_the_row_that_has_it(opened: Database) -> None:
    assert opened.delete("text", [(1,)]) == 1
    assert keys(opened, "text") == ["01", "true"]
    assert opened.delete("dec", [(0.1,)]) == 1
    assert keys(opened, "dec") == [Decimal("0.1000000000000000055")]
    assert opened.delete("whole", pd.DataFrame({"k": [3.0, None]})) == 1
    assert opened.delete("day", [(pd.Timestamp("2024-01-01"),)]) == 1


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("whole", 1.9),
        ("whole", float(LARGE)),
        ("whole", Decimal("1.5")),
        ("whole", True),
        ("day", datetime.datetime(2024, 1, 1, 12)),
    ],
)
def test_a_key_that_would_be_another_is_refused(opened: Database, table: str, key: Any) -> None:
    before = opened.sql(f"SELECT * FROM {table} ORDER BY k").exact().to_pandas()
    row = [{"k": key, "n": 7}]
    for change in (
        lambda: opened.delete(table, [(key,)]),
        lambda: opened.update(table, row),
        lambda: opened.insert(table, row),
    ):
        with pytest.raises(InvalidArgument, match="k"):
            change()
    after = opened.sql(f"SELECT * FROM {table} ORDER BY k").exact().to_pandas()
    assert before.equals(after)


def test_fractions_are_not_cut_off(opened: Database) -> None:
    with pytest.raises(InvalidArgument, match=r"3\.7 cannot be put into the column n of type int"):
        opened.insert("whole", [{"k": 9, "n": 3.7}])
    assert opened.insert("whole", pd.DataFrame({"k": [9, 10], "n": [3.0, None]})) == 2
    with pytest.raises(SoonerError, match=r"two columns of one name: k, K, n"):
        opened.insert("whole", [{"k": 11, "K": 11, "n": 3}])
