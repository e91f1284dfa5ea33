"""User functions over rows: what they see, what they give, and that nothing of them is left over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from sooner import Database, InvalidArgument, UnknownColumn

pytestmark = pytest.mark.spark

# Spark's Python workers cannot import a test module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def t(database: Database, tmp_path: Path) -> Database:
    rows = {"g": [i % 5 for i in range(100)], "v": [float(i) for i in range(100)]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet", row_group_size=10)
    database.register("t", tmp_path / "t.parquet")
    return database


def rows(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.exact().to_arrow().to_pylist()
    return sorted(found, key=str)


def double(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(w=part.v * 2)


def count_groups(part: pd.DataFrame) -> pd.DataFrame:
    return part.groupby("g", as_index=False).agg(n=("v", "size"), total=("v", "sum"))


def test_pandas(t: Database) -> None:
    frame = t.table("t").filter("v < 2").map(double, "g bigint, w double")
    assert [(c.name, c.type) for c in frame.columns] == [("g", "bigint"), ("w", "double")]
    assert rows(frame) == [{"g": 0, "w": 0.0}, {"g": 1, "w": 2.0}]


def test_arrow(t: Database) -> None:
    def double_arrow(part: pa.Table) -> pa.Table:
        assert isinstance(part, pa.Table)
        return part.append_column("w", pc.multiply(part["v"], 2.0))

    frame = t.table("t").filter("v < 2").map(double_arrow, "w double, g int", format="arrow")
    assert rows(frame) == [{"w": 0.0, "g": 0}, {"w": 2.0, "g": 1}]


def test_by_brings_all_rows_of_a_group_together(t: Database) -> None:
    frame = t.table("t").map(count_groups, "g bigint, n bigint, total double", by="g")
    assert rows(frame) == [{"g": g, "n": 20, "total": 20.0 * g + 950} for g in range(5)]


def test_by_a_renamed_column(t: Database) -> None:
    renamed = t.sql("SELECT g % 2 AS G, v FROM t")

    def grouped(part: pd.DataFrame) -> pd.DataFrame:
        return part.groupby("G", as_index=False).agg(n=("v", "size"))

    assert rows(renamed.map(grouped, "G bigint, n bigint", by=["g"])) == [
        {"G": 0, "n": 60},
        {"G": 1, "n": 40},
    ]


def test_values_are_cast_to_the_declared_types(t: Database) -> None:
    frame = t.table("t").filter("v = 3").map(lambda part: part[["v"]], "v int")
    assert rows(frame) == [{"v": 3}]


def test_more_columns_than_declared_are_left_out(t: Database) -> None:
    assert rows(t.table("t").filter("v = 3").map(double, "w double")) == [{"w": 6.0}]


def test_a_function_may_give_more_or_fewer_rows(t: Database) -> None:
    frame = t.table("t").filter("v < 1")
    twice = frame.map(lambda part: pd.concat([part, part]), "g bigint, v double")
    assert len(rows(twice)) == 2
    assert rows(frame.map(lambda part: part[part.v > 5], "g bigint, v double")) == []


def test_no_rows_no_call(t: Database) -> None:
    def never(part: Any) -> Any:
        raise AssertionError

    assert rows(t.table("t").filter("v < 0").map(never, "x int")) == []
    assert rows(t.table("t").filter("v < 0").map(never, "x int", by="g")) == []


def test_maps_compose(t: Database) -> None:
    """A map over a map, joined with the table, aggregated, and a map over that."""
    inner = t.table("t").map(double, "g bigint, w double")
    outer = inner.map(lambda part: part.assign(w=part.w + 1), "g bigint, w double")
    joined = outer.agg(["count(*) AS n", "sum(w) AS w"], by="g").join(
        t.table("t").agg("sum(v) AS v", by="g"), on="l.g = r.g"
    )
    found = joined.exact().to_arrow()
    assert found.num_rows == 5
    assert [
        w - 2 * v for w, v in zip(*(found.column(c).to_pylist() for c in "wv"), strict=True)
    ] == [20.0] * 5


def test_the_same_map_twice(t: Database) -> None:
    mapped = t.table("t").map(double, "g bigint, w double")
    assert len(rows(mapped.union(mapped))) == 200
    assert mapped.join(mapped, on="l.w = r.w").exact().to_arrow().num_rows == 100


def test_a_map_in_a_query_that_goes_to_spark_as_it_is(t: Database) -> None:
    """A window function is nothing that Sooner plans itself."""
    mapped = t.table("t").filter("v < 3").map(double, "g bigint, w double")
    ranked = mapped.select("w", "row_number() OVER (ORDER BY w DESC) AS place")
    assert rows(ranked.filter("place = 1")) == [{"w": 4.0, "place": 1}]


def test_no_views_are_left_over(t: Database) -> None:
    t.table("t").map(double, "w double").limit(1).exact()
    with pytest.raises(UnknownColumn):
        t.table("t").map(double, "w double").filter("nosuch = 1")
    left = [view.name for view in t.spark.catalog.listTables() if "__sooner_map" in view.name]
    assert left == []


@pytest.mark.parametrize("schema", ["", "x", "x nosuchtype", "x int,", "1 int"])
def test_bad_schemas_are_refused(t: Database, schema: str) -> None:
    with pytest.raises(InvalidArgument, match="name type"):
        t.table("t").map(double, schema)


def test_bad_arguments_are_refused(t: Database) -> None:
    with pytest.raises(InvalidArgument, match="function"):
        t.table("t").map("double", "x int")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="pandas"):
        t.table("t").map(double, "x int", format="polars")  # type: ignore[arg-type]
    with pytest.raises(UnknownColumn, match="Did you mean 'g'"):
        t.table("t").map(double, "x int", by="gg")
