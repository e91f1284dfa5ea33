"""Calculations with aggregates of a stale view as if it were fresh, such as 100 * SUM(a) / SUM(b).

What is calculated of one aggregate, each step of it rising or falling with it, has the ends that come of the
aggregate's ends. A calculation with several sums, counts and averages is, near its value, a sum itself: of
each row what it brings to every aggregate, times the slope along it. It is linearized as averages are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sqlglot import exp

from sooner.algebra import Item
from sooner.algebra.scalar import Scalar, columns_of
from sooner.errors import CannotAnswer
from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.evaluate import evaluate

# Along what part of a value its slope is measured.
_STEP = 1e-6
# A calculation that within a standard error of an aggregate leaves its tangent by more than this part of what
# the tangent rises is no sum: one with a divisor that is off by a third, for example.
_MOST_BENT = 0.5
_SMOOTH = (exp.Column, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Nullif, exp.Null)


@dataclass(frozen=True)
class Calculation:
    """A scalar of aggregates by their names, and to how many digits it is rounded in the end, if at all."""

    name: str
    scalar: Scalar
    digits: int | None

    @cached_property
    def of(self) -> tuple[str, ...]:
        """The aggregates that it is of."""
        return tuple(sorted(columns_of(self.scalar)))

    @property
    def turns(self) -> bool:
        """Whether it rises or falls with one aggregate, unless that is a divisor and passes 0."""
        return sum(1 for _ in self.scalar.find_all(exp.Column)) == 1

    def value(self, values: Mapping[str, Floats]) -> Floats:
        """What comes of these values, not rounded; NaN is null."""
        found = evaluate(self.scalar, {name: values[name] for name in self.of})
        return np.array(np.broadcast_to(found, (1, len(values[self.of[0]])))[0])

    def rounded(self, values: Floats) -> Floats:
        """Values as Spark's ``round`` gives them: halves away from 0."""
        if self.digits is None:
            return values
        scale = 10.0**self.digits
        return np.asarray(np.copysign(np.floor(np.abs(values) * scale + 0.5) / scale, values))

    def ends(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """What comes of the ends of the aggregate it turns with; NaN where that is a divisor and passes 0."""
        (name,) = self.of
        one, other = (self.value({name: end}) for end in (low, high))
        if self._divides_by(name):
            nothing = ~((low > 0) | (high < 0))
            one, other = (np.where(nothing, np.nan, end) for end in (one, other))
        return np.minimum(one, other), np.maximum(one, other)

    def _divides_by(self, name: str) -> bool:
        return any(name in columns_of(below.right) for below in self.scalar.find_all(exp.Div))

    def slopes(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """How much it rises along each aggregate."""
        found = {}
        for name in self.of:
            size = np.abs(values[name])
            step = _STEP * np.where(size > 0, size, 1.0)
            up, down = (self._moved(values, name, sign * step) for sign in (1, -1))
            found[name] = (up - down) / (2 * step)
        return found

    def bends(self, values: Mapping[str, Floats], errors: Mapping[str, Floats]) -> Booleans:
        """Where it is no sum within the aggregates' standard errors, or these are not known."""
        here, slopes = self.value(values), self.slopes(values)
        bent = np.zeros(len(here), np.bool_)
        for name in self.of:
            rises = slopes[name] * errors[name]
            for sign in (1, -1):
                off = self._moved(values, name, sign * errors[name]) - here - sign * rises
                bent |= ~(np.abs(off) <= _MOST_BENT * np.abs(rises))
        return bent

    def _moved(self, values: Mapping[str, Floats], name: str, by: Floats) -> Floats:
        return self.value({**values, name: values[name] + by})


def calculation_of(item: Item, linear: Collection[str], others: Collection[str]) -> Calculation:
    """What is calculated of aggregates, of which ``linear`` are sums, counts and averages.

    Raises :class:`CannotAnswer` where nothing is known of how far off it is.

    >>> import sqlglot
    >>> share = sqlglot.parse_one("round(100 * a / b, 1)", read="spark")
    >>> found = calculation_of(Item("share", share), ["a", "b"], [])
    >>> found.of, found.digits
    (('a', 'b'), 1)
    """
    scalar, digits = item.scalar, None
    while isinstance(scalar, exp.Paren | exp.Cast | exp.Round) and digits is None:
        if isinstance(scalar, exp.Round):
            digits = _digits(scalar)
        elif isinstance(scalar, exp.Cast) and not _is_real(scalar):
            break
        scalar = scalar.this
    found = Calculation(item.name, scalar.copy(), digits)
    if not found.of or not set(found.of) <= {*linear, *others}:
        raise CannotAnswer("a calculation with what rows are grouped by")
    for node in scalar.walk():
        if not _is_smooth(node):
            raise CannotAnswer(
                f"a calculation with aggregates that is more than arithmetic ({node.key.upper()})"
            )
    if not found.turns and not set(found.of) <= set(linear):
        raise CannotAnswer(
            "a calculation with several aggregates that are not sums, counts or averages"
        )
    return found


def _is_smooth(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return _is_real(node)
    if isinstance(node, exp.Literal):
        return not node.is_string
    # The parts of a column and of a type.
    return isinstance(node, (*_SMOOTH, exp.Identifier, exp.DataType, exp.DataTypeParam))


def _is_real(node: exp.Cast) -> bool:
    return node.to.this in exp.DataType.REAL_TYPES


def _digits(node: exp.Round) -> int:
    digits = node.args.get("decimals")
    if digits is None:
        return 0
    text = digits.sql("spark")
    if not text.removeprefix("-").isdigit():
        raise CannotAnswer(f"a calculation that is rounded to {text} digits")
    return int(text)
