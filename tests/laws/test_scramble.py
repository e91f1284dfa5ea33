"""A scramble is the table once more: nothing lost, nothing twice, and every prefix a fair sample."""

from __future__ import annotations

import datetime
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import sooner
from sooner import CatalogError, Database, InvalidArgument, UnknownColumn
from sooner.engine.hashing import layout_hash
from sooner.engine.rows import scramble_rows, table_rows
from sooner.sql import quote
from sooner.storage import Scramble, Table
from sooner.storage.layout import BLOCK, REPLICATE

pytestmark = pytest.mark.spark

# Hashes are fixed, so the p-values are too: a law that holds once holds in every run.
UNLIKELY = 1e-4
UNSIGNED = (
    "CAST(CAST({} AS DECIMAL(20, 0)) + IF({} < 0, 18446744073709551616BD, 0BD) AS DECIMAL(20, 0))"
)


def contents(frame: DataFrame, columns: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.select(*(quote(c) for c in columns)).collect())


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def register(database: Database, name: str, table: pa.Table, place: Path, **more: Any) -> Table:
    pq.write_table(table, place / f"{name}.parquet")
    return database.register(name, place / f"{name}.parquet", **more)


def every_type() -> pa.Table:
    """A column of each type that can be a key; each lacks a value in other rows than the next."""
    start = datetime.date(1969, 1, 1)
    midnight = datetime.datetime(1999, 12, 31)
    values: dict[str, tuple[Any, pa.DataType]] = {
        "tiny": (lambda i: i % 50 - 25, pa.int8()),
        "small": (lambda i: i - 100, pa.int16()),
        "whole": (lambda i: i * 1_000_003 % 997 - 400, pa.int32()),
        "big": (lambda i: i * 2**40 - 2**45, pa.int64()),
        "text": (lambda i: f"k{i % 60}é", pa.string()),
        "day": (lambda i: start + datetime.timedelta(i), pa.date32()),
        "moment": (lambda i: midnight + datetime.timedelta(hours=i), pa.timestamp("us", "UTC")),
        "price": (lambda i: Decimal(i) / 4, pa.decimal128(9, 2)),
        "flag": (lambda i: bool(i % 2), pa.bool_()),
    }
    return pa.table(
        {
            name: pa.array([None if (i + place) % 7 == 0 else make(i) for i in range(200)], kind)
            for place, (name, (make, kind)) in enumerate(values.items())
        }
    )


KEYS = every_type()


@pytest.fixture(scope="module")
def mixed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, Table]]:
    """A table with a key of every type, nulls, and every row twice; a scramble by each column."""
    place = tmp_path_factory.mktemp("mixed")
    with sooner.connect(place / "home", spark=spark, progress=False) as database:
        register(database, "mixed", pa.concat_tables([KEYS, KEYS]), place)
        for column in KEYS.column_names:
            database.scramble("mixed", column, blocks=2, salt=3)
        database.scramble("mixed", ["whole", "text"], blocks=2, salt=3)
        yield database, database.scramble("mixed", "big", blocks=1, salt=-(2**63))


@pytest.fixture(scope="module")
def orders(
    spark: SparkSession, tpch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, Table, Table]]:
    """TPC-H's orders and lineitem, scrambled alike by the order."""
    home = tmp_path_factory.mktemp("orders")
    with sooner.connect(home, spark=spark, progress=False) as database:
        database.register("orders", f"{tpch}/orders/*.parquet", key="o_orderkey")
        database.register(
            "lineitem", f"{tpch}/lineitem/*.parquet", key=["l_orderkey", "l_linenumber"]
        )
        first = database.scramble("orders", "o_orderkey", blocks=16, salt=7)
        second = database.scramble("lineitem", "l_orderkey", like="orders")
        yield database, first, second


def test_nothing_is_lost_or_doubled(spark: SparkSession, mixed: tuple[Database, Table]) -> None:
    _, table = mixed
    wanted = contents(table_rows(spark, table), names(table))
    assert set(wanted.values()) == {2}
    assert len(table.scrambles) == KEYS.num_columns + 2
    for scramble in table.scrambles:
        assert contents(scramble_rows(spark, table, scramble), names(table)) == wanted, scramble.by


