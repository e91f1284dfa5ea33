"""Plans that bring a view up to date: which rows it loses and gains, from what changed in its tables.

A view of groups is merged: the changes are grouped, met with the rows they belong to, and added to what these
keep. Groups that cannot be told from that (a minimum that was taken away) are derived again, and only these.
Any other view loses and gains the rows that :mod:`deltas` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Project, Relation, Scan, Union
from sooner.algebra.scalar import Scalar, all_of, any_of, column, substitute
from sooner.algebra.schema import Column, Schema
from sooner.analysis.types import decimal_digits, is_plain
from sooner.views.deltas import NOTHING, SIGN, CannotMaintain, Known, as_it_is, consolidated, delta
from sooner.views.form import Form, Grouped
from sooner.views.mergeable import Kept

# What later steps read of earlier ones, and the view's own rows.
GROUPS, MET, VIEW = "__sooner_groups", "__sooner_met", "__sooner_view"

_CAME, _WENT = "__came", "__went"
_OLD = "__was_"
_AGAIN = "__again"

# Takes some rows of a plan alone, those of which the columns hash low.
Push: TypeAlias = Callable[[Relation, Sequence[str]], Relation]


def everything(plan: Relation, unit: Sequence[str]) -> Relation:
    """All rows of a plan."""
    return plan


@dataclass(frozen=True)
class Step:
    """A plan whose rows are held under a name, for the steps after it; the last one's are the result."""

    name: str
    plan: Relation


def maintenance(
    form: Form,
    stored: Schema,
    unit: Sequence[str],
    push: Push = everything,
    known: Known = NOTHING,
    ansi: bool = True,
) -> list[Step]:
    """The steps to the rows that a view loses (-1) and gains (+1), with a last column that says which.

    ``stored`` are the columns of the view's rows, ``unit`` those that it is sampled by. With ``push`` the
    steps are those of a sample: the cleaning expression of Stale View Cleaning §4.5. Without ``ansi`` a sum
    that is too large is null to Spark, not an error. Raises ``CannotMaintain``.
    """
    if form.grouped is None:
        if any("variant" in str(one.type) for one in stored):
            raise CannotMaintain("of values of type variant, which Spark does not compare")
        mixed = [one.name for one in stored if not is_plain(one.type)]
        return [Step("", push(consolidated(delta(form.plan, known), mixed), unit))]
    return _Merging(form.grouped, form.key or (), stored, unit, push, known, ansi).steps()


