"""Functions of the user's: the names that may pass from SQL into a plan."""

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


def unknown_functions(query: exp.Query) -> dict[str, int]:
    """Functions that sqlglot does not know, in lower case, with the number of their arguments.

    What takes rows otherwise than value by value (``f(*)``, ``f(DISTINCT x)``) has none.

    >>> unknown_functions(sqlglot.parse_one("SELECT Score(a, b), sum(c), f(*) FROM t", read="spark"))
    {'score': 2, 'f': -1}
    """
    found: dict[str, int] = {}
    for call in query.find_all(exp.Anonymous):
        plain = not any(isinstance(one, exp.Star | exp.Distinct) for one in call.expressions)
        name, number = call.name.lower(), len(call.expressions) if plain else -1
        found[name] = number if found.get(name, number) == number else -1
    return found


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
