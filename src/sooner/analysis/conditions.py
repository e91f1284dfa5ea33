"""What is certain about a row for which a condition is true, under SQL's three-valued logic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from sooner.algebra.scalar import Scalar, conjuncts
from sooner.analysis.types import (
    decimal_digits,
    fit_one_decimal,
    is_floating,
    is_integral,
    same_values,
)

# A value of a column together with its family: only values of one family are compared.
Constant: TypeAlias = tuple[str, str | int]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike)
# Null if one operand is null, so a value that is not null proves the operands are not.
_STRICT = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Cast)


@dataclass(frozen=True, slots=True)
class Implied:
    """What a condition says about the rows for which it is true.

    ``equal``: pairs of columns with one value, or null in both. ``constant``: columns with the same
    value, or null, in all rows. ``values``: all values a column can have. ``never_null``: no nulls.
    """

    equal: tuple[tuple[str, str], ...] = ()
    constant: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[Constant]] = field(default_factory=dict)
    never_null: frozenset[str] = frozenset()

    def within(self, names: frozenset[str]) -> Implied:
        """What it says about some of the columns."""
        return Implied(
            tuple((a, b) for a, b in self.equal if a in names and b in names),
            self.constant & names,
            {name: values for name, values in self.values.items() if name in names},
            self.never_null & names,
        )


def implied(condition: Scalar | None, types: Mapping[str, str | None]) -> Implied:
    """What is certain about the rows for which the condition is true.

    >>> import sqlglot
    >>> found = implied(sqlglot.parse_one("a = b AND c > 0"), {"a": "int", "b": "int", "c": "int"})
    >>> found.equal, sorted(found.never_null)
    ((('a', 'b'),), ['a', 'b', 'c'])
    """
    equal: list[tuple[str, str]] = []
    constant: set[str] = set()
    values: dict[str, frozenset[Constant]] = {}
    never_null: set[str] = set()
    for part in conjuncts(condition):
        never_null |= _not_null_if(part, True)
        pair = _equal_columns(part, types)
        if pair:
            equal.append(pair)
        fixed = _listed(part)
        if fixed is None:
            continue
        name, literals = fixed
        if all(_has_one_value(types.get(name), literal) for literal in literals):
            if len(literals) == 1:
                constant.add(name)
            known = _family_values(types.get(name), literals)
            if known is not None:
                values[name] = values[name] & known if name in values else known
    return Implied(tuple(equal), frozenset(constant), values, frozenset(never_null))


def constant_of(scalar: Scalar) -> Constant | None:
    """The value of a text or a whole number written as a literal."""
    literal = _bare(scalar)
    sign = 1
    if isinstance(literal, exp.Neg):
        literal, sign = _bare(literal.this), -1
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return ("string", literal.name) if sign == 1 else None
    return ("integer", sign * int(literal.name)) if literal.name.isdigit() else None


def _equal_columns(part: Scalar, types: Mapping[str, str | None]) -> tuple[str, str] | None:
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None
    left, right = _bare(part.left), _bare(part.right)
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    if not same_values(types.get(left.name), types.get(right.name)):
        return None
    return left.name, right.name


def _listed(part: Scalar) -> tuple[str, list[Scalar]] | None:
    """The column and the literals of ``a = 1``, ``a IN (1, 2)``, ``a IS NULL`` or plain ``a``."""
    if isinstance(part, exp.Column):
        return part.name, [exp.true()]
    if isinstance(part, exp.In) and not part.args.get("negate"):
        subject, literals = _bare(part.this), [_bare(value) for value in part.expressions]
        return (subject.name, literals) if isinstance(subject, exp.Column) and literals else None
    if not isinstance(part, exp.EQ | exp.NullSafeEQ | exp.Is) or part.args.get("negate"):
        return None
    left, right = _bare(part.this), _bare(part.expression)
    if isinstance(left, exp.Column):
        return left.name, [right]
    return (right.name, [left]) if isinstance(right, exp.Column) else None


def _has_one_value(type_: str | None, literal: Scalar) -> bool:
    """Whether at most one value of the type equals the literal (``'1'`` and ``'01'`` equal 1)."""
    if isinstance(literal, exp.Null):
        return True
    if type_ is None:
        return False
    kind = type_.lower()
    if isinstance(literal, exp.Boolean):
        return kind == "boolean"
    if isinstance(literal, exp.Cast):
        dated = isinstance(literal.this, exp.Literal) and literal.to.is_type("date", "timestamp")
        return dated and kind in ("date", "timestamp")
    if isinstance(literal, exp.Neg):
        literal = _bare(literal.this)
    if not isinstance(literal, exp.Literal):
        return False
    if literal.is_string:
        return kind in ("string", "date", "timestamp")
    if is_floating(kind):
        return True
    # With an exponent it is a double, which many decimals and bigints round to.
    digits = re.fullmatch(r"(\d*)\.?(\d*)", literal.name)
    return digits is not None and fit_one_decimal(
        decimal_digits(kind), (len(digits[1]), len(digits[2]))
    )


def _family_values(type_: str | None, literals: Iterable[Scalar]) -> frozenset[Constant] | None:
    family = "integer" if is_integral(type_) else "string" if type_ == "string" else None
    found = [constant_of(literal) for literal in literals]
    known = frozenset(value for value in found if value is not None and value[0] == family)
    return known if len(known) == len(set(found)) else None


def _not_null_if(scalar: Scalar, value: bool) -> frozenset[str]:
    """Columns that cannot be null if the scalar is true (or false, for ``value`` False)."""
    scalar = _bare(scalar)
    if isinstance(scalar, exp.Not):
        return _not_null_if(scalar.this, not value)
    if isinstance(scalar, exp.And | exp.Or):
        left, right = _not_null_if(scalar.left, value), _not_null_if(scalar.right, value)
        return left | right if isinstance(scalar, exp.And) == value else left & right
    if isinstance(scalar, exp.Is):
        if isinstance(scalar.expression, exp.Null):
            denied = bool(scalar.args.get("negate")) == value
            return _not_null_in(scalar.this) if denied else frozenset()
        return frozenset()
    if isinstance(scalar, _COMPARISONS):
        return _not_null_in(scalar.this) | _not_null_in(scalar.expression)
    if isinstance(scalar, exp.In):
        return _not_null_in(scalar.this)
    if isinstance(scalar, exp.Between):
        if value == bool(scalar.args.get("negate")):  # one failed end is enough to be false
            return _not_null_in(scalar.this)
        ends = _not_null_in(scalar.args["low"]) | _not_null_in(scalar.args["high"])
        return _not_null_in(scalar.this) | ends
    return _not_null_in(scalar) if isinstance(scalar, exp.Column) else frozenset()


def _not_null_in(scalar: Scalar) -> frozenset[str]:
    """Columns that cannot be null if the value of the scalar is not null."""
    if isinstance(scalar, exp.Column):
        return frozenset({scalar.name})
    if isinstance(scalar, _STRICT):
        parts = (scalar.args.get("this"), scalar.args.get("expression"))
        return frozenset().union(*(_not_null_in(p) for p in parts if isinstance(p, exp.Expr)))
    return frozenset()


def _bare(scalar: Scalar) -> Scalar:
    while isinstance(scalar, exp.Paren):
        scalar = scalar.this
    return scalar
