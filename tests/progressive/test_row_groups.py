"""Answers in steps over tables that are not scrambled: by random row groups, exact in the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from test_differential import assert_ends_exactly, nasty_rows

from sooner.answer import Answer, Status
from sooner.errors import MissingFile, QueryFailed, SourceChanged
from sooner.explain import table_infos
from sooner.progressive.batches import random_order
from sooner.progressive.by_row_groups import ByRowGroups
from sooner.progressive.parts import CannotStream
from sooner.progressive.streams import Stream, choose_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database
    from sooner.frame import Frame

pytestmark = pytest.mark.spark

ROW_GROUPS = 15


@pytest.fixture(scope="module")
def nasty(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """t: three files of row groups of five rows, some cut short; s: one row group; nothing scrambled."""
    import sooner

    place = tmp_path_factory.mktemp("row-groups")
    (place / "t").mkdir()
    first = 0
    for number, rows in enumerate((30, 23, 17)):
        table = nasty_rows(rows, number, first)
        pq.write_table(table, place / "t" / f"{number}.parquet", row_group_size=5)
        first += rows
    pq.write_table(nasty_rows(20, 4), place / "s.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        opened.register("t", place / "t", key="id")
        opened.register("s", place / "s.parquet", key="id")
        yield opened


def stream_of(frame: Frame, wanted: list[str] | None = None, seed: int = 0) -> Stream:
    database = frame._database
    tables = {name: database._bind(name) for name in frame.prepared.tables}
    return choose_stream(frame.prepared.plan, tables, table_infos(tables.values()), wanted, seed)


QUERIES = """
SELECT id, k, g, n, i, big, huge, x, z, d, w, c, day, ts, flag, bin FROM t
SELECT count(*) FROM t
SELECT id, ntz FROM t
SELECT g, count(*), count(i), sum(i), avg(i), avg(d), min(day), max(ts), min(bin), max(flag) FROM t GROUP BY g
SELECT k, g, sum(d), avg(c), min(x), max(z) FROM t GROUP BY k, g
SELECT id, count(*), sum(i) FROM t GROUP BY id
SELECT g, sum(w), avg(w), avg(huge) FROM t GROUP BY g
SELECT sum(huge) FROM t
SELECT x, z, day, ts, flag, bin, count(*) FROM t GROUP BY x, z, day, ts, flag, bin
SELECT sum(i), count(*), min(g) FROM t WHERE id < 0
SELECT g, count(*) AS n, sum(i) AS v FROM t WHERE day > DATE '1700-01-01' AND id >= 9 GROUP BY g
SELECT g, sum(i) AS v FROM t GROUP BY g HAVING sum(i) > 100 AND count(*) > 2
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 2
SELECT id, d FROM t ORDER BY d DESC, id LIMIT 5 OFFSET 2
SELECT DISTINCT g, flag FROM t
SELECT g, count(DISTINCT i) FROM t GROUP BY g
SELECT t.id, s.id FROM t JOIN s ON t.k = s.k
SELECT s.g, count(*), sum(t.i), avg(t.d) FROM t LEFT JOIN s ON t.k = s.k GROUP BY s.g
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM s WHERE k IS NOT NULL)
SELECT id FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.i > 1)
SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) GROUP BY c
SELECT g, sum(i) / (SELECT sum(i) FROM t) FROM t GROUP BY g
SELECT g, sum(i) FROM t GROUP BY g HAVING sum(i) > (SELECT avg(i) FROM t WHERE id > 40)
SELECT count(*) FROM t WHERE i > (SELECT avg(i) FROM t)
SELECT k FROM t WHERE id > 50 UNION ALL SELECT k FROM t WHERE id < 12
SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.k = b.k
SELECT k FROM t EXCEPT SELECT k FROM s
"""
BATCHES = (1, 2, 64, 3, 7)
TEXTS = [
    pytest.param(
        line,
        BATCHES[number % len(BATCHES)],
        number,
        id=str(number),
        marks=[pytest.mark.slow] if number % 3 == 2 else [],
    )
    for number, line in enumerate(line for line in QUERIES.splitlines() if line)
]


@pytest.mark.parametrize(("text", "batches", "seed"), TEXTS)
def test_steps_end_exactly(nasty: Database, text: str, batches: int, seed: int) -> None:
    assert_ends_exactly(nasty.sql(text), batches, seed, "ORDER BY" in text)


@pytest.mark.parametrize("batches", [1, 2, 5, 15, 64])
def test_any_number_of_batches_ends_exactly(nasty: Database, batches: int) -> None:
    text = "SELECT g, count(*) AS n, sum(d) AS v, avg(i) AS m, min(x) AS low FROM t GROUP BY g"
    answers = assert_ends_exactly(nasty.sql(text), batches, seed=batches)
    assert len(answers) == min(batches, ROW_GROUPS)


def test_nothing_is_exact_before_the_end(nasty: Database) -> None:
    """Row groups hold equal keys anywhere: even a key's own rows may still be to come."""
    frame = nasty.sql("SELECT id, count(*) AS n, sum(i) AS v FROM t GROUP BY id")
    (state,) = stream_of(frame).cut.states
    assert state.aggregate is not None
    first = next(frame.progress(batches=5))
    assert set(first.status("n")) <= {Status.UNKNOWN, Status.ESTIMATE}


