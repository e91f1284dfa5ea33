"""Aggregates that are functions of the user's: the names that may pass from SQL into a plan."""

from __future__ import annotations

import re
from collections.abc import Collection

import sqlglot
from sqlglot import exp

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_aggregates(query: exp.Query, names: Collection[str]) -> exp.Query:
    """The query with calls of these names marked as aggregates; ``names`` are in lower case.

    Other functions that sqlglot does not know stay as they are, and go to Spark with the whole text.

    >>> tree = sqlglot.parse_one("SELECT spread(x), other(x) FROM t", read="spark")
    >>> [type(item).__name__ for item in with_aggregates(tree, {"spread"}).selects]
    ['AnonymousAggFunc', 'Anonymous']
    """

    def marked(node: exp.Expr) -> exp.Expr:
        plain = isinstance(node, exp.Anonymous) and isinstance(node.this, str)
        if plain and node.name.lower() in names and len(node.expressions) == 1:
            argument = node.expressions[0]
            if not isinstance(argument, exp.Star | exp.Distinct):
                return exp.AnonymousAggFunc(this=node.name.lower(), expressions=[argument.copy()])
        return node

    result = query.transform(marked) if names else query
    assert isinstance(result, exp.Query)
    return result


def is_function_name(name: str) -> bool:
    """Whether a name can be given to a function: one word that SQL does not know already.

    >>> is_function_name("trimmed_mean"), is_function_name("sum"), is_function_name("a b")
    (True, False, False)
    """
    if not _NAME.fullmatch(name):
        return False
    try:
        parsed = sqlglot.parse_one(f"{name}(x)", read="spark")
    except sqlglot.ParseError:
        return False
    return isinstance(parsed, exp.Anonymous)
