"""Running a query to its exact end: Spark's names and types, the rows as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sooner.algebra.relation import Map
from sooner.algebra.schema import Column, Schema
from sooner.engine.failures import plain_errors
from sooner.engine.jobs import job_group
from sooner.engine.rows import ddl
from sooner.engine.sources import to_schema


def contract(
    spark: SparkSession, text: str, tables: Iterable[str], maps: Mapping[str, Map]
) -> Schema:
    """The names and types that the answer to a query must have: Spark decides, before it runs.

    ``tables`` are the names to suggest for an unknown one; ``maps`` are the user functions that the
    text refers to by name.
    """
    with plain_errors(text, tables):
        for name, node in maps.items():
            spark.createDataFrame([], ddl(node.columns)).createOrReplaceTempView(name)
        try:
            return to_schema(spark.sql(text).schema)
        finally:
            for name in maps:
                spark.catalog.dropTempView(name)


def arrow_contract(spark: SparkSession, columns: Schema) -> pa.Schema:
    """The contract as an Arrow schema; names may be equal."""
    numbered = tuple(Column(f"c{place}", column.type) for place, column in enumerate(columns))
    struct = StructType.fromDDL(ddl(numbered))
    assert isinstance(struct, StructType)
    fields = zip(arrow_schema(spark, struct), columns, strict=True)
    return pa.schema([field.with_name(column.name) for field, column in fields])


def arrow_schema(spark: SparkSession, struct: StructType) -> pa.Schema:
    """A Spark schema as ``toArrow`` gives it."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(struct, timezone=zone)


def keeps_contract(frame: DataFrame, columns: Schema) -> bool:
    """Whether a DataFrame has the contract's types, column by column (names are put on at the end)."""
    return [c.type for c in to_schema(frame.schema)] == [c.type for c in columns]


def collect(
    spark: SparkSession,
    frame: DataFrame,
    columns: Schema,
    description: str,
    bar: bool | None,
    group: str | None = None,
) -> pa.Table:
    """Run a DataFrame in a job group, by default one of its own; the rows under the contract's names.

    Any column may have nulls, as on the way to an answer: all answers to a query have one schema.
    """
    with plain_errors(), job_group(spark, description, bar, group):
        table = frame.toArrow()
    fields = [
        field.with_name(column.name).with_nullable(True)
        for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
