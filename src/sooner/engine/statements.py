"""Whether a text is a query, by Spark's own parser: ``spark.sql`` would run a DROP at once."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from sooner.engine.failures import plain_errors
from sooner.errors import ParseError
from sooner.sql import refuse_statement

_PLANS = "org.apache.spark.sql.catalyst.plans.logical."


def require_query(spark: SparkSession, text: str) -> None:
    """Refuse a text that Spark cannot parse, or that would do anything but read."""
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    with plain_errors(text):
        plan = parser.parsePlan(text)
    loader: Any = spark._jvm.java.lang.Class  # type: ignore[union-attr]
    for kind in ("Command", "ParsedStatement"):
        if loader.forName(_PLANS + kind).isInstance(plan):
            refuse_statement(text)
    try:
        # Only a query can stand in parentheses: this leaves out what the two kinds above do not name.
        with plain_errors():
            parser.parsePlan(f"SELECT * FROM (\n{text}\n)")
    except ParseError:
        refuse_statement(text)


def is_deterministic(spark: SparkSession, text: str) -> bool:
    """Whether a query gives the same rows whenever it is asked, as far as Spark knows.

    Spark's own rules that put the time of now, 'today' and the user into a plan find nothing.
    """
    jvm: Any = spark._jvm
    optimizer = jvm.org.apache.spark.sql.catalyst.optimizer
    with plain_errors(text):
        analyzed: Any = spark.sql(text)._jdf.queryExecution().analyzed()
        plan: Any = optimizer.ReplaceExpressions.apply(analyzed)  # to_date(…) becomes a cast
        # A plain user, where no column is called that, is who asks.
        who = optimizer.ReplaceCurrentLike(spark._jsparkSession.sessionState().catalogManager())
        for rule in (optimizer.ComputeCurrentTime, optimizer.SpecialDatetimeValues, who):
            if not rule.apply(plan).fastEquals(plan):
                return False
    return bool(analyzed.deterministic())