def test_rows_of_a_key_stay_together(spark: SparkSession, mixed: tuple[Database, Table]) -> None:
    _, table = mixed
    for scramble in table.scrambles:
        by = ", ".join(f"`{name}`" for name in scramble.by)
        given = " AND ".join(f"`{name}` IS NOT NULL" for name in scramble.by)
        apart = scramble_rows(spark, table, scramble).where(given)
        found = spark.sql(
            f"SELECT {by} FROM {{rows}} GROUP BY {by} "
            f"HAVING count(DISTINCT {BLOCK}) > 1 OR count(DISTINCT {REPLICATE}) > 1",
            rows=apart,
        )
        assert not found.collect(), scramble.by


def test_equal_rows_with_null_keys_stay_together(
    spark: SparkSession, mixed: tuple[Database, Table]
) -> None:
    """A row without a key hashes whole, so that a delete finds it again, and is spread as others."""
    _, table = mixed
    scramble = table.scrambles[KEYS.column_names.index("big")]
    rows = scramble_rows(spark, table, scramble).where("big IS NULL").collect()
    blocks: dict[Any, set[int]] = {}
    for row in rows:
        blocks.setdefault((row.whole, row.text, row.day), set()).add(row[BLOCK])
    assert len(blocks) == len(rows) / 2
    assert all(len(found) == 1 for found in blocks.values())
    assert set.union(*blocks.values()) == {0, 1}


def test_null_keys_spread_by_the_primary_key(database: Database, tmp_path: Path) -> None:
    from scipy import stats  # a second to load, which tests without Spark are spared

    nulls = pa.table({"id": list(range(2000)), "k": pa.nulls(2000, pa.int64())})
    register(database, "nulls", nulls, tmp_path, key="id")
    table = database.scramble("nulls", "k", blocks=8)
    rows = scramble_rows(database.spark, table, table.scrambles[0])
    counts = [row["count"] for row in rows.groupBy(BLOCK).count().collect()]
    assert len(counts) == 8
    assert stats.chisquare(counts).pvalue > UNLIKELY
    assert rows.select(REPLICATE).distinct().count() == 32


def test_two_files_or_row_groups_for_each_block(orders: tuple[Database, Table, Table]) -> None:
    """One file of one row group would leave a core idle."""
    for table in orders[1:]:
        (scramble,) = table.scrambles
        parts: Counter[int | None] = Counter()
        for file in scramble.files:
            parts[file.block] += len(file.row_groups)
            assert f"{BLOCK}={file.block}" in file.path
        assert set(parts) == set(range(scramble.blocks))
        assert min(parts.values()) >= 2
        assert sum(file.rows or 0 for file in scramble.files) == table.facts.rows


def test_blocks_are_in_hash_order(
    spark: SparkSession, orders: tuple[Database, Table, Table]
) -> None:
    """Within a file, from file to file of a block, and from block to block."""
    _, table, _ = orders
    (scramble,) = table.scrambles
    unsigned = UNSIGNED.format("h", "h")
    ranges = []
    for block in (0, 1, 15):
        files = sorted(file.path for file in scramble.files if file.block == block)
        in_files = []
        for path in files:
            hashes = [
                int(row[0])
                for row in spark.read.parquet(path)
                .coalesce(1)
                .selectExpr(f"{layout_hash(table, scramble)} AS h")
                .selectExpr(unsigned)
                .collect()
            ]
            assert hashes == sorted(hashes), path
            in_files.append((hashes[0], hashes[-1]))
        in_files.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(in_files))
        ranges.append((block, in_files[0][0], in_files[-1][1]))
    for block, low, high in ranges:
        assert block * 2**64 // 16 <= low <= high < (block + 1) * 2**64 // 16


