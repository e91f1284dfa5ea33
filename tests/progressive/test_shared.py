"""Frames derived from one another evolve together: blocks read once, answers of their own, nothing left."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer

from sooner.engine.streaming import Streaming
from sooner.errors import SoonerError
from sooner.progressive import cut_aggregates, streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database
    from sooner.frame import Frame

pytestmark = pytest.mark.spark

BLOCKS = 16


def some_rows(count: int, first: int = 0) -> pa.Table:
    generator = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "k": pa.array(generator.integers(0, count // 4 + 1, count), pa.int64()),
            "g": pa.array(generator.integers(0, 20, count), pa.int32()),
            "h": pa.array(generator.integers(0, 3, count), pa.int32()),
            "v": pa.array(generator.integers(1, 10, count), pa.int32()),
        }
    )


def fill(database: Database, place: Path) -> Database:
    pq.write_table(some_rows(4000), place / "t.parquet")
    names = {"g": pa.array(range(20), pa.int32()), "name": [f"n{i % 7}" for i in range(20)]}
    pq.write_table(pa.table(names), place / "s.parquet")
    database.register("t", place / "t.parquet", key="id")
    database.register("s", place / "s.parquet", key="g")
    database.scramble("t", ["k"], blocks=BLOCKS)
    return database


@pytest.fixture(autouse=True)
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the data."""
    monkeypatch.setattr(streams, "_WORTH_BYTES", 0)


