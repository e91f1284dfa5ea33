"""Arrow's way and Spark's way to write a scramble put every row into the same block and replicate."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import Database
from sooner.engine import reordering, scramble
from sooner.engine.key_hashes import key_hashes
from sooner.engine.rows import scramble_rows
from sooner.storage import Table
from sooner.storage.layout import BLOCK, REPLICATE

pytestmark = pytest.mark.spark

ROWS = 5_000


def many_types() -> pa.Table:
    """Keys without nulls, and values of every type that both ways read, with nulls and extremes."""
    numbers = np.arange(ROWS)
    random = np.random.default_rng(1)

    def with_nulls(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if i % 11 == 5 else v for i, v in enumerate(values)], kind)

    moments = [datetime.datetime(1500, 1, 1) + datetime.timedelta(hours=int(i)) for i in numbers]
    days = [datetime.date(1, 1, 1) + datetime.timedelta(int(i) * 700) for i in numbers]
    return pa.table(
        {
            "big": pa.array(random.integers(-(2**63), 2**63 - 1, ROWS), pa.int64()),
            "tiny": pa.array(numbers % 251 - 125, pa.int8()),
            "moment": pa.array([m.replace(tzinfo=datetime.UTC) for m in moments]).cast(
                pa.timestamp("ms", "UTC")
            ),
            "local": with_nulls(moments, pa.timestamp("us")),
            "day": with_nulls(days, pa.date32()),
            "text": with_nulls((f"é{i}" * (i % 5) for i in numbers), pa.string_view()),
            "word": with_nulls((f"w{i % 3}" for i in numbers), pa.large_string()),
            "few": with_nulls((f"w{i % 3}" for i in numbers), pa.string()).dictionary_encode(),
            "raw": with_nulls((bytes([i % 256]) * 3 for i in numbers), pa.binary()),
            "price": with_nulls((Decimal(int(i)) / 4 for i in numbers), pa.decimal128(9, 2)),
            "wide": with_nulls((Decimal(10) ** 30 + int(i) for i in numbers), pa.decimal128(38, 2)),
            "flag": with_nulls((bool(i % 2) for i in numbers), pa.bool_()),
            "real": with_nulls(
                (float("nan") if i % 9 == 1 else i / 7 for i in numbers), pa.float64()
            ),
            "small": with_nulls((-0.0 if i % 9 == 1 else i / 8 for i in numbers), pa.float32()),
        }
    )


def placed(spark: SparkSession, table: Table) -> list[str]:
    """Every row as text with its block and replicate, in order."""
    rows = scramble_rows(spark, table, table.scrambles[-1])
    return sorted(
        row[0] for row in rows.selectExpr(f"to_json(struct(*, {BLOCK}, {REPLICATE}))").collect()
    )


@pytest.mark.parametrize(
    ("by", "blocks", "salt", "here"),
    [
        (["big"], 7, 0, False),
        (["tiny", "moment"], 4, -(2**63), True),
        (["moment"], 1, 99, False),
        (["tiny"], 20, 5, True),
    ],
)
def test_both_ways_agree(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: list[str],
    blocks: int,
    salt: int,
    here: bool,
) -> None:
    pq.write_table(many_types(), tmp_path / "a.parquet", row_group_size=700)
    pq.write_table(many_types().slice(0, 10), tmp_path / "b.parquet")
    monkeypatch.setattr(reordering, "_PIECE_BYTES", 50_000)
    monkeypatch.setattr(reordering, "_DEALT_BYTES", 100_000)
    monkeypatch.setattr(reordering, "_SMALL_BYTES", 2**40 if here else 0)
    found = []
    for way in (True, False):
        if not way:
            monkeypatch.setattr(scramble, "can_reorder", lambda *_: False)
        with sooner.connect(tmp_path / str(way), spark=spark, progress=False) as database:
            table = database.register("t", str(tmp_path / "*.parquet"))
            assert way == scramble.can_reorder(spark, table, planned(table, by, blocks, salt))
            done = database.scramble("t", by, blocks=blocks, salt=salt)
            assert not list(Path(done.scrambles[0].directory).glob("_pieces*"))
            found.append(placed(spark, done))
    assert len(found[0]) == ROWS + 10
    assert found[0] == found[1]


def planned(table: Table, by: list[str], blocks: int = 8, salt: int = 0) -> sooner.storage.Scramble:
    return scramble.plan_scramble(table, by, blocks, salt, None)


def test_rows_are_in_the_order_of_their_hashes(database: Database, tmp_path: Path) -> None:
    pq.write_table(many_types(), tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet")
    files = database.scramble("t", "big", blocks=3, salt=4).scrambles[0].files
    read = [pq.read_table(file.path, columns=["big"], partitioning=None) for file in files]
    hashes = [key_hashes(4, [rows["big"].to_numpy()]) for rows in read]
    assert [file.block for file in files] == [0, 1, 2]
    assert [len(file.row_groups) for file in files] == [2, 2, 2]
    assert np.all(np.diff(np.concatenate(hashes).astype(np.float64)) >= 0)


def test_what_hardly_repeats_has_no_dictionary_and_numbers_of_it_are_as_they_are(
    database: Database, tmp_path: Path
) -> None:
    rows = 60_000
    random = np.random.default_rng(3)
    columns = {
        "key": random.permutation(rows),
        "wide": random.integers(0, 50_000, rows),
        "narrow": random.integers(0, 2_000, rows),
        "price": pa.array(
            [Decimal(int(n)) / 100 for n in random.integers(0, 10**8, rows)], pa.decimal128(12, 2)
        ),
        "text": np.array([f"word {n}" for n in random.integers(0, 10**9, rows)]),
        "word": random.choice(["a", "b", "c"], rows),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet")
    for file in database.scramble("t", "key", blocks=2).scrambles[0].files:
        group = pq.read_metadata(file.path).row_group(0)
        parts = {part.path_in_schema: part for part in map(group.column, range(group.num_columns))}
        repeating = {name for name, part in parts.items() if part.has_dictionary_page}
        assert repeating == {"narrow", "word", REPLICATE}
        plain = {name for name, part in parts.items() if part.compression == "UNCOMPRESSED"}
        assert plain == {"key", "wide", "price"}


def test_a_filter_finds_what_is_not_a_number(database: Database, tmp_path: Path) -> None:
    """It is larger than all numbers to Spark, and in no bounds of Arrow's."""
    values = pa.array([float("nan"), -1.0, float("nan"), -2.0, float("nan"), -3.0])
    pq.write_table(pa.table({"id": pa.array(range(6)), "x": values}), tmp_path / "t.parquet")
    rows = database.spark.read.parquet(str(tmp_path / "t.parquet"))
    rows.coalesce(1).write.parquet(str(tmp_path / "by_spark"))
    database.register("t", tmp_path / "by_spark", key="id")
    database.scramble("t", by="id", blocks=2)
    for condition in ("x > 0", "x = double('NaN')", "x IN (double('NaN'), 7)", "NOT (x <= 0)"):
        frame = database.sql(f"SELECT count(*) AS n FROM t WHERE {condition}")
        assert frame.exact().to_arrow().column("n").to_pylist() == [3]
        *_, last = frame.progress(batches=2)
        assert last.to_arrow().column("n").to_pylist() == [3], condition


