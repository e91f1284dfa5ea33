"""Writing a scramble: the table once more, in blocks by the hash of a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from sooner.algebra.schema import Schema
from sooner.engine.failures import plain_errors
from sooner.engine.hashing import (
    REPLICATES,
    block_sql,
    canonical_type,
    find_columns,
    hash_sql,
    replicate_sql,
    unsigned_sql,
)
from sooner.engine.reordering import can_reorder, reorder
from sooner.engine.rows import table_rows
from sooner.engine.writing import Reservation, written_files
from sooner.errors import InvalidArgument
from sooner.sql import quote
from sooner.storage.layout import BLOCK, HASH, REPLICATE
from sooner.storage.records import Scramble, Table

# A block of one row group keeps one core busy and the others idle. Two groups of one file are a fifth
# faster to write than two files. Blocks are not quite alike: a little over half makes two, not three.
_ROW_GROUP_SHARE = 0.55
MOST_BLOCKS = 4096


def plan_scramble(
    table: Table, by: Sequence[str], blocks: int, salt: int, like: tuple[Table, Scramble] | None
) -> Scramble:
    """The scramble that was asked for, not yet written; co-scrambling takes its layout from another."""
    if not by:
        raise InvalidArgument("Say by which columns to scramble: by=['l_orderkey'].")
    if len({name.lower() for name in by}) < len(by):
        raise InvalidArgument(f"by={list(by)!r} names a column twice.")
    for name, value in (("blocks", blocks), ("salt", salt)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidArgument(f"{name} must be a whole number, not {value!r}.")
    if not 1 <= blocks <= MOST_BLOCKS:
        raise InvalidArgument(f"blocks must be from 1 to {MOST_BLOCKS}, not {blocks}.")
    places = find_columns(table.columns, by, table.name)
    columns = tuple(table.columns[place] for place in places)
    types = tuple(canonical_type(column.name, column.type) for column in columns)
    scramble = Scramble(
        id=0,
        by=tuple(column.name for column in columns),
        types=types,
        salt=salt,
        blocks=blocks,
        replicates=REPLICATES,
        base_version=table.version,
        directory="",
    )
    if like is None:
        return scramble
    return _aligned(scramble, columns, *like)


def _aligned(scramble: Scramble, columns: Schema, other: Table, model: Scramble) -> Scramble:
    theirs = find_columns(other.columns, model.by, other.name)
    mine_types = [_comparable(column.type) for column in columns]
    their_types = [_comparable(other.columns[place].type) for place in theirs]
    if mine_types != their_types:
        raise InvalidArgument(
            f"Cannot scramble like {other.name!r}: its key {', '.join(model.by)} is of type "
            f"{', '.join(their_types)}, and {', '.join(scramble.by)} of type "
            f"{', '.join(mine_types)}. Equal keys would land in different blocks; cast one first."
        )
    return replace(scramble, salt=model.salt, blocks=model.blocks, replicates=model.replicates)


def _comparable(data_type: str | None) -> str:
    """Types that hash alike: any whole number, any string, otherwise the very type (1.0 is not 1)."""
    name = str(data_type)
    if name in ("tinyint", "smallint", "int", "bigint"):
        return "whole number"
    return "string" if name.startswith(("string", "varchar", "char")) else name


def write_scramble(
    spark: SparkSession, table: Table, scramble: Scramble, reserved: Reservation
) -> Scramble:
    """Write all blocks and return the scramble with its files."""
    directory = reserved.directory("scramble")
    with plain_errors():
        done = can_reorder(spark, table, scramble) and reorder(spark, table, scramble, directory)
        if not done:
            _write_with_spark(spark, table, scramble, directory)
    return replace(scramble, directory=directory, files=written_files(directory))


def _write_with_spark(
    spark: SparkSession, table: Table, scramble: Scramble, directory: str
) -> None:
    """Any table by any key, in one shuffle."""
    hashed = table_rows(spark, table).selectExpr(
        "*", f"{hash_sql(table, scramble.by, scramble.types, scramble.salt)} AS {HASH}"
    )
    placed = hashed.selectExpr(
        *(quote(column.name) for column in table.columns),
        f"{replicate_sql(HASH, scramble.replicates)} AS {REPLICATE}",
        HASH,
    )
    (
        # Each Spark partition is one block and one file.
        placed.repartitionById(scramble.blocks, expr(block_sql(HASH, scramble.blocks)))
        # By one long Spark sorts bits and compares no rows: a fifth of the whole time.
        .sortWithinPartitions(expr(unsigned_sql(HASH)))
        .drop(HASH)
        .write.options(**_row_groups(table, scramble))
        .parquet(directory)
    )
    _into_blocks(directory)


def _row_groups(table: Table, scramble: Scramble) -> dict[str, int]:
    """Spark's option for two row groups a block, where the rows of the table are known."""
    if not table.facts.rows:
        return {}
    rows = math.ceil(table.facts.rows / scramble.blocks * _ROW_GROUP_SHARE)
    return {"parquet.block.row.count.limit": rows}


def _into_blocks(directory: str) -> None:
    """Move each file into the directory of its block, which its Spark partition tells.

    Writing with ``partitionBy`` would do the same at the cost of looking at the block of every row:
    about a tenth of the whole time.
    """
    for file in Path(directory).glob("part-*.parquet"):
        partition = int(file.name.split("-")[1])
        block = Path(directory) / f"{BLOCK}={partition}"
        block.mkdir(exist_ok=True)
        file.rename(block / file.name)
        checksum = file.with_name(f".{file.name}.crc")
        if checksum.exists():
            checksum.rename(block / checksum.name)
