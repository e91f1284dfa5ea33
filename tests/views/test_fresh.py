"""Fresh answers from a cleaned sample: what the estimators say of it, in the types of the exact answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import sooner
from sooner.answer import Status

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database, View

pytestmark = pytest.mark.spark

VISITS = """SELECT videoId, ownerId, count(1) AS visits, sum(bytes) AS bytes
            FROM log JOIN video USING (videoId) GROUP BY videoId, ownerId"""
QUESTIONS = [
    "SELECT count(*) AS n, sum(bytes) AS b, avg(visits) AS a FROM {v} WHERE visits > 3",
    "SELECT ownerId, sum(visits) AS s, count(*) AS n FROM {v} GROUP BY ownerId ORDER BY s DESC, ownerId",
    "SELECT ownerId % 2 AS odd, avg(bytes) FILTER (WHERE visits > 2) AS a FROM {v} GROUP BY ownerId % 2",
    "SELECT min(visits) AS l, max(visits) AS h, median(bytes) AS m, percentile(bytes, 0.9) AS p FROM {v}",
    "SELECT stddev(visits) AS d, variance(visits) AS v, stddev_pop(bytes) AS p, sum(bytes) AS b FROM {v}",
    "SELECT ownerId, var_samp(bytes) FILTER (WHERE visits > 2) AS v, var_pop(bytes) AS p FROM {v} GROUP BY 1",
    "SELECT ownerId % 2 AS kind, stddev(1e5 + bytes / 1e3) AS d, median(bytes) AS m FROM {v} GROUP BY 1",
    "SELECT ownerId % 2 AS c0, sum(bytes) AS s0, count(*) AS v0 FROM {v} GROUP BY ownerId % 2",
    "SELECT videoId, visits FROM {v} WHERE visits > 8",
    "SELECT max(visits) AS m, count(*) AS n, median(bytes) AS b, sum(bytes) AS s FROM {v}",
    "SELECT ownerId, max(bytes) AS h FROM {v} GROUP BY ownerId ORDER BY ownerId LIMIT 2",
    "SELECT ownerId AS o, round(sum(bytes) / count(*), 1) AS r, 100 * sum(visits) FILTER (WHERE bytes > 50) /"
    " sum(visits) AS share FROM {v} GROUP BY ownerId ORDER BY r DESC LIMIT 3",
    "SELECT avg(bytes) / avg(visits) - 1 AS r, 2 * max(visits) AS m, round(median(bytes) / 7, 2) AS q,"
    " 3 - count(*) AS n, CAST(sum(bytes) / nullif(sum(visits), 0) AS decimal(9, 2)) AS d FROM {v}",
    "SELECT n + 1 AS n, r * n AS b FROM (SELECT count(*) AS n, sum(bytes) / count(*) AS r FROM {v}"
    " GROUP BY ownerId) ORDER BY b",
]


@pytest.fixture(scope="module")
def home(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    place: Path = tmp_path_factory.mktemp("fresh")
    rng = np.random.default_rng(3)
    videos, visits = 3_000, 12_000

    def log(first: int, number: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "sessionId": np.arange(first, first + number),
                "videoId": (videos * rng.random(number) ** 2).astype(int),
                "bytes": rng.integers(0, 100, number),
            }
        )

    log(0, visits).to_parquet(place / "log.parquet")
    owners = pd.DataFrame({"videoId": np.arange(videos), "ownerId": np.arange(videos) % 4})
    owners.to_parquet(place / "video.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        database.register("log", str(place / "log.parquet"), key="sessionId")
        database.register("video", str(place / "video.parquet"), key="videoId")
        for name, sample in (("whole", 1.0), ("part", 0.3), ("fresh", None)):
            database.view(name, VISITS, sample=sample)
        database.insert("log", log(visits, 1_500))
        database.delete("log", [(n,) for n in range(0, 3_000, 4)])
        database.view("fresh").refresh()
        yield database


def rows(database: Database, text: str) -> list[dict[str, Any]]:
    return database.sql(text).exact().to_arrow().to_pylist()


@pytest.mark.parametrize("estimator", ["corr", "aqp"])
@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_of_all_of_it_the_estimate_is_exact(home: Database, number: int, estimator: str) -> None:
    text = QUESTIONS[number]
    if "max(visits)" in text and estimator == "aqp":
        pytest.skip("extremes have one estimator")
    truth = home.sql(text.format(v="fresh")).exact()
    view, prepared = home.view("whole"), home.view("whole")._asked(text.format(v="whole"))
    upkeep = view._upkeep()
    found = view._estimated(upkeep, prepared, view._question(upkeep, prepared), estimator, 0.95)
    assert found.to_arrow().schema == truth.to_arrow().schema
    a, b = found.to_pandas(), truth.to_pandas()
    if "ORDER BY" not in text:
        a, b = (one.sort_values(list(one.columns)).reset_index(drop=True) for one in (a, b))
    pd.testing.assert_frame_equal(a, b, check_exact=False, rtol=1e-9)
    assert found.final
    assert home.view("whole").is_stale


@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
@pytest.mark.parametrize(
    ("asked", "width"),
    [
        ("count(*) AS n, sum(bytes) AS b, avg(visits) AS a", 0.5),
        ("stddev(m) AS d, var_pop(m) AS v, stddev(1e5 + m / 1e3) AS l", 1.0),
    ],
)
def test_an_estimate_is_near_and_its_interval_holds(
    home: Database, asked: str, width: float, estimator: str
) -> None:
    text = f"SELECT {asked} FROM (SELECT *, bytes / visits AS m FROM {{v}}) WHERE visits > 3"
    (truth,) = rows(home, text.format(v="fresh"))
    found = home.view("part").answer(text.format(v="part"), estimator=estimator, confidence=0.999)
    assert not found.final
    assert found.progress == 0.3
    for name, value in truth.items():
        low, high = (end[0].as_py() for end in (found.bounds[name].low, found.bounds[name].high))
        assert low < float(value) < high, (name, low, value, high)
        assert (high - low) / float(value) < width
        assert found.status(name) == (Status.ESTIMATE,)


def test_a_correction_is_the_stale_answer_and_what_the_sample_changed(home: Database) -> None:
    view: View = home.view("part")
    view.answer("SELECT count(*) FROM part")
    upkeep = view._upkeep()
    assert upkeep.cleaned is not None
    changed = upkeep.changes_in(upkeep.cleaned.directory).toPandas()
    by_hand = float((changed["__sign"] * changed["bytes"]).sum())
    (stale,) = rows(home, "SELECT sum(bytes) AS b FROM part")
    found = view.answer("SELECT sum(bytes) AS b FROM part", estimator="corr")
    expected = stale["b"] + by_hand / 0.3
    assert found.to_arrow().column("b")[0].as_py() == round(expected)


def test_of_a_spread_that_one_row_decides_nobody_knows_how_far_off_it_is(home: Database) -> None:
    found = home.view("part").answer("SELECT stddev(visits) AS d, sum(visits) AS s FROM part")
    assert (found.status("d"), found.status("s")) == ((Status.UNKNOWN,), (Status.ESTIMATE,))
    assert "a few values are so much larger" in found.remarks[0]


def test_large_numbers_are_exact_where_the_sample_is_all_of_it(home: Database) -> None:
    text = "SELECT sum(bytes + 900719925474993) AS s, count(*) AS n FROM {v}"
    (truth,) = rows(home, text.format(v="fresh"))
    for estimator in ("auto", "corr"):
        found = home.view("whole").answer(text.format(v="whole"), estimator=estimator)
        assert found.final and found.to_arrow().to_pylist() == [truth]


def test_a_sum_with_what_is_not_a_number_is_not_known(home: Database) -> None:
    """And where a condition leaves it out, it is nothing to the sum of the others."""
    odd = "CASE WHEN videoId = 7 THEN double('NaN') ELSE visits END"
    text = f"SELECT sum({odd}) AS s, sum({odd}) FILTER (WHERE videoId <> 7) AS b, count(*) AS n FROM {{v}}"
    (truth,) = rows(home, text.format(v="fresh"))
    found = home.view("part").answer(text.format(v="part"), confidence=0.999)
    assert found.to_arrow().column("s")[0].as_py() is None
    assert found.status("s") == (Status.UNKNOWN,)
    low, high = (end[0].as_py() for end in (found.bounds["b"].low, found.bounds["b"].high))
    assert low < truth["b"] < high < 1.5 * truth["b"]


def test_what_a_sample_cannot_tell_is_answered_exactly(home: Database) -> None:
    for text in (
        "SELECT count(DISTINCT visits) AS n FROM {v}",
        "SELECT sum(bytes) % sum(visits) AS r FROM {v}",
        "SELECT ownerId, sum(bytes) AS s FROM {v} GROUP BY ownerId ORDER BY -ownerId, s % 7",
        "SELECT ownerId, sum(bytes) AS s FROM {v} GROUP BY ownerId HAVING sum(bytes) > 0",
        "SELECT p.visits, v.ownerId FROM {v} p JOIN video v ON p.videoId = v.videoId WHERE p.visits > 9",
        "SELECT DISTINCT ownerId FROM {v}",
        "SELECT sum(visits) AS s, avg(bytes) AS s FROM {v}",
        "SELECT videoId AS s, visits AS s FROM {v} WHERE visits > 8",
        "SELECT videoId FROM {v} ORDER BY visits DESC, videoId LIMIT 3",
        "SELECT videoId AS id, ownerId, sum(visits) AS n FROM {v} WHERE visits > 8 GROUP BY videoId, ownerId",
    ):
        found = home.view("part").answer(text.format(v="part"))
        assert found.final, text
        assert "answered exactly" in found.remarks[-1]
        a = sorted(found.to_arrow().to_pylist(), key=str)
        assert a == sorted(rows(home, text.format(v="fresh")), key=str), text


def test_groups_of_a_few_rows_are_answered_exactly(home: Database) -> None:
    """A sample has two or three rows of each: all of them would be "?"."""
    text = "SELECT bytes % 300 AS g, sum(visits) AS s FROM {v} GROUP BY bytes % 300 ORDER BY g"
    found = home.view("part").answer(text.format(v="part"))
    assert found.final and "fewer than 12 rows in the sample" in found.remarks[0]
    none = "SELECT ownerId, sum(visits) AS s FROM part WHERE visits > 1000 GROUP BY ownerId"
    assert home.view("part").answer(none).final  # of no rows at all it says nothing either
    assert found.to_arrow().to_pylist() == rows(home, text.format(v="fresh"))
    asked = home.view("part").answer(text.format(v="part"), estimator="corr")
    assert not asked.final and Status.UNKNOWN in asked.status("s")


def test_medians_of_a_few_rows_are_of_those_that_the_sample_put_right(home: Database) -> None:
    """Two or three sampled rows of a group do not tell how far it moved; they themselves have."""
    text = "SELECT ownerId, videoId % 400 AS g, median(bytes) AS m FROM {v} GROUP BY ownerId, videoId % 400"

    def by_group(found: list[dict[str, Any]]) -> pd.Series:
        return pd.DataFrame(found).set_index(["ownerId", "g"])["m"].sort_index()

    given = home.view("part").answer(text.format(v="part"), estimator="corr")
    assert set(given.status("m")) == {Status.UNKNOWN}
    put_right = home.view("part").answer("SELECT ownerId, videoId, bytes FROM part").to_pandas()
    medians = put_right.groupby(["ownerId", put_right.videoId % 400]).bytes.median()
    corrected = by_group(given.to_arrow().to_pylist())
    # A group of which the sample alone knows nothing, or has only lost rows, is not given.
    assert len(corrected) > 0.9 * len(medians)
    assert (corrected == medians.loc[corrected.index]).all()
    fresh, stale = (by_group(rows(home, text.format(v=name))) for name in ("fresh", "part"))
    off = [(one - fresh).abs().mean() for one in (corrected, stale)]
    assert off[0] < 0.9 * off[1]


def test_rows_are_put_right_as_far_as_the_sample_goes(home: Database) -> None:
    found = home.view("part").answer("SELECT videoId, visits FROM part WHERE visits > 8")
    truth = {
        tuple(row.values())
        for row in rows(home, "SELECT videoId, visits FROM fresh WHERE visits > 8")
    }
    stale = {
        tuple(row.values())
        for row in rows(home, "SELECT videoId, visits FROM part WHERE visits > 8")
    }
    given = {tuple(row.values()) for row in found.to_arrow().to_pylist()}
    assert len(given ^ truth) < len(stale ^ truth)
    counts = found.details["counts"]
    keys = {row[0] for row in truth} & {row[0] for row in stale}
    updated = len({row[0] for row in truth - stale} & keys)
    value, low, high = counts["updated"]
    assert low <= value <= high
    assert low * 0.7 <= updated <= high * 1.3
    assert len(found.remarks) == 3


def test_rows_of_which_nothing_that_is_asked_for_changed_are_not_updated(home: Database) -> None:
    """Their numbers of visits have, and videos came and went."""
    counts = home.view("part").answer("SELECT videoId, ownerId FROM part").details["counts"]
    assert counts["updated"][0] == 0
    assert counts["added"][0] > 0 and counts["deleted"][0] > 0


def test_rows_that_nobody_looked_at_are_told_apart(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    rows = "SELECT id, CAST(id AS DOUBLE) AS x FROM range(3000)"
    small_spark.sql(rows).coalesce(1).write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key="id")
        view = database.view("v", "SELECT id, x FROM t", sample=0.2)
        database.update("t", small_spark.sql("SELECT id, id + 10000.0D AS x FROM range(1500)"))
        text = "SELECT id, x FROM {} WHERE x > 100 ORDER BY x DESC"
        found = view.answer(text.format("v"))
        values = found.to_arrow().column("x").to_pylist()
        assert values == sorted(values, reverse=True) and max(values) > 10_000
        truth = {
            row["id"]: row["x"]
            for row in database.sql("SELECT * FROM t").exact().to_arrow().to_pylist()
        }
        told = dict.fromkeys(Status, 0)
        for row, status in zip(found.to_arrow().to_pylist(), found.status("x"), strict=True):
            told[status] += 1
            assert status is not Status.EXACT or row["x"] == truth[row["id"]]
        assert 0 < told[Status.EXACT] < told[Status.SELECTED] and not found.final
        first, *_, last = view.refresh_progress(text.format("v"))
        assert last.final and not first.final
        assert last.to_arrow().equals(database.sql(text.format("t")).exact().to_arrow())


def test_of_an_uneven_sample_counts_of_changes_have_no_ends(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    """Two of three rows are of one value, of which a sample has all rows or none."""
    rows_ = "SELECT id, IF(id < 2000, 0, id) AS k, 1 AS x FROM range(3000)"
    small_spark.sql(rows_).write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key=["k", "id"])
        view = database.view("v", "SELECT k, id, x FROM t", sample=0.2, sample_by="k")
        database.update("t", small_spark.sql(rows_).selectExpr("id", "k", "2 AS x"))
        counts = view.answer("SELECT k, id, x FROM v").details["counts"]
        assert counts["updated"][1:] == (None, None)


def test_groups_that_came_and_are_not_in_the_sample_are_told_of(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    small_spark.sql("SELECT id, id % 2 AS g FROM range(4000)").write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key="id")
        view = database.view("v", "SELECT id, g FROM t", sample=0.2)
        database.insert("t", small_spark.sql("SELECT id, id AS g FROM range(10000, 10100)"))
        found = view.answer("SELECT g, count(*) AS n FROM v GROUP BY g", estimator="corr")
        shown = found.to_arrow().num_rows - 2
        (note,) = [one for one in found.remarks if "more groups came" in one]
        more = int(note.split()[1])
        assert 0 < shown < 60 and abs(shown + more - 100) < 50


def test_groups_whose_sampled_rows_all_went_are_told_of(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    """One row of four went from each; where the sample had that one alone, the group is not shown."""
    small_spark.sql("SELECT id, id DIV 4 AS g FROM range(4000)").write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key="id")
        view = database.view("v", "SELECT id, g FROM t", sample=0.2)
        database.delete("t", [(one,) for one in range(0, 4000, 4)])
        found = view.answer("SELECT g, count(*) AS n FROM v GROUP BY g", estimator="corr")
        (note,) = [one for one in found.remarks if "more groups may have rows" in one]
        assert int(note.split()[0]) == 1000 - found.to_arrow().num_rows > 50


def test_winners_by_an_estimate_have_no_interval_and_counts_are_what_can_be(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    small_spark.sql("SELECT id, id % 30 AS g FROM range(9000)").write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key="id")
        view = database.view("v", "SELECT id, g FROM t", sample=0.2)
        database.delete("t", [(one,) for one in range(9000) if one % 30 == 7 or one < 3000])
        groups = "SELECT g, count(*) AS n FROM v GROUP BY g"
        first = view.answer(f"{groups} ORDER BY n DESC LIMIT 3", estimator="aqp")
        assert first.status("g") == first.status("n") == (Status.SELECTED,) * 3
        assert "others may be" in first.remarks[0] and first.bounds["n"].low.null_count == 3
        assert view.answer(f"{groups} ORDER BY g LIMIT 3").status("g") == (Status.EXACT,) * 3
        for estimator in ("corr", "aqp"):
            all_ = view.answer(groups, estimator=estimator)
            assert all(low is None or low > 0 for low in all_.bounds["n"].low.to_pylist())


def test_outliers_are_never_left_to_chance(home: Database) -> None:
    big = 10**9
    home.insert("log", [(90_000 + n, 5 + 7 * n, big + n) for n in range(20)])
    view = home.view("kept", VISITS, sample=0.1, outliers={"bytes": 30})
    plain = home.view("plain", VISITS, sample=0.1)
    home.update("log", [(90_000 + n, 5 + 7 * n, 2 * big + n) for n in range(20)])
    home.insert("log", [(95_000, 2_999, 5 * big)])
    truth = rows(home, f"SELECT sum(bytes) AS b FROM ({VISITS})")[0]["b"]
    for estimator in ("corr", "aqp"):
        found = view.answer("SELECT sum(bytes) AS b FROM kept", estimator=estimator)
        assert abs(found.to_arrow().column("b")[0].as_py() / truth - 1) < 0.001, estimator
    off = plain.answer("SELECT sum(bytes) AS b FROM plain", estimator="corr")
    assert abs(off.to_arrow().column("b")[0].as_py() / truth - 1) > 0.01
    assert off.status("b") == (Status.UNKNOWN,)
    assert "too few" in off.remarks[0]
    assert "the 30 largest of bytes of log" in view.explain()


def test_outliers_stand_for_no_rows_but_themselves(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    large = "CASE WHEN id < 60 THEN 1e6D + id WHEN id < 120 THEN 1D ELSE id % 10 END"
    groups = "IF(id < 120, id % 60, -1)"
    rows_ = f"SELECT id, {groups} AS g, {large} AS x FROM range(3000)"
    small_spark.sql(rows_).write.parquet(str(tmp_path / "t"))
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(tmp_path / "t"), key="id")
        view = database.view("v", "SELECT id, g, x FROM t", sample=0.2, outliers={"x": 60})
        database.update(
            "t", small_spark.sql(rows_).selectExpr("id", "g", "x + 1000 AS x").limit(120)
        )
        found = view.answer("SELECT id, x FROM v WHERE id < 60")
        assert found.details["counts"]["updated"] == (60.0, None, None)
        # Of a group of an outlier and another row the sample has both, or the outlier alone.
        sums = view.answer("SELECT g, sum(x) AS s FROM v WHERE g >= 0 GROUP BY g", estimator="corr")
        seen = {row["s"] - row["g"] for row in sums.to_arrow().to_pylist()}
        assert seen == {1_001_001.0, 1_002_001.0}


def test_answers_get_closer_while_it_is_refreshed(home: Database) -> None:
    view = home.view("parts", VISITS)
    home.delete("log", [(n,) for n in range(3_000, 6_000, 5)])
    answers = list(view.refresh_progress("SELECT sum(visits) AS s FROM parts"))
    truth = rows(home, f"SELECT sum(visits) AS s FROM ({VISITS})")[0]["s"]
    assert [one.final for one in answers] == [False] * (len(answers) - 1) + [True]
    assert [one.progress for one in answers] == sorted(one.progress for one in answers)
    assert len(answers) > 4
    assert answers[-1].to_arrow().column("s")[0].as_py() == truth
    assert not view.is_stale
    assert view.history()[-1].kind == "incremental"
    widths = [one.relative_error for one in answers if one.relative_error is not None]
    assert widths[-1] == 0.0
    assert widths[0] > widths[-2]


def test_outliers_are_in_from_the_first_part_of_a_refresh(home: Database) -> None:
    """And in none twice: they are brought in before all parts, and left out of these."""
    big = 10**9
    home.insert("log", [(97_000 + n, 3 + 7 * n, big + n) for n in range(20)])
    view = home.view("large", VISITS, outliers={"bytes": 30})
    home.update("log", [(97_000 + n, 3 + 7 * n, 2 * big + n) for n in range(20)])
    home.insert("log", [(98_000, 2_999, 5 * big)])
    home.delete("log", [(n,) for n in range(8_000, 11_000, 5)])
    (truth,) = rows(home, f"SELECT sum(bytes) AS b, sum(visits) AS n FROM ({VISITS})")
    answers = list(view.refresh_progress("SELECT sum(bytes) AS b, sum(visits) AS n FROM large"))
    assert len(answers) > 4
    for answer in answers:
        (found,) = answer.to_arrow().to_pylist()
        assert abs(found["b"] / truth["b"] - 1) < 0.001
    assert answers[-1].to_arrow().to_pylist() == [truth]
    made = rows(home, VISITS)
    kept = rows(home, f"SELECT {', '.join(made[0])} FROM large")
    assert sorted(map(str, kept)) == sorted(map(str, made))


def test_a_loop_that_is_left_changes_nothing(home: Database) -> None:
    view = home.view("left", VISITS)
    home.delete("log", [(n,) for n in range(6_000, 7_000, 5)])
    before = rows(home, "SELECT sum(visits) AS s FROM left")
    for answer in view.refresh_progress("SELECT sum(visits) AS s FROM left"):
        assert not answer.final
        break
    assert view.is_stale
    assert rows(home, "SELECT sum(visits) AS s FROM left") == before
    assert view.refresh() is not None


def test_the_share_is_chosen_for_a_time(home: Database) -> None:
    view = home.view("timed", VISITS)
    home.delete("log", [(n,) for n in range(7_000, 8_000, 5)])
    assert view.sample_within(60.0) == 1.0
    assert view.sample == 1.0
    assert 0.001 <= view.sample_within(0.05) < 1.0


def test_few_changes_leave_the_value_near_the_stale_one(home: Database) -> None:
    """The sample alone says how far off it can be, but the correction is closer."""
    view = home.view("few", VISITS)
    home.insert("log", [(99_000 + n, 7 * n, 3) for n in range(3)])
    truth = rows(home, f"SELECT count(*) AS n FROM ({VISITS})")[0]["n"]
    found = view.answer("SELECT count(*) AS n FROM few")
    assert abs(found.to_arrow().column("n")[0].as_py() - truth) <= 30
    assert found.bounds["n"].low[0].as_py() <= truth <= found.bounds["n"].high[0].as_py()


def test_so_few_rows_are_not_sampled(home: Database) -> None:
    text = "SELECT ownerId, count(*) AS n FROM log JOIN video USING (videoId) GROUP BY ownerId"
    view = home.view("tiny", text)
    home.delete("log", [(11_999,)])
    found = view.answer("SELECT sum(n) AS s FROM tiny")
    assert found.final
    assert "so few rows" in found.remarks[-1]
    assert found.to_arrow().to_pylist() == rows(home, f"SELECT sum(n) AS s FROM ({text})")


def test_an_extreme_says_how_likely_a_row_is_beyond(home: Database) -> None:
    found = home.view("part").answer("SELECT ownerId, max(visits) AS h FROM part GROUP BY ownerId")
    assert len(found.details["cantelli"]["h"]) == found.to_arrow().num_rows
    (words,) = home.view("part").answer("SELECT max(visits) FROM part").remarks
    assert words.startswith("max(visits): a row of the view picked at random")
