"""What a whole stale view has for a percentile is exact, with the help of its sample or without."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sooner import Database
from sooner.views import fresh_values

# Group 0 has many sampled rows, group 1 few; a third has no name.
ROWS = """SELECT id, CASE WHEN id % 100 = 0 THEN 1 WHEN id % 3 = 0 THEN NULL ELSE 0 END AS g,
          CAST(id * 7919 % 100003 AS DOUBLE) / 7 AS smooth, id % 5 AS steps FROM range(40000)"""
MEASURES = "median(smooth) AS a, percentile(smooth, 0.9) AS b, median(steps) AS c"


@pytest.fixture
def home(database: Database, spark: SparkSession) -> Database:
    database.register("rows", spark.sql(ROWS), key="id")
    database.view("v", "SELECT id, g, smooth, steps FROM rows", sample=0.2)
    return database


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each time that Spark is asked for percentiles, for how many groups it is told where they are."""
    times: list[int] = []

    def listening(*given):  # type: ignore[no-untyped-def]
        times.append(given[4].num_rows)
        return percentiles(*given)

    percentiles = fresh_values.percentiles
    monkeypatch.setattr(fresh_values, "percentiles", listening)
    return times


@pytest.mark.parametrize(
    ("measures", "told"),
    [
        pytest.param("median(smooth) AS a, percentile(smooth, 0.9) AS b", [2], id="many values"),
        pytest.param("median(smooth) FILTER (WHERE id > 99) AS a", [2], id="some of the rows"),
        pytest.param("median(steps) AS c", [2, 0], id="values that many rows share"),
        pytest.param(MEASURES, [2, 0], id="both"),
        pytest.param("percentile(smooth, 0.0001) AS a", [0], id="hardly a row beyond"),
    ],
)
def test_it_is_exact(home: Database, asked: list[int], measures: str, told: list[int]) -> None:
    home.insert("rows", home.spark.sql("SELECT 50000 AS id, 7 AS g, 1.0D AS smooth, 1 AS steps"))
    stale = f"SELECT g, {measures} FROM rows WHERE id < 50000 GROUP BY g"
    expected = {line["g"]: line for line in home.sql(stale).exact().table.to_pylist()}
    found = home.view("v").answer(f"SELECT g, {measures} FROM v GROUP BY g", estimator="corr")
    lines = {line["g"]: line for line in found.table.to_pylist() if line["g"] != 7}
    assert lines == expected
    assert asked[: len(told)] == told


def test_of_all_rows(home: Database, asked: list[int]) -> None:
    home.insert("rows", home.spark.sql("SELECT 50000 AS id, 7 AS g, 1.0D AS smooth, 1 AS steps"))
    found = home.view("v").answer("SELECT median(smooth) AS m FROM v", estimator="corr")
    (expected,) = (
        home.sql("SELECT median(smooth) AS m FROM rows WHERE id < 50000").exact().table["m"]
    )
    assert found.table["m"][0].as_py() == pytest.approx(expected.as_py(), abs=1.0)
    assert asked == [1]


def test_of_no_rows(home: Database) -> None:
    home.insert("rows", home.spark.sql("SELECT 50000 AS id, 7 AS g, 1.0D AS smooth, 1 AS steps"))
    none = "SELECT g, median(smooth) AS m FROM v WHERE id < 0 GROUP BY g"
    assert home.view("v").answer(none, estimator="corr").table.num_rows == 0
    one = home.view("v").answer("SELECT median(smooth) AS m FROM v WHERE id < 0", estimator="corr")
    assert one.table["m"].to_pylist() == [None]
