"""A plan cut into what each batch of blocks adds to, and what is computed anew for every answer.

Below a cut the rows of a block come when the block is read and never change (a *delta*): batch after
batch is folded into a state. Above it (the *top*) everything is recomputed from the states. Parts
that read no streamed table are *static*: read once.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    SortKey,
    Union,
    walk,
)
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar, column, columns_of
from sooner.analysis import TableInfo, clustering_key, estimate, never_null
from sooner.analysis.deterministic import is_deterministic
from sooner.analysis.facts import table_info
from sooner.progressive.partials import accumulator
from sooner.storage.layout import REPLICATE

_MOST_ROWS = 2_000_000


class CannotStream(Exception):
    """Why a plan cannot be answered in steps under a choice of streams."""


@dataclass(frozen=True)
class State:
    """What is kept of a delta between batches.

    With ``aggregate`` the groups of the delta are merged, else its rows are collected; of those only
    the first ``keep`` in the order ``by`` if given. ``counted`` is the place of the scan whose rows
    scale the sums; ``carried`` is the delta with the replicate of every row, where sums are estimated.
    """

    name: str
    delta: Relation
    counted: int
    aggregate: Aggregate | None = None
    carried: Relation | None = None
    by: tuple[SortKey, ...] = ()
    keep: int | None = None
    expected_rows: float = 0.0


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

    @property
    def is_delta(self) -> bool:
        return self.carried is not None

    @property
    def is_top(self) -> bool:
        return not self.is_static and not self.is_delta


def cut(
    plan: Relation, tables: Mapping[str, TableInfo], streamed: Mapping[int, tuple[str, ...]]
) -> Cut:
    """Cut a plan; ``streamed`` gives the scramble key of each streamed scan by its place.

    A scan without a key is read in no order: none of its groups is complete before the end.
    """
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    rows = {place: table_info(tables, scans[place].table).facts.rows or 0 for place in streamed}
    cutter = _Cutter(tables, streamed, rows)
    top = cutter.as_top(cutter.visit(plan, 0))
    return Cut(top, tuple(cutter.states), cutter.statics)


def stream_name(place: int) -> str:
    """The name a streamed scan has in a delta."""
    return f"__stream_{place}"


@dataclass
class _Cutter:
    tables: Mapping[str, TableInfo]
    streamed: Mapping[int, tuple[str, ...]]
    rows: Mapping[int, int]
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
        if isinstance(plan, Opaque):
            raise CannotStream(f"Spark answers the text as written, because of {plan.reason}")
        raise CannotStream("what a function of yours makes of the rows is not estimated")

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
        new = plan.with_children(child.plan)
        if child.carried is None:
            return _Part(new, is_static=child.is_static)
        if isinstance(plan, Filter):
            return _Part(new, plan.with_children(child.carried), child.counted)
        carried = Project(child.carried, (*plan.items, Item(REPLICATE, column(REPLICATE))))
        return _Part(new, carried, child.counted)

    def _aggregate(self, plan: Aggregate, first: int) -> _Part:
        child = self.visit(plan.child, first)
        new = plan.with_children(child.plan)
        if child.carried is None:
            return _Part(new, is_static=child.is_static)
        if self._complete_groups(plan, first):
            carried = Aggregate(child.carried, (*plan.keys, REPLICATE), plan.aggregates)
            return _Part(new, carried, child.counted)
        distinct = _only_distinct(plan)
        if distinct is not None:
            # The distinct values are the state; counting them is the top's.
            values = Project(
                child.plan,
                (*(Item(key, column(key)) for key in plan.keys), Item("__value", distinct)),
            )
            pairs = Aggregate(values, (*plan.keys, "__value"))
            scan = self._state(State(self._name(), values, child.counted, pairs))
            counts = tuple(
                Item(item.name, exp.Count(this=column("__value"), big_int=True))
                for item in plan.aggregates
            )
            return _Part(Aggregate(scan, plan.keys, counts))
        for item in plan.aggregates:
            if accumulator(item) is None:
                raise CannotStream(f"{item.scalar.sql('spark')} is not estimated yet")
        state = State(self._name(), child.plan, child.counted, new, child.carried)
        return _Part(self._state(state))

    def _complete_groups(self, plan: Aggregate, first: int) -> bool:
        """Whether a group's rows are all in the blocks of one key, so that it is never half read."""
        clusters = clustering_key(plan, self.tables, self._within(plan, first))
        solid = never_null(plan, self.tables)
        return any(set(key) <= solid for key in clusters)

    def _limit(self, plan: Limit, first: int) -> _Part:
        sort = plan.child
        if isinstance(sort, Sort) and plan.count is not None:
            child = self.visit(sort.child, first)
            if child.is_delta:
                keep = plan.count + plan.offset
                scan = self._rows(child, sort.by, keep)
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
        # Rows that meet an aggregate which is still an estimate are all kept and joined anew each time.
        return _Part(plan.with_children(self.as_top(left), self.as_top(right)))

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
        new = plan.with_children(left.plan, right.plan)
        if plan.kind is JoinKind.FULL:
            raise CannotStream("a full outer join of two streamed tables")
        by_right = plan.kind is JoinKind.RIGHT or (
            plan.kind is JoinKind.INNER and self.rows[right.counted] > self.rows[left.counted]
        )
        if by_right:
            return _Part(new, plan.with_children(left.plan, right.carried), right.counted)
        return _Part(new, plan.with_children(left.carried, right.plan), left.counted)

    def _with_static(self, plan: Join, left: _Part, right: _Part) -> _Part:
        streams_left = left.carried is not None
        static = self._static(right if streams_left else left)
        delta = left if streams_left else right
        assert delta.carried is not None

        def joined(side: Relation) -> Join:
            return (
                plan.with_children(side, static)
                if streams_left
                else plan.with_children(static, side)
            )

        return _Part(joined(delta.plan), joined(delta.carried), delta.counted)

    def _exists(self, plan: Join, left: _Part, right: _Part) -> _Part:
        """Static rows with a partner in the stream: the distinct partners are the state."""
        assert plan.condition is not None
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
        state = State(self._name(), part.plan, part.counted, by=by, keep=keep)
        return self._state(
            replace(state, expected_rows=part.expected_rows if keep is None else keep)
        )

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


def _in_order(part: _Part) -> Relation:
    """A delta with its replicate last: set operations go by position."""
    assert part.carried is not None
    return Project(
        part.carried, tuple(Item(name, column(name)) for name in (*part.plan.names, REPLICATE))
    )


def _only_distinct(plan: Aggregate) -> Scalar | None:
    """The one scalar of which all aggregates count the distinct values, if so."""
    found: dict[str, Scalar] = {}
    for item in plan.aggregates:
        call = aggregate_call(item.scalar)
        if isinstance(item.scalar, exp.Filter) or not isinstance(call, exp.Count):
            return None
        values = call.this
        if not isinstance(values, exp.Distinct) or len(values.expressions) != 1:
            return None
        found[values.sql("spark")] = values.expressions[0].copy()
    return next(iter(found.values())) if len(found) == 1 else None


def _require_deterministic(*scalars: Scalar) -> None:
    for scalar in scalars:
        if not is_deterministic(scalar):
            raise CannotStream(f"{scalar.sql('spark')} may differ from one reading to the next")
