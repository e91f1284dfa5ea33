"""``percentile_cont(p) WITHIN GROUP (ORDER BY x)`` as ``percentile(x, p)``, which is the same in Spark.

sqlglot would write it as ``percentile_approx``, which is not.
"""

from __future__ import annotations

from sqlglot import exp


def as_percentiles(query: exp.Query) -> exp.Query:
    """The query with such calls rewritten; other orders and functions stay, and go to Spark as written.

    >>> import sqlglot
    >>> text = "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM t"
    >>> as_percentiles(sqlglot.parse_one(text, read="spark")).sql("spark")
    'SELECT PERCENTILE(x, 0.9) FROM t'
    """

    def rewritten(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.WithinGroup) or not isinstance(node.this, exp.PercentileCont):
            return node
        (*others, key) = node.expression.expressions
        if others or key.args.get("desc") or not key.args.get("nulls_first"):
            return node
        return exp.Quantile(this=key.this.copy(), quantile=node.this.this.copy())

    result = query.transform(rewritten) if query.find(exp.WithinGroup) else query
    assert isinstance(result, exp.Query)
    return result
