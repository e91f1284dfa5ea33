"""Settings of a session by which Spark reads a text in another way than Sooner does."""

from __future__ import annotations

from pyspark.sql import SparkSession
from sqlglot import exp

from sooner.engine.session import is_ansi

_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": ('"',),
    "spark.sql.caseSensitive": ("",),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("''", '""'),
    "spark.sql.parser.escapedStringLiterals": ("\\",),
}
_ORDINALS = {"spark.sql.orderByOrdinal": exp.Order, "spark.sql.groupByOrdinal": exp.Group}
_PRECEDENCE = "spark.sql.legacy.setopsPrecedence.enabled"
_COMMAS = "spark.sql.ansi.relationPrecedence"
_TIMES = "spark.sql.timestampType"


def read_otherwise(spark: SparkSession, text: str, tree: exp.Query) -> str | None:
    """What in a text only Spark can read as it is set, in words; ``None`` if nothing is.

    Each setting matters where some letters are in the text; asking for one takes a millisecond.
    """
    for setting, letters in _SETTINGS.items():
        if any(one in text for one in letters) and spark.conf.get(setting, "false") == "true":
            return f"the setting {setting} of this Spark session"
    for setting, kind in _ORDINALS.items():
        clauses = tree.find_all(kind)
        if any(map(_has_ordinal, clauses)) and spark.conf.get(setting, "true") == "false":
            return f"the setting {setting} of this Spark session"
    if tree.find(exp.Intersect) and spark.conf.get(_PRECEDENCE, "false") == "true":
        return f"the setting {_PRECEDENCE} of this Spark session"
    joins = (one.args.get("joins") or () for one in tree.find_all(exp.Select) if "," in text)
    if any(len(one) > 1 for one in joins) and spark.conf.get(_COMMAS, "false") == "true":
        return f"the setting {_COMMAS} of this Spark session"
    # There a TIMESTAMP '…' with a zone in it is of another type than one without.
    if "timestamp" in text.lower() and spark.conf.get(_TIMES) == "TIMESTAMP_NTZ":
        return f"the setting {_TIMES} of this Spark session"
    # IN compares unlike types by other rules than = does where Spark is not strict.
    asks = any(one.args.get("query") for one in tree.find_all(exp.In))
    if asks and not is_ansi(spark):
        return "IN with a subquery where spark.sql.ansi.enabled is false"
    return None


def _has_ordinal(clause: exp.Expr) -> bool:
    keys = (one.this if isinstance(one, exp.Ordered) else one for one in clause.expressions)
    return any(isinstance(key, exp.Literal) for key in keys)
