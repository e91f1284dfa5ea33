"""Names that mean something elsewhere: to Spark's patterns of paths, to SQL, to a parser of types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["a?[1]b", "{a,b}*\\c"])
def test_a_path_means_itself(small_spark: SparkSession, tmp_path: Path, name: str) -> None:
    """In the table's files, and in those of the home."""
    for place, values in ((name, [1, 2, 3]), ("axb", [30]), ("a1b", [40]), ("a", [50])):
        (tmp_path / place).mkdir()
        pq.write_table(pa.table({"k": values}), tmp_path / place / "f.parquet")
    (tmp_path / name / "f.csv").write_text("k\n1\n2\n3\n")
    with sooner.connect(tmp_path / name / "home", spark=small_spark, progress=False) as db:
        db.register("p", tmp_path / name / "f.parquet", key="k")
        db.register("c", tmp_path / name / "f.csv")
        db.scramble("p", by=["k"], blocks=2)
        db.insert("p", [(4,), (5,)])
        db.delete("p", [(1,)])
        view = db.view("v", "SELECT k, count(*) AS n FROM p GROUP BY k", sample=1.0)
        db.insert("p", [(6,)])
        question = db.sql("SELECT sum(k) AS s, count(*) AS n FROM p")
        assert question.exact().to_arrow().to_pylist() == [{"s": 20, "n": 5}]
        *_, last = question.progress(batches=2)
        assert last.to_arrow().to_pylist() == [{"s": 20, "n": 5}]
        assert db.sql("SELECT sum(k) AS s FROM c").exact().to_arrow()["s"].to_pylist() == [6]
        assert view.answer("SELECT count(*) AS n FROM v").to_arrow()["n"].to_pylist() == [5]
        view.refresh()
        assert view.rows == 5


def test_fields_and_columns_of_any_name(small_spark: SparkSession, tmp_path: Path) -> None:
    names = ["$x", "@a", "?", "{x}", "n;m", "a b", "a`b", "select"]
    fields = pa.struct([("a b", pa.int32()), ("c", pa.list_(pa.struct([("d-e", pa.int64())])))])
    columns = {"k": [1, 2], "st": pa.array([{"a b": 1, "c": [{"d-e": 2}]}, None], fields)}
    columns |= {name: [1, 2] for name in names}
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as db:
        db.register("t", tmp_path / "f.parquet", key="k")
        db.scramble("t", by=["k"], blocks=2)
        db.delete("t", [(2,)])
        assert db.table("t").exact().to_arrow().to_pylist() == pa.table(columns).to_pylist()[:1]
        inner = db.sql("SELECT st.`a b` AS n, st.c[0].`d-e` AS m FROM t").exact().to_arrow()
        assert inner.to_pylist() == [{"n": 1, "m": 2}]
        for name in names:
            quoted = "`" + name.replace("`", "``") + "`"
            found = db.sql(f"SELECT sum({quoted}) AS s FROM t WHERE {quoted} > 0")
            assert found.exact().to_arrow()["s"].to_pylist() == [1]
            assert "by Spark as written" not in found.exact().method


def test_two_columns_of_one_name_have_no_intervals(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    """They go by name: that of the sum would be shown beside the average."""
    text = "SELECT avg(v) AS a, sum(v) AS a FROM {}"
    pq.write_table(pa.table({"k": range(1000), "v": range(1000)}), tmp_path / "f.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as db:
        db.register("t", tmp_path / "f.parquet", key="k")
        db.scramble("t", by=["k"], blocks=8)
        frame = db.sql(text.format("t"))
        assert "two columns that are called 'a'" in frame.explain()
        (only,) = frame.progress(batches=4)
        assert only.final and [column[0].as_py() for column in only.table.columns] == [
            499.5,
            499500,
        ]
        with pytest.raises(sooner.NotSupported):
            frame.bounds([sooner.Constraint(values={"v": (0, 9)}, rows=(0, 5))])
        view = db.view("w", "SELECT k % 500 AS g, sum(v) AS v FROM t GROUP BY k % 500", sample=0.5)
        db.insert("t", [(1000 + k, 1) for k in range(200)])
        found = view.answer(text.format("w"))
        assert found.final and not found.uncertain


def test_tabs_where_the_name_says_so(small_spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("a\tb\n1\tx\n")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as db:
        db.register("t", tmp_path / "f.tsv")
        assert db.table("t").exact().to_arrow().to_pylist() == [{"a": 1, "b": "x"}]


def test_a_table_that_is_gone_is_nothing_to_others(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("t", "gone"):
        pq.write_table(pa.table({"a": [1]}), tmp_path / f"{name}.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as db:
        for name in ("t", "gone"):
            db.register(name, tmp_path / f"{name}.parquet")
        (tmp_path / "gone.parquet").unlink()
        assert db.sql("SELECT * FROM IDENTIFIER('t')").exact().to_arrow()["a"].to_pylist() == [1]


def test_frames_of_two_databases_do_not_meet(small_spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    frames = []
    for home in ("one", "two"):
        db = sooner.connect(tmp_path / home, spark=small_spark, progress=False)
        db.register("t", tmp_path / "t.parquet")
        frames.append(db.table("t"))
    for meet in (lambda a, b: a.join(b, on="TRUE"), lambda a, b: a.union(b)):
        with pytest.raises(sooner.InvalidArgument, match="same database"):
            meet(*frames)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("spark.sql.ansi.doubleQuotedIdentifiers", "SELECT count(*) AS n FROM t WHERE \"s\" = 'a'"),
        ("spark.sql.parser.escapedStringLiterals", r"SELECT count(*) AS n FROM t WHERE s = '\a'"),
        ("spark.sql.caseSensitive", "WITH T AS (SELECT 1 AS a) SELECT count(*) AS n FROM t"),
        ("spark.sql.legacy.consecutiveStringLiterals.enabled", "SELECT 'a''b' AS n FROM t"),
        (
            "spark.sql.ansi.relationPrecedence",
            "SELECT count(*) AS n FROM t, t AS u FULL JOIN t AS v ON u.t = 1",
        ),
        (
            "spark.sql.timestampType=TIMESTAMP_NTZ",
            "SELECT count(*) AS n FROM t"
            " WHERE TIMESTAMP '2020-01-01 02:00:00+02:00' = TIMESTAMP '2020-01-01 00:00:00Z'",
        ),
    ],
)
def test_a_session_that_reads_otherwise_is_asked_itself(
    small_spark: SparkSession, tmp_path: Path, setting: str, text: str
) -> None:
    pq.write_table(pa.table({"s": ["a", "s", r"\a"], "t": [1, 2, 3]}), tmp_path / "t.parquet")
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as db:
        db.register("t", tmp_path / "t.parquet")
        setting, _, value = setting.partition("=")
        small_spark.conf.set(setting, value or "true")
        try:
            found = db.sql(text).exact()
            assert (
                found.to_arrow()["n"].to_pylist()
                == small_spark.sql(text).toArrow()["n"].to_pylist()
            )
            assert found.method == "exact, by Spark as written"
        finally:
            small_spark.conf.unset(setting)
