"""The hash that orders a scramble: one for all whole numbers, blocks in its order, replicates apart."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from sooner import InvalidArgument, UnknownColumn
from sooner.algebra.schema import Column
from sooner.analysis.facts import TableFacts
from sooner.engine.hashing import block_sql, canonical_type, find_columns, hash_sql, replicate_sql
from sooner.storage import Source, Table

UNLIKELY = 1e-4


def table(columns: dict[str, str], key: tuple[str, ...] = ()) -> Table:
    schema = tuple(Column(name, kind) for name, kind in columns.items())
    return Table(1, "t", schema, key, Source("view", ("t",)), 1, (), (), (), TableFacts())


def hashes(spark: SparkSession, kind: str, values: str, salt: int = 0) -> list[int]:
    """The hashes of values as a key column of a type."""
    described = table({"k": kind, "other": "string"})
    text = hash_sql(described, ["k"], [canonical_type("k", kind)], salt)
    rows = spark.sql(f"SELECT CAST(v AS {kind}) AS k, '' AS other FROM VALUES {values} AS t(v)")
    return [row[0] for row in rows.selectExpr(text).collect()]


def test_whole_numbers_hash_alike(spark: SparkSession) -> None:
    values = "(0), (1), (-1), (127), (-128), (5)"
    wanted = hashes(spark, "bigint", values)
    for kind in ("tinyint", "smallint", "int"):
        assert hashes(spark, kind, values) == wanted, kind
    assert len(set(wanted)) == 6


def test_strings_hash_alike(spark: SparkSession) -> None:
    values = "('a'), ('ab'), ('é'), ('')"
    wanted = hashes(spark, "string", values)
    assert hashes(spark, "varchar(10)", values) == wanted
    assert len(set(wanted)) == 4


@pytest.mark.parametrize("salt", [1, -1, 2**63 - 1, -(2**63)])
def test_salts_give_other_hashes(spark: SparkSession, salt: int) -> None:
    assert set(hashes(spark, "bigint", "(1), (2)", salt)).isdisjoint(
        hashes(spark, "bigint", "(1), (2)")
    )


def test_extremes_have_a_block(spark: SparkSession) -> None:
    """The lowest unsigned hash is in the first block and the highest in the last."""
    for blocks in (1, 2, 3, 128, 4096):
        placed = spark.sql(
            f"SELECT {block_sql('h', blocks)}, {replicate_sql('h', 32)} FROM VALUES (0L), (-1L), "
            "(9223372036854775807L), (-9223372036854775808L) AS t(h)"
        ).collect()
        found = [row[0] for row in placed]
        assert (found[0], found[1]) == (0, blocks - 1)
        # The signed extremes lie side by side in the middle of the unsigned range.
        assert 0 <= found[2] <= found[3] < blocks and found[3] - found[2] <= 1
        assert all(0 <= row[1] < 32 for row in placed)


@pytest.fixture(scope="module")
def placed(spark: SparkSession) -> list[Any]:
    """Many keys, negative ones too: their hash, and block and replicate of 64 and 32."""
    text = hash_sql(table({"id": "bigint"}), ["id"], ["bigint"], 11)
    return (
        spark.range(-20_000, 20_000)
        .selectExpr(f"{text} AS h")
        .selectExpr("h", f"{block_sql('h', 64)} AS block", f"{replicate_sql('h', 32)} AS replicate")
        .collect()
    )


def test_blocks_follow_the_unsigned_hash(placed: list[Any]) -> None:
    ordered = [row.block for row in sorted(placed, key=lambda row: row.h % 2**64)]
    assert ordered == sorted(ordered)
    for row in placed:
        assert row.block == (row.h % 2**64 >> 32) * 64 >> 32


def test_finer_blocks_are_parts_of_coarser_ones(placed: list[Any]) -> None:
    assert all((row.h % 2**64 >> 32) * 128 >> 33 == row.block for row in placed)


def test_blocks_are_even(placed: list[Any]) -> None:
    from scipy import stats  # a second to load, which tests without Spark are spared

    counts = [0] * 64
    for row in placed:
        counts[row.block] += 1
    assert stats.chisquare(counts).pvalue > UNLIKELY


def test_replicates_do_not_depend_on_blocks(placed: list[Any]) -> None:
    from scipy import stats  # a second to load, which tests without Spark are spared

    observed = [[0] * 32 for _ in range(8)]
    for row in placed:
        observed[row.block // 8][row.replicate] += 1
    assert stats.chi2_contingency(observed).pvalue > UNLIKELY
    assert (
        stats.chisquare([sum(column) for column in zip(*observed, strict=True)]).pvalue > UNLIKELY
    )


def null_hashes(spark: SparkSession, key: tuple[str, ...]) -> list[int]:
    described = table({"id": "int", "k": "bigint", "v": "string"}, key)
    text = hash_sql(described, ["k"], ["bigint"], 0)
    rows = spark.sql(
        "SELECT CAST(a AS INT) AS id, CAST(NULL AS BIGINT) AS k, b AS v "
        "FROM VALUES (1, 'x'), (2, 'x'), (2, 'y'), (2, NULL), (NULL, NULL) AS t(a, b)"
    )
    return [row[0] for row in rows.selectExpr(text).collect()]


def test_null_keys_hash_the_primary_key(spark: SparkSession) -> None:
    one, two, also_two, *_ = null_hashes(spark, ("id",))
    assert one != two == also_two


def test_null_keys_hash_the_whole_row_without_a_primary_key(spark: SparkSession) -> None:
    assert len(set(null_hashes(spark, ()))) == 5


def test_a_key_with_one_null_part_is_a_null_key(spark: SparkSession) -> None:
    described = table({"a": "int", "b": "int", "id": "int"}, ("id",))
    text = hash_sql(described, ["a", "b"], ["bigint", "bigint"], 0)
    rows = spark.sql(
        "SELECT * FROM VALUES (1, NULL, 1), (1, NULL, 2), (NULL, 1, 1), (1, 1, 1), (1, 1, 2) "
        "AS t(a, b, id)"
    )
    first, second, third, fourth, fifth = (row[0] for row in rows.selectExpr(text).collect())
    assert first != second
    assert first == third
    assert fourth == fifth


@pytest.mark.parametrize("kind", ["double", "float", "binary", "array<int>", "struct<a:int>", None])
def test_other_types_are_no_keys(kind: str | None) -> None:
    with pytest.raises(InvalidArgument, match="Cannot scramble by 'c'"):
        canonical_type("c", kind)


def test_columns_are_found_whatever_their_case() -> None:
    columns = table({"Ab": "int", "c": "int"}).columns
    assert find_columns(columns, ["C", "aB"], "t") == (1, 0)
    with pytest.raises(UnknownColumn, match="Did you mean 'Ab'"):
        find_columns(columns, ["abb"], "t")