@pytest.mark.parametrize("text", [line for line in QUERIES.splitlines() if " a JOIN " in line])
def test_two_occurrences_never_join_as_streams(nasty: Database, text: str) -> None:
    assert len(stream_of(nasty.sql(text.replace("AS a", "a").replace("AS b", "b"))).scans) == 1


def test_two_occurrences_advance_together(nasty: Database) -> None:
    stream = stream_of(nasty.sql("SELECT g, sum(i) / (SELECT sum(i) FROM t) FROM t GROUP BY g"))
    assert len(stream.scans) == 2 and not stream.cut.statics
    assert len({id(one) for one in stream.scans.values()}) == 1


# --- Which row groups ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sorted_rows(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """40 row groups in the order of everything; each has nulls, the last ones nothing but nulls."""
    import sooner

    place = tmp_path_factory.mktemp("sorted")
    number = np.arange(400)
    gone = (number % 10 == 3) | (number >= 380)

    def column(values: Any, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=gone)

    floats = number.astype(float)
    floats[number % 10 == 5] = np.nan
    table = pa.table(
        {
            "id": pa.array(number, pa.int64()),
            "i": column(number, pa.int32()),
            "day": column(number.astype("datetime64[D]"), pa.date32()),
            "s": column([f"{n:04d}" for n in number], pa.string()),
            "d": column([f"{n}.25" for n in number], pa.string()).cast(pa.decimal128(9, 2)),
            "x": column(floats, pa.float64()),
            "ts": column(number.astype("datetime64[s]"), pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, place / "o.parquet", row_group_size=10)
    # To compare with: Spark's own pruning forgets NaN, which bounds leave out and which is the greatest.
    pushes_down = "spark.sql.parquet.filterPushdown"
    before = small_spark.conf.get(pushes_down)
    small_spark.conf.set(pushes_down, "false")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        opened.register("o", place / "o.parquet")
        yield opened
    small_spark.conf.set(pushes_down, str(before))


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("i < 100", 10),
        ("100 > i AND i >= 50", 5),
        ("i <= 99.5", 10),
        ("i = 205", 1),
        ("i IN (5, 205, 1000)", 2),
        ("i BETWEEN 100 AND 139", 4),
        ("i > -5", 38),  # two row groups of nothing but nulls
        ("d >= 370.25", 1),
        ("d < 10.25", 1),
        ("day >= DATE '1970-12-27'", 2),
        ("day < DATE '1970-01-11' + INTERVAL '1' MONTH", 5),
        ("day < '1970-01-11'", 1),
        ("s >= '0350'", 3),
        ("s = '0007'", 1),
        # Of these nothing is certain: NaN, nulls, zones, rounding, other types, negations.
        ("x > 350", 40),
        ("x = 12", 40),
        ("i IS NULL", 40),
        ("i <=> 7", 40),
        ("NOT i < 350", 40),
        ("i < 100 OR day > DATE '1971-01-01'", 40),
        ("i < 1e2", 40),
        ("i < '100'", 40),
        ("s < 100", 40),
        ("i + 1 < 100", 40),
        ("ts < TIMESTAMP '1970-01-01 00:01:40'", 40),
    ],
)
def test_row_groups_without_a_row_are_not_read(
    sorted_rows: Database, condition: str, left: int
) -> None:
    frame = sorted_rows.sql(f"SELECT count(*) AS n, sum(id) AS v FROM o WHERE {condition}")
    if left >= 2:
        assert stream_of(frame).blocks == left
    else:
        with pytest.raises(CannotStream, match="1 row group that may pass"):
            stream_of(frame)
    assert_ends_exactly(frame, 3, seed=left)


