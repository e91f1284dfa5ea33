"""Rows that are missing with rows that are unread, tables that say what may be missing, leaves that tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sooner
from sooner import Answer, Constraint, Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark

ROWS = 6000
MISSING = [
    Constraint("city = 'Lyon'", {"fare": (0.0, 80.0), "tip": (0.0, 8.0), "day": (0, 27)}, (5, 40)),
    Constraint(
        "city = 'Nice' AND day < 10",
        {"fare": (-20.0, 10.0), "tip": (0.0, 2.0), "day": (0, 9)},
        (0, 25),
    ),
]
QUESTIONS = {
    "all": "SELECT count(*) AS c, sum(fare) AS s, avg(fare) AS a, min(fare) AS l, max(fare) AS h FROM {}",
    "some": "SELECT count(*) AS c, sum(fare) AS s, count(tip) AS t FROM {} WHERE day BETWEEN 3 AND 12",
    "cities": "SELECT city, count(*) AS c, sum(fare) AS s, avg(tip) AS a FROM {} GROUP BY city",
    "dear": "SELECT sum(tip) AS s, max(day) AS h FROM {} WHERE fare > 30",
}


def rides(seed: int) -> pa.Table:
    """Clustered and skewed: fares go by the day, and a few are very large."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 28, ROWS))
    fare = rng.lognormal(1 + day / 14, 0.8, ROWS) - 3
    return pa.table(
        {
            "id": np.arange(ROWS),
            "city": rng.choice(["Lyon", "Ghent", "Bern"], ROWS, p=[0.6, 0.3, 0.1]),
            "day": pa.array(day, pa.int32()),
            "fare": fare,
            "tip": pa.array(np.round(fare / 10, 2), mask=rng.random(ROWS) < 0.1),
        }
    )


