"""Which functions of a session give each row its own value, and the same whenever they are asked."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import PythonEvalType

from sooner.sql import quote

# Not those that go through many batches in one call: they may remember what they saw.
_ROW_BY_ROW = {
    PythonEvalType.SQL_BATCHED_UDF,
    PythonEvalType.SQL_ARROW_BATCHED_UDF,
    PythonEvalType.SQL_SCALAR_PANDAS_UDF,
}


def scalar_functions(spark: SparkSession, calls: Mapping[str, int]) -> set[str]:
    """Of the called names, with how many arguments, those of deterministic functions of single values.

    Only functions that somebody registered; Spark's own have a list of their own (``sql/functions.py``).
    """
    return {name for name, number in calls.items() if number >= 0 and _is(spark, name, number)}


def _is(spark: SparkSession, name: str, number: int) -> bool:
    # Only a call that Spark has analysed knows what kind of function it is; nothing runs.
    nothing = ", ".join(["NULL"] * number)
    try:
        analysed = spark.sql(f"SELECT {quote(name)}({nothing})")._jdf.queryExecution().analyzed()
    except PySparkException:
        return False
    call = analysed.expressions().head().child()
    kind = call.getClass().getSimpleName()
    by_row = kind == "ScalaUDF" or (kind == "PythonUDF" and call.evalType() in _ROW_BY_ROW)
    return by_row and bool(call.deterministic())