def test_progress_counts_only_what_is_left(sorted_rows: Database) -> None:
    frame = sorted_rows.sql("SELECT count(*) AS n, sum(id) AS v FROM o WHERE i < 100")
    shares = [answer.progress for answer in frame.progress(batches=10)]
    assert shares == pytest.approx([n / 10 for n in range(1, 11)])
    assert "30 more hold no row" in frame.explain()


def test_filters_of_one_occurrence_do_not_prune_another(sorted_rows: Database) -> None:
    frame = sorted_rows.sql(
        "SELECT a.v AS low, b.v AS high FROM (SELECT sum(id) AS v FROM o WHERE i < 30) AS a "
        "CROSS JOIN (SELECT sum(id) AS v FROM o WHERE i >= 350) AS b"
    )
    assert stream_of(frame).blocks == 6
    assert_ends_exactly(frame, 3, seed=1)


# --- When, and why not --------------------------------------------------------------------------------


def test_scrambles_come_first_and_names_decide(database: Database, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(nasty_rows(60, 1), tmp_path / f"{name}.parquet", row_group_size=5)
        database.register(name, tmp_path / f"{name}.parquet", key="id")
    database.scramble("a", ["k"], blocks=4)
    frame = database.sql("SELECT a.g, count(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY a.g")
    assert stream_of(frame).blocks == 4
    named = stream_of(frame, ["b"])
    assert {type(one) for one in named.scans.values()} == {ByRowGroups} and named.blocks == 12
    last = list(frame.progress(batches=4, stream=["b"]))[-1]
    assert_same_answer(last.to_arrow(), frame.exact().to_arrow())


def test_few_row_groups_only_if_steps_are_asked_for(
    nasty: Database, sorted_rows: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sooner.progressive.streams._WORTH_BYTES", 0)
    frame = nasty.sql("SELECT sum(i) AS v FROM t")
    assert len(list(frame.progress())) == 1
    assert "too few for honest intervals" in frame.explain()
    assert "db.scramble('t', by=…)" in frame.explain()
    many = sorted_rows.sql("SELECT sum(i) AS v FROM o")
    assert len(list(many.progress())) > 1
    assert "too few" not in many.explain()


def test_explain_says_what_row_groups_mean(sorted_rows: Database) -> None:
    text = sorted_rows.sql("SELECT sum(i) AS v FROM o").explain()
    assert "40 blocks in random order: o by row groups." in text
    assert "not scrambled" in text and "not independent" in text and "db.scramble('o'" in text


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("changed", "has changes since it was registered"),
        ("csv", "not registered from Parquet"),
        ("partitioned", "directories that are columns"),
        ("single", "1 row group"),
        ("int96", "column c of t .timestamp. is for Spark"),
        ("unsigned", "column c of t .smallint. is for Spark"),
        ("nested", "column c of t .array<int>. is for Spark"),
    ],
)
def test_what_only_spark_reads_is_exact_at_once(
    database: Database, tmp_path: Path, make: str, reason: str
) -> None:
    values: dict[str, pa.Array] = {
        "int96": pa.array(np.arange(40).astype("datetime64[D]").astype("datetime64[us]")),
        "unsigned": pa.array(range(200, 240), pa.uint8()),
        "nested": pa.array([[n] for n in range(40)], pa.list_(pa.int32())),
    }
    table = pa.table(
        {
            "id": pa.array(range(40), pa.int64()),
            "c": values.get(make, pa.array(range(40), pa.int32())),
        }
    )
    place = tmp_path / "t.parquet"
    if make == "csv":
        place = tmp_path / "t.csv"
        table.to_pandas().to_csv(place, index=False)
    elif make == "partitioned":
        place = tmp_path / "t"
        for half in (0, 1):
            (place / f"half={half}").mkdir(parents=True)
            pq.write_table(table, place / f"half={half}" / "a.parquet", row_group_size=5)
    else:
        pq.write_table(
            table,
            place,
            row_group_size=40 if make == "single" else 5,
            use_deprecated_int96_timestamps=make == "int96",
        )
    database.register("t", place, key="id" if make == "changed" else ())
    if make == "changed":
        database.insert("t", pa.table({"id": [99], "c": pa.array([1], pa.int32())}))
    frame = database.sql("SELECT max(c) AS m, count(*) AS n FROM t")
    with pytest.raises(CannotStream, match=reason):
        stream_of(frame)
    assert "Exact, in one step: no table of the query is scrambled, and" in frame.explain()
    (answer,) = frame.progress(batches=4)
    assert answer.final
    if make in values:  # what is not asked for does not matter
        assert len(list(database.sql("SELECT sum(id) FROM t").progress(batches=4))) == 4


