"""The columns that constraints and questions speak of, and their conditions as boxes of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sooner.algebra.schema import Schema
from sooner.errors import CannotAnswer, InvalidArgument, NotSupported, UnknownColumn, nearest
from sooner.missing.constraint import Constraint, Range
from sooner.missing.groups import value_of
from sooner.sql import without_doubled_quotes
from sooner.statistics.arrays import Floats
from sooner.synopses.axes import LEAST, MOST, NULL, Axis, Codes, floats_of
from sooner.synopses.conditions import Box, Conditions
from sooner.synopses.literals import position
from sooner.synopses.spans import Spans, spans_of

# A condition with more alternatives than this is none that anybody wrote.
_MOST_BOXES = 1000


@dataclass(frozen=True)
class OpenWords(Axis):
    """Words of which only some are named: every other number stands for all words between two of them."""

    def word_at(self, word: str) -> tuple[int, bool]:
        """The number of a word that is named."""
        place, there = super().word_at(word)
        return 2 * place + (1 if there else 0), there

    def _word_codes(self, values: pa.ChunkedArray) -> Codes:
        places = super()._word_codes(values)
        return np.where(places == NULL, NULL, 2 * places + 1)


@dataclass(frozen=True)
class Space:
    """The columns of a table by lower-case name; moments without a zone are read in ``zone``."""

    axes: Mapping[str, Axis]
    zone: tzinfo

    def boxes(self, condition: exp.Expr | str | None) -> tuple[Box, ...]:
        """A condition as alternatives, each with spans of columns that must all hold."""
        if condition is None:
            return ({},)
        node = condition_of(condition) if isinstance(condition, str) else condition
        try:
            return tuple(self._read(node, negated=False))
        except CannotAnswer as error:
            raise NotSupported(f"Of the condition {node.sql('spark')}: {error}") from None

    def ranges(self, constraint: Constraint) -> Box:
        """The values that a constraint leaves to the rows it is about."""
        return {
            self.axis(name).name: self._span(self.axis(name), ends)
            for name, ends in constraint.values.items()
        }

    def axis(self, name: str) -> Axis:
        """The column of a name."""
        found = self.axes.get(name.lower())
        if found is None:
            raise UnknownColumn(f"There is no column {name!r}.{nearest(name, self.axes)}")
        return found

    @cached_property
    def _conditions(self) -> Conditions:
        return Conditions(self.axes, self.zone)

    def _read(self, node: exp.Expr, negated: bool) -> list[dict[str, Spans]]:
        if isinstance(node, exp.Paren):
            return self._read(node.this, negated)
        if isinstance(node, exp.Not):
            return self._read(node.this, not negated)
        if isinstance(node, exp.Boolean):
            return [{}] if bool(node.this) != negated else []
        if isinstance(node, exp.And | exp.Or):
            left, right = (self._read(side, negated) for side in (node.left, node.right))
            if isinstance(node, exp.Or) != negated:
                return [*left, *right]
            if len(left) * len(right) > _MOST_BOXES:
                raise NotSupported(f"The condition {node.sql('spark')[:80]}… has too many cases.")
            both = (_both(one, other) for one, other in product(left, right))
            return [box for box in both if not any(spans.is_empty for spans in box.values())]
        if isinstance(node, exp.Like):
            raise CannotAnswer("LIKE is not understood here. Name the values with IN.")
        for column in node.find_all(exp.Column):
            self.axis(column.name)
        axis, spans = self._conditions.one(node, negated)
        return [] if spans.is_empty else [{axis.name: spans}]

    def _span(self, axis: Axis, ends: Range) -> Spans:
        low, high = (None if one is None else literal(one) for one in ends)
        try:
            first = LEAST if low is None else position(low, axis, self.zone)[0]
            last = MOST
            if high is not None:
                place, there = position(high, axis, self.zone)
                last = place if there else place - 1
        except CannotAnswer as error:
            raise InvalidArgument(f"The values of {axis.name}: {error}") from None
        return spans_of([(first, last)])


def _both(one: Box, other: Box) -> dict[str, Spans]:
    shared = {name: one[name] & other[name] for name in one.keys() & other.keys()}
    return {**one, **other, **shared}


@lru_cache(maxsize=10_000)  # reading thousands of constraints takes longer than asking them
def condition_of(text: str) -> exp.Expr:
    """A condition that somebody wrote; not to be changed."""
    try:
        return sqlglot.parse_one(without_doubled_quotes(text), dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidArgument(f"The condition {text!r} cannot be read: {error}") from None


def literal(value: Any) -> exp.Expr:
    """A value as it is written in SQL."""
    if isinstance(value, date | datetime):
        return exp.Literal.string(value.isoformat(*(" ",) if isinstance(value, datetime) else ()))
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    number = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=number) if value < 0 else number


def written(axis: Axis, code: int) -> str:
    """A value as a constant of its column's own type."""
    if axis.kind == "text":
        return literal(axis.words[code]).sql("spark")
    value = value_of(axis, code)
    if axis.kind == "boolean":
        return "TRUE" if value else "FALSE"
    if axis.kind in ("date", "moment"):
        return f"{'DATE' if axis.kind == 'date' else 'TIMESTAMP'} '{value}'"
    return literal(value).sql("spark")


def space_of(
    schema: Schema,
    constraints: Iterable[Constraint],
    conditions: Iterable[exp.Expr],
    words: Iterable[str],
    zone: tzinfo,
) -> Space:
    """The columns of a table; ``words`` are those known beside the ones that conditions name."""
    named = {*words, *_words_of(tuple(constraints))}
    for condition in conditions:
        named |= _words_in(condition)
    axes: dict[str, Axis] = {}
    for column in schema:
        if column.type == "string":
            axes[column.name.lower()] = OpenWords(column.name, column.type).with_words(named)
        elif column.type is not None:
            axes[column.name.lower()] = Axis(column.name, column.type)
    return Space(axes, zone)


@lru_cache(maxsize=16)
def _words_of(constraints: tuple[Constraint, ...]) -> frozenset[str]:
    """The words that constraints name."""
    named: set[str] = set()
    for one in constraints:
        named |= set() if one.where is None else _words_in(condition_of(one.where))
        ends = (end for pair in one.values.values() for end in pair)
        named |= {end for end in ends if isinstance(end, str)}
    return frozenset(named)


def _words_in(condition: exp.Expr) -> set[str]:
    return {str(one.this) for one in condition.find_all(exp.Literal) if one.is_string}


def numbers_of(axis: Axis, codes: Codes) -> Floats:
    """The numbers that codes stand for, infinite where there is no end."""
    if axis.kind == "floating":
        found = floats_of(codes)
        found = np.where(np.isnan(found), np.where(codes > 0, np.inf, -np.inf), found)
    else:
        found = codes / 10.0**axis.scale
    return np.where(codes <= LEAST, -np.inf, np.where(codes == MOST, np.inf, found))
