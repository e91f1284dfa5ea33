"""Sums and averages of a view that is kept up to date have all digits, near the ends of their types too."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType
from video_views import rows_of

import sooner

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

MOST = 2**63 - 1
SCHEMA = "id int, g int, n bigint, a decimal(38,18), e decimal(38,18), b decimal(28,10)"
SCHEMA += ", c decimal(27,7), d decimal(28,4)"
ALL = "count(*) AS rows, sum(n) AS n, avg(n) AS an, sum(a) AS a, avg(e) AS e, sum(b) AS b, avg(b) AS ab"
ALL += ", sum(c) AS c, avg(c) AS ac, sum(d) AS d, avg(d) AS ad"


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    place = tmp_path / "t"
    rows = [row(id_, random.Random(id_)) for id_ in range(60)]
    small_spark.createDataFrame(rows, SCHEMA).write.parquet(str(place))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(place), key="id")
        yield database


def row(id_: int, random_: random.Random) -> dict[str, Any]:
    def decimal(digits: int, scale: int) -> Decimal:
        return Decimal(random_.randint(-(10**digits), 10**digits)).scaleb(-scale)

    # Of each group one row has nearly all that fits.
    large = id_ < 5
    return {
        "id": id_,
        "g": id_ % 5,
        "n": MOST - 20_000 + random_.randint(0, 9) if large else random_.randint(-100, 100),
        "a": decimal(37, 18) if large else decimal(30, 18),
        "e": decimal(30, 18),
        "b": decimal(27, 10),
        "c": decimal(26, 7),
        "d": decimal(27, 4),
    }


@pytest.mark.parametrize("keys", [["g"], []])
def test_all_digits_are_there(keys: list[str], opened: Database) -> None:
    if keys:
        text = f"SELECT g, {ALL} FROM t GROUP BY g"
    else:  # all large numbers together are too many
        text = f"SELECT {ALL} FROM t WHERE id <> 1 AND id <> 2 AND id <> 3 AND id <> 4"
    view = opened.view("v", text, sample=None)
    for step in range(3):
        random_ = random.Random(step)
        schema = StructType.fromDDL(SCHEMA)
        changed = [row(id_, random_) for id_ in (*range(5), *random_.sample(range(5, 50), 9))]
        opened.update("t", opened.spark.createDataFrame(changed, schema))
        opened.insert("t", opened.spark.createDataFrame([row(60 + step, random_)], schema))
        opened.delete("t", [(50 + step,)])
        done = view.refresh("incremental")
        assert done is not None and done.kind == "incremental"
        assert rows_of(opened, "SELECT * FROM v") == rows_of(opened, text)


def test_changes_that_have_no_room_together(opened: Database) -> None:
    """Of a row that changed often all that came is too much for the type, and what is there is not."""
    text = "SELECT g, sum(a) AS a, sum(a) FILTER (WHERE id < 5) AS f FROM t GROUP BY g"
    view = opened.view("v", text, sample=None)
    for step in range(12):
        changed = row(3, random.Random(step)) | {"a": Decimal(9 * 10**19 + step)}
        opened.update("t", opened.spark.createDataFrame([changed], StructType.fromDDL(SCHEMA)))
    assert view.refresh("incremental") is not None
    assert rows_of(opened, "SELECT * FROM v") == rows_of(opened, text)


def test_a_sum_that_was_too_large_is_none_until_it_fits(opened: Database, tmp_path: Path) -> None:
    """Where Spark gives nulls for errors: what is added to such a sum is not all that there is of it."""
    text = "SELECT g, sum(w) AS t, avg(w) AS a FROM wide GROUP BY g"
    schema, most = "id int, g int, w decimal(38,0)", Decimal("9" * 38)
    spark = opened.spark
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        rows = [(1, 0, most), (2, 0, Decimal(1)), (3, 1, most), (4, 2, None)]
        place = str(tmp_path / "wide")
        spark.createDataFrame(rows, schema).write.parquet(place)
        opened.register("wide", place, key="id")
        view = opened.view("w", text, sample=None)
        for bring in (
            lambda: opened.insert(
                "wide", [(5, 0, Decimal(5)), (6, 1, Decimal(5)), (7, 2, Decimal(5))]
            ),
            lambda: opened.delete("wide", [(1,), (6,)]),
            lambda: opened.insert("wide", [(8, 0, most), (9, 0, most)]),
        ):
            bring()
            view.refresh("incremental")
            assert rows_of(opened, "SELECT * FROM w") == rows_of(opened, text)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
