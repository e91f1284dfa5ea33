"""What only a pass over the data can tell: distinct values of columns."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from sooner.engine.failures import plain_errors
from sooner.sql import quote
from sooner.storage.records import Table

_COUNTABLE = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "string",
    "varchar",
    "char",
    "date",
    "timestamp",
    "boolean",
)


def count_distinct(spark: SparkSession, table: Table, rows: DataFrame) -> dict[str, int]:
    """About how many distinct values each column has (HyperLogLog, 5%), in one pass.

    A key of one column needs no estimate: it has as many values as the table has rows.
    """
    names = [
        column.name for column in table.columns if str(column.type).startswith(tuple(_COUNTABLE))
    ]
    with plain_errors():
        (row,) = rows.selectExpr(
            "count(*)", *(f"approx_count_distinct({quote(name)})" for name in names)
        ).collect()
    total = int(row[0])
    counts = {name: min(int(row[place + 1]), total) for place, name in enumerate(names)}
    if len(table.key) == 1 and table.key[0] in counts:
        counts[table.key[0]] = total
    return counts


def rows_together(rows: DataFrame, column: str) -> tuple[float, float, float]:
    """How many values a column has, and Σn and Σn² over the numbers n of rows that share one."""
    shared = rows.groupBy(quote(column)).agg(expr("CAST(count(*) AS DOUBLE) AS n"))
    with plain_errors():
        (found,) = shared.selectExpr("count(*)", "sum(n)", "sum(n * n)").collect()
    values, number, squares = (float(one or 0) for one in found)
    return values, number, squares
