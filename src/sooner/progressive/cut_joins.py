"""How a join is cut: deltas block by block, deltas with static parts, gates, and the top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Project, Relation, Scan, walk
from sooner.algebra.scalar import Scalar, all_of, column, columns_of, conjuncts, equality_sides
from sooner.analysis import clustering_key, never_null, primary_key
from sooner.progressive.gates import CannotGate, gate_of
from sooner.progressive.implied import implied
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.parts import (
    CannotStream,
    Part,
    State,
    require_deterministic,
    require_seen,
    scans,
)
from sooner.storage.layout import REPLICATE

if TYPE_CHECKING:
    from sooner.progressive.cut import Cutter

# From so many rows on it pays to look for what rules out most of a static part,
_LARGE_STATIC = 500_000
# which must have lost most of its own rows to a filter.
_FEW = 0.25
# Joins in which a row asks whether it meets another, not what that is.
_ASKS_WHETHER = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.NULL_AWARE_ANTI)


def cut_join(cutter: Cutter, plan: Join, first: int) -> Part:
    """A join: part of a delta, static, or computed anew for every answer."""
    if plan.condition is not None:
        require_deterministic(plan.condition)
    left = cutter.visit(plan.left, first)
    right = cutter.visit(plan.right, first + scans(plan.left))
    if left.is_static and right.is_static:
        return Part(plan.with_children(left.plan, right.plan), is_static=True)
    if left.is_delta and right.is_delta:
        return _join_deltas(cutter, plan, left, right, first)
    if left.is_delta and right.is_static:
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            raise CannotStream("an outer join keeps rows of a table that is read beforehand")
        return _with_static(cutter, plan, left, right)
    if left.is_static and right.is_delta and plan.kind in (JoinKind.INNER, JoinKind.RIGHT):
        return _with_static(cutter, plan, left, right)
    if left.is_static and right.is_delta and plan.kind is JoinKind.SEMI:
        return _exists(cutter, plan, left, right)
    if cutter.gating and plan.kind in (JoinKind.INNER, JoinKind.SEMI):
        if left.is_delta and right.is_top:
            return _gate(cutter, plan, left, right, plan.right)
        if left.is_top and right.is_delta and plan.kind is JoinKind.INNER:
            return _gate(cutter, plan, right, left, plan.left)
    if left.gates or right.gates:
        raise CannotGate("a join that is computed anew for every answer")
    # Rows that meet an aggregate which is still an estimate are all kept and joined anew each time.
    kept = cutter.as_top(left)
    if right.is_delta and plan.kind in _ASKS_WHETHER and _compared(plan, right):
        cutter.require_few(right)
        return Part(plan.with_children(kept, _partners(cutter, plan, right)))
    return Part(plan.with_children(kept, cutter.as_top(right)))


def _gate(cutter: Cutter, plan: Join, delta: Part, top: Part, written: Relation) -> Part:
    """Rows of a delta that pass a condition on open aggregates: most are decided long before."""
    assert delta.carried is not None
    changing = {top.plan.names[place] for place in uncertain_columns(top.plan, cutter.states)}
    opening = gate_of(
        plan.condition,
        delta.plan,
        top.plan,
        primary_key(written, cutter.tables),
        changing,
        len(cutter.states) * 10 + len(delta.gates),
    )
    if selects_by_estimate(opening.gate.top, cutter.states):
        raise CannotGate("which rows the open aggregate has is itself open")
    shown = tuple(Item(name, column(name)) for name in delta.plan.names)
    if plan.kind is JoinKind.INNER:
        # Columns of the aggregate that are equal to columns here can be seen above.
        types = {one.name: one.type for one in (*delta.plan.schema, *top.plan.schema)}
        shown += tuple(
            Item(theirs, item.scalar.copy())
            for item, (_, theirs) in zip(opening.items, opening.gate.keys, strict=False)
            if types.get(item.scalar.name) == types[theirs] is not None
        )
    replicate = Item(REPLICATE, column(REPLICATE))
    new, carried = delta.plan, delta.carried
    for condition in opening.conditions:
        new, carried = Filter(new, condition), Filter(carried, condition)
    return Part(
        Project(new, (*shown, *opening.items)),
        Project(carried, (*shown, *opening.items, replicate)),
        delta.counted,
        gates=(*delta.gates, opening.gate),
    )


def _join_deltas(cutter: Cutter, plan: Join, left: Part, right: Part, first: int) -> Part:
    if not clustering_key(plan, cutter.tables, cutter.within(plan, first)):
        raise CannotStream("two streamed tables meet on other columns than their stream key")
    if plan.condition is not None and plan.condition.find(exp.NullSafeEQ):
        # Rows without a key are spread over all blocks, and here they have partners.
        compared = columns_of(plan.condition)
        if not compared <= never_null(plan.left, cutter.tables) | never_null(
            plan.right, cutter.tables
        ):
            raise CannotStream("<=> pairs rows without a key, which are in different blocks")
    assert left.carried is not None and right.carried is not None
    require_seen(left, conjuncts(plan.condition))
    require_seen(right, conjuncts(plan.condition))
    if (right.gates and plan.kind not in (JoinKind.INNER, JoinKind.RIGHT)) or (
        left.gates and plan.kind is JoinKind.RIGHT
    ):
        raise CannotGate("the partners of a row are open")
    gates = (*left.gates, *right.gates)
    new = plan.with_children(left.plan, right.plan)
    if plan.kind is JoinKind.FULL:
        raise CannotStream("a full outer join of two streamed tables")
    by_right = plan.kind is JoinKind.RIGHT or (
        plan.kind is JoinKind.INNER and cutter.rows[right.counted] > cutter.rows[left.counted]
    )
    if by_right:
        carried = plan.with_children(left.plan, right.carried)
        return Part(new, carried, right.counted, gates=gates)
    return Part(new, plan.with_children(left.carried, right.plan), left.counted, gates=gates)


def _with_static(cutter: Cutter, plan: Join, left: Part, right: Part) -> Part:
    streams_left = left.carried is not None
    if plan.kind is JoinKind.INNER:
        joined_before = _static_partner(
            cutter, plan, *((left, right) if streams_left else (right, left))
        )
        if joined_before is not None:
            return joined_before
    delta = left if streams_left else right
    part = right if streams_left else left
    assert delta.carried is not None
    if plan.kind is JoinKind.INNER:
        part = _reduced(cutter, plan, delta, part)
    static = cutter.static(part)

    def joined(side: Relation) -> Join:
        return (
            plan.with_children(side, static) if streams_left else plan.with_children(static, side)
        )

    require_seen(delta, conjuncts(plan.condition))
    return Part(joined(delta.plan), joined(delta.carried), delta.counted, gates=delta.gates)


def _static_partner(cutter: Cutter, plan: Join, delta: Part, static: Part) -> Part | None:
    """The delta with a static part joined to another static part it has, if that is what it meets.

    So nations are joined to suppliers once, and of the suppliers only those are kept that count.
    """
    assert delta.carried is not None
    for name, partner in cutter.statics.items():
        both = static.plan.name_set | partner.name_set
        on = [part for part in conjuncts(plan.condition) if columns_of(part) <= both]
        rest = [part for part in conjuncts(plan.condition) if not columns_of(part) <= both]
        if not any(columns_of(part) & partner.name_set for part in on):
            continue
        if rest and not _one_partner(
            cutter, static.plan, _pairs(plan.condition, partner, static.plan)
        ):
            continue  # of all pairs the rest of the condition may leave few
        joined = Join(partner, static.plan, JoinKind.INNER, all_of(on))
        new = _with_wider_scan(delta.plan, name, joined)
        carried = _with_wider_scan(delta.carried, name, joined)
        if new is not None and carried is not None:
            cutter.statics[name] = joined
            require_seen(delta, rest)
            return _filtered(cutter, replace(delta, plan=new, carried=carried), rest)
    return None


def _one_partner(cutter: Cutter, static: Relation, pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether columns that are equal to others decide the row of a static part."""
    key = primary_key(static, cutter.tables)
    return key is not None and key <= {theirs for _, theirs in pairs}


