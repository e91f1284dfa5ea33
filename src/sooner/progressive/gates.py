"""Conditions on an aggregate that is still open: which rows of a delta pass them (iOLAP §4 and §5).

``l_quantity < (SELECT 0.2 * avg(l_quantity) … WHERE l_partkey = p_partkey)`` cannot be decided for good
before the average is known. But far from it no later average will change the decision: with a range
that holds the value until the end, most rows pass or fail at once and only those within it wait.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Filter, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import (
    Scalar,
    all_of,
    bare,
    column,
    columns_of,
    conjuncts,
    equality_sides,
    parenthesized,
)
from sooner.algebra.schema import Column

UNDECIDED = "__undecided"
_PASSES = "__passes"
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


class CannotGate(Exception):
    """A condition that cannot be decided by ranges: its rows are all kept."""


@dataclass(frozen=True)
class Check:
    """A column of the delta compared with a value of the open aggregate, in this order."""

    column: str
    comparison: type[exp.Expr]
    value: Scalar


@dataclass(frozen=True)
class Gate:
    """What rows of a delta must pass: ``top`` has one row for each key, found by equal columns.

    ``keys`` pairs a column of the delta with a column of ``top``.
    """

    top: Relation
    keys: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the delta that are only there for the gate."""
        return (*(ours for ours, _ in self.keys), *(check.column for check in self.checks))

    @property
    def condition(self) -> Scalar:
        """What a row and its partner in ``top`` must fulfil."""
        same = (exp.EQ(this=column(ours), expression=column(key)) for ours, key in self.keys)
        checks = (
            check.comparison(this=column(check.column), expression=parenthesized(check.value))
            for check in self.checks
        )
        found = all_of((*same, *checks))
        assert found is not None, "a gate checks something"
        return found

    def __str__(self) -> str:
        values = ", ".join(check.value.sql("spark").replace("`", "") for check in self.checks)
        keys = ", ".join(key for _, key in self.keys)
        return f"{values} for each {keys}" if keys else values


@dataclass(frozen=True)
class Opening:
    """A gate, what the delta must carry for it, and the conditions on the delta alone."""

    gate: Gate
    items: tuple[Item, ...]
    conditions: tuple[Scalar, ...]


def gate_of(
    condition: Scalar | None,
    delta: Relation,
    top: Relation,
    unique: Collection[str] | None,
    changing: Collection[str],
    number: int,
) -> Opening:
    """The gate that a join of a delta with open aggregates makes.

    ``unique`` are columns on which no two rows of ``top`` agree, ``changing`` those of its columns that
    are not known for good. Raises :class:`CannotGate`.
    """
    top, inner = _unfiltered(top, changing)
    parts = (*conjuncts(condition), *inner)
    keys: list[tuple[Scalar, str]] = []
    checks: list[tuple[Scalar, type[exp.Expr], Scalar]] = []
    alone: list[Scalar] = []
    for part in parts:
        read = columns_of(part)
        if read <= delta.name_set and read:
            alone.append(part)
        elif (pair := _key(part, delta, top, changing)) is not None:
            keys.append(pair)
        else:
            checks.append(_check(part, delta, top))
    if unique is None or not set(unique) <= {key for _, key in keys}:
        raise CannotGate("a row may meet several rows of the open aggregate")
    if not checks:
        raise CannotGate("nothing is compared with the open aggregate")
    named = [(f"__gate_{number}_{place}", ours, key) for place, (ours, key) in enumerate(keys)]
    compared = [
        (f"__gate_{number}_{len(keys) + place}", check) for place, check in enumerate(checks)
    ]
    gate = Gate(
        top,
        tuple((name, key) for name, _, key in named),
        tuple(Check(name, comparison, value) for name, (_, comparison, value) in compared),
    )
    items = [Item(name, ours) for name, ours, _ in named]
    items += [Item(name, ours) for name, (ours, _, _) in compared]
    return Opening(gate, tuple(items), tuple(alone))


def _unfiltered(top: Relation, changing: Collection[str]) -> tuple[Relation, tuple[Scalar, ...]]:
    """A top without the filters on open values right above it, and these filters."""
    if isinstance(top, Filter) and columns_of(top.condition) & set(changing):
        below, more = _unfiltered(top.child, changing)
        return below, (*conjuncts(top.condition), *more)
    return top, ()