def test_reading_blocks_reads_only_their_directories(
    spark: SparkSession, orders: tuple[Database, Table, Table]
) -> None:
    _, table, _ = orders
    (scramble,) = table.scrambles
    some = scramble_rows(spark, table, scramble).where(f"{BLOCK} IN (2, 11)")
    plan = some._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    filters = next(line for line in plan.splitlines() if "PartitionFilters" in line)
    assert BLOCK in filters.split("PartitionFilters: [")[1].split("]")[0]
    read = {os.path.dirname(row[0]) for row in some.selectExpr("input_file_name()").collect()}
    assert {path.rpartition("/")[2] for path in read} == {f"{BLOCK}=2", f"{BLOCK}=11"}


@pytest.mark.parametrize("prefix", [1, 3, 8])
def test_a_prefix_is_a_uniform_sample_of_keys(
    spark: SparkSession, orders: tuple[Database, Table, Table], prefix: int
) -> None:
    """By the key itself and by three other columns: the prefix has its share of each part."""
    from scipy import stats  # a second to load, which tests without Spark are spared

    _, table, _ = orders
    (scramble,) = table.scrambles
    share = prefix / scramble.blocks
    rows = scramble_rows(spark, table, scramble).selectExpr(
        "ntile(40) OVER (ORDER BY o_orderkey) AS key_part",
        "o_orderpriority AS priority",
        "year(o_orderdate) AS year",
        "pmod(o_custkey, 20) AS customer",
        f"{BLOCK} < {prefix} AS taken",
    )
    rows.cache()
    try:
        for column in ("key_part", "priority", "year", "customer"):
            counted = spark.sql(
                f"SELECT {column}, count_if(taken), count(*) FROM {{rows}} GROUP BY 1", rows=rows
            ).collect()
            taken = [row[1] for row in counted]
            # Each key is taken or not: the variance is n·s·(1-s), not the n·s of a Poisson count.
            expected = [row[2] * share for row in counted]
            spread = [row[2] * share * (1 - share) for row in counted]
            statistic = sum(
                (t - e) ** 2 / v for t, e, v in zip(taken, expected, spread, strict=True)
            )
            pvalue = stats.chi2.sf(statistic, len(counted))
            assert UNLIKELY < pvalue < 1 - UNLIKELY, (column, prefix, taken)
    finally:
        rows.unpersist()


def test_other_salts_are_other_samples(spark: SparkSession, database: Database) -> None:
    from scipy import stats  # a second to load, which tests without Spark are spared

    database.register("n", spark.range(8000), key="id")
    database.scramble("n", "id", blocks=4, salt=1)
    table = database.scramble("n", "id", blocks=4, salt=2)
    first, second = (
        scramble_rows(spark, table, scramble).select("id", BLOCK) for scramble in table.scrambles
    )
    pairs = first.withColumnRenamed(BLOCK, "a").join(second.withColumnRenamed(BLOCK, "b"), "id")
    observed = [[0] * 4 for _ in range(4)]
    for row in pairs.groupBy("a", "b").count().collect():
        observed[row["a"]][row["b"]] = row["count"]
    assert stats.chi2_contingency(observed).pvalue > UNLIKELY


def test_block_join_equals_whole_join(
    spark: SparkSession, orders: tuple[Database, Table, Table]
) -> None:
    """No pair is lost or found twice, counted and by a sum that every pair changes."""
    _, first, second = orders
    o = scramble_rows(spark, first, first.scrambles[0])
    line = scramble_rows(spark, second, second.scrambles[0])
    mark = "xxhash64(o_orderkey, l_linenumber, o_custkey, l_partkey) % 1000000007"
    sums = f"SELECT count(*), sum({mark})"
    whole = spark.sql(
        f"{sums} FROM {{o}} JOIN {{line}} ON o_orderkey = l_orderkey",
        o=table_rows(spark, first),
        line=table_rows(spark, second),
    ).collect()[0]
    blocks = spark.sql(
        f"SELECT o.{BLOCK}, count(*), sum({mark}) FROM {{o}} o JOIN {{line}} l "
        f"ON o_orderkey = l_orderkey AND o.{BLOCK} = l.{BLOCK} GROUP BY 1",
        o=o,
        line=line,
    ).collect()
    assert len(blocks) == 16
    assert sum(row[1] for row in blocks) == whole[0] == second.facts.rows
    assert sum(row[2] for row in blocks) == whole[1]
    alone = spark.sql(
        f"{sums} FROM {{o}} JOIN {{line}} ON o_orderkey = l_orderkey",
        o=o.where(f"{BLOCK} = 5"),
        line=line.where(f"{BLOCK} = 5"),
    ).collect()[0]
    assert (alone[0], alone[1]) == next((row[1], row[2]) for row in blocks if row[0] == 5)


