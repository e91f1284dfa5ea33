"""COUNT(DISTINCT …) in steps: exact in the end, a certain lower end and no made-up upper one before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from test_differential import assert_ends_exactly

from sooner.algebra import Aggregate, Column, Item, Scan
from sooner.answer import Status
from sooner.progressive.distinct_counts import KeptDistinct
from sooner.progressive.estimates import DistinctCount
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State
from sooner.progressive.states import Kept
from sooner.statistics import Interval
from sooner.storage.layout import REPLICATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

R = 32


def distinct_state(most: int | None = None) -> KeptDistinct:
    """The state of SELECT g, count(DISTINCT v) … GROUP BY g."""
    columns = (Column("g", "bigint"), Column("__value_0", "bigint"))
    scan = Scan("__stream_0", ("g", "v"), columns)
    carried = Scan("__stream_0", ("g", "v", REPLICATE), (*columns, Column(REPLICATE, "tinyint")))

    def item(name: str, text: str) -> Item:
        return Item(name, sqlglot.parse_one(text, dialect="spark"))

    pairs = Aggregate(carried, ("g", "__value_0"), (item("__times", "count(*)"),))
    counts = Aggregate(scan, ("g",), (item("n", "count(__value_0)"),))
    of_pairs = pa.schema([("g", pa.int64()), ("__value_0", pa.int64()), ("__times", pa.int64())])
    kept = Kept(State("", carried, 0, pairs, carried), of_pairs, R, most)
    state = State("__state_0", scan, 0, counts, pairs=kept.state)
    return KeptDistinct(state, pa.schema([("g", pa.int64()), ("n", pa.int64())]), kept)


def batch(group: object, value: object, replicate: object, times: object) -> pa.Table:
    long = [pa.array(each, pa.int64()) for each in (group, value, times)]
    return pa.table(
        {
            "g": long[0],
            "__value_0": long[1],
            REPLICATE: pa.array(replicate).cast(pa.int8()),
            "__times__0": long[2],
        }
    )


A = batch([1, 1, 2], [10, 20, None], [0, 1, 2], [1, 3, 1])
B = batch([1, 1, 3], [10, None, 7], [5, 1, 2], [2, 1, 1])


def rows(table: pa.Table) -> dict[int, int]:
    return dict(zip(table.column("g").to_pylist(), table.column("n").to_pylist(), strict=True))


def test_a_value_counts_once_and_null_not_at_all_in_whatever_order() -> None:
    for parts in ([A, B], [B, A], [A, A.slice(0, 0), B], [A, B, B]):
        state = distinct_state()
        for part in parts:
            state.add(part)
        assert rows(state.exact()) == {1: 2, 2: 0, 3: 1}


@pytest.mark.parametrize("most", [None, 1])  # with replicates and, beyond so many values, without
def test_what_was_seen_is_certain(most: int | None) -> None:
    state = distinct_state(most)
    state.add(A)
    state.add(B)
    found = state.estimated(Scaling(np.full(R, 10.0), 640.0))
    column = found.columns["n"]
    assert isinstance(column, DistinctCount)
    groups = found.columns["g"].to_pylist()  # type: ignore[union-attr]
    assert dict(zip(groups, column.certain_low, strict=True)) == {1: 2, 2: 0, 3: 1}
    ends = column.interval(0.5, 0.95)
    assert (ends.low == column.certain_low).all() and np.isnan(ends.high).all()
    assert (column.theta[0] >= column.certain_low).all()
    taken = column.take(np.array([1]))
    assert taken.interval(0.5, 0.95).low.tolist() == [column.certain_low[1]]


# --- Replayed: a seed is a group here, so that one state holds all of them ----------------------------


SEEDS, KEYS, EACH = 200, 2000, 3


class Drawn(NamedTuple):
    """The key and the value of each pair; when each seed reads a key, in which replicate and half."""

    key: np.ndarray
    value: np.ndarray
    when: np.ndarray
    replicate: np.ndarray
    late: np.ndarray


@cache
def drawn(kind: str, values: int) -> Drawn:
    """2,000 keys of three rows, as in statistics/test_distinct. Small numbers are sorted sooner."""
    rng = np.random.default_rng(1)
    if kind == "alike":
        each = rng.permutation(np.arange(KEYS * EACH) % values)
    else:
        chances = np.ones(values) if kind == "random" else 1.0 / np.arange(1, values + 1)
        each = rng.choice(values, KEYS * EACH, p=chances / chances.sum())
    pair = np.unique(np.repeat(np.arange(KEYS), EACH) * values + each)
    shape = (SEEDS, KEYS)
    when, replicate, late = rng.random(shape), rng.integers(0, R, shape), rng.random(shape) < 0.5
    value = (pair % values).astype(np.int32)
    return Drawn(pair // values, value, when, replicate.astype(np.int32), late)


@cache
def replayed(kind: str, values: int, t: float) -> tuple[DistinctCount, Interval, float]:
    """The counts of 200 seeds and the truth."""
    key, value, when, replicate, late = drawn(kind, values)
    read = when < t
    state = distinct_state(10_000_000)
    for half in (read & late, read & ~late):  # two batches
        seed, place = np.divmod(np.flatnonzero(half[:, key]).astype(np.int32), np.int32(len(key)))
        cell = (seed * values + value[place]) * R + replicate[seed, key[place]]
        cell, times = np.unique(cell, return_counts=True)
        of, replicates = np.divmod(cell, R)
        groups, values_ = np.divmod(of, values)
        state.add(batch(groups, values_, replicates, times))
    # One scaling for all seeds: the share of keys that is read.
    found = state.estimated(Scaling(np.full(R, KEYS * t / R), float(KEYS))).columns["n"]
    assert isinstance(found, DistinctCount)
    return found, found.interval(t, 0.95), float(np.unique(value).size)


@pytest.mark.parametrize(
    ("kind", "values", "t", "low", "high"),
    [
        ("alike", 500, 0.1, 0.95, 1.05),
        ("alike", 500, 0.5, 0.98, 1.02),
        ("random", 500, 0.1, 0.88, 1.02),
        ("random", 3000, 0.5, 0.82, 0.90),  # as measured: values of two pairs each
        ("zipf", 3000, 0.1, 0.20, 0.30),  # as measured: skew is not estimated, it is said
    ],
)
@pytest.mark.simulation
def test_bias(kind: str, values: int, t: float, low: float, high: float) -> None:
    found, _, truth = replayed(kind, values, t)
    assert low <= found.theta[0].mean() / truth <= high


@pytest.mark.parametrize("t", [0.02, 0.1, 0.5])
@pytest.mark.parametrize(
    ("kind", "values"), [("alike", 100), ("alike", 500), ("random", 3000), ("zipf", 3000)]
)
@pytest.mark.simulation
def test_no_end_is_wrong_more_often_than_said(kind: str, values: int, t: float) -> None:
    found, ends, truth = replayed(kind, values, t)
    assert (ends.low <= truth).all() and (found.theta[0] >= ends.low).all()
    assert (ends.high < truth).mean() <= 0.05
    if kind == "zipf":
        assert np.isnan(ends.high).all()
    if kind == "alike" and t == 0.5:
        assert ends.known.mean() > 0.9


# --- Through Spark ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """t: 600 rows scrambled by k, u: the same rows by a k that may be null; g 9 has only nulls."""
    import sooner

    place = tmp_path_factory.mktemp("distinct")
    rng = np.random.default_rng(4)
    count = 600
    group = rng.integers(0, 4, count)
    group[:3] = 9
    key = rng.integers(0, 120, count)
    value = rng.integers(0, 30, count).astype(float)
    value[:40] = np.nan
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "k": pa.array(key, pa.int64()),
            "g": pa.array(group, pa.int32()),
            "v": pa.array(value, from_pandas=True).cast(pa.int32()),
            "x": pa.array(rng.choice([math.nan, 0.0, -0.0, 1.5, math.inf], count)),
            "s": pa.array(rng.choice(["a", "A", "", "b"], count)),
        }
    )
    nulls = pa.array(np.where(key % 7, key, np.nan), from_pandas=True).cast(pa.int64())
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        for name, rows in (("t", table), ("u", table.set_column(1, "k", nulls))):
            pq.write_table(rows, place / f"{name}.parquet")
            opened.register(name, place / f"{name}.parquet", key="id")
        opened.scramble("t", ["k"], blocks=16)
        opened.scramble("u", ["k"], like="t")
        yield opened


TEXTS = [
    "SELECT count(DISTINCT v) AS n FROM t",
    "SELECT g, count(DISTINCT v) AS n FROM t GROUP BY g",
    "SELECT g, count(DISTINCT k) AS n, count(DISTINCT k) AS again FROM t GROUP BY g",
    "SELECT g, count(DISTINCT k) AS n FROM u GROUP BY g",
    "SELECT count(DISTINCT k, v) AS n FROM u",
    "SELECT g, count(DISTINCT v) AS n, sum(v), avg(v), stddev(v), max(x) FROM t GROUP BY g",
    "SELECT g, sum(v) AS s, count(DISTINCT v) AS n, count(DISTINCT x) AS m, count(DISTINCT k) AS o, "
    "count(*) AS c FROM t GROUP BY g",
    "SELECT count(*) AS c, count(DISTINCT v) AS n, count(DISTINCT s) AS m FROM t",
    "SELECT x, s, count(DISTINCT v) AS n, count(*) AS c FROM t GROUP BY x, s",
    "SELECT g, count(DISTINCT v) FILTER (WHERE v > 20) AS n, count(DISTINCT v) AS m FROM t GROUP BY g",
    "SELECT g, count(DISTINCT v, s) AS n FROM t GROUP BY g",
    "SELECT g, count(DISTINCT v) AS n FROM t WHERE id < 0 GROUP BY g",
    "SELECT count(DISTINCT v) AS n, count(*) FROM t WHERE id < 0",
    "SELECT t.g, count(DISTINCT u.v) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.g",
    "SELECT g, count(DISTINCT v) AS n FROM (SELECT g, v FROM t UNION ALL SELECT g, v FROM u) GROUP BY g",
    "SELECT c, count(DISTINCT m) AS n FROM (SELECT k, max(v) AS m, count(*) AS c FROM t GROUP BY k) "
    "GROUP BY c",
    "SELECT g, count(DISTINCT v) AS n FROM t GROUP BY g HAVING count(DISTINCT v) > 10 ORDER BY n DESC, g",
    "SELECT s, count(DISTINCT v) * 100 / count(*) AS n FROM t GROUP BY s ORDER BY n DESC, s LIMIT 2",
]


# Seconds each: every third in `make test`, the others in `make test-slow`.
@pytest.mark.parametrize(
    ("text", "batches", "seed"),
    [
        pytest.param(text, 3 + place % 3, place, marks=[pytest.mark.slow] if place % 3 else [])
        for place, text in enumerate(TEXTS)
    ],
)
def test_ends_as_spark(counted: Database, text: str, batches: int, seed: int) -> None:
    answers = assert_ends_exactly(counted.sql(text), batches, seed)
    assert len(answers) == batches


@pytest.mark.parametrize("text", [TEXTS[6]])
def test_too_many_values_for_replicates_end_as_spark(
    counted: Database, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("sooner.progressive.distinct_counts.MOST_REPLICATED_VALUES", 20)
    answers = assert_ends_exactly(counted.sql(text), 6, 2)
    assert set(answers[3].status("n")) == {Status.UNKNOWN}
    assert None not in answers[3].bounds["n"].low.to_pylist()


@pytest.mark.parametrize("text", ["SELECT g, sum(DISTINCT v) FROM t GROUP BY g"])
def test_what_stays_exact_in_one_step(counted: Database, text: str) -> None:
    (answer,) = counted.sql(text).progress(batches=4)
    assert answer.final
    assert "DISTINCT" in str(counted.sql(text).explain())


def test_a_stream_key_is_counted_as_rows_are(counted: Database) -> None:
    frame = counted.sql("SELECT count(DISTINCT k) AS n FROM t")
    (truth,) = frame.exact().to_arrow().column("n").to_pylist()
    held = []
    for seed in range(4):
        answer = next(iter(frame.progress(batches=2, seed=seed)))
        assert answer.status("n") == (Status.ESTIMATE,)
        ends = answer.bounds["n"]
        held.append(ends.low.to_pylist()[0] <= truth <= ends.high.to_pylist()[0])
    assert sum(held) >= 2


def test_a_filter_by_a_count_that_may_be_skewed_decides_nothing(counted: Database) -> None:
    frame = counted.sql("SELECT g FROM t GROUP BY g HAVING count(DISTINCT v) < 1000")
    answer = next(iter(frame.progress(batches=3, seed=1)))
    assert answer.to_arrow().num_rows and set(answer.status("g")) == {Status.SELECTED}
