"""Percentiles of which it is known about where they lie: Spark's own, whatever lies beyond the bounds."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sooner.engine.percentiles import percentiles

SHARES = (0.0, 0.1, 0.5, 0.77, 1.0)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> str:
    spark.sql(
        """SELECT IF(id % 7 = 0, NULL, id % 3) AS g, CASE WHEN id % 11 = 0 THEN NULL
           WHEN id % 13 = 0 THEN CAST('NaN' AS DOUBLE) ELSE (id * 7919 % 10007) / 8 END AS v
           FROM range(5000)"""
    ).createOrReplaceTempView("percentile_rows")
    return "SELECT * FROM percentile_rows"


def found(
    spark: SparkSession, keys: list[str], rows: str, bounds: pa.Table
) -> dict[object, list[float]]:
    table = percentiles(spark, keys, rows, [("v", share) for share in SHARES], bounds, {})
    return {
        tuple(line.values())[: len(keys)]: list(line.values())[len(keys) :]
        for line in table.to_pylist()
    }


def expected(spark: SparkSession, keys: list[str], rows: str) -> dict[object, list[float]]:
    shown = ", ".join([*keys, *(f"percentile(v, {share}D)" for share in SHARES)])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    lines = spark.sql(f"SELECT {shown} FROM ({rows}){group}").collect()
    return {tuple(line[: len(keys)]): list(line[len(keys) :]) for line in lines}


def alike(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("keys", [[], ["g"]])
def test_without_bounds(spark: SparkSession, rows: str, keys: list[str]) -> None:
    ours, theirs = found(spark, keys, rows, pa.table({})), expected(spark, keys, rows)
    assert ours.keys() == theirs.keys()
    assert all(alike(*pair) for key in ours for pair in zip(ours[key], theirs[key], strict=True))


@pytest.mark.parametrize("keys", [[], ["g"]])
def test_between_bounds_it_is_the_same_and_beyond_it_is_an_end(
    spark: SparkSession, rows: str, keys: list[str]
) -> None:
    """The ends are values of rows: 100 and 700. Of the group without a key nothing is known."""
    known = [None, 0, 1] if keys else []
    ends = [("low", 100.0), ("high", 700.0)]
    columns = {"g": pa.array(known, pa.int64())} if keys else {}
    columns |= {
        f"{end}{place}": pa.array([value] * (len(known) or 1))
        for place in range(len(SHARES))
        for end, value in ends
    }
    ours, theirs = found(spark, keys, rows, pa.table(columns)), expected(spark, keys, rows)
    assert ours.keys() == theirs.keys()
    for key in ours:
        for one, other in zip(ours[key], theirs[key], strict=True):
            if key == (2,) or 100.0 < other < 700.0:
                assert alike(one, other)
            else:
                assert one == (100.0 if other <= 100.0 else 700.0)


def test_values_that_are_equations_and_keys_of_any_name(spark: SparkSession) -> None:
    rows = "SELECT id % 2 AS `v0`, CAST(id AS DECIMAL(10,2)) AS `a b` FROM range(1000)"
    bounds = pa.table({"k": [0, 1], "low0": [200.0, None], "high0": [1800.0, None]})
    table = percentiles(spark, ["v0"], rows, [("CAST(`a b` * 2 AS DOUBLE)", 0.5)], bounds, {})
    assert sorted(table.to_pylist(), key=lambda line: line["k0"]) == [
        {"k0": 0, "p0": 998.0},
        {"k0": 1, "p0": 1000.0},
    ]