def _filtered(cutter: Cutter, delta: Part, parts: Sequence[Scalar]) -> Part:
    """A delta whose rows pass some conditions, its static parts without rows that these rule out."""
    condition = all_of(parts)
    if condition is None:
        return delta
    assert delta.carried is not None
    for name, static in cutter.statics.items():
        found = [implied(part, static.schema) for part in parts]
        ruling = all_of([one for one in found if one is not None])
        if ruling is not None and _with_wider_scan(delta.plan, name, static) is not None:
            cutter.statics[name] = Filter(static, ruling)
    return replace(
        delta, plan=Filter(delta.plan, condition), carried=Filter(delta.carried, condition)
    )


def _reduced(cutter: Cutter, plan: Join, delta: Part, static: Part) -> Part:
    """A large static part without rows whose partners another static part rules out.

    Where both meet the same column of the delta, their columns are equal to each other: of all
    suppliers of parts only those of green parts are kept. So they are where one meets the other: of all
    customers only those in a nation of the suppliers.
    """
    if static.expected_rows < _LARGE_STATIC:
        return static
    best: tuple[float, Relation, str, str] | None = None
    for ours, theirs in _pairs(plan.condition, delta.plan, static.plan):
        for partner, met, key in _static_partners(cutter, delta.plan):
            own = key if met == ours else ours if ours in partner.name_set else None
            share = _share_left(cutter, partner)
            if own is not None and share <= _FEW and (best is None or share < best[0]):
                best = (share, partner, own, theirs)
    if best is None:
        return static
    _, partner, key, theirs = best
    keys = Project(partner, (Item("__reduced", column(key)),))
    same = exp.EQ(this=column(theirs), expression=column("__reduced"))
    return replace(static, plan=Join(static.plan, keys, JoinKind.SEMI, same))


