"""A scramble is listed once for each version, and a query's own session reads it as the user's would."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner
from sooner.engine import opened_scrambles
from sooner.engine.opened_scrambles import opened_scramble

pytestmark = pytest.mark.spark


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose scrambles Spark had to list."""
    found: list[str] = []
    rows = opened_scrambles.scramble_rows

    def watched(spark: SparkSession, table: object, scramble: object) -> object:
        found.append(table.name)  # type: ignore[attr-defined]
        return rows(spark, table, scramble)  # type: ignore[arg-type]

    monkeypatch.setattr(opened_scrambles, "scramble_rows", watched)
    monkeypatch.setattr(opened_scrambles, "_opened", type(opened_scrambles._opened)())
    return found


def ids(database: sooner.Database, own: SparkSession) -> list[int]:
    table = database._bind("t")
    rows = opened_scramble(database.spark, own, table, table.scrambles[0])
    assert rows.sparkSession is own
    return sorted(row.id for row in rows.collect())


def test_once_for_each_version(
    spark: SparkSession, tmp_path: object, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": range(50), "v": range(50)}), f"{tmp_path}/t.parquet")
    with sooner.connect(f"{tmp_path}/home", spark=spark, progress=False) as database:
        database.register("t", f"{tmp_path}/t.parquet", key="id")
        database.scramble("t", "id", blocks=4)
        one, other = spark.newSession(), spark.newSession()
        assert ids(database, one) == ids(database, other) == list(range(50))
        assert listed == ["t"]
        database.insert("t", [{"id": 70, "v": 1}])
        database.delete("t", [3])
        now = [n for n in range(50) if n != 3] + [70]
        assert ids(database, one) == ids(database, other) == now
        assert listed == ["t", "t"]
        monkeypatch.setattr(opened_scrambles, "_MOST", 2)
        database.insert("t", [{"id": 71, "v": 1}])
        assert ids(database, one) == [*now, 71]
        (plans,) = opened_scrambles._opened.values()
        assert len(plans) == 2
        answers = list(database.sql("SELECT sum(v) AS s FROM t").progress(batches=2))
        assert listed == ["t"] * 3
        assert (
            answers[-1].table.to_pylist()
            == database.sql("SELECT sum(v) AS s FROM t").exact().table.to_pylist()
        )