@pytest.fixture(scope="module")
def ready(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    import sooner

    place = tmp_path_factory.mktemp("shared")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        yield fill(opened, place)


@pytest.fixture
def fresh(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    """For tests that change or break the tables."""
    import sooner

    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as opened:
        yield fill(opened, tmp_path)


class Reads(list[tuple[int, ...]]):
    """The blocks of every job that reads some, in the order the jobs began."""

    @property
    def blocks(self) -> list[int]:
        return sorted(block for blocks in self for block in blocks)


ONCE = list(range(BLOCKS))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    found = Reads()
    run = Streaming.run

    def counted(self: Streaming, plan: Any, blocks: Any, hint: Any = None) -> pa.Table:
        if blocks:
            found.append(tuple(blocks))
        return run(self, plan, blocks, hint)

    monkeypatch.setattr(Streaming, "run", counted)
    return found


def held(spark: SparkSession) -> tuple[int, int]:
    """Open evaluations and cached RDDs."""
    gc.collect()
    open_ones = [one for one in gc.get_objects() if isinstance(one, Streaming) and not one._closed]
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()  # type: ignore[union-attr]
    return len(open_ones), cached


@pytest.fixture(autouse=True)
def nothing_left(small_spark: SparkSession) -> Iterator[None]:
    evaluations, cached = held(small_spark)
    yield
    after, still = held(small_spark)
    assert after <= evaluations and still <= cached


def together(*frames: Frame) -> int:
    """Ask in turn until all are final; how many rounds that took."""
    rounds = 0
    while not all(frame.is_final for frame in frames):
        rounds += 1
        for frame in frames:
            before = frame._latest
            answer = frame.get()
            assert before is None or answer.progress >= before.progress
    for frame in frames:
        assert_same_answer(frame.get().to_arrow(), frame.exact().to_arrow())
    return rounds


def daily(database: Database) -> Frame:
    return database.table("t").filter("v > 2").agg(["sum(v) AS total", "count(*) AS n"], by=["g"])


def rows_read(spark: SparkSession) -> int:
    """How many rows all tasks so far took from files; a cached piece of many rows counts as one."""
    store = spark.sparkContext._jsc.sc().statusStore()  # type: ignore[union-attr]
    stages = store.stageList(None, False, False, getattr(store, "stageList$default$4")(), None)
    return sum(stages.apply(place).inputRecords() for place in range(stages.size()))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_blocks_are_read_once(ready: Database, reads: Reads, order: tuple[int, ...]) -> None:
    groups = daily(ready)
    frames = [groups, groups.sort("total DESC", "g").limit(5), groups.agg(["avg(n) AS mean_n"])]
    assert "2 other Frames" in groups.explain()
    rounds = together(*(frames[place] for place in order))
    assert rounds > 2 and len(reads) == rounds
    assert reads.blocks == ONCE
    assert {frame.get().details["shared_with"] for frame in frames} == {2}


def test_other_groups_of_the_same_rows_are_read_once(
    ready: Database, small_spark: SparkSession
) -> None:
    names = ready.table("s").select("g AS of", "name")
    rows = ready.table("t").filter("v > 2").join(names, on="g = of")
    frames = [
        rows.agg(["sum(v) AS total"], by=["name"]),
        rows.agg(["count(*) AS n", "avg(id) AS mean"], by=["h"]),
        rows.agg(["max(v) AS most"]),
    ]
    before = rows_read(small_spark)
    for frame in frames:
        frame.get_final()
    found = rows_read(small_spark) - before
    assert found < 4000 + 200, "static rows and pieces of the cache, but no row of t twice"
    together(*frames)


NESTED = "SELECT h, count(*) AS n FROM t WHERE v > (SELECT avg(v) FROM t) GROUP BY h"
SHAPES = {
    "conditions on open values": (NESTED, "n DESC", 2),
    "samples": ("SELECT g, median(v) AS m, count(*) AS n FROM t GROUP BY g", "n DESC", 2),
    "distinct counts": ("SELECT h, count(DISTINCT g) AS d, sum(v) AS s FROM t GROUP BY h", "s", 2),
    "complete groups": ("SELECT k, sum(v) AS s FROM t GROUP BY k", "s DESC, k", 1),
    "static parts": ("SELECT name, sum(v) AS s FROM t JOIN s ON t.g = s.g GROUP BY name", "s", 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_is_kept_is_kept_once(ready: Database, reads: Reads, shape: str) -> None:
    text, order, jobs = SHAPES[shape]
    first = ready.sql(text)
    ordered = first.sort(order)
    rounds = together(first, ordered)
    recovered = first.get().details.get("recoveries", 0)
    assert len(reads) <= jobs * rounds * 2 if recovered else len(reads) == jobs * rounds
    assert ordered.get().details["shared_with"] == 1


def test_columns_that_come_late_are_looked_up_for_each(
    ready: Database, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_aggregates, "_MANY_ROWS", 0)
    first = ready.sql(
        "SELECT s.g AS g, name, sum(v) AS total FROM t JOIN s ON t.g = s.g GROUP BY s.g, name"
    )
    best = first.sort("total DESC", "g").limit(3)
    only = first.select("name", "total")
    rounds = together(first, best, only)
    assert len(reads) == rounds * (1 if "shared_with" in only.get().details else 2)
    assert best.get().details["shared_with"] >= 1


def test_row_groups_are_read_once(fresh: Database, reads: Reads, tmp_path: Path) -> None:
    pq.write_table(some_rows(2400), tmp_path / "r.parquet", row_group_size=100)
    fresh.register("r", tmp_path / "r.parquet", key="id")
    groups = fresh.table("r").agg(["sum(v) AS total"], by=["g"])
    best = groups.sort("total DESC", "g").limit(3)
    assert together(groups, best) == len(reads)
    assert reads.blocks == list(range(24)) and best.get().details["shared_with"] == 1


def test_answers_are_those_of_a_frame_alone(ready: Database) -> None:
    groups = daily(ready)
    others = [groups.agg(["avg(n) AS mean_n"]), groups.sort("total DESC", "g").limit(5)]
    alone = {answer.progress: answer for answer in daily(ready).progress()}
    while not groups.is_final:
        answer = groups.get()
        same = alone[answer.progress]
        assert answer.to_arrow().equals(same.to_arrow())
        for name in ("total", "n"):
            assert answer.status(name) == same.status(name)
            assert answer.bounds[name] == same.bounds[name]
        for other in others:
            other.get()


def test_who_lags_behind_finds_it_read(ready: Database, reads: Reads) -> None:
    groups = daily(ready)
    best = groups.sort("total DESC", "g").limit(5)
    first = best.get()
    while not groups.is_final:
        groups.get()
    assert not first.final and best.get().final
    assert reads.blocks == ONCE
    together(groups, best)


def test_a_frame_made_later_joins_if_what_it_needs_is_kept(ready: Database, reads: Reads) -> None:
    groups = daily(ready)
    early = groups.get()
    best = groups.select("g", "total").sort("total DESC", "g").limit(5)
    assert best.get().progress == early.progress and len(reads) <= 2
    assert best.get().details["shared_with"] == 1
    more = groups.agg(["max(total) AS m"])
    together(groups, best, more)
    assert reads.blocks == ONCE and more.get().details["shared_with"] == 2


def test_a_frame_made_later_that_needs_more_goes_alone(ready: Database, reads: Reads) -> None:
    rows = ready.table("t").filter("v > 2")
    groups = rows.agg(["sum(v) AS total"], by=["g"])
    groups.get()
    other = rows.agg(["sum(v) AS total"], by=["h"])
    together(groups, other)
    assert reads.blocks == sorted(ONCE * 2)
    assert "shared_with" not in other.get().details


def test_a_filter_of_groups_takes_the_groups_as_they_are(ready: Database, reads: Reads) -> None:
    groups = daily(ready)
    some = groups.filter("g < 5 AND n > 3")
    rounds = together(groups, some)
    later = groups.filter("g >= 5").agg(["sum(total) AS total"])
    assert len(reads) == rounds and some.get().details["shared_with"] == 1
    groups.close()
    groups.get()
    together(groups, later)
    assert reads.blocks == sorted(ONCE * 2)


def test_progress_is_for_the_frame_alone(ready: Database, reads: Reads) -> None:
    groups = daily(ready)
    best = groups.sort("total DESC", "g").limit(5)
    answers = list(best.progress())
    assert answers[-1].final and reads.blocks == ONCE
    assert "shared_with" not in answers[-1].details
    assert groups._evolving is None


def test_what_spark_answers_as_written_goes_alone(ready: Database, reads: Reads) -> None:
    groups = daily(ready)
    ranked = groups.select("g", "rank() OVER (ORDER BY total) AS place")
    together(groups, ranked)
    assert reads.blocks == ONCE
    assert "shared_with" not in groups.get().details and "With get()" not in groups.explain()


def test_all_is_given_back_when_frames_are_gone(ready: Database, small_spark: SparkSession) -> None:
    before = held(small_spark)
    groups = daily(ready)
    best, mean = groups.sort("total").limit(5), groups.agg(["avg(n) AS mean_n"])
    groups.get()
    assert held(small_spark)[0] == before[0] + 1
    del groups, best
    assert held(small_spark)[0] == before[0] + 1, "one of them may yet ask"
    assert not mean.get().final
    mean.close()
    assert held(small_spark) == before and not mean.is_final
    mean.get_final()
    assert held(small_spark) == before


def test_who_is_gone_is_not_read_for(ready: Database, reads: Reads) -> None:
    rows = ready.table("t").filter("v > 2")
    groups, other = (rows.agg(["sum(v) AS total"], by=[key]) for key in ("g", "h"))
    groups.get()
    del other
    groups.get()
    before = len(reads)
    groups.get()
    assert len(reads) - before <= 1
    groups.close()


def test_an_error_is_told_to_whom_it_concerns(ready: Database) -> None:
    rows = ready.table("t").filter("v > 2")
    good = rows.agg(["sum(v) AS total"], by=["g"])
    bad = rows.agg(["sum(1 / (v - v)) AS x"], by=["g"])
    assert good.get_final().final
    for _ in range(2):
        with pytest.raises(SoonerError):
            bad.get()
    assert_same_answer(good.get().to_arrow(), good.exact().to_arrow())


def test_a_table_that_is_gone_hinders_only_those_who_read_it(fresh: Database) -> None:
    rows = fresh.table("t")
    groups = rows.agg(["sum(v) AS total"], by=["g"])
    named = rows.join(fresh.table("s").select("g AS of", "name"), on="g = of").agg("max(name)")
    fresh.drop("s")
    assert groups.explain() and groups.get_final().final
    with pytest.raises(SoonerError):
        named.get()


def test_a_block_that_vanishes_is_said_to_all(fresh: Database, small_spark: SparkSession) -> None:
    before = held(small_spark)
    (table,) = (known for known in fresh.tables() if known.name == "t")
    groups = daily(fresh)
    best = groups.sort("total").limit(5)
    groups.get()
    for path in Path(table.scrambles[0].directory.removeprefix("file://")).rglob("*.parquet"):
        path.unlink()
    for frame in (groups, best):
        with pytest.raises(SoonerError):
            frame.get_final()
    assert held(small_spark) == before


def test_who_asks_after_a_change_sees_it(fresh: Database) -> None:
    groups = daily(fresh)
    total = groups.agg(["sum(n) AS rows"])
    groups.get()
    fresh.insert("t", some_rows(100, first=10_000))
    assert total.get_final().as_of == {"t": 2}
    assert groups.get_final().as_of == {"t": 1}
    assert_same_answer(total.get().to_arrow(), total.exact().to_arrow())
