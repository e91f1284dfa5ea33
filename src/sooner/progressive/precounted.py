"""Input variables (iOLAP, App. B eq. 3): rows counted before they meet a value that is still open.

``sum(f(B, C))`` over rows that meet an open value C needs of them only how often each B occurs: it is
Σ f(B, C)·n over one row for each B and group. So counts are kept instead of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Project, Relation, Scan, walk
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import (
    Scalar,
    all_of,
    column,
    columns_of,
    conjuncts,
    parenthesized,
    substitute,
)
from sooner.analysis import derivation
from sooner.analysis.types import is_floating, is_integral

_TIMES = "__times"
_FUNCTIONS = (exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True)
class Precounted:
    """An aggregate of ``rows`` that meet ``groups``, over ``counts`` of the rows: ``plan``."""

    rows: Relation
    groups: Relation
    counts: Aggregate
    plan: Relation
    scans_before_groups: int


@dataclass
class _Asked:
    """An aggregate of a join, in columns of the join: keys and arguments by name, and conditions."""

    join: Join
    keys: dict[str, Scalar]
    arguments: dict[str, Scalar]
    conditions: list[Scalar]


def precounted(plan: Aggregate) -> Precounted | None:
    """An aggregate of rows joined with an aggregate, by counts of the rows; ``None`` if it is none.

    Sums and averages of decimals stay as they are: times a count they would be of another type.
    """
    asked = _asked(plan)
    if asked is None:
        return None
    left, right = asked.join.children
    rows, groups = (left, right) if _has_aggregate(right) else (right, left)
    if _has_aggregate(rows) or not _has_aggregate(groups):
        return None
    if any(not columns_of(key) <= rows.name_set for key in asked.keys.values()):
        return None
    if any(not _is_safe(item, asked) for item in plan.aggregates):
        return None
    read = (*asked.arguments.values(), *asked.conditions)
    needed = {name for scalar in read for name in columns_of(scalar)}
    items = (
        *(Item(_key(name), scalar) for name, scalar in asked.keys.items()),
        *(Item(name, column(name)) for name in rows.names if name in needed),
    )
    times = Item(_TIMES, exp.Count(this=exp.Star(), big_int=True))
    counts = Aggregate(Project(rows, items), tuple(item.name for item in items), (times,))
    one, other = (counts, groups) if rows is left else (groups, counts)
    met = Join(one, other, JoinKind.INNER, all_of(asked.conditions))
    before = sum(isinstance(node, Scan) for node in walk(rows)) if rows is left else 0
    return Precounted(rows, groups, counts, _summed(plan, met, asked), before)


def _key(name: str) -> str:
    return f"__by_{name}"


def _has_aggregate(plan: Relation) -> bool:
    return any(isinstance(node, Aggregate) for node in walk(plan))


def _asked(plan: Aggregate) -> _Asked | None:
    arguments = {}
    for item in plan.aggregates:
        call = item.scalar
        if not isinstance(call, _FUNCTIONS) or call.args.get("expressions"):
            return None
        if isinstance(call.this, exp.Distinct):
            return None
        if not isinstance(call.this, exp.Star):
            arguments[item.name] = call.this.copy()
    keys = {key: column(key) for key in plan.keys}
    conditions: list[Scalar] = []
    below: Relation = plan.child
    while not isinstance(below, Join):
        if isinstance(below, Filter):
            conditions += conjuncts(below.condition)
        elif isinstance(below, Project):
            new = {item.name: item.scalar for item in below.items}
            keys = {name: substitute(one, new) for name, one in keys.items()}
            arguments = {name: substitute(one, new) for name, one in arguments.items()}
            conditions = [substitute(one, new) for one in conditions]
        else:
            return None
        below = below.child
    if below.kind is not JoinKind.INNER:
        return None
    return _Asked(below, keys, arguments, [*conditions, *conjuncts(below.condition)])


def _is_safe(item: Item, asked: _Asked) -> bool:
    """Whether a sum or an average keeps its type when what is summed is multiplied with a count."""
    if not isinstance(item.scalar, exp.Sum | exp.Avg):
        return True
    argument = asked.arguments[item.name]
    if not _has_no_decimal(argument):
        return False
    nodes = list(walk(asked.join))
    inner = [one.scalar for n in nodes if isinstance(n, Aggregate) for one in n.aggregates]
    inner += [one.scalar for n in nodes if isinstance(n, Project) for one in n.items]
    if not all(_has_no_decimal(scalar) for scalar in inner):
        return False
    types = {
        (node.table, source): one.type
        for node in nodes
        if isinstance(node, Scan)
        for source, one in zip(node.sources, node.columns, strict=True)
    }
    found = derivation(asked.join)
    sources = {one for name in columns_of(argument) for one in found[name].sources}
    read = [types.get((one.table, one.column)) for one in sources]
    return all(is_floating(one) or is_integral(one) for one in read)


def _has_no_decimal(scalar: Scalar) -> bool:
    """Whether arithmetic of whole and floating numbers stays just that: 0.5 is a decimal to Spark."""
    for node in scalar.walk():
        if isinstance(node, exp.Cast):
            return False
        if isinstance(node, exp.Literal) and not (node.is_string or node.is_int):
            return False
    return True


def _summed(plan: Aggregate, met: Join, asked: _Asked) -> Relation:
    """The aggregates of the counted rows, under the names they had."""
    parts: list[Item] = []
    shown = [Item(name, column(_key(name))) for name in plan.keys]
    for item in plan.aggregates:
        call = aggregate_call(item.scalar)
        assert call is not None
        if isinstance(call, exp.Min | exp.Max):
            parts.append(Item(item.name, type(call)(this=asked.arguments[item.name])))
            shown.append(Item(item.name, column(item.name)))
            continue
        argument = asked.arguments.get(item.name)
        count = f"{item.name}__count"
        if not isinstance(call, exp.Sum):
            parts.append(Item(count, exp.Sum(this=_times_of(argument))))
        if isinstance(call, exp.Count):
            none = exp.Literal.number(0)
            shown.append(Item(item.name, exp.Coalesce(this=column(count), expressions=[none])))
            continue
        assert argument is not None
        parts.append(Item(item.name, exp.Sum(this=_multiplied(call, argument))))
        total = column(item.name)
        if isinstance(call, exp.Avg):
            total = exp.Div(this=total, expression=column(count), typed=False, safe=False)
        shown.append(Item(item.name, total))
    return Project(
        Aggregate(met, tuple(_key(name) for name in plan.keys), tuple(parts)), tuple(shown)
    )


def _times_of(argument: Scalar | None) -> Scalar:
    """How often a row counts: not at all where the argument is null."""
    if argument is None:
        return column(_TIMES)
    null = exp.Is(this=parenthesized(argument), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=null, true=exp.Null())], default=column(_TIMES))


def _multiplied(call: Scalar, argument: Scalar) -> Scalar:
    # Spark averages whole numbers as floating ones: their sum may be too large for a whole one.
    is_average = isinstance(call, exp.Avg)
    factor = exp.cast(argument.copy(), "double", dialect="spark") if is_average else argument
    return exp.Mul(this=parenthesized(factor), expression=column(_TIMES))
