"""What is kept of an average has Spark's own value, to the last digit of decimals of any width."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from sooner.algebra.scalar import to_sql
from sooner.views.mergeable import mergeable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AVERAGE = exp.Avg(this=exp.column("x", quoted=True))


@pytest.mark.parametrize(
    "precision,scale",
    [(1, 0), (5, 2), (15, 2), (18, 4), (22, 2), (28, 4), (30, 10), (32, 0), (26, 16), (7, 7)],
)
def test_averages_of_decimals(precision: int, scale: int, small_spark: SparkSession) -> None:
    random_ = random.Random(precision)
    found = mergeable(AVERAGE, f"decimal({precision},{scale})")
    assert found is not None
    total, count = (to_sql(kept.call) for kept in found.kept)
    value = to_sql(found.value([exp.column("total", quoted=True), exp.column("n", quoted=True)]))
    rows = [(0, None), (1, None), (1, Decimal(1).scaleb(-scale))]
    for group in range(2, 40):
        most = 10 ** random_.randint(1, precision) - 1
        for _ in range(random_.choice([1, 2, 3, 7, 64, 301])):
            rows.append((group, Decimal(random_.randint(-most, most)).scaleb(-scale)))
    frame = small_spark.createDataFrame(rows, f"g int, x decimal({precision},{scale})")
    grouped = "SELECT g, avg(x) AS a, {0} AS total, {1} AS n FROM {rows} GROUP BY g"
    text = f"SELECT g, a, {value} AS b FROM ({grouped.format(total, count, rows='{rows}')})"
    answer = small_spark.sql(text, rows=frame)
    assert answer.schema["a"].dataType == answer.schema["b"].dataType
    for row in answer.toArrow().to_pylist():
        assert row["a"] == row["b"], row


@pytest.mark.parametrize("type_", ["decimal(38,4)", "decimal(34,2)", "decimal(38,30)"])
def test_averages_without_room_are_left_to_the_rows(type_: str) -> None:
    assert mergeable(AVERAGE, type_) is None