def test_unlike_whole_numbers_fit_together(database: Database, tmp_path: Path) -> None:
    """Spark hashes 5 as int and 5 as bigint differently; a scramble does not."""
    spark = database.spark
    small = pa.table({"a": pa.array(range(-300, 300), pa.int32())})
    large = pa.table({"b": pa.array(range(-300, 300), pa.int64())})
    register(database, "small", small, tmp_path)
    register(database, "large", large, tmp_path)
    first = database.scramble("small", "a", blocks=8, salt=5)
    second = database.scramble("large", "b", like="small")
    mine, theirs = first.scrambles[0], second.scrambles[0]
    assert (mine.salt, mine.blocks, mine.types) == (theirs.salt, theirs.blocks, theirs.types)
    joined = spark.sql(
        f"SELECT count(*), count_if(x.{BLOCK} = y.{BLOCK} AND x.{REPLICATE} = y.{REPLICATE}) "
        "FROM {x} x JOIN {y} y ON a = b",
        x=scramble_rows(spark, first, mine),
        y=scramble_rows(spark, second, theirs),
    ).collect()[0]
    assert tuple(joined) == (600, 600)


UNLIKE = [("big", "text"), ("text", "whole"), ("day", "moment"), ("price", "big"), ("flag", "text")]


@pytest.mark.parametrize("mine, theirs", UNLIKE)
def test_unlike_types_are_refused(
    mixed: tuple[Database, Table], tmp_path: Path, mine: str, theirs: str
) -> None:
    database, table = mixed
    register(database, "other", KEYS.select([theirs]).rename_columns(["o"]), tmp_path, replace=True)
    database.scramble("other", "o", blocks=4)
    with pytest.raises(InvalidArgument, match="different blocks"):
        database.scramble("mixed", mine, like="other")
    assert database._catalog.table("mixed").scrambles == table.scrambles


def test_unlike_decimals_are_refused(database: Database, tmp_path: Path) -> None:
    """1.0 and 1.00 are equal keys and unlike texts."""
    for name, scale in (("one", 1), ("two", 2)):
        values = pa.array([Decimal(1), Decimal(2)], pa.decimal128(9, scale))
        register(database, name, pa.table({"k": values}), tmp_path)
    database.scramble("one", "k", blocks=2)
    with pytest.raises(InvalidArgument, match="different blocks"):
        database.scramble("two", "k", like="one")


def pending(database: Database) -> list[str]:
    from sooner.storage import protection

    with database._catalog.database.reading() as connection:
        return sorted(protection.waiting(connection))


def directories(database: Database) -> list[str]:
    return sorted(str(path) for path in (database._home.path / "data").glob("*/*"))


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"by": "flot"}, UnknownColumn),
    ({"by": []}, InvalidArgument),
    ({"by": ["id", "ID"]}, InvalidArgument),
    ({"by": "real"}, InvalidArgument),
    ({"by": "list"}, InvalidArgument),
    ({"by": "id", "blocks": 0}, InvalidArgument),
    ({"by": "id", "blocks": 5000}, InvalidArgument),
    ({"by": "id", "blocks": "8"}, InvalidArgument),
    ({"by": "id", "blocks": True}, InvalidArgument),
    ({"by": "id", "salt": 1.5}, InvalidArgument),
    ({"by": "id", "salt": 2**63}, InvalidArgument),
    ({"by": "id", "like": "kinds"}, CatalogError),
    ({"by": "id", "like": "nosuch"}, sooner.UnknownTable),
]


