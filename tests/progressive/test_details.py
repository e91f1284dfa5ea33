"""What an answer on the way says of itself: rows to come, groups not seen, a limit that may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Filter, Item, Limit, Relation, Scan, Sort
from sooner.algebra.scalar import SortKey, column
from sooner.answer import Answer
from sooner.progressive.details import details, rows_expected
from sooner.progressive.estimates import Rows, Varying, certain_rows
from sooner.progressive.parts import Cut, State
from sooner.progressive.unseen import unseen_share

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

R = 32
COLUMNS = (Column("g", "bigint"), Column("v", "double"))
SCAN = Scan("__state_0", ("g", "v"), COLUMNS)
ROWS = State("__state_0", SCAN, 0)
BY_V = (SortKey(column("v"), descending=True),)


@pytest.mark.parametrize(
    ("top", "shown", "expected"),
    [
        (SCAN, 30, 120),
        (Sort(Filter(SCAN, sqlglot.parse_one("v > 1")), BY_V), 30, 120),
        (Limit(Sort(SCAN, BY_V), 100), 30, 100),
        (Limit(Sort(SCAN, BY_V), 200), 30, 120),
        (Limit(Sort(SCAN, BY_V), 30), 30, 30),
        (Limit(Sort(SCAN, BY_V), 200, 10), 30, 150),
        (Limit(Sort(SCAN, BY_V), 200, 10), 0, None),
    ],
)
def test_rows_expected_of_a_list_that_grows(
    top: Relation, shown: int, expected: int | None
) -> None:
    assert rows_expected(top, (ROWS,), shown, 0.25) == expected


def test_groups_that_are_estimated_are_no_list_that_grows() -> None:
    count = (Item("v", sqlglot.parse_one("count(*)", dialect="spark")),)
    groups = State("__state_0", SCAN, 0, Aggregate(SCAN, ("g",), count))
    assert rows_expected(SCAN, (groups,), 30, 0.25) is None
    assert rows_expected(Aggregate(SCAN, ("g",)), (ROWS,), 30, 0.25) is None


@pytest.mark.simulation
def test_share_of_rows_in_groups_not_seen_over_many_seeds() -> None:
    """Zipf groups of clustered keys: too high by no more than leaving a replicate out makes it."""
    rng = np.random.default_rng(1)
    keys, t = 5000, 0.1
    chances = 1.0 / np.arange(1, 3001)
    group = rng.choice(3000, keys, p=chances / chances.sum())
    size = rng.integers(1, 8, keys).astype(float)  # rows of a key are in one group
    found, truth = [], []
    for _ in range(300):
        read = rng.random(keys) < t
        replicate = rng.integers(0, R, keys)
        cell = group[read] * R + replicate[read]
        rows = np.bincount(cell, size[read])
        here = np.flatnonzero(rows)
        share = unseen_share(here // R, here % R, rows[here])
        assert share is not None
        found.append(share)
        seen = np.isin(group, group[read])
        truth.append(size[~seen].sum() / size[~read].sum())
    assert np.mean(truth) > 0.2
    assert 1.0 <= np.mean(found) / np.mean(truth) < 1.06
    assert abs(np.array(found) - np.array(truth)).max() < 0.15


def test_share_of_rows_not_seen_is_unknown_from_one_replicate_and_none_if_all_groups_are_frequent() -> (
    None
):
    group, replicate = np.repeat(np.arange(3), R), np.tile(np.arange(R), 3)
    assert unseen_share(group, replicate, np.ones(3 * R)) == 0.0
    assert unseen_share(np.arange(3), np.zeros(3, np.int64), np.ones(3)) is None
    assert unseen_share(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)) is None


def estimated(*centers: float, spread: float) -> Rows:
    """Rows whose v are these, largest first as given, with leave-one-out values around them."""
    rng = np.random.default_rng(1)
    off = rng.normal(0, spread, (R, len(centers)))
    theta = np.vstack([np.array(centers), np.array(centers) + off - off.mean(axis=0)])
    varying = Varying(theta, np.ones((len(centers), R)))
    keys = pa.chunked_array([list(range(len(centers)))])
    return certain_rows({"g": keys, "v": varying}, len(centers))


def note(rows: Rows, descending: bool = True, count: int = 2) -> list[str]:
    total = (Item("v", sqlglot.parse_one("sum(v)", dialect="spark")),)
    state = State("__state_0", SCAN, 0, Aggregate(SCAN, ("g",), total))
    top = Limit(Sort(SCAN, (SortKey(column("v"), descending=descending),)), count)
    found = details(Cut(top, (state,), {}), {"__state_0": rows}, 2, 0.1, [None], 0.95)
    notes: list[str] = found.get("notes", [])
    return notes


def test_a_limit_says_how_many_others_could_still_be_among_its_rows() -> None:
    (text,) = note(estimated(10.0, 9.0, 8.9, 1.0, spread=0.1))
    assert text == "the first 2 are chosen by estimates of v: 1 other could still be among them"
    (text,) = note(estimated(1.0, 8.0, 8.9, 9.0, spread=0.2), descending=False)
    assert "2 others" in text


def test_a_limit_that_no_interval_touches_says_nothing() -> None:
    assert note(estimated(10.0, 9.0, 2.0, 1.0, spread=0.1)) == []
    assert note(estimated(10.0, 9.0, spread=5.0)) == []  # all of them


def test_with_unknown_ends_anything_could_be_among_the_first() -> None:
    rows = estimated(10.0, 9.0, 2.0, 1.0, spread=0.1)
    varying = rows.columns["v"]
    assert isinstance(varying, Varying)
    few = Varying(varying.theta, np.eye(4, R))
    (text,) = note(certain_rows({**rows.columns, "v": few}, 4))
    assert "2 others" in text


def test_what_is_negligible_is_not_shown() -> None:
    table = pa.table({"n": [1, 2]})
    quiet = Answer(table, "progressive", details={"unseen_groups": 0.004, "rows_expected": 2})
    assert quiet.remarks == []
    told = Answer(
        table,
        "progressive",
        final=False,
        details={"unseen_groups": 0.03, "rows_expected": 1200, "notes": ["a <note>"]},
    )
    lines = [
        "about 3% of the rows are in groups not seen yet",
        "about 1,200 rows expected in the end",
        "a <note>",
    ]
    assert told.remarks == lines
    assert str(told).splitlines()[-3:] == lines
    assert "<br>about 3% of" in told._repr_html_() and "a &lt;note&gt;" in told._repr_html_()


def test_answers_on_the_way_carry_their_details(small_spark: SparkSession, tmp_path: Path) -> None:
    import sooner

    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "id": range(400),
            "k": rng.integers(0, 100, 400),
            "g": (rng.pareto(0.7, 400) * 3).astype(np.int64),
            "v": rng.random(400),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as opened:
        opened.register("t", tmp_path / "t.parquet", key="id")
        opened.analyze("t")
        opened.scramble("t", ["k"], blocks=8)
        first, *_, last = opened.sql("SELECT g, sum(v) AS s FROM t GROUP BY g").progress(batches=4)
        assert 0.02 < first.details["unseen_groups"] < 0.8
        assert "groups not seen yet" in str(first)
        assert "unseen_groups" not in last.details and last.remarks == []
        first, *_, last = opened.sql("SELECT k, sum(v) AS s FROM t GROUP BY k").progress(batches=4)
        rows = last.to_arrow().num_rows
        if first.to_arrow().num_rows < rows:
            assert 0.5 * rows < first.details["rows_expected"] < 2 * rows
        text = "SELECT g, sum(v) AS s FROM t GROUP BY g ORDER BY s DESC LIMIT 2"
        first = next(iter(opened.sql(text).progress(batches=4)))
        assert "chosen by estimates of s" in first.details["notes"][0]