class _Merging:
    def __init__(
        self,
        grouped: Grouped,
        key: Sequence[str],
        stored: Schema,
        unit: Sequence[str],
        push: Push,
        known: Known,
        ansi: bool,
    ) -> None:
        self._ansi = ansi
        self._of = grouped
        self._key = set(key)
        self._known = known
        self._stored = stored
        self._unit = list(unit)
        self._push = push
        self._keys = grouped.aggregate.keys
        self._types = {one.name: str(one.type) for one in stored}
        self._key_types = {one.name: one.type for one in grouped.aggregate.child.schema}

    def steps(self) -> list[Step]:
        groups = self._groups()
        met = self._met(groups)
        return [Step(GROUPS, groups), Step(MET, met), Step("", self._signed(met))]

    def _groups(self) -> Relation:
        """The changes of every group: what came and what went."""
        changes = delta(self._of.aggregate.child, self._known)
        items = []
        for name, kept in self._of.merges:
            call = _or_null(kept.changes) if self._is_tight(name) else kept.changes
            items.append(Item(f"{name}{_CAME}", _where(call, 1)))
            items.append(Item(f"{name}{_WENT}", _where(call, -1)))
        by_key = {at: name for name, at in self._of.stored.items() if name in self._keys}
        plan = Aggregate(changes, self._keys, tuple(items))
        return self._push(plan, [by_key[name] for name in self._unit])

    def _met(self, groups: Relation) -> Relation:
        """Changed groups with the rows they had, if any."""
        view: Relation = Scan(
            VIEW,
            tuple(one.name for one in self._stored),
            tuple(Column(f"{_OLD}{one.name}", one.type) for one in self._stored),
        )
        changed = _scan(GROUPS, groups.names, self._key_types)
        equal = [self._equal(column(key), column(self._old(key))) for key in self._keys]
        if self._keys:
            # The view is large and the changes are few: first the rows that are concerned, by as few columns
            # as tell rows apart.
            few = [key for key in self._keys if self._of.stored[key] in self._key] or self._keys
            again = {key: f"{_AGAIN}{place}" for place, key in enumerate(few)}
            keys = Project(changed, tuple(Item(again[key], column(key)) for key in few))
            same = [self._equal(column(self._old(key)), column(again[key])) for key in few]
            view = Join(view, keys, JoinKind.SEMI, all_of(same))
        met = Join(changed, view, JoinKind.LEFT, all_of(equal))
        return met if self._derives_all else Filter(met, exp.Not(this=self._stays()))

    def _stays(self) -> Scalar:
        """Whether a group is as it was: what came and went is the same as far as the view sees it."""
        same = [
            self._equal(self._brought(n, kept), column(self._old(n))) for n, kept in self._of.merges
        ]
        again = self._again()
        if again is not None:
            same.append(exp.Not(this=exp.Paren(this=again)))
        stays = all_of(same)
        assert stays is not None, "the number of rows is always kept"
        return exp.Paren(this=stays)

    @staticmethod
    def _equal(one: Scalar, other: Scalar) -> Scalar:
        return exp.NullSafeEQ(this=one, expression=other)

    def _old(self, name: str) -> str:
        """The column of the stored row that holds a key or something kept."""
        return f"{_OLD}{self._of.stored[name]}"

    def _signed(self, met: Relation) -> Relation:
        rows = _scan(MET, met.names, self._key_types)
        there = _is_null(column(self._old(self._of.rows)), negated=True)
        names = [one.name for one in self._stored]
        gone = Project(Filter(rows, there), tuple(Item(n, column(f"{_OLD}{n}")) for n in names))
        whole = _with_sign(gone, -1)
        again = self._again()
        if not self._derives_all:
            told = (
                rows if again is None else Filter(rows, exp.Not(this=exp.Paren(this=again.copy())))
            )
            whole = Union(whole, _with_sign(self._of.over(self._merged(told)), 1))
        if self._derives_all or again is not None:
            untold = rows if again is None else Filter(rows, again)
            derived = self._push(self._of.over(self._derived(untold)), self._unit)
            whole = Union(whole, _with_sign(derived, 1))
        return whole

    @property
    def _derives_all(self) -> bool:
        """Whether every group that changes is derived again; a total is if it ever may have to be."""
        return not self._of.merges_all or not (self._keys or self._again() is None)

    def _is_tight(self, name: str) -> bool:
        return _is_tight(self._types[self._of.stored[name]])

    def _is_decimal(self, name: str) -> bool:
        return decimal_digits(self._types[self._of.stored[name]]) is not None

    def _again(self) -> Scalar | None:
        """Whether a group has to be derived again; ``None`` if that is the same for all."""
        reasons: list[Scalar] = []
        if not self._of.merges_all:
            return None
        if self._of.hides_groups:
            reasons.append(_is_null(column(self._old(self._of.rows))))
        if self._of.adds_only:
            went = column(f"{self._of.rows}{_WENT}")
            reasons.append(exp.GT(this=went, expression=exp.convert(0)))
        for name, kept in self._of.merges:
            if kept.merge != "sum":
                went, old = column(f"{name}{_WENT}"), column(self._old(name))
                beyond = exp.GT if kept.merge == "min" else exp.LT
                kept_apart = exp.Coalesce(
                    this=beyond(this=went.copy(), expression=old), expressions=[exp.false()]
                )
                reasons.append(
                    exp.And(this=_is_null(went, negated=True), expression=exp.Not(this=kept_apart))
                )
            elif self._is_tight(name) or (not self._ansi and self._is_decimal(name)):
                reasons.append(_is_null(self._brought(name, kept)))
                # Of rows that are there a null may be a sum that is too large for the type.
                sums = [(f"{name}{at}", f"{self._of.rows}{at}") for at in (_CAME, _WENT)]
                if not self._ansi:
                    sums.append((self._old(name), self._old(self._of.rows)))
                for total, rows in sums:
                    some = exp.GT(this=column(rows), expression=exp.convert(0))
                    reasons.append(exp.And(this=_is_null(column(total)), expression=some))
        return any_of([exp.Paren(this=reason) for reason in reasons])

    def _merged(self, rows: Relation) -> Relation:
        """Groups with what they keep brought up to date, as the aggregate would give them."""
        new = {name: self._brought(name, kept) for name, kept in self._of.merges}
        items = [Item(key, column(key)) for key in self._keys]
        held = {name: f"{name}__new" for name in new}
        first = Project(rows, (*items, *(Item(held[name], scalar) for name, scalar in new.items())))
        if self._keys:
            some = exp.GT(this=column(held[self._of.rows]), expression=exp.convert(0))
            first_rows: Relation = Filter(first, some)
        else:
            first_rows = first
        columns = {name: column(at) for name, at in held.items()}
        for item in self._of.aggregate.aggregates:
            value = self._of.values.get(item.name)
            kept = columns.get(item.name)
            scalar = kept if value is None else substitute(value, columns)
            assert scalar is not None, "every aggregate merges or is kept"
            items.append(Item(item.name, scalar))
        return Project(first_rows, tuple(items))

    def _brought(self, name: str, kept: Kept) -> Scalar:
        old, came, went = (
            column(self._old(name)),
            column(f"{name}{_CAME}"),
            column(f"{name}{_WENT}"),
        )
        if kept.merge != "sum":
            least = exp.Least if kept.merge == "min" else exp.Greatest
            return least(this=old, expressions=[came], ignore_nulls=True)
        type_ = self._types[self._of.stored[name]]
        old, came, went = (_or_nothing(one, type_) for one in (old, came, went))
        if _is_tight(type_):
            old, came, went = (
                _less_digits(old, type_, 1),
                *(_less_digits(one, type_, 2) for one in (came, went)),
            )
        # Changes first: what came may be too much for the type beside what it takes the place of.
        net = exp.Paren(this=exp.Sub(this=came, expression=went))
        total = exp.Paren(this=exp.Add(this=old, expression=net))
        return exp.Cast(this=total, to=exp.DataType.build(type_, dialect="spark"))

    def _derived(self, rows: Relation) -> Relation:
        """The groups of some rows, made again of all that is in them."""
        aggregate = self._of.aggregate
        child = as_it_is(aggregate.child)
        if not self._keys:
            return replace(aggregate, child=child)
        again = {key: f"{_AGAIN}{place}" for place, key in enumerate(self._keys)}
        keys = Project(rows, tuple(Item(again[key], column(key)) for key in self._keys))
        same = [self._equal(column(key), column(again[key])) for key in self._keys]
        return replace(aggregate, child=Join(child, keys, JoinKind.SEMI, all_of(same)))


