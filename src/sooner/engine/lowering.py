"""A plan as a Spark DataFrame: one SQL text, and a view for every user function in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from sooner.algebra.relation import Join, Map, Opaque, Relation, Scan
from sooner.engine.rows import ddl
from sooner.sql import Hint, quote, render


def lower(
    spark: SparkSession, plan: Relation, hint: Callable[[Join], Hint | None] | None = None
) -> DataFrame:
    """The plan over the bound views; nothing runs yet. ``hint`` may say how Spark is to join."""
    views: list[str] = []

    def view_of(node: Map, name: str) -> str:
        mapped(spark, node, lower(spark, node.child)).createOrReplaceTempView(name)
        views.append(name)
        return name

    def leaf(node: Scan | Map) -> str:
        if isinstance(node, Scan):
            return quote(node.table)
        return view_of(node, f"__sooner_map_{uuid.uuid4().hex}")

    for opaque in (node for node in _outside_maps(plan) if isinstance(node, Opaque)):
        for name, node in opaque.maps:
            view_of(node, name)
    try:
        text = plan.text if isinstance(plan, Opaque) else render(plan, leaf, hint)
        return spark.sql(text)
    finally:
        for view in views:
            spark.catalog.dropTempView(view)


def _outside_maps(plan: Relation) -> Iterator[Relation]:
    """The nodes that one SQL text holds: what is below a Map has a text of its own."""
    yield plan
    for child in () if isinstance(plan, Map) else plan.children:
        yield from _outside_maps(child)


def mapped(spark: SparkSession, node: Map, rows: DataFrame) -> DataFrame:
    """The result of a user's function over rows, which are those of its input."""
    if node.by:
        rows = rows.repartition(*(quote(name) for name in node.by))
    aside = () if node.apart is None else (node.apart,)
    rows = rows.select(*(quote(name) for name in (*node.seen, *aside))).toDF(*node.sources, *aside)
    schema = ddl(node.schema)
    empty = spark.createDataFrame([], schema)
    caller = _caller if node.apart is None else _caller_apart
    call = caller(node.function, to_arrow_schema(empty.schema), bool(node.by))
    return rows.mapInArrow(call, schema)


_Call: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _caller_apart(function: Callable[[Any], Any], schema: pa.Schema, whole: bool) -> _Call:
    """As :func:`_caller`, with a last column that the function does not see: one value in each call."""
    aside, declared = schema[-1], pa.schema(list(schema)[:-1])

    def one_by_one(table: pa.Table) -> pa.Table:
        values, rows = table.column(aside.name), table.drop_columns([aside.name])
        found = []
        for value in pc.unique(values):
            given = function(rows.filter(pc.equal(values, value))).select(declared.names)
            same = pa.repeat(value, given.num_rows)
            found.append(given.cast(declared).append_column(aside, same))
        return pa.concat_tables(found)

    return _caller(one_by_one, schema, whole)


def _caller(function: Callable[[Any], Any], schema: pa.Schema, whole: bool) -> _Call:
    """The function over a Spark partition: all its rows in one call, or batch by batch."""

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if whole:
            held = list(batches)
            tables = iter([pa.Table.from_batches(held)] if held else [])
        else:
            tables = (pa.Table.from_batches([batch]) for batch in batches)
        for table in tables:
            if table.num_rows:
                yield from function(table).select(schema.names).cast(schema).to_batches()

    return call