def test_another_calendar_is_for_spark(nasty: Database, small_spark: SparkSession) -> None:
    key = "spark.sql.parquet.datetimeRebaseModeInRead"
    before = small_spark.conf.get(key)
    small_spark.conf.set(key, "LEGACY")
    try:
        assert len(list(nasty.sql("SELECT min(day) FROM t").progress(batches=4))) == 1
    finally:
        small_spark.conf.set(key, str(before))


# --- What goes wrong ----------------------------------------------------------------------------------


@pytest.fixture
def fresh(database: Database, tmp_path: Path) -> Database:
    (tmp_path / "t").mkdir()
    for number in range(4):
        rows = nasty_rows(40, number, first=40 * number)
        pq.write_table(rows, tmp_path / "t" / f"{number}.parquet", row_group_size=10)
    database.register("t", tmp_path / "t", key="id")
    return database


def broken_on_the_way(database: Database, place: Path, how: str) -> None:
    answers = database.sql("SELECT g, sum(i) AS v FROM t GROUP BY g").progress(batches=16, seed=1)
    first = next(answers)
    for path in sorted(place.iterdir()):
        if how == "gone":
            path.unlink()
        elif how == "other":
            shutil.copy(path, path.with_suffix(".copy"))
            path.with_suffix(".copy").rename(path)
        else:
            status = path.stat()
            # Pages overwritten, footer and times as they were.
            with path.open("r+b") as file:
                file.seek(4)
                file.write(b"\x07" * (status.st_size // 2))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for later in answers:
        assert not later.final
    assert first.final


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ("gone", MissingFile, "is gone"),
        ("other", SourceChanged, "Changed since"),
        ("damaged", QueryFailed, "A row group of t could not be read"),
    ],
)
def test_a_file_that_breaks_on_the_way_is_named(
    fresh: Database, tmp_path: Path, how: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        broken_on_the_way(fresh, tmp_path / "t", how)
    assert "Traceback" not in str(raised.value) and "java." not in str(raised.value)
    views = fresh.spark.sql("SHOW VIEWS").toArrow().column("viewName").to_pylist()
    assert not [name for name in views if "__stream_" in name]


def test_edges_of_a_filter_are_read_before_anything_is_said(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    """Of forty row groups in the order of days one lies across the filter: it counts less than the others."""
    import sooner

    days = np.repeat(np.arange(40), 100).astype("datetime64[D]")
    rows = pa.table({"day": pa.array(days), "v": np.ones(4000), "x": np.arange(4000) % 97})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=130)
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", tmp_path / "t.parquet")
        text = "SELECT sum(v) AS v FROM t WHERE day >= DATE '1970-01-08' AND x < 50"
        stream = stream_of(database.sql(text))
        (scan,) = stream.scans.values()
        assert isinstance(scan, ByRowGroups)
        (edge,) = scan.edges  # x lies across them all, and says nothing
        for seed in range(6):
            order = random_order(scan.blocks, seed)
            read = 0
            for answer in database.sql(text).progress(batches=5, seed=seed):
                read = round(answer.progress * scan.blocks)
                known = answer.status("v")[0] is not Status.UNKNOWN
                if known and not answer.final:
                    assert edge in order[: read + 1]


def test_groups_of_a_sorted_file_are_not_scaled_up(
    small_spark: SparkSession, tmp_path: Path
) -> None:
    """Nearly all lie in one row group: what was seen of them is all there is."""
    import sooner

    keys = np.repeat(np.arange(4000), 5)
    table = pa.table({"k": keys, "v": np.ones(len(keys))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=401)
    with sooner.connect(tmp_path / "home", spark=small_spark, progress=False) as database:
        database.register("t", tmp_path / "t.parquet")
        by_group = database.sql("SELECT k, sum(v) AS v FROM t GROUP BY k")
        shown = first_step(by_group)
        assert shown.status("v")[0] is Status.UNKNOWN
        assert np.median(shown.table.column("v").to_numpy()) == pytest.approx(5.0, rel=0.2)
        of_groups = database.sql(
            "SELECT sum(v) AS v FROM (SELECT k, sum(v) AS v FROM t GROUP BY k)"
        )
        total = first_step(of_groups).table.column("v").to_pylist()
        assert total == pytest.approx([20_000.0], rel=0.05)


def first_step(frame: Frame) -> Answer:
    """After a few of the row groups: small tables are answered at once unless batches are asked for."""
    with closing(frame.progress(batches=10, seed=1)) as answers:
        answer = next(answers)
    assert 0 < answer.progress < 0.3
    return answer