def _scan(name: str, columns: Sequence[str], types: Mapping[str, str | None]) -> Scan:
    return Scan(name, tuple(columns), tuple(Column(one, types.get(one)) for one in columns))


def _where(call: Scalar, sign: int) -> Scalar:
    """An aggregate of the rows that came, or of those that went."""
    only: Scalar = exp.EQ(this=column(SIGN), expression=exp.convert(sign))
    inner = call
    if isinstance(call, exp.Filter):
        inner = call.this
        own = call.expression.this
        only = exp.And(this=exp.Paren(this=own.copy()), expression=only)
    return exp.Filter(this=inner.copy(), expression=exp.Where(this=only))


def _with_sign(rows: Relation, sign: int) -> Relation:
    items = (*(Item(name, column(name)) for name in rows.names), Item(SIGN, exp.convert(sign)))
    return Project(rows, items)


def _or_nothing(value: Scalar, type_: str) -> Scalar:
    nothing = exp.convert(0)
    if type_.startswith("decimal"):  # of another type it might take digits from the value
        nothing = exp.Cast(this=nothing, to=exp.DataType.build(type_, dialect="spark"))
    return exp.Coalesce(this=value, expressions=[nothing])


def _is_tight(type_: str) -> bool:
    """Whether Spark gives a sum of two such decimals fewer digits after the point than they have."""
    digits = decimal_digits(type_)
    return digits is not None and sum(digits) >= 37 and digits[1] > 6


def _or_null(total: Scalar) -> Scalar:
    """The same sum, null where its type has no room for it."""

    def tried(node: Scalar) -> Scalar:
        if not isinstance(node, exp.Sum):
            return node
        return exp.AnonymousAggFunc(this="try_sum", expressions=[node.this.copy()])

    return total.transform(tried)


def _less_digits(value: Scalar, type_: str, number: int) -> Scalar:
    """A decimal with fewer digits before the point; null where it needs all of them."""
    before, after = decimal_digits(type_) or (0, 0)
    return exp.TryCast(
        this=value, to=exp.DataType.build(f"decimal({before + after - number}, {after})"), safe=True
    )


def _is_null(value: Scalar, negated: bool = False) -> Scalar:
    found: Scalar = exp.Is(this=value, expression=exp.Null())
    return exp.Not(this=found) if negated else found
