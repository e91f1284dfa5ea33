"""Synopses made by Spark: against Spark's own answers, opened again, replaced, refused; and by command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_answers import CONDITIONS, FUNCTIONS, everything, within
from typer.testing import CliRunner

import sooner
from sooner.answer import Status
from sooner.engine.hashed_rows import HashedRows
from sooner.serve.cli import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def full(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """t: three thousand rows of every type in four files, with a synopsis over two columns."""
    place = tmp_path_factory.mktemp("synopses")
    table = everything().append_column("id", pa.array(np.arange(3000)))
    (place / "t").mkdir()
    for number in range(4):
        pq.write_table(table.slice(number * 750, 750), place / "t" / f"{number}.parquet")
    opened = sooner.connect(place / "home", spark=small_spark, progress=False)
    opened.register("t", place / "t", key="id")
    opened.synopsis(
        "both", "t", ["price", "heavy", "n"], ["i", "w"], keep="x", leaves=32, sample=0.2
    )
    return opened


@pytest.mark.parametrize("where", [one for one in CONDITIONS if one][::2])
def test_within_what_spark_says(full: Database, where: str) -> None:
    text = f"SELECT {FUNCTIONS.format('price')}, sum(n), avg(heavy) FROM t WHERE {where}"
    answer = full.synopsis("both").answer(text)
    exact = full.sql(text).exact().table
    assert answer.table.schema.types == exact.schema.types
    assert answer.table.column_names == exact.column_names
    for name in answer.table.column_names:
        within(answer, name, 0, exact.column(name)[0].as_py(), text)


def test_moments_are_read_in_sparks_zone(full: Database) -> None:
    full.synopsis("by_time", "t", "n", "ts", leaves=8, sample=1.0, replace=True)
    text = "SELECT sum(n) AS s, count(*) AS c FROM t WHERE ts BETWEEN '2020-01-02' AND '2020-01-04 10:00:00'"
    zone = "America/New_York"
    before = full.spark.conf.get("spark.sql.session.timeZone")
    full.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        answer = full.synopsis("by_time").answer(text)
        rows = full.sql(text).exact().table.to_pylist()
        assert answer.table.to_pylist() == rows, "all rows are stored: exact"
    finally:
        full.spark.conf.set("spark.sql.session.timeZone", str(before))
    assert answer.status("s") == (Status.EXACT,)


def test_the_same_seed_takes_the_same_sample(full: Database) -> None:
    one = full.synopsis("one", "t", "n", "i", sample=0.1, leaves=4).summary.samples
    again = full.synopsis("again", "t", "n", "i", sample=0.1, leaves=4).summary.samples
    other = full.synopsis("other", "t", "n", "i", sample=0.1, leaves=4, seed=5).summary.samples
    np.testing.assert_array_equal(one.hashes, again.hashes)
    assert not np.array_equal(one.values["n"], other.values["n"])
    for name in ("one", "again", "other"):
        full.drop_synopsis(name)


def test_arrow_reads_and_hashes_as_spark_does(
    full: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"table": "t", "measure": ["n", "heavy"], "over": ["i", "w"], "keep": "ts"}
    by_arrow = full.synopsis("arrow", **wanted, leaves=16, sample=0.1)
    monkeypatch.setattr(HashedRows, "_is_arrows", lambda _: False)
    by_spark = full.synopsis("spark", **wanted, leaves=16, sample=0.1)
    one, other = by_arrow.summary, by_spark.summary
    np.testing.assert_array_equal(one.samples.hashes, other.samples.hashes)
    for name in ("i", "w", "ts"):
        np.testing.assert_array_equal(one.samples.axes[name], other.samples.axes[name])
    np.testing.assert_array_equal(one.tree.totals.rows, other.tree.totals.rows)
    np.testing.assert_array_equal(
        one.tree.totals.measures["n"].sum, other.tree.totals.measures["n"].sum
    )
    full.drop_synopsis("arrow")
    full.drop_synopsis("spark")


def test_names(full: Database) -> None:
    with pytest.raises(sooner.SynopsisExists):
        full.synopsis("BOTH", "t", "n", "i")
    with pytest.raises(sooner.UnknownSynopsis, match="Did you mean 'both'"):
        full.synopsis("bth")
    assert "both" in [one.name for one in full.synopses("t")]
    answer = full.synopses().answer("SELECT count(*) FROM t WHERE i > 3")
    assert answer.method == "synopsis"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "w", "over": "i"}, sooner.InvalidArgument, "column of numbers"),
        ({"measure": "prize", "over": "i"}, sooner.UnknownColumn, "Did you mean 'price'"),
        ({"measure": "n", "over": "nowhere"}, sooner.UnknownColumn, "no column 'nowhere'"),
        ({"measure": "n"}, sooner.InvalidArgument, "over="),
        ({"over": "i"}, sooner.InvalidArgument, "measure="),
        ({"measure": "n", "over": ["i", "I"]}, sooner.InvalidArgument, "twice"),
        ({"measure": "n", "over": "i", "leaves": 4000}, sooner.InvalidArgument, "only 3,000 rows"),
        ({"measure": "n", "over": "i", "sample": 2}, sooner.InvalidArgument, "sample=2"),
        (
            {"measure": "n", "over": ["i", "x"], "partitioning": "search"},
            sooner.InvalidArgument,
            "for one column",
        ),
        ({"table": "u", "measure": "n", "over": "i"}, sooner.UnknownTable, "no table 'u'"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    full: Database, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    before = [one.name for one in full.synopses()]
    with pytest.raises(error, match=message):
        full.synopsis("new", **{"table": "t", **arguments})  # type: ignore[arg-type]
    assert [one.name for one in full.synopses()] == before


def test_a_table_without_rows_and_without_a_count(full: Database) -> None:
    full.spark.sql("SELECT 1 AS k, 2.0D AS v WHERE false").createOrReplaceTempView("nothing")
    full.register("nothing", "nothing", format="view", replace=True)
    with pytest.raises(sooner.InvalidArgument, match="no rows"):
        full.synopsis("empty", "nothing", "v", "k")
    full.spark.range(500).selectExpr("id AS k", "id * 2 AS v").createOrReplaceTempView("some")
    full.register("some", "some", format="view", replace=True)
    made = full.synopsis("of_view", "some", "v", "k", leaves=5, sample=0.2)
    assert made.rows == 500
    assert made.answer("SELECT sum(v) AS s FROM some").table.to_pylist() == [{"s": 249500}]


def test_a_changed_table_is_told_apart(full: Database, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "v": [1.0, 2.0, 3.0]})
    pq.write_table(rows, tmp_path / "c.parquet")
    full.register("c", tmp_path / "c.parquet", key="id", replace=True)
    made = full.synopsis("of_c", "c", "v", "id", leaves=1, sample=1.0)
    full.insert("c", pa.table({"id": [4], "v": [10.0]}))
    answer = made.answer("SELECT sum(v) AS s FROM c")
    assert answer.as_of == {"c": 1} and answer.table.to_pylist() == [{"s": 6.0}]
    assert full.synopsis("of_c", "c", "v", "id", leaves=1, sample=1.0, replace=True).rows == 4


def test_plots(full: Database, tmp_path: Path) -> None:
    for name, over in (("p1", ["ts"]), ("p2", ["i", "x"])):
        made = full.synopsis(name, "t", "heavy", over, leaves=8, sample=0.1, replace=True)
        made.plot().savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_commands(small_spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(everything(500), tmp_path / "t.parquet")

    def run(*args: str):
        return CliRunner().invoke(app, list(args))

    assert run("register", "t", "t.parquet").exit_code == 0
    assert "No synopses yet" in run("synopsis", "list").stdout
    options = ("--table", "t", "--measure", "price,n", "--over", "i", "--leaves", "8")
    done = run("synopsis", "create", "s", *options, "--sample", "20%")
    assert done.exit_code == 0, done.stderr
    assert "100 of 500 rows stored" in done.stderr
    assert run("synopsis", "create", "s", *options).exit_code == 1
    assert "price, n" in run("synopsis", "list").stdout
    done = run("synopsis", "show", "s", "--plot", "leaves.png")
    assert "100 (20.00%)" in done.stdout and (tmp_path / "leaves.png").exists()
    done = run("synopsis", "query", "SELECT sum(n) AS s FROM t WHERE i > 3", "--format", "json")
    (row,) = json.loads(done.stdout)
    assert row["s__low"] <= row["s"] <= row["s__high"]
    done = run("synopsis", "query", "SELECT sum(n) FROM t WHERE x > 3")
    assert done.exit_code == 1 and "does not hold the column 'x'" in done.stderr
    assert run("synopsis", "drop", "s").exit_code == 0
    assert run("synopsis", "show", "s").exit_code == 1
