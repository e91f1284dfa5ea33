"""A plan cut into what each batch of blocks adds to, and what is computed anew for every answer.

Below a cut the rows of a block come when the block is read and never change (a *delta*): batch after
batch is folded into a state. Above it (the *top*) everything is recomputed from the states. Parts
that read no streamed table are *static*: read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Filter,
    Intersect,
    Item,
    Join,
    JoinKind,
    Limit,
    Map,
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    SortKey,
    Union,
    walk,
)
from sooner.algebra.scalar import Scalar, column, columns_of, conjuncts
from sooner.analysis import TableInfo, clustering_key, estimate, never_null, primary_key
from sooner.analysis.deterministic import is_deterministic
from sooner.analysis.facts import table_info
from sooner.progressive.distinct_values import DistinctValues, distinct_values
from sooner.progressive.gates import CannotGate, Gate, gate_of
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.partials import accumulator
from sooner.progressive.samplers import MOST_ROWS, Sampler, sampler
from sooner.progressive.stream_keys import key_names, with_stream_key
from sooner.storage.layout import REPLICATE

_MOST_ROWS = 2_000_000
# Of the rows that a condition on an open value could concern, about so many are not decided yet.
_WAITING_SHARE = 0.02


class CannotStream(Exception):
    """Why a plan cannot be answered in steps under a choice of streams."""


@dataclass(frozen=True)
class State:
    """What is kept of a delta between batches.

    With ``aggregate`` the groups of the delta are merged, else its rows are collected; of those only
    the first ``keep`` in the order ``by`` if given. ``counted`` is the place of the scan whose rows
    scale the sums; ``carried`` is the delta with the replicate of every row, where sums are estimated.
    Only rows that pass its ``gates`` count; ``carried`` has the columns these need.
    ``pairs`` is the state of the distinct values where the aggregate counts them.
    With ``samplers`` some aggregates do not merge, and rows are kept for them (:mod:`sampled`); those
    that do merge are in the state ``beside``.
    """

    name: str
    delta: Relation
    counted: int
    aggregate: Aggregate | None = None
    carried: Relation | None = None
    by: tuple[SortKey, ...] = ()
    keep: int | None = None
    expected_rows: float = 0.0
    gates: tuple[Gate, ...] = ()
    pairs: State | None = None
    samplers: tuple[Sampler, ...] = ()
    beside: str | None = None


@dataclass(frozen=True)
class Cut:
    """The states, the static parts by name, and the top, whose scans name both."""

    top: Relation
    states: tuple[State, ...]
    statics: Mapping[str, Relation]


@dataclass(frozen=True)
class _Part:
    """A subtree with its role; a delta also in a form that carries the replicate."""

    plan: Relation
    carried: Relation | None = None
    counted: int = -1
    is_static: bool = False
    expected_rows: float = 0.0
    gates: tuple[Gate, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns of a delta that are there for its gates."""
        return tuple(name for gate in self.gates for name in gate.columns)

    @property
    def is_delta(self) -> bool:
        return self.carried is not None

    @property
    def is_top(self) -> bool:
        return not self.is_static and not self.is_delta


def cut(
    plan: Relation,
    tables: Mapping[str, TableInfo],
    streamed: Mapping[int, tuple[str, ...]],
    gated: bool = True,
) -> Cut:
    """Cut a plan; ``streamed`` gives the scramble key of each streamed scan by its place.

    A scan without a key is read in no order: none of its groups is complete before the end.
    Unless ``gated``, all rows that meet an open aggregate are kept.
    """
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    rows = {place: table_info(tables, scans[place].table).facts.rows or 0 for place in streamed}
    for gating in (True, False) if gated else (False,):
        cutter = _Cutter(tables, streamed, rows, gating)
        try:
            top = cutter.as_top(cutter.visit(plan, 0))
            if top.names == plan.names:
                return Cut(top, tuple(cutter.states), cutter.statics)
        except CannotGate:
            assert gating
    raise AssertionError("a cut without gates gives all columns")


def stream_name(place: int) -> str:
    """The name a streamed scan has in a delta."""
    return f"__stream_{place}"


