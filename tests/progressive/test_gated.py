"""Conditions on aggregates that are still open: exact in the end, few rows judged again, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer

from sooner.answer import Status
from sooner.progressive import batches as batching
from sooner.progressive import gated, reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Answer, Database

pytestmark = pytest.mark.spark

ROWS = 20_000
QUERIES = {
    "slow buffering": """SELECT avg(play) AS a FROM s WHERE buffer > (SELECT avg(buffer) FROM s)""",
    "twice": """SELECT g, count(*) AS n, sum(play) AS p FROM s
        WHERE buffer > (SELECT avg(buffer) FROM s) AND play < (SELECT 1.5 * avg(play) FROM s)
        GROUP BY g""",
    "by group": """SELECT avg(play) AS a, count(*) AS n FROM s
        WHERE buffer < (SELECT 0.8 * avg(buffer) FROM s AS i WHERE i.g = s.g)""",
    "group itself": """SELECT s.g, sum(play) AS p FROM s
        WHERE buffer > (SELECT avg(buffer) FROM s AS i WHERE i.g = s.g) GROUP BY s.g""",
    "in groups": """SELECT count(*) AS n, sum(play) AS p FROM s
        WHERE g IN (SELECT g FROM s GROUP BY g HAVING sum(play) > 90000)""",
    "joined groups": """SELECT count(*) AS n FROM s
        JOIN (SELECT g, count(*) AS c FROM s GROUP BY g HAVING count(*) > 850) AS i ON i.g = s.g""",
    "with static": """SELECT name, count(*) AS n FROM s JOIN names ON s.g = names.g
        WHERE buffer >= (SELECT avg(buffer) FROM s) GROUP BY name""",
    "a sum of the open value": """SELECT g, sum(play - m) AS p, count(*) AS n FROM s,
        (SELECT avg(day) AS m FROM s) WHERE day < m GROUP BY g""",
    "rows": """SELECT id, buffer FROM s WHERE buffer > (SELECT 2.5 * avg(buffer) FROM s)""",
    "no rows": """SELECT id, buffer FROM s WHERE buffer > (SELECT 1000 * avg(buffer) FROM s)""",
    "least": """SELECT count(*) AS n FROM s WHERE buffer = (SELECT min(buffer) FROM s)""",
    "most": """SELECT sum(play) AS p FROM s WHERE day < (SELECT max(day) FROM s)""",
    "keys with little": """SELECT sum(play) AS p FROM s
        WHERE buffer < (SELECT avg(buffer) FROM s AS i WHERE i.many = s.many)""",
    "not a number": """SELECT count(*) AS n FROM s
        WHERE odd > (SELECT avg(odd) FROM s)""",
    "a NaN among the rows": """SELECT count(*) AS n FROM s
        WHERE odd > (SELECT avg(buffer) FROM s AS i WHERE i.g = s.g)""",
    "text": """SELECT count(*) AS n FROM s WHERE t > (SELECT min(t) FROM s)""",
    "many groups, of which few pass": """SELECT many, g, sum(play) AS p FROM s
        WHERE play > (SELECT 1.9 * avg(play) FROM s) GROUP BY many, g""",
    "none there": """SELECT count(*) AS n FROM names
        WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.g = names.g AND s.day = 3 AND s.play > 190)""",
    "not among them": """SELECT name FROM names WHERE g NOT IN (SELECT g FROM s WHERE play > 198)""",
    "sum of users": """SELECT count(*) AS n FROM
        (SELECT k, sum(play) AS p FROM s GROUP BY k) WHERE p > (SELECT 40 * avg(play) FROM s)""",
}


@pytest.fixture(scope="module")
def ready(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    import sooner

    generator = np.random.default_rng(4)
    key = generator.integers(0, 3000, ROWS)
    buffer = generator.lognormal(3, 0.4, ROWS) * (1 + key % 7 / 10)
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "k": pa.array(key, pa.int64()),
            "g": pa.array(generator.integers(0, 23, ROWS), pa.int32()),
            "many": pa.array(generator.integers(0, 4000, ROWS), pa.int32()),
            "buffer": pa.array(
                np.where(generator.random(ROWS) < 0.01, np.nan, buffer),
                pa.float64(),
                from_pandas=True,
            ),
            "play": pa.array(generator.integers(1, 200, ROWS), pa.int32()),
            "day": pa.array(generator.integers(0, 30, ROWS), pa.int32()),
            "t": pa.array([f"x{n % 50:02}" for n in range(ROWS)]),
            # One row makes the average NaN, and it may come late.
            "odd": pa.array(np.where(np.arange(ROWS) == 7, np.nan, buffer), pa.float64()),
        }
    )
    place = tmp_path_factory.mktemp("gated")
    pq.write_table(rows, place / "s.parquet")
    names = {"g": pa.array(range(20), pa.int32()), "name": [f"n{n % 6}" for n in range(20)]}
    pq.write_table(pa.table(names), place / "names.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        opened.register("s", place / "s.parquet", key="id")
        opened.register("names", place / "names.parquet", key="g")
        opened.scramble("s", ["k"], blocks=64)
        yield opened


def final(answers: list[Answer], exact: Answer) -> Answer:
    assert len({answer.method for answer in answers}) == 1, "gave up on the way"
    assert answers[-1].final
    assert_same_answer(answers[-1].to_arrow(), exact.to_arrow(), ordered=False)
    return answers[-1]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize(
    ("batches", "seed", "slack"),
    [
        (7, 1, 2.0),
        (1, 3, 2.0),
        pytest.param(16, 2, 0.0, marks=pytest.mark.slow),
        pytest.param(64, 4, 1.0, marks=pytest.mark.slow),
    ],
)
def test_it_ends_exactly(ready: Database, name: str, batches: int, seed: int, slack: float) -> None:
    frame = ready.sql(QUERIES[name])
    answers = list(frame.progress(batches=batches, seed=seed, slack=slack, stream="s"))
    assert len(answers) == batches
    final(answers, frame.exact())


@pytest.mark.parametrize("name", ["slow buffering", "twice", "by group", "in groups", "rows"])
def test_few_rows_are_judged_again(ready: Database, name: str) -> None:
    answers = list(ready.sql(QUERIES[name]).progress(batches=16, seed=5, stream="s"))
    last = answers[-2]
    # So few rows make wide ranges; at scale the benchmark asks for 2%.
    assert last.details["rows_judged_again"] <= 0.05 * ROWS * last.progress
    assert any(Status.ESTIMATE in last.status(n) for n in last.to_arrow().column_names) or name in (
        "rows",
    )


def test_estimates_are_near(ready: Database) -> None:
    frame = ready.sql(QUERIES["slow buffering"])
    truth = frame.exact().to_arrow()["a"][0].as_py()
    half = [a for a in frame.progress(batches=16, seed=6) if 0.4 < a.progress < 0.6]
    for answer in half:
        bounds = answer.bounds["a"]
        assert bounds.low[0].as_py() < truth < bounds.high[0].as_py()
        assert abs(answer.to_arrow()["a"][0].as_py() / truth - 1) < 0.05


@pytest.mark.parametrize("name", ["slow buffering", "twice", "by group", "in groups", "rows"])
def test_an_adversarial_order_is_recovered_from(
    ready: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks with small values first: the average drifts out of every range."""
    (table,) = (one for one in ready.tables() if one.name == "s")
    scramble = table.scrambles[0]
    rows = ready.spark.read.parquet(scramble.directory)
    found = rows.selectExpr("__block", "buffer + play AS v").groupBy("__block").avg("v").toArrow()
    order = [
        b
        for _, b in sorted(
            zip(found["avg(v)"].to_pylist(), found["__block"].to_pylist(), strict=True)
        )
    ]
    monkeypatch.setattr(
        reading, "batches", lambda *_: [tuple(order[i : i + 4]) for i in range(0, 64, 4)]
    )
    frame = ready.sql(QUERIES[name])
    answers = list(frame.progress(batches=16, slack=0.0, stream="s"))
    assert final(answers, frame.exact()).details["recoveries"] >= 1


def test_the_first_batch_is_split_where_too_many_rows_would_wait(
    ready: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first batch nothing is decided; of those after it hardly a row waits."""
    monkeypatch.setattr(gated, "_MOST_WAITING", 3_000)
    monkeypatch.setattr(batching, "_ROWS_AT_ONCE", 2_000)
    frame = ready.sql(QUERIES["slow buffering"])
    answers = list(frame.progress(batches=4, seed=8, stream="s"))
    assert answers[0].progress == pytest.approx(0.1, abs=0.03)
    assert [answer.progress for answer in answers[1:]] == pytest.approx(
        [0.25, 0.5, 0.75, 1.0], abs=0.05
    )
    final(answers, frame.exact())
    without_gates = ready.sql("SELECT avg(play) AS a FROM s").progress(batches=4, stream="s")
    assert len(list(without_gates)) == 4


def test_explain_names_what_waits(ready: Database) -> None:
    text = ready.sql(QUERIES["by group"]).explain()
    assert "may yet let pass" in text
