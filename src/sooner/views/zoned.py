"""Whether a view's query may have other rows in a session of another time zone."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sooner.sql import parse
from sooner.sql.untranslatable import Untranslatable

# Functions that know no days. Of any other it may be that numbers or texts become times in it.
_TIMELESS: tuple[type[exp.Expr], ...] = (
    *(exp.AggFunc, exp.Connector, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Exists),
    *(exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Upper, exp.Lower, exp.Trim, exp.Length),
    *(exp.Substring, exp.Concat, exp.Greatest, exp.Least),
)


def is_zoned(text: str, types: Iterable[str | None]) -> bool:
    """Whether a query goes by times of the session's zone, over and into columns of these types.

    >>> is_zoned("SELECT a, sum(b) FROM t WHERE c LIKE 'x%' GROUP BY a", ["int", "string", "date"])
    False
    >>> is_zoned("SELECT CAST(CAST(a AS timestamp) AS date) AS day FROM t", ["bigint", "date"])
    True
    >>> is_zoned("SELECT from_unixtime(a) AS at FROM t", ["bigint", "string"])
    True
    """
    if any("timestamp" in str(one) for one in types):
        return True
    try:
        query = parse(text)
    except Untranslatable:
        return True
    return any(_goes_by_zone(node) for node in query.walk())


def _goes_by_zone(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.this in exp.DataType.TEMPORAL_TYPES
    return isinstance(node, exp.Func) and not isinstance(node, _TIMELESS)
