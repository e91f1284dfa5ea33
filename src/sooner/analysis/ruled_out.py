"""Whether the bounds of some rows show that none of them passes a filter.

Only comparisons of a column with a literal of its own kind count: whole numbers and decimals, dates, and
text. A comparison with a null is never true, so nulls never speak against it. Floating numbers are left
alone: bounds leave NaN out, which Spark takes for the greatest number. So are times: what a literal
means depends on the session's zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from sooner.algebra.scalar import Scalar, bare, columns_of
from sooner.analysis.facts import ColumnFacts
from sooner.analysis.types import decimal_digits, fit_one_decimal

_DIGITS = re.compile(r"(\d+)(?:\.(\d*))?|\.(\d+)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE_DAYS = ("YEAR", "MONTH", "WEEK", "DAY")
_Comparison: TypeAlias = tuple[type[exp.Expr], Scalar]
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


def ruled_out(
    conditions: Iterable[Scalar],
    types: Mapping[str, str | None],
    facts: Mapping[str, ColumnFacts],
    rows: int,
) -> bool:
    """Whether no row can make all conditions true, going by the bounds and nulls of its columns.

    >>> import sqlglot
    >>> days = {"day": ColumnFacts(date(2020, 1, 1), date(2020, 6, 30), nulls=0)}
    >>> late = sqlglot.parse_one("day >= DATE '2020-07-01'", dialect="spark")
    >>> ruled_out([late], {"day": "date"}, days, rows=100)
    True
    """
    return any(
        _never(name, alternatives, types, facts.get(name, ColumnFacts()), rows)
        for condition in conditions
        for name, alternatives in _comparisons(bare(condition))
    )


def parted(
    condition: Scalar, types: Mapping[str, str | None], facts: Mapping[str, ColumnFacts]
) -> list[bool]:
    """Whether each comparison of a condition lies within the bounds: some rows may pass, others not.

    Nothing is said of lists and of columns without bounds: they part no rows.

    >>> import sqlglot
    >>> days = {"day": ColumnFacts(date(2020, 1, 1), date(2020, 6, 30), nulls=0)}
    >>> between = sqlglot.parse_one("day BETWEEN DATE '2019-05-05' AND DATE '2020-05-05'", dialect="spark")
    >>> parted(between, {"day": "date"}, days)
    [False, True]
    """
    found = []
    for name, alternatives in _comparisons(bare(condition)):
        known = facts.get(name, ColumnFacts())
        kind, scalar = alternatives[0]
        value = _literal(scalar, types.get(name)) if len(alternatives) == 1 else None
        inside = value is not None and _is_bounded(known, [value])
        found.append(inside and not _beyond(kind, value, known) and not _always(kind, value, known))
    return found


def _comparisons(condition: Scalar) -> list[tuple[str, list[_Comparison]]]:
    """What a condition demands of columns: for each entry that one of its comparisons holds."""
    kind = type(condition)
    if kind in _MIRRORED:
        left, right = bare(condition.this), bare(condition.args["expression"])
        if isinstance(left, exp.Column):
            return [(left.name, [(kind, right)])]
        if isinstance(right, exp.Column):
            return [(right.name, [(_MIRRORED[kind], left)])]
        return []
    subject = condition.this
    if not isinstance(subject, exp.Column) or condition.args.get("negate"):
        return []
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        ends = ((exp.GTE, condition.args["low"]), (exp.LTE, condition.args["high"]))
        return [(subject.name, [(kind, bare(end))]) for kind, end in ends]
    if isinstance(condition, exp.In) and condition.expressions:
        return [(subject.name, [(exp.EQ, bare(value)) for value in condition.expressions])]
    return []


def _never(
    name: str,
    alternatives: Sequence[_Comparison],
    types: Mapping[str, str | None],
    known: ColumnFacts,
    rows: int,
) -> bool:
    """Whether none of the comparisons holds for any value of the column."""
    values = [_literal(scalar, types.get(name)) for _, scalar in alternatives]
    if any(value is None for value in values):
        return False
    if known.nulls == rows:
        return True
    if not _is_bounded(known, values):
        return False
    kinds = (kind for kind, _ in alternatives)
    return all(_beyond(kind, value, known) for kind, value in zip(kinds, values, strict=True))


def _literal(scalar: Scalar, type_: str | None) -> Any:
    """The value of a literal, if a column of this type is compared with it as it is; else ``None``."""
    if type_ is None:
        return None
    kind = type_.lower()
    if kind == "string":
        is_text = isinstance(scalar, exp.Literal) and scalar.is_string
        # Escapes are Spark's to read.
        return scalar.name if is_text and not set(scalar.name) & set("\\'\"") else None
    if kind == "date":
        return _day(scalar)
    digits = decimal_digits(kind)
    return None if digits is None else _number(scalar, digits)


def _number(scalar: Scalar, digits: tuple[int, int]) -> Decimal | None:
    sign = 1
    if isinstance(scalar, exp.Neg):
        scalar, sign = bare(scalar.this), -1
    if not isinstance(scalar, exp.Literal) or scalar.is_string:
        return None
    # With an exponent it is a double, and both sides would be compared rounded.
    written = _DIGITS.fullmatch(scalar.name)
    if written is None:
        return None
    whole, part = written[1] or "", written[2] or written[3] or ""
    if not fit_one_decimal(digits, (len(whole), len(part))):
        return None
    return sign * Decimal(scalar.name)


def _day(scalar: Scalar) -> date | None:
    if columns_of(scalar):
        return None
    if isinstance(scalar, exp.Add | exp.Sub):
        units = [one.args.get("unit") for one in scalar.find_all(exp.Interval)]
        if not all(unit is not None and unit.name.upper() in _WHOLE_DAYS for unit in units):
            return None
        scalar = bare(simplify(scalar.copy()))
    if isinstance(scalar, exp.Cast):
        if not scalar.to.is_type("date"):
            return None
        scalar = scalar.this
    is_text = isinstance(scalar, exp.Literal) and scalar.is_string
    if not is_text or not _DAY.fullmatch(scalar.name):
        return None
    try:
        return date.fromisoformat(scalar.name)
    except ValueError:
        return None


def _is_bounded(known: ColumnFacts, values: Sequence[Any]) -> bool:
    """Whether there are bounds of the kind of the values."""
    ends = (known.minimum, known.maximum)
    family = (int, Decimal) if isinstance(values[0], Decimal) else (type(values[0]),)
    return all(type(end) in family for end in ends)


def _beyond(kind: type[exp.Expr], value: Any, known: ColumnFacts) -> bool:
    """Whether no value within the bounds compares so."""
    low, high = known.minimum, known.maximum
    if kind is exp.LT:
        return bool(low >= value)
    if kind is exp.LTE:
        return bool(low > value)
    if kind is exp.GT:
        return bool(high <= value)
    if kind is exp.GTE:
        return bool(high < value)
    return bool(value < low or value > high)


def _always(kind: type[exp.Expr], value: Any, known: ColumnFacts) -> bool:
    """Whether every value within the bounds compares so."""
    low, high = known.minimum, known.maximum
    if kind is exp.LT:
        return bool(high < value)
    if kind is exp.LTE:
        return bool(high <= value)
    if kind is exp.GT:
        return bool(low > value)
    if kind is exp.GTE:
        return bool(low >= value)
    return bool(low == value == high)
