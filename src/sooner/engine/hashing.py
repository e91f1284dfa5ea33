"""The hash that orders a scramble, in Spark SQL: block and replicate of a row (design: one physical idea).

The top 32 bits choose the block, so that blocks are ranges of the hash in order; the lowest bits
choose the replicate, independently of the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from sooner.algebra.schema import Schema
from sooner.errors import InvalidArgument, UnknownColumn, nearest
from sooner.sql import quote
from sooner.storage.records import KeyType, Scramble, Table

REPLICATES = 32

WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_AS_TEXT = ("string", "varchar", "char", "date", "timestamp", "decimal", "boolean")


def canonical_type(column: str, data_type: str | None) -> KeyType:
    """The type a key column is cast to before hashing: Spark hashes int and bigint differently."""
    if data_type in WHOLE_NUMBERS or data_type == "timestamp":
        return "bigint"
    if data_type is not None and "collate" in data_type.lower():
        raise InvalidArgument(
            f"Cannot scramble by {column!r} of type {data_type}: texts that are equal to a collation would "
            "lie in blocks apart. Use another column."
        )
    if data_type is not None and data_type.startswith(_AS_TEXT):
        return "string"
    raise InvalidArgument(
        f"Cannot scramble by {column!r} of type {data_type}: use columns of whole numbers, strings, "
        "dates, timestamps, decimals or booleans."
    )


def find_columns(columns: Schema, wanted: Sequence[str], table: str) -> tuple[int, ...]:
    """The places of the wanted columns, letter case aside."""
    places = {column.name.lower(): place for place, column in enumerate(columns)}
    for name in wanted:
        if name.lower() not in places:
            known = [column.name for column in columns]
            raise UnknownColumn(f"Table {table!r} has no column {name!r}.{nearest(name, known)}")
    return tuple(places[name.lower()] for name in wanted)


def hash_sql(table: Table, by: Sequence[str], types: Sequence[KeyType], salt: int) -> str:
    """The 64-bit hash of a row's key. Spark hashes NULL to a constant, so a row without a whole key
    hashes its primary key, else the whole row."""
    columns = {column.name: str(column.type) for column in table.columns}
    keys = [_canonical_sql(name, columns[name], kind) for name, kind in zip(by, types, strict=True)]
    rest = [name for name in table.key if name not in by] or list(columns)
    whole = [_canonical_sql(name, columns[name], "string") for name in rest]
    missing = " OR ".join(f"{quote(name)} IS NULL" for name in by)
    return (
        f"CASE WHEN {missing} THEN xxhash64({salt}L, {', '.join(whole)}) "
        f"ELSE xxhash64({salt}L, {', '.join(keys)}) END"
    )


def _canonical_sql(name: str, data_type: str, kind: KeyType) -> str:
    """A column in its canonical type. A timestamp's text would depend on the session's time zone."""
    if data_type == "timestamp":
        return f"unix_micros({quote(name)})"
    if data_type.startswith(("array", "struct")) and "map<" not in data_type:
        return quote(name)
    return f"CAST({quote(name)} AS {kind})"


def block_sql(hash_column: str, blocks: int) -> str:
    """The block of a hash: blocks of equal width over the unsigned range, in its order."""
    return f"CAST(shiftright(shiftrightunsigned({hash_column}, 32) * {blocks}L, 32) AS INT)"


def unsigned_sql(hash_column: str) -> str:
    """A number that orders hashes as blocks do: with the sign bit flipped, the unsigned order."""
    return f"({hash_column} ^ shiftleft(1L, 63))"


def replicate_sql(hash_column: str, replicates: int) -> str:
    """The replicate of a hash."""
    return f"CAST(pmod({hash_column}, {replicates}L) AS TINYINT)"


def layout_hash(table: Table, scramble: Scramble) -> str:
    """The hash by which a scramble places the rows of its table."""
    return hash_sql(table, scramble.by, scramble.types, scramble.salt)
