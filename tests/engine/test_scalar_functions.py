"""Functions of the user that give each row its own value go into plans; others go to Spark as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from pyspark.sql import SparkSession
from pyspark.sql.functions import PandasUDFType, pandas_udf, udf

import sooner
from sooner.algebra.relation import Opaque
from sooner.engine.scalar_functions import scalar_functions

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def with_functions(spark: SparkSession) -> Iterator[SparkSession]:
    spark.udf.register("twice", udf(lambda x: None if x is None else 2.0 * x, "double"))
    spark.udf.register("some_time", udf(lambda x: x, "double").asNondeterministic())
    spark.udf.register("vectorised", pandas_udf(lambda x: x + 1.0, "double"))
    grouped = pandas_udf(lambda x: float(x.max()), "double", PandasUDFType.GROUPED_AGG)
    spark.udf.register("largest", grouped)
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION halved(x DOUBLE) RETURNS DOUBLE RETURN x / 2")
    yield spark
    for name in ("twice", "some_time", "vectorised", "largest", "halved"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def test_which_they_are(with_functions: SparkSession) -> None:
    calls = dict.fromkeys(("twice", "some_time", "vectorised", "largest", "halved"), 1)
    calls |= {"nowhere": 1, "monotonically_increasing_id": 0, "soundex": 1, "java_method": 0}
    assert scalar_functions(with_functions, calls) == {"twice", "vectorised"}
    assert scalar_functions(with_functions, {"twice": -1}) == set()


@pytest.fixture(scope="module")
def rows(
    with_functions: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sooner.Database]:
    place: Path = tmp_path_factory.mktemp("functions")
    frame = pd.DataFrame({"id": range(4000), "g": [n % 7 for n in range(4000)]})
    frame["x"] = frame.id * 0.5
    frame.loc[frame.id % 11 == 0, "x"] = None
    pq.write_table(pa.Table.from_pandas(frame), place / "t.parquet")
    with sooner.connect(place / "home", spark=with_functions, progress=False) as database:
        database.register("t", place / "t.parquet", key="id")
        database.scramble("t", "id", blocks=8)
        yield database


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, sum(twice(x)) AS s, count(*) AS n FROM t WHERE Vectorised(x) > 100 GROUP BY g",
        "SELECT twice(g) AS k, avg(x) AS a FROM t GROUP BY twice(g)",
        "SELECT g, count(*) AS n FROM t WHERE twice(x) > (SELECT avg(x) FROM t) GROUP BY g",
        "SELECT g, twice(sum(x)) AS s FROM t GROUP BY g ORDER BY s DESC LIMIT 3",
    ],
)
def test_they_are_answered_in_steps(rows: sooner.Database, text: str) -> None:
    frame = rows.sql(text)
    assert not isinstance(frame.prepared.plan, Opaque), frame.explain()
    answers = list(frame.progress(batches=4))
    assert len(answers) == 4
    assert_same_answer(answers[-1].table, rows.spark.sql(text).toArrow(), ordered="LIMIT" in text)
    assert_same_answer(frame.exact().table, answers[-1].table, ordered="LIMIT" in text)


@pytest.mark.parametrize("call", ["some_time(x)", "halved(x)"])
def test_others_are_sparks(rows: sooner.Database, call: str) -> None:
    text = f"SELECT id, {call} AS v FROM t WHERE id < 10"
    frame = rows.sql(text)
    assert isinstance(frame.prepared.plan, Opaque)
    (only,) = frame.progress(batches=4)
    assert_same_answer(only.table, rows.spark.sql(text).toArrow())
