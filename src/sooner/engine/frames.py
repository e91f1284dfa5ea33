"""What a user may hand over as rows, as a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sooner.errors import InvalidArgument


def to_spark(spark: SparkSession, rows: Any, columns: Sequence[str]) -> DataFrame:
    """A Spark DataFrame of the given rows: Spark, Arrow, pandas, or a list of dicts or tuples.

    ``columns`` names the parts of tuples (and single values), in order.
    """
    if isinstance(rows, DataFrame):
        return rows
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    try:
        import pandas as pd

        if isinstance(rows, pd.DataFrame):
            rows = pa.Table.from_pandas(rows, preserve_index=False)
        if not isinstance(rows, pa.Table):
            rows = _from_list(rows, columns)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise InvalidArgument(f"The rows cannot be made a table: {error}.") from error
    try:
        return from_arrow(spark, rows)
    except PySparkException as error:
        raise InvalidArgument(f"Spark has no type for some of the rows: {error}.") from error
    except pa.ArrowException as error:  # a time that the clocks left out, or showed twice
        raise InvalidArgument(
            f"A time without a zone means none in the zone of this Spark session: {error}. "
            "Give times with a zone."
        ) from error


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A Spark DataFrame of an Arrow table.

    In one piece: Spark stops reading at the first empty piece of a table, and the rest would be lost.
    """
    return spark.createDataFrame(table.combine_chunks())


def from_own_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The same for a table that came from Spark: a time without a zone stays one.

    What a user hands over has no zone because pandas seldom has one; Spark then takes the session's.
    """
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    with _active_session_kept():
        return spark.createDataFrame(table.combine_chunks(), schema)


@contextmanager
def _active_session_kept() -> Iterator[None]:
    """Spark makes the session of ``createDataFrame`` the active one; which it is, is the user's choice."""
    active = SparkSession.getActiveSession()
    try:
        yield
    finally:
        if active is not None:
            assert active._jvm is not None
            SparkSession._activeSession = active
            active._jvm.SparkSession.setActiveSession(active._jsparkSession)


def _from_list(rows: Any, columns: Sequence[str]) -> pa.Table:
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InvalidArgument(
            f"Rows must be a Frame, a Spark or pandas DataFrame, an Arrow table, or a list of dicts "
            f"or tuples, not {type(rows).__name__}."
        )
    dicts = []
    for row in rows:
        if isinstance(row, Mapping):
            dicts.append(dict(row))
            continue
        values = row if isinstance(row, tuple | list) else (row,)
        if len(values) != len(columns):
            raise InvalidArgument(
                f"A row of {len(values)} values where {len(columns)} are needed: "
                f"{', '.join(columns)}."
            )
        dicts.append(dict(zip(columns, values, strict=True)))
    if not dicts:
        return pa.table({name: pa.nulls(0) for name in columns})
    names = dict.fromkeys(name for row in dicts for name in row)
    return pa.table({name: [row.get(name) for row in dicts] for name in names})
