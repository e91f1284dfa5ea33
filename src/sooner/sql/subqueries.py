"""Subqueries become joins.

EXISTS and IN: semi join. NOT EXISTS: anti join. NOT IN: null-aware anti join. A scalar aggregate: a
join with that aggregate, grouped by what it is correlated by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from sooner.algebra.relation import Join, JoinKind
from sooner.algebra.scalar import (
    Scalar,
    all_of,
    bare,
    column,
    columns_of,
    conjuncts,
    parenthesized,
    transform,
)
from sooner.sql.functions import require_allowed
from sooner.sql.grouping import Grouping, has_aggregate
from sooner.sql.scope import Block, Frame, Names, Scope, WithQuery
from sooner.sql.untranslatable import Untranslatable


class Translates(Protocol):
    """What subqueries need of the translator."""

    names: Names

    def query(
        self, query: exp.Expr, visible: Mapping[str, WithQuery], outer: Scope | None
    ) -> Block: ...

    def sources(
        self, select: exp.Select, visible: Mapping[str, WithQuery], outer: Scope | None
    ) -> Frame: ...

    def where(self, select: exp.Select, frame: Frame) -> tuple[Scalar, ...]: ...


def require_in_order(parts: Sequence[exp.Expr]) -> None:
    """Refuse a conjunct that may fail for rows which a comparison with a subquery before it leaves out.

    Spark takes them one after the other; here conjuncts without a subquery come first.
    """
    compared = False
    for part in parts:
        if part.find(exp.Query):
            compared = compared or not _is_membership(bare(part))
        elif compared and _may_fail(part):
            raise Untranslatable("a condition that may fail, after one with a subquery")


def _is_membership(conjunct: exp.Expr) -> bool:
    test = bare(conjunct.this) if isinstance(conjunct, exp.Not) else conjunct
    return isinstance(test, exp.Exists | exp.In)


def _may_fail(scalar: exp.Expr) -> bool:
    if scalar.find(exp.Div, exp.IntDiv, exp.Mod):
        return True
    casts = scalar.find_all(exp.Cast)
    return any(cast.find(exp.Column) and not cast.args.get("safe") for cast in casts)


def join_subquery(translator: Translates, frame: Frame, conjunct: exp.Expr) -> bool:
    """Apply a conjunct that is EXISTS, IN or the negation of one to the frame; False if it is neither."""
    negated = isinstance(conjunct, exp.Not)
    test = bare(conjunct.this) if negated else conjunct
    if isinstance(test, exp.Exists):
        _join_exists(translator, frame, test, negated)
        return True
    if isinstance(test, exp.In) and test.args.get("query") is not None:
        _join_in(translator, frame, test, negated)
        return True
    return False


def _join_exists(translator: Translates, frame: Frame, test: exp.Exists, negated: bool) -> None:
    if not isinstance(test.this, exp.Query):
        raise Untranslatable("EXISTS over an array")
    block = translator.query(test.this, frame.visible, frame.scope)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    _join(frame, block, kind, all_of(block.correlated))


def _join_in(translator: Translates, frame: Frame, test: exp.In, negated: bool) -> None:
    if test.this.find(exp.Query):
        raise Untranslatable("a subquery on the left of IN")
    left = bare(test.this)
    sides = left.expressions if isinstance(left, exp.Tuple) else [left]
    block = translator.query(test.args["query"], frame.visible, frame.scope)
    if len(sides) != len(block.outputs):
        raise Untranslatable("IN with another number of columns than its subquery")
    equal = [
        exp.EQ(this=parenthesized(frame.named(side)), expression=column(name))
        for side, (_, name) in zip(sides, block.outputs, strict=True)
    ]
    condition = all_of(equal)
    assert condition is not None
    if not negated:
        _join(frame, block, JoinKind.SEMI, all_of([*equal, *block.correlated]))
    elif not block.correlated:
        _join(frame, block, JoinKind.NULL_AWARE_ANTI, condition)
    else:
        # Only rows whose correlation is true are in the subquery; among them "unknown" is a match.
        unknown = exp.Is(this=parenthesized(condition), expression=exp.Null())
        match = exp.Paren(this=exp.Or(this=parenthesized(condition), expression=unknown))
        _join(frame, block, JoinKind.ANTI, all_of([*block.correlated, match]))


def _join(frame: Frame, block: Block, kind: JoinKind, condition: Scalar | None) -> None:
    known = frame.relation.name_set | block.relation.name_set
    if condition is not None and not columns_of(condition) <= known:
        raise Untranslatable("a subquery that refers to a query two levels up")
    frame.relation = Join(frame.relation, block.relation, kind, condition)


def replace_scalar_subqueries(translator: Translates, frame: Frame, scalar: Scalar) -> Scalar:
    """A copy in which each scalar subquery is a column of the frame's relation, joined to it here."""

    def replace(node: Scalar) -> Scalar | None:
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
            raise Untranslatable("EXISTS or IN with a subquery inside OR, CASE or an expression")
        if isinstance(node, exp.Subquery):
            return parenthesized(_join_scalar(translator, frame, node.this))
        if isinstance(node, exp.Query):
            raise Untranslatable("a subquery in an unusual place")
        return None

    return transform(scalar, replace)


def _join_scalar(translator: Translates, frame: Frame, select: exp.Expr) -> Scalar:
    while isinstance(select, exp.Subquery):
        select = select.this
    simple = {"expressions", "from_", "joins", "where", "having"}
    if not isinstance(select, exp.Select) or {k for k, v in select.args.items() if v} - simple:
        raise Untranslatable("a scalar subquery that is more than one aggregate")
    (projection,) = select.expressions if len(select.expressions) == 1 else (None,)
    if projection is None or not has_aggregate(projection):
        raise Untranslatable("a scalar subquery that is not an aggregate")
    having = select.args.get("having")
    result, condition = projection.unalias(), having.this if having else None
    for part in (result, *conjuncts(condition)):
        require_allowed(part)
        if part.find(exp.Query):
            raise Untranslatable("a subquery inside the result of a scalar subquery")
    if select.args.get("where"):
        require_allowed(select.args["where"].this)

    inner = translator.sources(select, frame.visible, frame.scope)
    correlated = translator.where(select, inner)
    grouping = Grouping(translator.names, inner, [])
    on = [grouping.add_correlated(part) for part in correlated]
    grouping.build([result, *([condition] if condition is not None else [])])

    value = grouping.after(inner.named(result), may_be_empty=bool(on))
    if condition is not None:
        test = grouping.after(inner.named(condition), may_be_empty=bool(on))
        value = exp.Case(ifs=[exp.If(this=test, true=value)])
    if not columns_of(value) <= inner.relation.name_set:
        raise Untranslatable("a scalar subquery that mixes in columns of the query around it")
    joined = Block(inner.relation, ())
    _join(frame, joined, JoinKind.LEFT if on else JoinKind.INNER, all_of(on))
    return value
