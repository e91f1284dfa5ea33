"""A user's function in steps: complete groups in every block, its rows exact, their totals estimates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer, assert_same_rows, rows_of

from sooner.answer import Status
from sooner.errors import QueryFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database
    from sooner.frame import Frame

pytestmark = pytest.mark.spark

ROWS, KEYS, BLOCKS = 6000, 900, 8


@pytest.fixture(scope="module")
def sales(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """Rows by key, of which two columns together, or one with nulls, are the groups of a function."""
    from pyspark import cloudpickle

    import sooner

    # Spark's Python workers cannot import a test module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    generator = np.random.default_rng(5)
    key = generator.integers(0, KEYS, ROWS)
    table = {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": pa.array(key, pa.int64()),
        "g": pa.array(generator.integers(0, 4, ROWS), pa.int32()),
        "v": pa.array(generator.integers(1, 100, ROWS), pa.int64()),
        "gap": pa.array(key, pa.int64(), mask=key % 7 == 0),
    }
    place = tmp_path_factory.mktemp("maps")
    pq.write_table(pa.table(table), place / "t.parquet")
    pq.write_table(
        pa.table({"g": pa.array([0, 1], pa.int32()), "w": [10, 20]}), place / "s.parquet"
    )
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        opened.register("t", place / "t.parquet", key="id")
        opened.register("s", place / "s.parquet", key="g")
        opened.scramble("t", ["k"], blocks=BLOCKS)
        opened.register("u", place / "t.parquet", key="id")
        opened.scramble("u", ["gap"], blocks=2)
        yield opened


def spread(rows: pd.DataFrame) -> pd.DataFrame:
    """The largest less the smallest of each key: wrong if a key came in parts."""
    found = rows.groupby("k", as_index=False).agg(
        least=("v", "min"), most=("v", "max"), n=("v", "size")
    )
    return found.assign(spread=found.most - found.least)


def double(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(w=rows.v * 2)


SPREAD = "k bigint, spread bigint, n bigint"


def steps(frame: Frame, seed: int = 1, batches: int = 3) -> list[Any]:
    """All answers, in several steps, the last being the exact one."""
    answers = list(frame.progress(batches=batches, seed=seed))
    assert len(answers) == batches
    assert answers[-1].final and answers[-1].method == "progressive"
    assert_same_answer(answers[-1].to_arrow(), frame.exact().to_arrow())
    return answers


def test_complete_groups_are_exact_rows(sales: Database) -> None:
    frame = sales.table("t").map(spread, SPREAD, by="k")
    exact = set(rows_of(frame.exact().to_arrow()))
    seen: set[Any] = set()
    for answer in steps(frame):
        rows = set(rows_of(answer.to_arrow()))
        assert seen < rows <= exact
        assert set(answer.status("spread")) == {Status.EXACT}
        seen = rows
    assert "the list grows" in frame.explain()


def test_more_columns_than_the_stream_key(sales: Database) -> None:
    def per_pair(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.groupby(["k", "g"], as_index=False).agg(n=("v", "size"))

    steps(sales.table("t").map(per_pair, "k bigint, g int, n bigint", by=["g", "k"]))


def test_what_a_function_gives_is_filtered_joined_and_totalled(sales: Database) -> None:
    def best(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.sort_values(["v", "id"]).groupby("k").tail(1)[["k", "g", "v"]]

    mapped = sales.table("t").filter("v < 90").map(best, "k bigint, g int, v bigint", by="k")
    weights = sales.table("s").select("g AS of", "w")
    joined = mapped.filter("v > 20").join(weights, on="g = of").select("k", "v + w AS x")
    steps(joined)
    steps(joined.sort("x DESC", "k").limit(7))
    frame = mapped.agg(["count(*) AS n", "sum(v) AS total", "avg(v) AS mean"], by="g")
    exact = {row["g"]: row for row in frame.exact().to_arrow().to_pylist()}
    held = cells = 0
    for seed in range(2):
        for answer in steps(frame, seed)[:-1]:
            for place, row in enumerate(answer.to_arrow().to_pylist()):
                for name in ("n", "total", "mean"):
                    assert answer.status(name)[place] is Status.ESTIMATE
                    low, high = (
                        ends[place].as_py()
                        for ends in (answer.bounds[name].low, answer.bounds[name].high)
                    )
                    cells += 1
                    held += low <= exact[row["g"]][name] <= high
    assert cells == 2 * 2 * 4 * 3 and held / cells > 0.85


def test_parts_of_any_kind_are_streamed_as_well(sales: Database) -> None:
    frame = sales.table("t").map(double, "k bigint, w bigint")
    assert set(steps(frame)[0].status("w")) == {Status.EXACT}
    total = frame.agg(["sum(w) AS total", "count(*) AS n"])
    first = steps(total)[0]
    assert first.status("total") == (Status.ESTIMATE,)
    # One row for each: as many as the table is known to have.
    assert first.to_arrow().column("n").to_pylist() == [ROWS]


def test_a_function_over_a_function(sales: Database) -> None:
    inner = sales.table("t").map(double, "k bigint, v bigint, w bigint")
    outer = inner.map(lambda rows: rows.assign(x=rows.w - rows.v), "k bigint, x bigint")
    steps(outer.agg(["sum(x) AS total"]))


def test_a_function_over_what_is_read_once(sales: Database) -> None:
    weights = sales.table("s").map(
        lambda rows: rows.assign(of=rows.g, w=rows.w + 1), "of int, w bigint"
    )
    frame = sales.table("t").join(weights, on="g = of").agg(["sum(v * w) AS total"])
    steps(frame)


@pytest.mark.parametrize(
    ("table", "by", "reason"),
    [
        ("t", "g", "all rows of each g"),
        ("t", ["g", "v"], "all rows of each g, v"),
        ("u", "gap", "all rows of each gap"),  # rows without a key are in all blocks
    ],
)
def test_groups_in_many_blocks_are_answered_at_once(
    sales: Database, table: str, by: Any, reason: str
) -> None:
    def largest(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.groupby("gap", dropna=False, as_index=False).agg(v=("v", "sum"))

    frame = sales.table(table).map(largest, "gap bigint, v bigint", by=by)
    assert reason in frame.explain()
    (answer,) = frame.progress(batches=4)
    assert answer.final and answer.method == "exact"


def test_a_function_of_estimates_is_answered_at_once(sales: Database) -> None:
    totals = sales.table("t").agg(["sum(v) AS v"], by="g")
    frame = totals.map(double, "g int, w bigint", by="g")
    assert "still estimates" in frame.explain()
    (answer,) = frame.progress(batches=4)
    assert answer.final


def test_rows_of_changes_reach_the_function(sales: Database, tmp_path: Path) -> None:
    import sooner

    pq.write_table(sales.table("t").exact().to_arrow(), tmp_path / "t.parquet")
    with sooner.connect(tmp_path / "home", spark=sales.spark, progress=False) as own:
        own.register("own", tmp_path / "t.parquet", key="id")
        own.scramble("own", ["k"], blocks=BLOCKS)
        own.delete("own", [(number,) for number in range(0, ROWS, 9)])
        own.insert("own", [{"id": ROWS + 1, "k": 3, "g": 1, "v": 1000, "gap": None}])
        steps(own.table("own").map(spread, SPREAD, by="k"))


def views(spark: SparkSession) -> set[str]:
    return {row.viewName for row in spark.sql("SHOW VIEWS").collect()}


def test_a_function_that_fails_half_way(sales: Database, spark: SparkSession) -> None:
    first = sales.table("t").map(spread, SPREAD, by="k").progress(batches=BLOCKS, seed=2)
    read = {row["k"] for row in [next(first), next(first)][1].to_arrow().to_pylist()}
    first.close()  # type: ignore[attr-defined]
    bad = min(set(range(KEYS)) - read)

    def careful(rows: pd.DataFrame) -> pd.DataFrame:
        if (rows.k == bad).any():
            raise ValueError(f"key {bad} is not to my liking")
        return spread(rows)

    mapped = sales.table("t").map(careful, SPREAD, by="k")
    for frame in (mapped, mapped.agg(["sum(spread) AS total"])):
        good = []
        before = views(spark)
        answers = frame.progress(batches=BLOCKS, seed=2)
        message = rf"map\(\) failed: ValueError: key {bad} is not to my liking"
        with pytest.raises(QueryFailed, match=message):
            for answer in answers:
                good.append(answer)
        assert len(good) > 1 and not good[-1].final
        assert good[-1].to_arrow().num_rows and str(good[-1])
        assert views(spark) <= before
        with pytest.raises(StopIteration):
            next(answers)
    assert list(sales.table("t").map(spread, SPREAD, by="k").progress(batches=1))[-1].final


TWO_MOST_ORDERED = """
    SELECT l_orderkey, l_linenumber, l_quantity FROM (
      SELECT *, row_number() OVER (
        PARTITION BY l_orderkey ORDER BY l_quantity DESC, l_linenumber) AS place
      FROM '{files}') WHERE place <= 2
