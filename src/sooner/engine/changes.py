"""Inserting, deleting and updating rows: new files in every layout of the table, then one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from sooner.algebra.schema import Column
from sooner.engine.assigned import assigned
from sooner.engine.failures import plain_errors
from sooner.engine.hashing import block_sql, layout_hash, replicate_sql
from sooner.engine.paths import literal
from sooner.engine.rows import ddl, table_rows
from sooner.engine.writing import Reservation, reservation, write_parquet
from sooner.errors import ConstraintViolation, InvalidArgument, NotSupported
from sooner.sql import quote
from sooner.storage.catalog import Catalog
from sooner.storage.footers import facts_of
from sooner.storage.layout import BLOCK, HASH, REPLICATE, VERSION
from sooner.storage.records import Change, ChangeKind, Table

_SHOWN = 3


@dataclass(frozen=True)
class Changed:
    """What a change did: the table as it now is, and how many rows came and went."""

    table: Table
    inserted: int = 0
    deleted: int = 0


def insert(spark: SparkSession, catalog: Catalog, table: Table, rows: DataFrame) -> Changed:
    """Add rows; a key that is already there, or comes twice, is refused."""
    with plain_errors(), reservation(catalog, table) as reserved:
        change = _write(spark, table, rows, "insert", reserved)
        if not change.rows:
            return _nothing(table, reserved)
        if table.key:
            added = _read(spark, table, change)
            _refuse_twice(table, added)
            known = table_rows(spark, table)
            _refuse_keys(_matching(table, added, known), "is in the table already", table, "update")
        changes = [change, *_placed(spark, table, change, reserved)]
        facts = facts_of([file.path for file in change.files])
        new = catalog.commit_change(table, changes, facts, reserved.directories)
    return Changed(new, inserted=change.rows or 0)


def delete(spark: SparkSession, catalog: Catalog, table: Table, keys: DataFrame) -> Changed:
    """Take away the rows with these keys; a key that is not there takes away nothing."""
    with plain_errors(), reservation(catalog, table) as reserved:
        wanted = keys.selectExpr(*assigned(table, keys, _key_columns(table)))
        old = _matching(table, table_rows(spark, table), wanted)
        change = _write(spark, table, old, "delete", reserved)
        if not change.rows:
            return _nothing(table, reserved)
        changes = [change, *_placed(spark, table, change, reserved)]
        new = catalog.commit_change(table, changes, None, reserved.directories)
    return Changed(new, deleted=change.rows or 0)


def update(spark: SparkSession, catalog: Catalog, table: Table, rows: DataFrame) -> Changed:
    """Put these rows in place of those with the same keys; every key must be there."""
    with plain_errors(), reservation(catalog, table) as reserved:
        added = _write(spark, table, rows, "insert", reserved)
        if not added.rows:
            return _nothing(table, reserved)
        new_rows = _read(spark, table, added)
        _refuse_twice(table, new_rows)
        known = table_rows(spark, table)
        gone = _write(spark, table, _matching(table, known, new_rows), "delete", reserved)
        if gone.rows != added.rows:
            missing = _matching(table, new_rows, known, how="left_anti")
            _refuse_keys(missing, "is not in the table", table, "insert")
        changes = [gone, added]
        for change in (gone, added):
            changes += _placed(spark, table, change, reserved)
        facts = facts_of([file.path for file in added.files])
        new = catalog.commit_change(table, changes, facts, reserved.directories)
    return Changed(new, inserted=added.rows or 0, deleted=gone.rows or 0)


def _nothing(table: Table, reserved: Reservation) -> Changed:
    reserved.give_up()
    return Changed(table)


def _write(
    spark: SparkSession, table: Table, rows: DataFrame, kind: ChangeKind, reserved: Reservation
) -> Change:
    """Write the rows of a change in the plain layout, cast to the table's types."""
    version = table.version + 1
    typed = rows.selectExpr(*assigned(table, rows, table.columns), f"{version}L AS {VERSION}")
    directory = reserved.directory(kind)
    return Change(version, kind, None, directory, write_parquet(typed, directory))


