"""A view is drawn by a part of its key only where that is fair; where it is not, no interval is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import sooner
from sooner.errors import InvalidArgument
from sooner.views.choose_unit import Together
from sooner.views.unit import can_hash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database


def of(numbers: np.ndarray) -> Together:
    return Together(float(len(numbers)), float(numbers.sum()), float((numbers**2).sum()))


def test_values_of_about_as_many_rows_are_even() -> None:
    rng = np.random.default_rng(1)
    assert of(np.arange(1.0, 8.0)).are_few
    assert of(rng.poisson(15, 10_000).astype(float)).are_few
    assert of(rng.exponential(10, 10_000)).are_even
    assert not of(np.full(10, 17.0)).are_few
    # A few values that have most rows, or hundreds of times as many as others.
    assert not of(np.where(np.arange(300) % 100 == 0, 400.0, 3.0)).are_even
    assert not of(np.where(np.arange(10_000) == 0, 300.0, 1.0)).are_even


def test_texts_that_are_equal_to_a_collation_are_not_hashed() -> None:
    assert can_hash("string") and not can_hash("string collate UTF8_LCASE")


@pytest.fixture
def visits(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    """Users with 3 days each, and one in a hundred with 400."""
    days = "explode(sequence(1, IF(uid % 100 = 0, 400, 3))) AS day"
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        tables = {
            "visits": (f"SELECT id AS uid, {days} FROM (SELECT id, id AS uid FROM range(600))", 2),
            "users": ("SELECT id AS uid, id % 7 AS kind FROM range(600)", 1),
        }
        for name, (text, keys) in tables.items():
            small_spark.sql(text).coalesce(1).write.parquet(str(tmp_path / name))
            database.register(name, str(tmp_path / name), key=["uid", "day"][:keys])
        yield database


JOINED = "SELECT v.uid, v.day, u.kind FROM visits v JOIN users u ON v.uid = u.uid"


@pytest.mark.spark
def test_users_of_whom_some_have_most_rows_are_not_drawn_whole(visits: Database) -> None:
    view = visits.view("joined", JOINED)
    assert "by the hash of uid, day" in view.explain()
    by_user = visits.view("by_user", JOINED, sample_by="uid", sample=0.2)
    visits.insert("visits", [{"uid": n % 600, "day": 1_000 + n} for n in range(900)])
    answer = by_user.answer("SELECT count(*) AS n FROM by_user", estimator="corr")
    assert answer.status("n") == (sooner.Status.UNKNOWN,)
    assert "some values of uid have far more rows than others" in answer.remarks[0]
    fair = view.answer("SELECT count(*) AS n FROM joined", estimator="corr")
    assert fair.status("n") == (sooner.Status.ESTIMATE,)


@pytest.mark.spark
def test_no_scramble_by_what_is_equal_to_a_collation(visits: Database, tmp_path: Path) -> None:
    rows = visits.spark.sql("SELECT id, CAST(id AS STRING) COLLATE UTF8_LCASE AS s FROM range(9)")
    visits.register("collated", rows, key="id")
    with pytest.raises(InvalidArgument, match="equal to a collation"):
        visits.scramble("collated", by="s", blocks=2)
