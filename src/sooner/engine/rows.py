"""The rows of a table at one version, in one of its layouts, as a Spark DataFrame.

What is stored is never changed: a version is the base files plus the inserted rows minus the deleted
ones. A delete takes away rows that came in before it, so that an update is a delete and an insert of
one version.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from sooner.algebra.schema import Schema
from sooner.engine.paths import literal
from sooner.errors import MissingFile
from sooner.sql import quote
from sooner.storage.layout import BLOCK, REPLICATE, VERSION
from sooner.storage.records import Change, Scramble, Table

_SCRAMBLE_COLUMNS = ((REPLICATE, "tinyint"), (BLOCK, "int"))


def ddl(columns: Schema, extra: Sequence[tuple[str, str]] = ()) -> str:
    """A schema in Spark's DDL."""
    parts = [(column.name, column.type) for column in columns] + list(extra)
    return ", ".join(f"{quote(name)} {kind}" for name, kind in parts)


def table_rows(spark: SparkSession, table: Table) -> DataFrame:
    """The table's rows at its version, in the plain layout."""
    rows = stored_rows(spark, table)
    return rows.select(*(quote(column.name) for column in table.columns)) if table.hidden else rows


def stored_rows(spark: SparkSession, table: Table) -> DataFrame:
    """The same with the columns that no query sees."""
    base = _base(spark, table)
    return _with_changes(spark, table, base, table.changes_of(None), ())


def scramble_rows(spark: SparkSession, table: Table, scramble: Scramble) -> DataFrame:
    """The table's rows at its version in a scramble, with their block and replicate.

    Opened once; a filter on the block column prunes: base blocks are directories, changes are sorted
    by block.
    """
    schema = ddl(table.columns, _SCRAMBLE_COLUMNS)
    base = spark.read.schema(schema).parquet(literal(scramble.directory))
    changes = table.changes_of(scramble.id)
    return _with_changes(spark, table, base, changes, _SCRAMBLE_COLUMNS)


def _base(spark: SparkSession, table: Table) -> DataFrame:
    source = table.source
    if source.format == "view":
        (name,) = source.location
        if not spark.catalog.tableExists(name):
            raise MissingFile(
                f"Table {table.name!r} stands for the Spark view {name!r}, which this Spark session "
                "does not have. Create the view again, or register the table again."
            )
        columns = ", ".join(quote(column.name) for column in table.columns)
        return spark.sql(f"SELECT {columns} FROM {name}")
    reader = spark.read.schema(ddl(table.stored)).options(**source.options)
    # A view may have no rows; its directory then has a file without any.
    paths = [literal(one) for one in [file.path for file in table.files] or source.location]
    return reader.csv(paths) if source.format == "csv" else reader.parquet(*paths)


def _with_changes(
    spark: SparkSession,
    table: Table,
    base: DataFrame,
    changes: Sequence[Change],
    extra: Sequence[tuple[str, str]],
) -> DataFrame:
    names = [column.name for column in table.stored] + [name for name, _ in extra]
    base = base.select(*(quote(name) for name in names))
    inserts = _directories(changes, "insert")
    deletes = _directories(changes, "delete")
    if not inserts and not deletes:
        return base
    schema = ddl(table.stored, (*extra, (VERSION, "bigint")))
    everything = base
    if deletes:  # only then does it matter when a row came in
        everything = base.selectExpr("*", f"1L AS {VERSION}")
    if inserts:
        added = spark.read.schema(schema).parquet(*inserts)
        everything = everything.unionAll(added if deletes else added.drop(VERSION))
    if not deletes:
        return everything
    gone = spark.read.schema(schema).parquet(*deletes)
    same = [*table.key, *([BLOCK] if extra else [])]
    # Without a key there is one row at most: a view's total.
    conditions = [f"d.{quote(name)} <=> x.{quote(name)}" for name in same]
    later = expr(" AND ".join([*conditions, f"d.{VERSION} < x.{VERSION}"]))
    left = everything.alias("d").join(gone.alias("x"), later, "left_anti")
    return left.select(*(quote(name) for name in names))


def _directories(changes: Sequence[Change], kind: str) -> list[str]:
    return [literal(one.directory) for one in changes if one.kind == kind and one.files]
