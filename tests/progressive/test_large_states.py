"""States of many groups go to Spark, and change no answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from pyspark.sql import SparkSession

import sooner
from sooner.engine.merged_rows import MergedRows, forget, held
from sooner.progressive import large_states, states

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sales(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> sooner.Database:
    place = tmp_path_factory.mktemp("sales")
    rng = np.random.default_rng(1)
    rows = 20_000
    table = pa.table(
        {
            "id": np.arange(rows),
            "buyer": pa.array(rng.integers(0, 6000, rows), mask=rng.random(rows) < 0.01),
            "price": pa.array(np.round(rng.gamma(2.0, 30.0, rows), 2)).cast(pa.decimal128(12, 2)),
            "weight": rng.normal(size=rows),
            "day": pa.array(rng.integers(0, 400, rows).astype("datetime64[D]")),
        }
    )
    pq.write_table(table, place / "sales.parquet")
    database = sooner.connect(place / "home", spark=spark, progress=False)
    database.register("sales", place / "sales.parquet", key="id")
    database.scramble("sales", "id", blocks=16)
    return database


@pytest.fixture
def few_on_driver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The driver holds a hundred groups; the names of states that went to Spark."""
    monkeypatch.setattr(large_states, "_MOST_ON_DRIVER", 100)
    monkeypatch.setattr(states, "_MOST_REPLICATED_GROUPS", 50)
    gone: list[str] = []
    begin = large_states.LargeState.__init__

    def watched(self: large_states.LargeState, *arguments: object) -> None:
        begin(self, *arguments)  # type: ignore[arg-type]
        gone.append(self.state.name)

    monkeypatch.setattr(large_states.LargeState, "__init__", watched)
    return gone


TOP = "GROUP BY buyer ORDER BY 2 DESC, 1 LIMIT 7"
QUERIES = [
    f"SELECT buyer, sum(price), count(*) AS n FROM sales {TOP}",
    f"SELECT buyer, count(weight), avg(weight), min(day), max(price) FROM sales {TOP}",
    f"SELECT buyer, sum(id) FILTER (WHERE price > 90), max(weight) FROM sales {TOP}",
    "SELECT count(*), sum(n), max(total) FROM (SELECT buyer, count(*) AS n, sum(price) AS total "
    "FROM sales GROUP BY buyer HAVING count(*) > 2)",
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_last_answer_is_exact(
    sales: sooner.Database, few_on_driver: list[str], text: str
) -> None:
    answers = list(sales.sql(text).progress(batches=5))
    assert few_on_driver, "the state was to go to Spark"
    assert len(answers) == 5 and answers[-1].final
    assert_same_answer(answers[-1].table, sales.spark.sql(text).toArrow(), ordered=True)
    assert not answers[0].final and answers[0].table.schema == answers[-1].table.schema


def test_values_on_the_way_are_scaled_and_unknown(
    sales: sooner.Database, few_on_driver: list[str]
) -> None:
    text = "SELECT sum(n) AS n, sum(total) AS total FROM (SELECT buyer, count(*) AS n, "
    text += "sum(price) AS total FROM sales GROUP BY buyer)"
    first, *_ = sales.sql(text).progress(batches=4)
    truth = sales.sql(text).exact().table.to_pylist()[0]
    assert few_on_driver
    shown = first.table.to_pylist()[0]
    assert shown["n"] == pytest.approx(truth["n"], rel=0.05)
    assert float(shown["total"]) == pytest.approx(float(truth["total"]), rel=0.05)
    assert set(first.status("total")) == {sooner.Status.UNKNOWN}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT buyer, count(*) FROM sales GROUP BY buyer",  # all groups come to the driver
        f"SELECT buyer, avg(price) FROM sales {TOP}",  # decimals
        f"SELECT buyer, stddev(weight) FROM sales {TOP}",
    ],
)
def test_what_stays_on_the_driver(
    sales: sooner.Database, few_on_driver: list[str], text: str
) -> None:
    *_, last = sales.sql(text).progress(batches=3)
    assert not few_on_driver
    assert_same_answer(last.table, sales.spark.sql(text).toArrow(), ordered="LIMIT" in text)


def test_all_is_given_back(sales: sooner.Database, few_on_driver: list[str]) -> None:
    jvm = sales.spark.sparkContext._jsc
    before = jvm.getPersistentRDDs().size()
    for answer in sales.sql(QUERIES[0]).progress(batches=6):
        assert answer.progress <= 1
    assert few_on_driver
    assert jvm.getPersistentRDDs().size() == before
    answers = sales.sql(QUERIES[0]).progress(batches=6)
    next(answers)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert jvm.getPersistentRDDs().size() == before


def test_merged_rows_keep_their_types_and_forget_their_past(spark: SparkSession) -> None:
    def part(number: int) -> MergedRows | object:
        text = f"SELECT id % 3 AS k, CAST({number} AS decimal(9,2)) AS s, id AS m FROM range(6)"
        return held(
            spark.sql(
                f"SELECT k, CAST(sum(s) AS decimal(9,2)) s, max(m) m FROM ({text}) GROUP BY k"
            )
        )

    merged = MergedRows(part(1), ["k"], {"s": "sum", "m": "max"})  # type: ignore[arg-type]
    schema = merged.rows.schema
    for number in range(2, 5):
        merged.add(part(number))  # type: ignore[arg-type]
    assert [field.dataType for field in merged.rows.schema] == [field.dataType for field in schema]
    rows = sorted(tuple(row) for row in merged.rows.collect())
    assert [(k, float(s), m) for k, s, m in rows] == [(0, 20.0, 3), (1, 20.0, 4), (2, 20.0, 5)]
    plan = merged.rows._jdf.queryExecution().logical().toString()
    assert "Aggregate" not in plan and "Union" not in plan
    forget(merged.rows)