@dataclass
class _Cutter:
    tables: Mapping[str, TableInfo]
    streamed: Mapping[int, tuple[str, ...]]
    rows: Mapping[int, int]
    gating: bool
    states: list[State] = field(default_factory=list)
    statics: dict[str, Relation] = field(default_factory=dict)

    def visit(self, plan: Relation, first: int) -> _Part:
        part = self._visit(plan, first)
        return replace(part, expected_rows=estimate(plan, self.tables).rows)

    def _visit(self, plan: Relation, first: int) -> _Part:
        match plan:
            case Scan():
                return self._scan(plan, first)
            case Filter():
                _require_deterministic(plan.condition)
                return self._row_by_row(plan, first)
            case Project():
                _require_deterministic(*(item.scalar for item in plan.items))
                return self._row_by_row(plan, first)
            case Aggregate():
                return self._aggregate(plan, first)
            case Sort():
                child = self.visit(plan.child, first)
                if child.is_static:
                    return _Part(plan.with_children(child.plan), is_static=True)
                return _Part(plan.with_children(self.as_top(child)))
            case Limit():
                return self._limit(plan, first)
            case Join():
                return self._join(plan, first)
            case Union() | Intersect() | Except():
                return self._set_operation(plan, first)
            case Map():
                return self._map(plan, first)
        if isinstance(plan, Opaque):
            raise CannotStream(f"Spark answers the text as written, because of {plan.reason}")
        raise AssertionError(f"no cut for {type(plan).__name__}")

    def _scan(self, plan: Scan, place: int) -> _Part:
        if place not in self.streamed:
            return _Part(plan, is_static=True)
        plain = Scan(stream_name(place), plan.sources, plan.columns)
        carried = Scan(
            stream_name(place),
            (*plan.sources, REPLICATE),
            (*plan.columns, Column(REPLICATE, "tinyint")),
        )
        return _Part(plain, carried, place)

    def _row_by_row(self, plan: Filter | Project, first: int) -> _Part:
        child = self.visit(plan.child, first)
        scalars = [plan.condition] if isinstance(plan, Filter) else [i.scalar for i in plan.items]
        _require_seen(child, scalars)
        if child.carried is None:
            return _Part(plan.with_children(child.plan), is_static=child.is_static)
        if isinstance(plan, Filter):
            new, carried = plan.with_children(child.plan), plan.with_children(child.carried)
            return _Part(new, carried, child.counted, gates=child.gates)
        hidden = tuple(Item(name, column(name)) for name in child.hidden)
        replicate = Item(REPLICATE, column(REPLICATE))
        return _Part(
            Project(child.plan, (*plan.items, *hidden)),
            Project(child.carried, (*plan.items, *hidden, replicate)),
            child.counted,
            gates=child.gates,
        )

    def _aggregate(self, plan: Aggregate, first: int) -> _Part:
        child = self.visit(plan.child, first)
        _require_seen(child, [column(key) for key in plan.keys])
        _require_seen(child, [item.scalar for item in plan.aggregates])
        new = plan.with_children(child.plan)
        if child.carried is None:
            return _Part(new, is_static=child.is_static)
        if child.gates:
            return _Part(self._gated_groups(plan, new, child, first))
        if self._complete_groups(plan, first):
            carried = Aggregate(child.carried, (*plan.keys, REPLICATE), plan.aggregates)
            return _Part(new, carried, child.counted)
        others, distinct = distinct_values(plan)
        if any(accumulator(item) is None for item in others):
            if distinct:
                raise CannotStream("distinct values beside an aggregate that does not add up")
            state = State(self._name(), child.plan, child.counted, new, child.carried)
            return _Part(self._state(self._sampled(state, new, child.expected_rows)))
        states = [self._distinct(plan, one, child, first) for one in distinct]
        if others or not distinct:
            rest = replace(new, aggregates=others)
            states.insert(0, State("", child.plan, child.counted, rest, child.carried))
        return _Part(self._side_by_side(states, plan))

    def _distinct(
        self, plan: Aggregate, distinct: DistinctValues, child: _Part, first: int
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
            each_once(plan.child), self.tables, self._within(plan.child, first)
        )
        solid = never_null(plan.child, self.tables)
        if any(set(key) - set(names) <= solid for key in clusters):
            # A value lies in one block, unless it is null and not counted: rows to count as any others.
            once = each_once(child.carried, REPLICATE)
            return State("", counts.child, child.counted, counts, once)
        keys = {stream_name(place): key for place, key in self.streamed.items()}
        carried = with_stream_key(child.carried, keys)
        pairs = each_once(carried, REPLICATE, *key_names(carried))
        times = (Item("__times", exp.Count(this=exp.Star(), big_int=True)),)
        # Row groups are no keys: values that lie together in them would look rarer than they are.
        replicated = pairs if all(keys.values()) else None
        counted = Aggregate(pairs, (*plan.keys, *names), times)
        kept = State("", pairs, child.counted, counted, replicated)
        return State("", counts.child, child.counted, counts, pairs=kept)

    def _side_by_side(self, states: list[State], plan: Aggregate) -> Relation:
        """States of the same groups as one relation."""
        first, *others = (self._state(replace(state, name=self._name())) for state in states)
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

    def _gated_groups(self, plan: Aggregate, new: Aggregate, child: _Part, first: int) -> Scan:
        if self._complete_groups(plan, first):
            raise CannotGate("groups that are complete are not scaled")
        found = [accumulator(item) for item in plan.aggregates]
        if not found or not all(one is not None and one.combine is not None for one in found):
            raise CannotGate("only sums and counts of the rows that pass")
        state = State(self._name(), child.plan, child.counted, new, child.carried)
        return self._state(replace(state, gates=child.gates, expected_rows=self._waiting(child)))

    def _waiting(self, part: _Part) -> float:
        """About how many rows wait for open values."""
        return part.expected_rows * _WAITING_SHARE

    def _sampled(self, state: State, plan: Aggregate, rows: float) -> State:
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
            self._state(replace(state, aggregate=replace(plan, aggregates=merged)))
            state = replace(state, name=self._name(), beside=state.name)
        return replace(state, samplers=tuple(samplers), expected_rows=min(rows, MOST_ROWS))

    def _complete_groups(self, plan: Aggregate, first: int) -> bool:
        """Whether a group's rows are all in the blocks of one key, so that it is never half read."""
        clusters = clustering_key(plan, self.tables, self._within(plan, first))
        solid = never_null(plan, self.tables)
        return any(set(key) <= solid for key in clusters)

    def _map(self, plan: Map, first: int) -> _Part:
        """A function of rows that never change, each call with rows of one replicate."""
        child = self.visit(plan.child, first)
        if child.is_static:
            return _Part(plan.with_children(child.plan), is_static=True)
        if child.is_top:
            raise CannotStream("a function of yours takes values that are still estimates")
        if child.gates:
            raise CannotGate(
                "a function of yours takes rows of which it is open whether they count"
            )
        if plan.by and not self._complete_groups(Aggregate(plan.child, plan.by), first):
            raise CannotStream(
                f"a function of yours takes all rows of each {', '.join(plan.by)} at once, "
                "and they are in many blocks"
            )
        # Rows that agree on the stream key are of one replicate; without `by` any parts will do.
        by = plan.by or (REPLICATE,)
        carried = replace(plan, child=_in_order(child), by=by, apart=REPLICATE)
        return _Part(plan.with_children(child.plan), carried, child.counted)

    def _limit(self, plan: Limit, first: int) -> _Part:
        sort = plan.child
        if isinstance(sort, Sort) and plan.count is not None:
            child = self.visit(sort.child, first)
            if child.is_delta:
                keep = plan.count + plan.offset
                # Of rows that may yet fail, the first ones do not suffice.
                scan = self._rows(child) if child.gates else self._rows(child, sort.by, keep)
                return _Part(plan.with_children(sort.with_children(scan)))
            part = _Part(sort.with_children(child.plan), is_static=child.is_static)
        else:
            part = self.visit(plan.child, first)
            if not part.is_top:
                raise CannotStream("LIMIT without ORDER BY takes any rows: Spark chooses them")
        return _Part(plan.with_children(part.plan), is_static=part.is_static)

    def _join(self, plan: Join, first: int) -> _Part:
        if plan.condition is not None:
            _require_deterministic(plan.condition)
        left = self.visit(plan.left, first)
        right = self.visit(plan.right, first + _scans(plan.left))
        if left.is_static and right.is_static:
            return _Part(plan.with_children(left.plan, right.plan), is_static=True)
        if left.is_delta and right.is_delta:
            return self._join_deltas(plan, left, right, first)
        if left.is_delta and right.is_static:
            if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
                raise CannotStream("an outer join keeps rows of a table that is read beforehand")
            return self._with_static(plan, left, right)
        if left.is_static and right.is_delta and plan.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return self._with_static(plan, left, right)
        if left.is_static and right.is_delta and plan.kind is JoinKind.SEMI:
            return self._exists(plan, left, right)
        if self.gating and plan.kind in (JoinKind.INNER, JoinKind.SEMI):
            if left.is_delta and right.is_top:
                return self._gate(plan, left, right, plan.right)
            if left.is_top and right.is_delta and plan.kind is JoinKind.INNER:
                return self._gate(plan, right, left, plan.left)
        if left.gates or right.gates:
            raise CannotGate("a join that is computed anew for every answer")
        # Rows that meet an aggregate which is still an estimate are all kept and joined anew each time.
        return _Part(plan.with_children(self.as_top(left), self.as_top(right)))

    def _gate(self, plan: Join, delta: _Part, top: _Part, written: Relation) -> _Part:
        """Rows of a delta that pass a condition on open aggregates: most are decided long before."""
        assert delta.carried is not None
        changing = {top.plan.names[place] for place in uncertain_columns(top.plan, self.states)}
        opening = gate_of(
            plan.condition,
            delta.plan,
            top.plan,
            primary_key(written, self.tables),
            changing,
            len(self.states) * 10 + len(delta.gates),
        )
        if selects_by_estimate(opening.gate.top, self.states):
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
        return _Part(
            Project(new, (*shown, *opening.items)),
            Project(carried, (*shown, *opening.items, replicate)),
            delta.counted,
            gates=(*delta.gates, opening.gate),
        )

    def _join_deltas(self, plan: Join, left: _Part, right: _Part, first: int) -> _Part:
        if not clustering_key(plan, self.tables, self._within(plan, first)):
            raise CannotStream("two streamed tables meet on other columns than their stream key")
        if plan.condition is not None and plan.condition.find(exp.NullSafeEQ):
            # Rows without a key are spread over all blocks, and here they have partners.
            compared = columns_of(plan.condition)
            if not compared <= never_null(plan.left, self.tables) | never_null(
                plan.right, self.tables
            ):
                raise CannotStream("<=> pairs rows without a key, which are in different blocks")
        assert left.carried is not None and right.carried is not None
        _require_seen(left, conjuncts(plan.condition))
        _require_seen(right, conjuncts(plan.condition))
        if (right.gates and plan.kind not in (JoinKind.INNER, JoinKind.RIGHT)) or (
            left.gates and plan.kind is JoinKind.RIGHT
        ):
            raise CannotGate("the partners of a row are open")
        gates = (*left.gates, *right.gates)
        new = plan.with_children(left.plan, right.plan)
        if plan.kind is JoinKind.FULL:
            raise CannotStream("a full outer join of two streamed tables")
        by_right = plan.kind is JoinKind.RIGHT or (
            plan.kind is JoinKind.INNER and self.rows[right.counted] > self.rows[left.counted]
        )
        if by_right:
            carried = plan.with_children(left.plan, right.carried)
            return _Part(new, carried, right.counted, gates=gates)
        return _Part(new, plan.with_children(left.carried, right.plan), left.counted, gates=gates)

    def _with_static(self, plan: Join, left: _Part, right: _Part) -> _Part:
        streams_left = left.carried is not None
        if plan.kind is JoinKind.INNER:
            joined_before = self._static_partner(
                plan, *((left, right) if streams_left else (right, left))
            )
            if joined_before is not None:
                return joined_before
        static = self._static(right if streams_left else left)
        delta = left if streams_left else right
        assert delta.carried is not None

        def joined(side: Relation) -> Join:
            return (
                plan.with_children(side, static)
                if streams_left
                else plan.with_children(static, side)
            )

        _require_seen(delta, conjuncts(plan.condition))
        return _Part(joined(delta.plan), joined(delta.carried), delta.counted, gates=delta.gates)

    def _static_partner(self, plan: Join, delta: _Part, static: _Part) -> _Part | None:
        """The delta with a static part joined to another static part it has, if that is all it meets.

        So nations are joined to suppliers once, and of the suppliers only those are kept that count.
        """
        assert delta.carried is not None
        met = columns_of(plan.condition) - static.plan.name_set if plan.condition else frozenset()
        for name, partner in self.statics.items():
            if met and met <= partner.name_set:
                both = Join(partner, static.plan, JoinKind.INNER, plan.condition)
                new = _with_wider_scan(delta.plan, name, both)
                carried = _with_wider_scan(delta.carried, name, both)
                if new is not None and carried is not None:
                    self.statics[name] = both
                    return replace(delta, plan=new, carried=carried)
        return None

    def _exists(self, plan: Join, left: _Part, right: _Part) -> _Part:
        """Static rows with a partner in the stream: the distinct partners are the state."""
        assert plan.condition is not None
        if right.gates:
            raise CannotGate("the partners of a row are open")
        used = [name for name in right.plan.names if name in columns_of(plan.condition)]
        if not used:
            raise CannotStream("EXISTS over a streamed table that is not correlated")
        keys = Project(right.plan, tuple(Item(name, column(name)) for name in used))
        partners = Aggregate(keys, tuple(used))
        scan = self._state(State(self._name(), keys, right.counted, partners))
        return _Part(plan.with_children(self._static(left), scan))

    def _set_operation(self, plan: Union | Intersect | Except, first: int) -> _Part:
        left = self.visit(plan.left, first)
        right = self.visit(plan.right, first + _scans(plan.left))
        if left.gates or right.gates:
            raise CannotGate("a set operation of rows that are open")
        new = plan.with_children(left.plan, right.plan)
        if left.is_static and right.is_static:
            return _Part(new, is_static=True)
        together = isinstance(plan, Union) or self._same_block(plan, first)
        if left.is_delta and right.is_delta and together:
            sides = (_in_order(left), _in_order(right))
            larger = max(left.counted, right.counted, key=self.rows.__getitem__)
            return _Part(new, plan.with_children(*sides), larger)
        if left.is_top or right.is_top:
            return _Part(plan.with_children(self.as_top(left), self.as_top(right)))
        raise CannotStream("a set operation of streamed and other rows")

    def _same_block(self, plan: Intersect | Except, first: int) -> bool:
        """Whether equal rows of both sides are always in one block: by a key without nulls."""
        positions = dict(zip(plan.names, plan.right.names, strict=True))
        solid, also = never_null(plan.left, self.tables), never_null(plan.right, self.tables)
        return any(
            all(name in solid and positions[name] in also for name in key)
            for key in clustering_key(plan, self.tables, self._within(plan, first))
        )

    def as_top(self, part: _Part) -> Relation:
        """A part as something the top can read: states and static parts become scans."""
        if part.is_static:
            return self._static(part)
        return self._rows(part) if part.is_delta else part.plan

    def _rows(self, part: _Part, by: tuple[SortKey, ...] = (), keep: int | None = None) -> Scan:
        if keep is None and part.expected_rows > _MOST_ROWS:
            raise CannotStream("the answer has too many rows to keep")
        if part.gates:
            return self._gated_rows(part)
        state = State(self._name(), part.plan, part.counted, by=by, keep=keep)
        return self._state(
            replace(state, expected_rows=part.expected_rows if keep is None else keep)
        )

    def _gated_rows(self, part: _Part) -> Scan:
        hidden = set(part.hidden)
        seen = tuple(Item(name, column(name)) for name in part.plan.names if name not in hidden)
        state = State(self._name(), Project(part.plan, seen), part.counted, carried=part.carried)
        return self._state(replace(state, gates=part.gates, expected_rows=self._waiting(part)))

    def _state(self, state: State) -> Scan:
        shown = state.aggregate or state.delta
        self.states.append(state)
        return Scan(state.name, shown.names, shown.schema)

    def _static(self, part: _Part) -> Scan:
        name = f"__static_{len(self.statics)}"
        self.statics[name] = part.plan
        return Scan(name, part.plan.names, part.plan.schema)

    def _name(self) -> str:
        return f"__state_{len(self.states)}"

    def _within(self, plan: Relation, first: int) -> dict[int, tuple[str, ...]]:
        """The streamed scans of a subtree, by their places within it."""
        last = first + _scans(plan)
        return {p - first: key for p, key in self.streamed.items() if first <= p < last}


def _scans(plan: Relation) -> int:
    return sum(isinstance(node, Scan) for node in walk(plan))


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


def _in_order(part: _Part) -> Relation:
    """A delta with its replicate last: set operations go by position."""
    assert part.carried is not None
    return Project(
        part.carried, tuple(Item(name, column(name)) for name in (*part.plan.names, REPLICATE))
    )


def _require_seen(part: _Part, scalars: Sequence[Scalar]) -> None:
    """Above a gate the open values themselves are not to be had."""
    if part.gates:
        missing = {name for one in scalars for name in columns_of(one)} - part.plan.name_set
        if missing:
            raise CannotGate(f"{', '.join(sorted(missing))} is used above a condition on it")


def _require_deterministic(*scalars: Scalar) -> None:
    for scalar in scalars:
        if not is_deterministic(scalar):
            raise CannotStream(f"{scalar.sql('spark')} may differ from one reading to the next")
