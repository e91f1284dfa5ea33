"""Ranges, checks and suggestions on Spark: whatever rows go, the truth is in the range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sooner
from sooner import Constraint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

ROWS = 4000
QUESTIONS = [
    "SELECT count(*) AS c, sum(light) AS s, avg(light) AS a, min(light) AS l, max(light) AS h FROM {}",
    "SELECT sum(light) AS s, count(volts) AS c FROM {} WHERE device = 3 AND hour BETWEEN 5 AND 11",
    "SELECT avg(price) AS a, max(price) AS h FROM {} WHERE hour < 6 OR device IN (7, 8)",
    "SELECT device, count(*) AS c, sum(price) AS s FROM {} WHERE hour > 18 GROUP BY device",
    "SELECT kind, min(light) AS l, avg(light) AS a FROM {} GROUP BY kind",
]


@pytest.fixture(scope="module")
def opened(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    rng = np.random.default_rng(3)
    device, hour = rng.integers(0, 10, ROWS), rng.integers(0, 24, ROWS)
    light = np.abs(rng.normal(hour * 10.0, 20)) + device
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "device": pa.array(device, mask=rng.random(ROWS) < 0.02),
            "hour": hour,
            "kind": rng.choice(["in", "out", "door"], ROWS),
            "light": pa.array(light, mask=rng.random(ROWS) < 0.05),
            "volts": pa.array(rng.normal(3, 1, ROWS), mask=rng.random(ROWS) < 0.1),
            "price": pa.array(np.rint(light * 100) / 100).cast(pa.decimal128(10, 2), safe=False),
        }
    )
    place: Path = tmp_path_factory.mktemp("missing")
    gone = np.argsort(-light)[: ROWS // 3]  # the largest ones
    kept = np.setdiff1d(np.arange(ROWS), gone)
    for name, chosen in {"everything": np.arange(ROWS), "missing": gone, "known": kept}.items():
        pq.write_table(rows.take(pa.array(chosen)), place / f"{name}.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        for name in ("everything", "missing", "known"):
            database.register(name, place / f"{name}.parquet", key="id")
        yield database


@pytest.mark.parametrize(
    ("measure", "over"),
    [("light", ["device", "hour"]), ("price", ["hour", "kind"]), ("light", None)],
)
def test_the_truth_is_in_the_range(opened: Database, measure: str, over: list[str] | None) -> None:
    constraints = sooner.suggest(opened.table("missing"), measure, over, count=40)
    assert 30 <= len(constraints) <= 42
    assert sooner.check(constraints, opened.table("missing")).holds
    for text in QUESTIONS:
        truth = opened.sql(text.format("everything")).exact().to_arrow().to_pylist()
        found = opened.sql(text.format("known")).bounds(constraints)
        names = [name for name in found.uncertain if name in ("c", "s", "a", "l", "h")]
        keys = [name for name in found.table.column_names if name not in found.uncertain]
        rows = {tuple(row[k] for k in keys): n for n, row in enumerate(found.table.to_pylist())}
        for row in truth:
            at = rows.get(tuple(row[k] for k in keys))
            if at is None:  # only where rows lack the column that groups go by
                assert any("not listed" in note for note in found.remarks)
                continue
            for name in names:
                low, high = (
                    ends[at].as_py() for ends in (found.bounds[name].low, found.bounds[name].high)
                )
                assert low is None or low <= row[name], (text, row, low, high)
                assert high is None or row[name] <= high, (text, row, low, high)


def test_the_truth_of_a_join_is_in_the_range(opened: Database) -> None:
    text = """SELECT count(*) AS c, sum(l.light) AS s FROM {} AS l JOIN known AS r
        ON l.hour = r.hour AND l.device = r.device WHERE l.hour < 3 AND r.kind = 'in'"""
    found = opened.sql(text.format("known")).bounds(
        [
            replace(one, table="everything")
            for one in sooner.suggest(opened.table("missing"), "light", ["hour"], 5)
        ]
    )
    assert found.relative_error == 0.0
    gone = (
        opened.table("missing").filter("hour < 3").agg(["count(*) AS n, max(light) AS h"]).exact()
    )
    (row,) = gone.to_arrow().to_pylist()
    one = Constraint("hour < 3", {"light": (0, row["h"])}, (0, row["n"]), table="known")
    two = opened.sql(text.format("known")).bounds([one])
    truth = opened.sql(text.format("everything")).exact().to_arrow().to_pylist()[0]
    for name in ("c", "s"):
        assert two.bounds[name].low[0].as_py() <= truth[name] <= two.bounds[name].high[0].as_py()


def test_what_is_checked(opened: Database) -> None:
    constraints = [
        Constraint("hour < 12", {"light": (0, 1000)}, (0, 10_000), name="mornings"),
        Constraint("hour >= 12", {"light": (50, None), "hour": (12, 23)}, (0, 10_000)),
        Constraint("hour = 3", {}, (0, 5), name="few at night"),
    ]
    found = sooner.check(constraints, opened.table("everything"))
    assert not found.holds
    lines = found.table.to_pylist()
    assert [line["holds"] for line in lines] == [False, False, False]
    assert lines[0]["rows with other values"] > 0, "null is no value"
    assert lines[1]["constraint"] == "hour >= 12"
    assert lines[2]["rows with other values"] == 0 and lines[2]["rows"] > 5
    assert found.uncovered == 0
    broken = found.broken.exact().to_arrow()
    assert (
        broken.num_rows == lines[0]["rows with other values"] + lines[1]["rows with other values"]
    )
    assert "0 of 3 constraints hold" in str(found)
    some = sooner.check(constraints[2:], opened.table("everything"))
    assert some.uncovered == ROWS - lines[2]["rows"]


def test_suggestions_that_cannot_be(opened: Database) -> None:
    history = opened.table("missing")
    with pytest.raises(sooner.UnknownColumn, match="light"):
        sooner.suggest(history, "lihgt", ["hour"])
    with pytest.raises(sooner.InvalidArgument, match="numbers"):
        sooner.suggest(history, "kind", ["hour"])
    with pytest.raises(sooner.InvalidArgument, match="count"):
        sooner.suggest(history, "light", ["hour"], count=0)
    with pytest.raises(sooner.InvalidArgument, match="no row"):
        sooner.suggest(history.filter("hour > 99"), "light", ["hour"])
