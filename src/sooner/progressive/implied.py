"""What a condition on several tables says of one of them alone."""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra import Schema
from sooner.algebra.scalar import Scalar, all_of, any_of, columns_of, conjuncts, disjuncts

_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.And, exp.Or, exp.Between, exp.In),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
)
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def implied(condition: Scalar, columns: Schema) -> Scalar | None:
    """What holds of these columns wherever a disjunction holds; ``None`` if it says nothing of them.

    >>> import sqlglot
    >>> from sooner.algebra import Column
    >>> either = sqlglot.parse_one("(a = 1 AND b = 2) OR (a = 3 AND c = 4)")
    >>> implied(either, (Column("a", "int"),)).sql(), implied(either, (Column("b", "int"),))
    ('a = 1 OR a = 3', None)
    """
    types = {column.name: column.type or "" for column in columns}
    found = []
    for one in disjuncts(condition):
        own = [part for part in conjuncts(one) if _is_safe(part, types)]
        if not own:
            return None
        found.append(all_of(own))
    return any_of(one for one in found if one is not None)


def _is_safe(part: Scalar, types: dict[str, str]) -> bool:
    """Whether a part concerns these columns alone and cannot fail.

    It is asked of rows that the whole condition would never see, and a text that is no number fails
    when it is compared with one.
    """
    names = columns_of(part)
    if (
        not names
        or not names <= types.keys()
        or not all(isinstance(n, _PLAIN) for n in part.walk())
    ):
        return False
    texts = {literal.is_string for literal in part.find_all(exp.Literal)}
    kinds = {types[name].split("(")[0] for name in names}
    return kinds <= {"string"} if True in texts else kinds <= set(_NUMBERS)
