"""Scalars that are a function of the columns they read, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sooner.algebra.scalar import Scalar, columns_of
from sooner.analysis.types import is_plain

# A list of what is known to be a function: what is not listed (such as rand) may give two rows with equal
# columns different values.
_FUNCTIONS: tuple[type[exp.Expr], ...] = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Var),
    *(exp.DataType, exp.DataTypeParam, exp.Interval, exp.Tuple),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast),
    *(exp.Abs, exp.Round, exp.Floor, exp.Ceil),
    *(exp.Upper, exp.Lower, exp.Trim, exp.Length, exp.Substring, exp.Concat),
    *(exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Extract, exp.TsOrDsToDate),
    *(exp.DateTrunc, exp.TimestampTrunc, exp.TsOrDsAdd, exp.DateAdd, exp.DateSub, exp.DateDiff),
    exp.AddMonths,
    exp.Anonymous,  # a user's function is in a plan only if it is declared deterministic
)
# Whatever the order of the rows; first(x) and collect_list(x) are not.
_AGGREGATES: tuple[type[exp.Expr], ...] = (
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max),
    *(exp.Filter, exp.Where, exp.Distinct, exp.Star),
)


def is_deterministic(scalar: Scalar) -> bool:
    """Whether the same row always gives the same value.

    >>> import sqlglot
    >>> is_deterministic(sqlglot.parse_one("a + 1")), is_deterministic(sqlglot.parse_one("rand()"))
    (True, False)
    """
    return all(isinstance(node, _FUNCTIONS) for node in scalar.walk())


def is_deterministic_aggregate(scalar: Scalar) -> bool:
    """Whether the same rows always give the same value, up to the rounding of floating sums.

    >>> import sqlglot
    >>> is_deterministic_aggregate(sqlglot.parse_one("sum(a)"))
    True
    >>> is_deterministic_aggregate(sqlglot.parse_one("first(a)"))
    False
    """
    return all(isinstance(node, (*_FUNCTIONS, *_AGGREGATES)) for node in scalar.walk())


def is_function_of_columns(scalar: Scalar, types: Mapping[str, str | None]) -> bool:
    """Whether rows that group together by the scalar's columns have the same value of it."""
    plain = all(is_plain(types.get(name)) for name in columns_of(scalar))
    return plain and is_deterministic(scalar)