@pytest.fixture(scope="module")
def opened(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    place: Path = tmp_path_factory.mktemp("incomplete")
    pq.write_table(rides(1), place / "rides.parquet", row_group_size=500)
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        database.register("rides", place / "rides.parquet", key="id")
        database.scramble("rides", by="id", blocks=32)
        database.register("sorted", place / "rides.parquet", key="id")
        database.register("told", place / "rides.parquet", key="id", missing=MISSING)
        database.scramble("told", by="id", blocks=32)
        yield database


def ends(answer: Answer, kind: str, name: str, row: int) -> tuple[Any, Any]:
    bounds = (answer.bounds if kind == "interval" else answer.hard_bounds)[name]
    return bounds.low[row].as_py(), bounds.high[row].as_py()


def assert_same(one: Answer, other: Answer) -> None:
    """The same rows and ends, whatever the order of rows and of adding up."""
    rows = [
        sorted(each.to_arrow(bounds=True).to_pylist(), key=lambda row: str(row.get("city")))
        for each in (one, other)
    ]
    assert len(rows[0]) == len(rows[1])
    for mine, theirs in zip(*rows, strict=True):
        for name, value in theirs.items():
            near = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert mine[name] == near, name


def row_of(answer: Answer, key: Any) -> int:
    return 0 if key is None else answer.table.column("city").to_pylist().index(key)


@pytest.mark.parametrize("table", ["rides", "sorted"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_hard_range_holds_and_only_gets_narrower(
    opened: Database, table: str, name: str
) -> None:
    frame = opened.sql(QUESTIONS[name].format(table))
    last = frame.bounds(MISSING)
    *before, final = frame.progress(batches=8, missing=MISSING)
    assert len(before) >= 4 and final.final
    assert_same(final, last)
    widths: dict[tuple[Any, str], float] = {}
    for answer in before:
        assert set(answer.hard_bounds) == set(last.hard_bounds)
        cities = answer.table.column("city").to_pylist() if name == "cities" else [None]
        for city in cities:
            for column in last.hard_bounds:
                low, high = ends(answer, "hard", column, row_of(answer, city))
                truth = ends(last, "hard", column, row_of(last, city))
                assert low <= truth[0] + 1e-6 and truth[1] - 1e-6 <= high, (city, column)
                assert high - low <= widths.get((city, column), np.inf) * (1 + 1e-9)
                widths[city, column] = high - low
                value = ends(answer, "interval", column, row_of(answer, city))
                status = answer.status(column)[row_of(answer, city)]
                assert (status is Status.UNKNOWN) == (None in value)


def test_intervals_hold_for_all_rows(opened: Database) -> None:
    """Whatever is missing: the interval holds both ends of the range that the known rows give."""
    frame = opened.sql(QUESTIONS["cities"].format("rides"))
    last = frame.bounds(MISSING)
    held = asked = 0
    for seed in range(8):
        for answer in frame.progress(batches=6, seed=seed, missing=MISSING, confidence=0.9):
            if answer.final:
                continue
            assert answer.confidence == 0.9
            for city in answer.table.column("city").to_pylist():
                for column in ("c", "s", "a"):
                    low, high = ends(answer, "interval", column, row_of(answer, city))
                    if low is None:
                        continue
                    truth = ends(last, "hard", column, row_of(last, city))
                    asked += 1
                    held += low <= truth[0] + 1e-9 and truth[1] <= high + 1e-9
    assert asked > 200
    assert held / asked > 0.87


def test_a_city_that_only_missing_rows_make_is_listed(opened: Database) -> None:
    frame = opened.sql(QUESTIONS["cities"].format("rides"))
    first = next(iter(frame.progress(batches=6, missing=MISSING)))
    assert ends(first, "interval", "c", row_of(first, "Nice")) == (0, 25)
    assert ends(first, "hard", "c", row_of(first, "Nice"))[1] > 25, "unread rows may be of Nice too"


def test_a_table_that_says_what_may_be_missing_always_answers_with_its_range(
    opened: Database,
) -> None:
    text = QUESTIONS["cities"]
    wanted = opened.sql(text.format("rides")).bounds(MISSING)
    told = opened.sql(text.format("told"))
    assert_same(told.exact(), wanted)
    assert "range" in told.exact().method
    *before, final = told.progress(batches=4)
    assert before[0].hard_bounds
    assert_same(final, wanted)
    assert_same(told.get_final(), wanted)
    assert "rows may be missing" in told.explain()
    listed = opened.sql("SELECT * FROM told ORDER BY id LIMIT 3")
    assert listed.exact().table.num_rows == 3
    assert any("no range for this query" in line for line in listed.exact().remarks)
    assert any("no range for this query" in line for line in list(listed.progress())[-1].remarks)


def test_what_was_said_can_be_taken_back(opened: Database) -> None:
    text = "SELECT count(*) AS c FROM sorted"
    assert opened.sql(text).exact().method == "exact"
    opened.missing("sorted", MISSING)
    assert opened.sql(text).exact().bounds["c"].high[0].as_py() == ROWS + 65
    with pytest.raises(sooner.UnknownColumn):
        opened.missing("sorted", [Constraint("town = 'Lyon'")])
    assert opened.sql(text).exact().bounds["c"].high[0].as_py() == ROWS + 65, "as it was"
    opened.missing("sorted", None)
    assert opened.sql(text).exact().method == "exact"


def test_it_is_still_said_after_the_home_was_opened_again(opened: Database) -> None:
    with sooner.connect(opened._home.path, spark=opened.spark, progress=False) as again:
        assert again.sql("SELECT count(*) AS c FROM told").exact().bounds["c"].high[0].as_py() == (
            ROWS + 65
        )


@pytest.mark.parametrize(
    ("missing", "error", "says"),
    [
        ([Constraint("town = 'Lyon'")], sooner.UnknownColumn, "town"),
        ([Constraint(values={"fair": (0, 1)})], sooner.UnknownColumn, "fare"),
        ([], sooner.InvalidArgument, "Without a constraint"),
        ([Constraint(table="other")], sooner.InvalidArgument, "is about 'other'"),
        (
            [Constraint("day < 5", {}, (9, 9)), Constraint("day < 9", {}, (0, 3))],
            sooner.ConstraintViolation,
            "cannot all be fulfilled",
        ),
    ],
)
def test_what_cannot_be_missing_is_refused(
    opened: Database, tmp_path: Path, missing: list[Constraint], error: type[Exception], says: str
) -> None:
    pq.write_table(rides(2), tmp_path / "rides.parquet")
    with pytest.raises(error, match=says):
        opened.register("refused", tmp_path / "rides.parquet", missing=missing)
    assert "refused" not in [table.name for table in opened.tables()]


def test_a_table_that_there_is_not(opened: Database) -> None:
    for ask in (
        lambda told: opened.table("rides").agg(["count(*) AS n"]).bounds(told),
        lambda told: list(opened.table("rides").agg(["count(*) AS n"]).progress(missing=told)),
    ):
        with pytest.raises(sooner.UnknownTable, match="Did you mean 'rides'"):
            ask([Constraint(rows=(0, 5), table="ridez")])


def test_a_view_of_such_a_table_has_no_range_and_says_so(opened: Database) -> None:
    view = opened.view("by_city", "SELECT city, count(*) AS n FROM told GROUP BY city", sample=None)
    opened.view("cities", "SELECT count(*) AS n FROM by_city", sample=None)
    *_, last = opened.sql("SELECT n FROM cities").progress()
    for found in (
        opened.sql("SELECT sum(n) AS n FROM by_city").exact(),
        view.answer("SELECT sum(n) AS n FROM by_city"),
        last,
    ):
        assert found.method == "exact over the known rows"
        assert found.remarks[-1].endswith("made from told.") and not found.hard_bounds
    with pytest.raises(sooner.NotSupported, match="is a view"):
        opened.missing("by_city", MISSING)
    for name in ("cities", "by_city"):
        opened.drop_view(name)


def test_progress_refuses_what_has_no_range(opened: Database) -> None:
    with pytest.raises(sooner.NotSupported):
        list(opened.table("rides").progress(missing=MISSING))


def test_leaves_of_a_synopsis_are_constraints(opened: Database, tmp_path: Path) -> None:
    """Rows like those of the synopsis are missing: the truth is in the range, and nothing is read for it."""
    gone = rides(7)
    pq.write_table(gone, tmp_path / "gone.parquet")
    opened.register("gone", tmp_path / "gone.parquet", key="id", replace=True)
    for name, over in {"by_day": ["day"], "by_both": ["city", "day"]}.items():
        made = opened.synopsis(name, "gone", ["fare", "tip"], over, leaves=16, replace=True)
        constraints = sooner.suggest(made)
        assert sooner.check(constraints, opened.table("gone")).holds
        for text in QUESTIONS.values():
            found = opened.sql(text.format("rides")).bounds(constraints)
            both = text.format("(SELECT * FROM rides UNION ALL SELECT * FROM gone)")
            truth = opened.sql(both).exact()
            for row, given in enumerate(truth.to_arrow().to_pylist()):
                at = row_of(found, given.get("city"))
                for column in found.hard_bounds:
                    low, high = ends(found, "hard", column, at)
                    assert low - 1e-6 <= given[column] <= high + 1e-6, (row, column)
    with pytest.raises(sooner.InvalidArgument, match="give nothing but it"):
        sooner.suggest(made, "fare")
    with pytest.raises(sooner.InvalidArgument, match="measure="):
        sooner.suggest(opened.table("gone"))