def _key_columns(table: Table) -> list[Column]:
    return [column for column in table.columns if column.name in table.key]


def _read(spark: SparkSession, table: Table, change: Change) -> DataFrame:
    schema = ddl(table.columns, ((VERSION, "bigint"),))
    return spark.read.schema(schema).parquet(*(literal(file.path) for file in change.files))


def _placed(
    spark: SparkSession, table: Table, change: Change, reserved: Reservation
) -> Sequence[Change]:
    """The same change in the hash blocks of every scramble: sorted by block, so that reading some
    blocks skips the rest; files for each block would be thousands of tiny ones."""
    placed = []
    for scramble in table.scrambles:
        # Read back what was written: a user's frame may give other rows when run again.
        rows = _read(spark, table, change)
        hashed = rows.selectExpr("*", f"{layout_hash(table, scramble)} AS {HASH}").selectExpr(
            *(quote(column.name) for column in table.columns),
            f"{replicate_sql(HASH, scramble.replicates)} AS {REPLICATE}",
            f"{block_sql(HASH, scramble.blocks)} AS {BLOCK}",
            VERSION,
            HASH,
        )
        directory = reserved.directory(change.kind)
        ordered = hashed.coalesce(1).sortWithinPartitions(BLOCK, HASH).drop(HASH)
        files = write_parquet(ordered, directory)
        placed.append(Change(change.version, change.kind, scramble.id, directory, files))
    return placed


def _matching(
    table: Table,
    rows: DataFrame,
    keys: DataFrame,
    how: str = "left_semi",
) -> DataFrame:
    condition = " AND ".join(f"r.{quote(name)} <=> k.{quote(name)}" for name in table.key)
    matching = rows.alias("r").join(keys.alias("k"), expr(condition), how)
    return matching.select(*(quote(column.name) for column in table.columns))


def _refuse_twice(table: Table, rows: DataFrame) -> None:
    counted = rows.groupBy(*(quote(name) for name in table.key)).agg(expr(f"count(*) AS {HASH}"))
    twice = counted.where(f"{HASH} > 1")
    _refuse_keys(twice, "comes twice", table, None)


def _refuse_keys(found: DataFrame, why: str, table: Table, instead: str | None) -> None:
    rows = found.select(*(quote(name) for name in table.key)).limit(_SHOWN).collect()
    if not rows:
        return
    shown = ", ".join("(" + ", ".join(str(value) for value in row) + ")" for row in rows)
    advice = f" Use db.{instead}() for such rows." if instead else ""
    raise ConstraintViolation(
        f"The key {', '.join(table.key)} of {table.name!r} {why}: {shown}"
        f"{', …' if len(rows) == _SHOWN else ''}. Nothing was changed.{advice}"
    )


def require_key(table: Table, what: str) -> None:
    """Refuse to delete or update rows of a table that has no key to find them by."""
    if not table.key:
        raise NotSupported(
            f"{what.capitalize()} {table.name!r} needs a key to find rows by, and it was registered "
            "without one. Register it again with key=[…] and replace=True."
        )


def require_columns(table: Table, given: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse rows that lack a needed column or have one that the table does not."""
    lowered = {name.lower() for name in given}
    if len(lowered) < len(given):
        raise InvalidArgument(
            f"The rows for {table.name!r} have two columns of one name: {', '.join(given)}. "
            "Nothing was changed."
        )
    missing = [name for name in needed if name.lower() not in lowered]
    known = {name.lower() for name in needed}
    extra = [name for name in given if name.lower() not in known]
    if missing or extra:
        parts = [f"lack {', '.join(missing)}"] if missing else []
        parts += [f"have {', '.join(extra)} besides"] if extra else []
        raise InvalidArgument(
            f"The rows for {table.name!r} {' and '.join(parts)}; they need exactly "
            f"{', '.join(needed)}. Nothing was changed."
        )