def _static_partners(cutter: Cutter, delta: Relation) -> Iterator[tuple[Relation, str, str]]:
    """Static parts that every row of a delta has met, the column it met them by, and theirs."""
    match delta:
        case Filter():
            yield from _static_partners(cutter, delta.child)
        case Join() if delta.kind is JoinKind.INNER:
            for scan, other in ((delta.left, delta.right), (delta.right, delta.left)):
                if isinstance(scan, Scan) and scan.table in cutter.statics:
                    for met, key in _pairs(delta.condition, other, scan):
                        yield cutter.statics[scan.table], met, key
                yield from _static_partners(cutter, other)


def _share_left(cutter: Cutter, static: Relation) -> float:
    """Of the rows of the largest table of a static part, the share that is left in it."""
    largest = max(cutter.sizes.of(node).rows for node in walk(static) if isinstance(node, Scan))
    return cutter.sizes.of(static).rows / max(1.0, largest)


def _pairs(condition: Scalar | None, one: Relation, other: Relation) -> list[tuple[str, str]]:
    """The columns of both relations that a condition says to be equal."""
    found = []
    for part in conjuncts(condition):
        sides = equality_sides(part)
        if sides is not None and all(isinstance(side, exp.Column) for side in sides):
            for a, b in (sides, sides[::-1]):
                if a.name in one.name_set and b.name in other.name_set:
                    found.append((a.name, b.name))
    return found


def _exists(cutter: Cutter, plan: Join, left: Part, right: Part) -> Part:
    """Static rows with a partner in the stream: the distinct partners are the state."""
    if right.gates:
        raise CannotGate("the partners of a row are open")
    if not _compared(plan, right):
        raise CannotStream("EXISTS over a streamed table that is not correlated")
    return Part(plan.with_children(cutter.static(left), _partners(cutter, plan, right)))


def _compared(plan: Join, right: Part) -> tuple[str, ...]:
    """The columns of the right side that a join compares."""
    used = frozenset() if plan.condition is None else columns_of(plan.condition)
    return tuple(name for name in right.plan.names if name in used)


def _partners(cutter: Cutter, plan: Join, right: Part) -> Scan:
    """The state of what a row may meet, where it only asks whether it does: each once."""
    used = _compared(plan, right)
    keys = Project(right.plan, tuple(Item(name, column(name)) for name in used))
    return cutter.state(State(cutter.name(), keys, right.counted, Aggregate(keys, used)))


def _with_wider_scan(plan: Relation, name: str, static: Relation) -> Relation | None:
    """The plan with a static part that has more columns, if all of them can be seen at its top."""
    match plan:
        case Scan():
            return Scan(name, static.names, static.schema) if plan.table == name else None
        case Filter():
            child = _with_wider_scan(plan.child, name, static)
            return None if child is None else plan.with_children(child)
        case Join() if plan.kind is JoinKind.INNER:
            for place, side in enumerate(plan.children):
                found = _with_wider_scan(side, name, static)
                if found is not None:
                    sides = list(plan.children)
                    sides[place] = found
                    return plan.with_children(*sides)
    return None