def test_hashes_are_sparks(spark: SparkSession) -> None:
    random = np.random.default_rng(2)
    extremes = np.array([0, 1, -1, 2**63 - 1, -(2**63)])
    first = np.concatenate([extremes, random.integers(-(2**63), 2**63 - 1, 500)])
    second = random.permutation(first)
    rows = spark.createDataFrame(pa.table({"a": first, "b": second}))
    for salt in (0, -7, 2**63 - 1):
        wanted = rows.selectExpr(f"xxhash64({salt}L, a, b) AS h").toArrow()["h"].to_numpy()
        assert np.array_equal(key_hashes(salt, [first, second]).view(np.int64), wanted)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array(["a", "b"]), "texts are hashed by Spark"),
        (pa.array([1, None]), "a row without a key hashes whole"),
        (pa.array([1, 2], pa.uint32()), "Spark widens unsigned numbers"),
    ],
)
def test_what_is_left_to_spark(
    database: Database, tmp_path: Path, column: pa.Array, why: str
) -> None:
    pq.write_table(pa.table({"k": column, "v": [1.0, 2.0]}), tmp_path / "t.parquet")
    table = database.register("t", tmp_path / "t.parquet")
    assert not reordering.can_reorder(database.spark, table, planned(table, ["k"])), why
    assert sum(file.rows or 0 for file in database.scramble("t", "k").scrambles[0].files) == 2


def test_a_file_that_changes_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(many_types(), path)
    check = scramble.can_reorder

    def vanish(*given: Any) -> bool:
        able = check(*given)
        path.unlink()
        return able

    monkeypatch.setattr(scramble, "can_reorder", vanish)
    with sooner.connect(tmp_path / "home", spark=spark, progress=False) as database:
        database.register("t", path)
        with pytest.raises(sooner.MissingFile, match=r"t\.parquet"):
            database.scramble("t", "big")
        assert not database.tables()[0].scrambles
    assert not list((tmp_path / "home").rglob("*.arrow"))


def test_a_python_without_arrow_leaves_it_to_spark(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'pyarrow'")

    pq.write_table(many_types(), tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet")
    monkeypatch.setattr(reordering, "_gather", failing)
    table = database.scramble("t", "big", blocks=3)
    assert sum(file.rows or 0 for file in table.scrambles[0].files) == ROWS
    assert len(placed(database.spark, table)) == ROWS