"""


def test_the_two_most_ordered_items_of_each_order(scrambled: Database, tpch: Path) -> None:
    import duckdb

    def two_most(rows: pd.DataFrame) -> pd.DataFrame:
        ordered = rows.sort_values(["l_quantity", "l_linenumber"], ascending=[False, True])
        return ordered.groupby("l_orderkey").head(2)

    columns = "l_orderkey bigint, l_linenumber int, l_quantity decimal(15,2)"
    items = scrambled.table("lineitem").select("l_orderkey", "l_linenumber", "l_quantity")
    frame = items.map(two_most, columns, by="l_orderkey")
    answers = list(frame.progress(batches=4, seed=3))
    assert len(answers) == 4 and answers[-1].method == "progressive"
    files = tpch / "lineitem" / "*.parquet"
    truth = duckdb.sql(TWO_MOST_ORDERED.format(files=files)).arrow()
    expected = pa.table(truth) if isinstance(truth, pa.Table) else truth.read_all()
    assert_same_rows(rows_of(answers[-1].to_arrow()), rows_of(expected))
    true = set(rows_of(expected))
    seen = 0
    for answer in answers:
        rows = rows_of(answer.to_arrow())
        assert seen < len(rows) and set(rows) <= true
        assert {s for name in ("l_orderkey", "l_quantity") for s in answer.status(name)} == {
            Status.EXACT
        }
        seen = len(rows)
