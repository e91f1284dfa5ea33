"""How an aggregate is cut: complete groups, groups that merge, distinct values, samples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import column
from sooner.analysis import clustering_key, never_null
from sooner.progressive.decomposed import Decomposed, decomposed
from sooner.progressive.distinct_values import DistinctValues, distinct_values
from sooner.progressive.gates import CannotGate
from sooner.progressive.partials import accumulator
from sooner.progressive.parts import CannotStream, Part, State, require_seen, stream_name
from sooner.progressive.precounted import precounted
from sooner.progressive.samplers import MOST_ROWS, sampler
from sooner.progressive.stream_keys import key_names, with_stream_key
from sooner.storage.layout import REPLICATE

if TYPE_CHECKING:
    from sooner.progressive.cut import Cutter

# Looking columns up costs a job of Spark's for an answer: it pays where they are those of many rows.
_MANY_ROWS = 10_000
# Counting rows takes a shuffle: it pays where most of them are alike.
_FEWER = 0.5


def cut_aggregate(cutter: Cutter, plan: Aggregate, first: int) -> Part:
    """An aggregate: part of a delta where its groups come complete, else a state or several."""
    counted = None if cutter.gating else _precounted(cutter, plan, first)
    if counted is not None:
        return cutter.visit(counted, first)
    child = cutter.visit(plan.child, first)
    require_seen(child, [column(key) for key in plan.keys])
    require_seen(child, [item.scalar for item in plan.aggregates])
    new = plan.with_children(child.plan)
    if child.carried is None:
        return Part(new, is_static=child.is_static)
    if child.gates:
        return Part(_gated_groups(cutter, plan, new, child, first))
    if cutter.complete_groups(plan, first):
        carried = Aggregate(child.carried, (*plan.keys, REPLICATE), plan.aggregates)
        return Part(new, carried, child.counted)
    others, distinct = distinct_values(plan)
    unmerged = [item for item in others if accumulator(item) is None]
    if unmerged:
        if distinct:
            function = unmerged[0].scalar.sql("spark")
            raise CannotStream(f"{function} is not estimated yet, not beside a distinct count")
        state = State(cutter.name(), child.plan, child.counted, new, child.carried)
        return Part(cutter.state(_sampled(cutter, state, new, child.expected_rows)))
    if not distinct:
        large = {n: s for n, s in cutter.statics.items() if cutter.sizes.of(s).rows > _MANY_ROWS}
        smaller = decomposed(new, child.carried, large, cutter.tables)
        if smaller is not None:
            return Part(_with_late(cutter, smaller, child))
    states = [_distinct(cutter, plan, one, child, first) for one in distinct]
    if others or not distinct:
        rest = replace(new, aggregates=others)
        states.insert(0, State("", child.plan, child.counted, rest, child.carried))
    return Part(_side_by_side(cutter, states, plan))


def _precounted(cutter: Cutter, plan: Aggregate, first: int) -> Relation | None:
    """The aggregate over counted rows, where they meet open groups and are fewer than the rows."""
    found = precounted(plan)
    if found is None or not _is_open(cutter, found.groups, first + found.scans_before_groups):
        return None
    rows, counts = cutter.sizes.of(found.rows).rows, cutter.sizes.of(found.counts).rows
    return found.plan if counts < _FEWER * rows else None


def _is_open(cutter: Cutter, groups: Relation, first: int) -> bool:
    """Whether groups are estimates while blocks are unread."""
    while isinstance(groups, Project | Filter):
        groups = groups.child
    streamed = bool(cutter.within(groups, first))
    return streamed and isinstance(groups, Aggregate) and not cutter.complete_groups(groups, first)


def _with_late(cutter: Cutter, smaller: Decomposed, child: Part) -> Scan:
    """The state of groups whose other columns are looked up; read as if it had them all."""
    delta, schemas = smaller.aggregate.child, (*smaller.aggregate.schema, *child.plan.schema)
    types = {one.name: one for one in reversed(schemas)}
    name = cutter.name()
    cutter.statics[smaller.late.static] = smaller.late.kept
    state = State(name, delta, child.counted, smaller.aggregate, smaller.carried)
    cutter.state(replace(state, late=smaller.late))
    names = smaller.late.names
    return Scan(name, names, tuple(types[column] for column in names))


def _distinct(
    cutter: Cutter, plan: Aggregate, distinct: DistinctValues, child: Part, first: int
) -> State:
    """The state of counts of the same distinct values."""
    assert child.carried is not None

    def each_once(rows: Relation, *carried: str) -> Aggregate:
        copies = (Item(name, column(name)) for name in (*plan.keys, *carried))
        values = Project(rows, (*copies, *distinct.values))
        return Aggregate(values, (*plan.keys, *names, *carried))

    names = tuple(item.name for item in distinct.values)
    counts = Aggregate(each_once(child.plan), plan.keys, distinct.counts)
    clusters = clustering_key(
        each_once(plan.child), cutter.tables, cutter.within(plan.child, first)
    )
    solid = never_null(plan.child, cutter.tables)
    if any(set(key) - set(names) <= solid for key in clusters):
        # A value lies in one block, unless it is null and not counted: rows to count as any others.
        once = each_once(child.carried, REPLICATE)
        return State("", counts.child, child.counted, counts, once)
    keys = {stream_name(place): key for place, key in cutter.streamed.items()}
    carried = with_stream_key(child.carried, keys)
    pairs = each_once(carried, REPLICATE, *key_names(carried))
    times = (Item("__times", exp.Count(this=exp.Star(), big_int=True)),)
    # Row groups are no keys: values that lie together in them would look rarer than they are.
    replicated = pairs if all(keys.values()) else None
    counted = Aggregate(pairs, (*plan.keys, *names), times)
    kept = State("", pairs, child.counted, counted, replicated)
    return State("", counts.child, child.counted, counts, pairs=kept)


def _side_by_side(cutter: Cutter, states: list[State], plan: Aggregate) -> Relation:
    """States of the same groups as one relation."""
    first, *others = (cutter.state(replace(state, name=cutter.name())) for state in states)
    if not others:
        return first
    together: Relation = first
    for number, scan in enumerate(others):
        renamed = {key: f"__same_{number}_{key}" for key in plan.keys}
        columns = tuple(replace(c, name=renamed.get(c.name, c.name)) for c in scan.columns)
        same = [
            exp.NullSafeEQ(this=column(key), expression=column(other))
            for key, other in renamed.items()
        ]
        together = Join(
            together,
            replace(scan, columns=columns),
            JoinKind.INNER,
            exp.and_(*same, dialect="spark") if same else None,
        )
    return Project(together, tuple(Item(name, column(name)) for name in plan.names))


def _gated_groups(cutter: Cutter, plan: Aggregate, new: Aggregate, child: Part, first: int) -> Scan:
    if cutter.complete_groups(plan, first):
        raise CannotGate("groups that are complete are not scaled")
    found = [accumulator(item) for item in plan.aggregates]
    if not found or not all(one is not None and one.combine is not None for one in found):
        raise CannotGate("only sums and counts of the rows that pass")
    state = State(cutter.name(), child.plan, child.counted, new, child.carried)
    return cutter.state(replace(state, gates=child.gates, expected_rows=cutter.waiting(child)))


def _sampled(cutter: Cutter, state: State, plan: Aggregate, rows: float) -> State:
    """The state of aggregates of which some do not merge; those that do get one of their own."""
    merged = tuple(item for item in plan.aggregates if accumulator(item) is not None)
    samplers = []
    for item in plan.aggregates:
        if item not in merged:
            found = sampler(item)
            if found is None:
                raise CannotStream(f"{item.scalar.sql('spark')} is not estimated yet")
            samplers.append(found)
    if merged:
        cutter.state(replace(state, aggregate=replace(plan, aggregates=merged)))
        state = replace(state, name=cutter.name(), beside=state.name)
    return replace(state, samplers=tuple(samplers), expected_rows=min(rows, MOST_ROWS))
