"""The share of rows for which a condition is true, and what is left of the columns it names.

Values are taken to be evenly spread and columns independent (Selinger et al. 1979, §4). Conditions
that are joined by AND are applied one after the other to what the last one left, so that two ends
of one range are not mistaken for two independent conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from sooner.algebra.scalar import Scalar, columns_of, conjuncts, disjuncts
from sooner.analysis.column_size import ColumnSize
from sooner.analysis.constant_value import constant_value
from sooner.analysis.ranges import Range

# An open range over values nobody knows: a third, as since System R.
UNKNOWN_RANGE_SHARE = 1 / 3
# A condition we cannot read: as for an open range, it neither keeps nor drops nearly everything.
UNKNOWN_CONDITION_SHARE = 1 / 3
# LIKE 'abc%': a few letters that must match leave little; more than a value, less than a range.
PREFIX_SHARE = 0.05
# LIKE '%abc%': looked for because it occurs, in TPC-H's comments and names in 0.1 to 20 percent.
CONTAINS_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Selected:
    """The share of rows that a condition keeps, and the columns of those rows."""

    share: float
    columns: Mapping[str, ColumnSize]


def selectivity(condition: Scalar | None, columns: Mapping[str, ColumnSize]) -> Selected:
    """What a condition keeps.

    >>> import sqlglot
    >>> from sooner.analysis.ranges import range_of
    >>> column = ColumnSize(distinct=100, range=range_of(1, 100))
    >>> round(selectivity(sqlglot.parse_one("a > 10 AND a <= 20"), {"a": column}).share, 9)
    0.1
    """
    share = 1.0
    left = dict(columns)
    for part in conjuncts(condition):
        one = _part(part, left)
        share *= min(1.0, max(0.0, one.share))
        left.update(one.columns)
    return Selected(share, left)


def _part(part: Scalar, columns: Mapping[str, ColumnSize]) -> Selected:
    """One conjunct; only changed columns are returned."""
    part = _bare(part)
    if isinstance(part, exp.Not) or part.args.get("negate"):
        return _negated(part, columns)
    if isinstance(part, exp.And):
        return selectivity(part, columns)
    if isinstance(part, exp.Or):
        return Selected(_any_of(part, columns), {})
    if isinstance(part, exp.Boolean):
        return Selected(float(bool(part.this)), {})
    if isinstance(part, exp.Null):
        return Selected(0.0, {})
    if isinstance(part, exp.Column):
        return _values(part.name, [True], columns)
    if isinstance(part, exp.Between):
        low, high = part.args["low"], part.args["high"]
        ends = exp.and_(
            exp.GTE(this=part.this.copy(), expression=low.copy()),
            exp.LTE(this=part.this.copy(), expression=high.copy()),
        )
        return selectivity(ends, columns)
    subject = _bare(part.this) if isinstance(part.args.get("this"), exp.Expr) else part
    if isinstance(part, exp.In) and isinstance(subject, exp.Column):
        return _values(subject.name, [constant_value(v) for v in part.expressions], columns)
    if isinstance(part, exp.Is) and isinstance(subject, exp.Column):
        return _is(subject.name, part.expression, columns)
    if isinstance(part, exp.Like | exp.ILike):
        return _like(part, subject, columns)
    if isinstance(part, exp.EQ | exp.NullSafeEQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return _comparison(part, columns)
    return Selected(UNKNOWN_CONDITION_SHARE, {})


def _negated(part: Scalar, columns: Mapping[str, ColumnSize]) -> Selected:
    if isinstance(part, exp.Not):
        inner = _bare(part.this)
    else:
        inner = part.copy()
        inner.set("negate", None)
    if isinstance(inner, exp.Not):
        return _part(inner.this, columns)
    if isinstance(inner, exp.And | exp.Or):  # De Morgan: unknown stays unknown either way
        sides = [exp.Not(this=exp.Paren(this=s.copy())) for s in (inner.left, inner.right)]
        other = exp.Or if isinstance(inner, exp.And) else exp.And
        return _part(other(this=sides[0], expression=sides[1]), columns)
    if type(inner) in _OPPOSITE:
        opposite = _OPPOSITE[type(inner)]
        return _part(opposite(this=inner.this.copy(), expression=inner.expression.copy()), columns)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        subject = _bare(inner.this)
        name = subject.name
        if not isinstance(subject, exp.Column) or name not in columns:
            return Selected(1.0 - UNKNOWN_CONDITION_SHARE, {})
        return Selected(columns[name].present, {name: columns[name].only(1.0, columns[name].range)})
    # A comparison with a null is neither true nor false.
    names = [name for name in columns_of(inner) if name in columns]
    present = 1.0
    if not isinstance(inner, exp.Is | exp.NullSafeEQ):
        for name in names:
            present *= columns[name].present
    share = max(0.0, present - _part(inner, columns).share)
    return Selected(share, {})


def _any_of(part: Scalar, columns: Mapping[str, ColumnSize]) -> float:
    parts = disjuncts(part)
    shares = [selectivity(one, columns).share for one in parts]
    names = columns_of(part)
    if len(names) == 1 and all(columns_of(one) == names for one in parts):
        return min(1.0, sum(shares))  # alternatives of one column seldom overlap
    none = 1.0
    for share in shares:
        none *= 1.0 - share
    return 1.0 - none


def _values(name: str, values: list[Any], columns: Mapping[str, ColumnSize]) -> Selected:
    """``name IN (values)``; a value of ``None`` is one we cannot read."""
    column = columns.get(name)
    if column is None:
        return Selected(UNKNOWN_CONDITION_SHARE, {})
    listed = list(dict.fromkeys(map(str, values)))
    count = float(len(listed))
    range_ = column.range
    if range_ is not None:
        numbers = {range_.number(value) for value in values}
        if None not in numbers:
            inside = [n for n in numbers if n is not None and range_.part(n, n) is not None]
            count = count if range_.kind == "text" and inside else float(len(inside))
            range_ = range_.part(min(inside), max(inside)) if inside else None
    kept = min(count, column.distinct)
    share = kept / column.distinct if column.distinct > 0 else 0.0
    new = replace(column, distinct=kept, null_share=0.0, range=range_)
    return Selected(column.present * share, {name: new})


def _is(name: str, value: Scalar, columns: Mapping[str, ColumnSize]) -> Selected:
    column = columns.get(name)
    if column is None:
        return Selected(UNKNOWN_CONDITION_SHARE, {})
    if isinstance(value, exp.Null):
        empty = replace(column, distinct=0.0, null_share=1.0, range=None)
        return Selected(column.null_share, {name: empty})
    return _values(name, [constant_value(value)], columns)


def _like(part: Scalar, subject: Scalar, columns: Mapping[str, ColumnSize]) -> Selected:
    pattern = constant_value(part.expression)
    column = columns.get(subject.name) if isinstance(subject, exp.Column) else None
    present = column.present if column else 1.0
    if not isinstance(pattern, str):
        return Selected(present * UNKNOWN_CONDITION_SHARE, {})
    if column and not any(wild in pattern for wild in "%_\\") and isinstance(part, exp.Like):
        return _values(subject.name, [pattern], columns)
    share = CONTAINS_SHARE if pattern[:1] in ("%", "_") else PREFIX_SHARE
    return Selected(present * share, {})


_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def _comparison(part: Scalar, columns: Mapping[str, ColumnSize]) -> Selected:
    operator: type[exp.Expr] = type(part)
    left, right = _bare(part.this), _bare(part.expression)
    if not isinstance(left, exp.Column):
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    column = columns.get(left.name) if isinstance(left, exp.Column) else None
    equality = operator in (exp.EQ, exp.NullSafeEQ)
    if column is None:
        return Selected(UNKNOWN_CONDITION_SHARE, {})
    if isinstance(right, exp.Column) and right.name in columns:
        return _two_columns(left.name, right.name, operator, columns)
    value = constant_value(right)
    if equality:
        return _values(left.name, [value], columns)
    if operator is exp.NEQ:
        one = _values(left.name, [value], columns).share
        return Selected(
            max(0.0, column.present - one), {left.name: replace(column, null_share=0.0)}
        )
    return _bounded(left.name, operator, value, columns)


def _two_columns(
    one: str, other: str, operator: type[exp.Expr], columns: Mapping[str, ColumnSize]
) -> Selected:
    a, b = columns[one], columns[other]
    present = a.present * b.present
    match = present / max(a.distinct, b.distinct, 1.0)
    if operator in (exp.EQ, exp.NullSafeEQ):
        fewer = min(a.distinct, b.distinct)
        same = {n: replace(columns[n], distinct=fewer, null_share=0.0) for n in (one, other)}
        return Selected(match, same)
    if operator is exp.NEQ:
        return Selected(present - match, {})
    return Selected(present * UNKNOWN_RANGE_SHARE, {})


def _bounded(
    name: str, operator: type[exp.Expr], value: Any, columns: Mapping[str, ColumnSize]
) -> Selected:
    column = columns[name]
    number = column.range.number(value) if column.range and value is not None else None
    share: float | None = None
    part: Range | None = column.range
    if column.range is not None and number is not None:
        above = operator in (exp.GT, exp.GTE)
        if column.range.whole and operator in (exp.GT, exp.LT):
            number = _next_whole(number, above)
        low, high = (number, None) if above else (None, number)
        share = column.range.share(low, high)
        part = column.range.part(low, high)
    if share is None:
        share = UNKNOWN_RANGE_SHARE
    return Selected(column.present * share, {name: column.only(share, part)})


def _next_whole(number: float, above: bool) -> float:
    return math.floor(number) + 1.0 if above else math.ceil(number) - 1.0


def _bare(scalar: Scalar) -> Scalar:
    while isinstance(scalar, exp.Paren):
        scalar = scalar.this
    return scalar
