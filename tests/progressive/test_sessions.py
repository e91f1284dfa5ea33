"""iOLAP's own workload: whatever the steps, the last answer on video sessions is Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from sessions import QUERIES, WITH_OWN_AGGREGATES, make_sessions, query, register_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Answer, Database

ROWS, BLOCKS = 20_000, 64
BATCHES = (1, 3, 16, 64)


@dataclass
class Workload:
    """The sessions three times: scrambled by session, by user, and not at all; and what Spark says."""

    database: Database
    truths: dict[str, pa.Table]

    def truth(self, name: str) -> pa.Table:
        if name not in self.truths:
            self.truths[name] = self.database.spark.sql(query(name, "sessions_of_spark")).toArrow()
        return self.truths[name]

    def check(self, name: str, table: str, batches: int, seed: int) -> list[Answer]:
        frame = self.database.sql(query(name, table))
        answers = list(frame.progress(batches=batches, seed=seed))
        assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]
        truth = self.truth(name)
        assert all(answer.to_arrow().schema.names == truth.schema.names for answer in answers)
        assert_same_answer(answers[-1].to_arrow(), truth, ordered="ORDER BY" in QUERIES[name])
        return answers


@pytest.fixture(scope="module")
def workload(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workload]:
    import sooner

    place = tmp_path_factory.mktemp("sessions")
    file = place / "sessions.parquet"
    pq.write_table(make_sessions(ROWS, seed=4), file)
    small_spark.read.parquet(str(file)).createOrReplaceTempView("sessions_of_spark")
    register_functions(small_spark)
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        for table in ("by_session", "by_user", "as_they_are"):
            opened.register(table, file, key="session_id")
        opened.scramble("by_session", ["session_id"], blocks=BLOCKS)
        opened.scramble("by_user", ["user_id"], blocks=BLOCKS)
        yield Workload(opened, {})
    small_spark.catalog.dropTempView("sessions_of_spark")


def test_sessions_are_skewed_clustered_and_the_same_again() -> None:
    table = make_sessions(5000, seed=1)
    assert table.equals(make_sessions(5000, seed=1)) and not table.equals(
        make_sessions(5000, seed=2)
    )
    frame = table.to_pandas()
    assert frame.session_id.is_unique
    assert (frame.groupby("user_id").city.nunique() == 1).all()
    sizes = frame.user_id.value_counts()
    assert sizes.iloc[0] > 20 * sizes.median() and frame.cdn.nunique() == 4
    # Sessions of one user are alike: what sampling rows instead of users would not see.
    buffering = frame.groupby("user_id").buffer_time
    assert buffering.mean()[sizes.index[:100]].std() > 0.3 * frame.buffer_time.mean()
    assert frame.join_ms.isna().equals(frame.join_failed) and 0 < frame.join_failed.mean() < 0.2


# Each query with every kind of table, and each number of steps with some queries.
SOME = [
    *((name, "by_session", BATCHES[number % 3]) for number, name in enumerate(QUERIES)),
    *((name, "by_user", BATCHES[1]) for name in QUERIES if name not in WITH_OWN_AGGREGATES),
    ("C3", "by_user", 64),
]


@pytest.mark.parametrize(("name", "table", "batches"), SOME)
def test_the_last_answer_is_sparks(workload: Workload, name: str, table: str, batches: int) -> None:
    answers = workload.check(name, table, batches, seed=batches + len(name))
    assert len(answers) == (1 if name in WITH_OWN_AGGREGATES else batches)


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in WITH_OWN_AGGREGATES])
def test_without_a_scramble_there_is_one_answer(workload: Workload, name: str) -> None:
    assert len(workload.check(name, "as_they_are", 3, seed=0)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("table", ["by_session", "by_user", "as_they_are"])
@pytest.mark.parametrize("batches", BATCHES)
def test_all_of_them(workload: Workload, name: str, table: str, batches: int) -> None:
    for seed in range(3):
        workload.check(name, table, batches, seed)
