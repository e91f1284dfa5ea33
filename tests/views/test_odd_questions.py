"""Questions to stale views that a sample cannot answer: the exact answer is fresh, whoever gives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import Database

pytestmark = pytest.mark.spark

ROWS = """SELECT id, id % 4 AS g, id % 200 AS k, CAST(id AS DOUBLE) AS x, CAST(id AS STRING) AS s,
          DATE_ADD(DATE'2020-01-01', CAST(id AS INT)) AS t, array(id % 3) AS a,
          CASE WHEN id % 10 < 4 THEN double('NaN') ELSE id END AS n FROM range({}, {})"""


@pytest.fixture(scope="module")
def home(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    place: Path = tmp_path_factory.mktemp("odd")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        small_spark.sql(ROWS.format(0, 1000)).write.parquet(str(place / "t"))
        database.register("t", str(place / "t"), key="id")
        database.view("v", "SELECT * FROM t", sample=0.5)
        by_k = "SELECT k, sum(x) AS sx, count(*) AS n FROM {} GROUP BY k"
        database.view("base", "SELECT id, g, k, x FROM t", sample=None)
        numbered = "SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM base"
        database.view("win", numbered, sample=None)
        database.view("over", "SELECT count(*) AS n, sum(n) AS s FROM win", sample=None)
        database.view("kept", by_k.format("base"), sample=0.1, outliers={"x": 5})
        database.view("letters", "SELECT id, x FROM t WHERE id > 10L")
        database.insert("t", small_spark.sql(ROWS.format(1000, 1200)))
        large = "SELECT 5000 + 7 * id AS id, 0L AS g, id * 13 % 200 AS k, 1e9D AS x, 's' AS s"
        others = "DATE'2020-01-01' AS t, array(1L) AS a, 1D AS n"
        database.insert("t", small_spark.sql(f"{large}, {others} FROM range(12)"))
        yield database


def rows(home: Database, text: str) -> list[dict[str, Any]]:
    return home.sql(text).exact().to_arrow().to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT percentile(x, array(0.5)) AS p, count(*) AS n FROM {}",
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM {} ORDER BY id DESC LIMIT 3",
        "SELECT g, count(*) AS n FROM {} GROUP BY ROLLUP (g) ORDER BY g NULLS FIRST",
        "SELECT count(*) AS n, max(e) AS m FROM {} LATERAL VIEW explode(a) x AS e",
        "WITH w AS (SELECT * FROM {} WHERE id > 10L) SELECT count(*) AS n, mode(g) AS m FROM w",
        "SELECT count(*) AS n FROM IDENTIFIER('{}')",
        "SELECT min(t) AS l, max(t) AS h, max(s) AS s, max(a) AS a FROM {}",
        "SELECT max(id > 3) AS o, count(*) AS n FROM {}",
        "SELECT a, median(x) AS m FROM {} GROUP BY a ORDER BY a",
        "SELECT median(n) AS m, percentile(n, 0.4) AS p FROM {}",
        "SELECT g, max(n) AS h FROM {} GROUP BY g ORDER BY g",
    ],
)
def test_the_answer_is_fresh(home: Database, text: str) -> None:
    found = home.view("v").answer(text.format("v"), estimator="aqp")
    assert str(found.to_arrow().to_pylist()) == str(rows(home, text.format("t")))
    assert found.final and found.as_of == {"t": 3}
    # The names of tables mean what they meant.
    assert rows(home, "SELECT count(*) AS n FROM v") == [{"n": 1000}]


def test_views_that_go_to_spark_as_written_over_stale_ones(home: Database) -> None:
    assert rows(home, "SELECT count(*) AS n FROM win") == [{"n": 1000}]
    win = (
        home.view("win").answer("SELECT count(*) AS n, max(n) AS m FROM win").to_arrow().to_pylist()
    )
    assert win == [{"n": 1212, "m": 312}]
    over = home.view("over").answer("SELECT n FROM over")
    assert over.final and over.to_arrow().to_pylist() == [{"n": 1212}]


def test_another_stale_view_is_named(home: Database) -> None:
    found = home.view("v").answer("SELECT count(*) AS n FROM v JOIN base USING (id)")
    assert found.to_arrow().to_pylist() == [{"n": 1000}]
    assert "base is stale itself" in found.remarks[-1]
    assert found.as_of == {"t": 3, "base": 1}


def test_outliers_come_through_stale_views(home: Database) -> None:
    (truth,) = rows(home, "SELECT sum(x) AS s FROM t")
    found = home.view("kept").answer("SELECT sum(sx) AS s FROM kept", estimator="corr")
    assert found.to_arrow()["s"][0].as_py() == pytest.approx(truth["s"], rel=1e-3)


def test_a_view_of_a_text_that_only_spark_can_read(home: Database) -> None:
    """It is of the table that it names, not of all there are and of itself."""
    view = home.view("letters")
    assert view.is_stale
    assert "SELECT" not in view.explain()
    view.refresh()
    assert not view.is_stale and view.rows == 1201


def test_columns_with_a_dot_in_their_names(home: Database) -> None:
    """Of the fresh rows, and of those of a stale view below another."""
    shown = "id AS `a.b`, g, x AS `c d`, k AS ```e`"
    dotted = home.view("dotted", f"SELECT {shown} FROM base", sample=1.0)
    over = home.view("dots", "SELECT g AS `g.h`, sum(`a.b`) AS `s.t` FROM dotted GROUP BY g")
    (truth,) = rows(home, "SELECT count(*) AS n, sum(id) AS s FROM t")
    text = "SELECT count(*) AS n, sum(`a.b`) AS s FROM dotted"
    for estimator in ("exact", "corr"):
        assert dotted.answer(text, estimator=estimator).to_arrow().to_pylist() == [truth]
    of_groups = over.answer("SELECT sum(`s.t`) AS s FROM dots", estimator="exact")
    assert of_groups.to_arrow()["s"][0].as_py() == truth["s"]


def test_outliers_of_values_that_are_no_numbers(home: Database) -> None:
    odd = home.spark.sql(
        "SELECT id, IF(id = 3, double('NaN'), IF(id = 4, double('inf'), id)) AS x FROM range(90)"
    )
    home.register("odd", odd, key="id")
    for name, most in (("by_sd", "3 sd"), ("by_rank", 2)):
        view = home.view(name, "SELECT id, sum(x) AS s FROM odd GROUP BY id", outliers={"x": most})
        assert view.rows == 90


@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.view("v").answer(5),
        lambda db: next(db.view("v").refresh_progress(None)),
        lambda db: db.view("v").sample_within("abc"),
        lambda db: db.view("v").sample_within(True),
        lambda db: db.view("w", "SELECT * FROM t", sample_by=3),
        lambda db: db.view("w", "SELECT * FROM t", outliers={3: 3}),
        lambda db: db.view("w", "SELECT id AS __sign FROM t"),
        lambda db: db.view("w", "SELECT * FROM range(5)"),
        lambda db: db.view(5),
        lambda db: sooner.every(float("inf")),
        lambda db: db.table(None),
        lambda db: db.scramble("t", by=None),
        lambda db: db.vacuum(5),
        lambda db: db.table("t").agg(5),
        lambda db: db.register("u", "t.parquet", key=[1]),
        lambda db: db.register("u", "t.parquet", options="header"),
        lambda db: db.table("t").progress(error="1%"),
        lambda db: db.table("t").progress(within="5s"),
    ],
)
def test_what_is_no_answer_has_a_name(home: Database, use: Any) -> None:
    with pytest.raises(sooner.SoonerError):
        use(home)