def _key(
    part: Scalar, delta: Relation, top: Relation, changing: Collection[str]
) -> tuple[Scalar, str] | None:
    """What of the delta is equal to which lasting column of the top, if that is what is said."""
    sides = equality_sides(part)
    for ours, theirs in (sides, sides[::-1]) if sides else ():
        lasting = isinstance(theirs, exp.Column) and theirs.name not in changing
        read = columns_of(ours)
        if lasting and theirs.name in top.name_set and read and read <= delta.name_set:
            return ours, theirs.name
    return None


def _check(part: Scalar, delta: Relation, top: Relation) -> tuple[Scalar, type[exp.Expr], Scalar]:
    if not isinstance(part, exp.Binary) or type(part) not in _TURNED:
        raise CannotGate(f"{part.sql('spark')} is not a comparison")
    left, right = bare(part.left), bare(part.right)
    for ours, theirs, way in ((left, right, type(part)), (right, left, _TURNED[type(part)])):
        read = columns_of(theirs)
        if columns_of(ours) <= delta.name_set and read and read <= top.name_set:
            return ours, way, theirs
    raise CannotGate(f"{part.sql('spark')} mixes open values with others")


def range_name(state: str, place: int) -> str:
    """The name under which a batch finds the ranges of a state's gate."""
    return f"__range{state}_{place}"


def range_columns(gate: Gate) -> tuple[str, ...]:
    """The columns of a gate's ranges: its keys, and two ends for each check."""
    keys = tuple(f"__key_{place}" for place in range(len(gate.keys)))
    ends = tuple(f"__{end}_{place}" for place in range(len(gate.checks)) for end in ("low", "high"))
    return (*keys, *ends)


def decided(carried: Relation, gates: Sequence[Gate], state: str) -> Relation:
    """The rows of a delta that pass or may pass, those that may marked as undecided.

    What the gates need is blank in a row that passes, so that such rows fall into few groups.
    """
    joined = carried
    decisions = []
    for place, gate in enumerate(gates):
        names = range_columns(gate)
        renamed = tuple(f"{name}_{place}" for name in names)
        ranges = Scan(range_name(state, place), names, tuple(Column(name) for name in renamed))
        keys = zip(gate.keys, renamed, strict=False)
        on = all_of(exp.EQ(this=column(ours), expression=column(key)) for (ours, _), key in keys)
        kind = JoinKind.INNER if on is None else JoinKind.LEFT
        joined = Join(joined, ranges, kind, on)
        ends = renamed[len(gate.keys) :]
        decisions += [
            _decision(check, ends[2 * number], ends[2 * number + 1])
            for number, check in enumerate(gate.checks)
        ]
    passes = all_of(decisions)
    assert passes is not None
    kept = [Item(name, column(name)) for name in carried.names]
    known = Project(joined, (*kept, Item(_PASSES, passes)))
    left = Filter(known, exp.Coalesce(this=column(_PASSES), expressions=[exp.true()]))
    undecided = exp.Is(this=column(_PASSES), expression=exp.Null())
    hidden = {name for gate in gates for name in gate.columns}
    items = [
        Item(name, _only_if(undecided, column(name)) if name in hidden else column(name))
        for name in carried.names
    ]
    return Project(left, (*items, Item(UNDECIDED, undecided.copy())))


def _only_if(condition: Scalar, value: Scalar) -> Scalar:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])


def _decision(check: Check, low: str, high: str) -> Scalar:
    """True or false where that holds for every value of the range, else null."""
    ours = exp.cast(column(check.column), "double", dialect="spark")
    below: Scalar = exp.LT(this=ours.copy(), expression=column(low))
    above: Scalar = exp.GT(this=ours.copy(), expression=column(high))
    true: list[Scalar]
    false: list[Scalar]
    if check.comparison in (exp.LT, exp.LTE):
        true, false = [below], [above]
    elif check.comparison in (exp.GT, exp.GTE):
        true, false = [above], [below]
    elif check.comparison is exp.EQ:
        true, false = [], [below, above]
    else:
        true, false = [below, above], []
    # A comparison with null is never true.
    false = [exp.Is(this=ours.copy(), expression=exp.Null()), *false]
    ifs = [exp.If(this=one, true=exp.true()) for one in true]
    ifs += [exp.If(this=one, true=exp.false()) for one in false]
    return exp.Case(ifs=ifs)


def passing(waiting: Scan, gates: Sequence[Gate], columns: Sequence[str]) -> Relation:
    """These columns of the waiting rows that pass all gates, by the values the gates' tops have."""
    joined: Relation = waiting
    for gate in gates:
        joined = Join(joined, gate.top, JoinKind.INNER, gate.condition)
    return Project(joined, tuple(Item(name, column(name)) for name in columns))