def test_refused_scrambles_change_nothing(database: Database, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "real": [0.5, 1.5], "list": [[1], [2]]})
    register(database, "kinds", rows, tmp_path, key="id")
    table = database.scramble("kinds", "id", blocks=2)
    before = directories(database)
    wrong = []
    for arguments, kind in REFUSED:
        try:
            database.scramble("kinds", **arguments)
        except kind:
            pass
        except Exception as error:
            wrong.append(f"{arguments}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{arguments}: passed")
    assert not wrong, "\n".join(wrong)
    assert database._catalog.table("kinds") == table
    assert not pending(database)
    assert directories(database) == before


def test_the_same_scramble_twice_is_refused(database: Database, tmp_path: Path) -> None:
    register(database, "t", pa.table({"id": [1, 2]}), tmp_path)
    table = database.scramble("t", "id", blocks=2)
    with pytest.raises(CatalogError, match="already"):
        database.scramble("t", "ID", blocks=2)
    assert database._catalog.table("t") == table
    assert len(database.scramble("t", "id", blocks=2, salt=9).scrambles) == 2
    assert len(database.scramble("t", "id", blocks=3).scrambles) == 3


def test_an_empty_table(database: Database, tmp_path: Path) -> None:
    register(database, "none", pa.table({"id": pa.array([], pa.int64())}), tmp_path, key="id")
    table = database.scramble("none", "id", blocks=4)
    assert scramble_rows(database.spark, table, table.scrambles[0]).collect() == []
    database.insert("none", [(1,), (2,)])
    table = database._catalog.table("none")
    assert scramble_rows(database.spark, table, table.scrambles[0]).count() == 2


def test_odd_column_names(database: Database, tmp_path: Path) -> None:
    odd = {
        "a b": [1, 2, 3],
        "c.d": [4, 5, 6],
        "e`f": [7, 8, 9],
        "g{h}": [0, 0, 0],
        "ü'\"": [1, 1, 2],
    }
    register(database, "odd", pa.table(odd), tmp_path, key="c.d")
    database.scramble("odd", ["e`f", "g{h}"], blocks=2)
    database.insert("odd", [(9, 9, 9, 9, 9)])
    database.update("odd", [(1, 4, 70, 0, 1)])
    assert database.delete("odd", [5]) == 1
    table = database._catalog.table("odd")
    wanted = Counter({(1, 4, 70, 0, 1): 1, (3, 6, 9, 0, 2): 1, (9, 9, 9, 9, 9): 1})
    spark = database.spark
    assert Counter(tuple(r) for r in table_rows(spark, table).collect()) == wanted
    for scramble in table.scrambles:
        assert contents(scramble_rows(spark, table, scramble), names(table)) == wanted


def test_a_scramble_does_not_depend_on_the_time_zone(database: Database, tmp_path: Path) -> None:
    """A change lands in the block of its row, whichever clock the session goes by."""
    spark = database.spark
    moments = pa.array(
        [datetime.datetime(2024, 1, 1, h) for h in range(24)], pa.timestamp("us", "UTC")
    )
    nothing = pa.nulls(24, pa.string())
    table = pa.table({"id": moments, "none": nothing})
    register(database, "clock", table, tmp_path, key="id")
    database.scramble("clock", "id", blocks=8)
    database.scramble("clock", "none", blocks=8)  # by the primary key then
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        database.delete("clock", pa.table({"id": moments[:12]}))
        now = database._catalog.table("clock")
        wanted = contents(table_rows(spark, now), ["id"])
        assert wanted.total() == 12
        for scramble in now.scrambles:
            assert contents(scramble_rows(spark, now, scramble), ["id"]) == wanted, scramble.by
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_scramble_of_a_changed_table(database: Database, tmp_path: Path) -> None:
    """It holds the version it was made from, and the changes after it."""
    register(database, "t", pa.table({"id": [1, 2, 3], "v": [1, 1, 1]}), tmp_path, key="id")
    database.delete("t", [1])
    database.insert("t", [(4, 1)])
    table = database.scramble("t", "v", blocks=2)
    scramble: Scramble = table.scrambles[0]
    assert scramble.base_version == table.version == 3
    database.update("t", [(4, 2)])
    table = database._catalog.table("t")
    rows = contents(scramble_rows(database.spark, table, scramble), ["id", "v"])
    assert rows == Counter({(2, 1): 1, (3, 1): 1, (4, 2): 1})
