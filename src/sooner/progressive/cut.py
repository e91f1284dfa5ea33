"""A plan cut into what each batch of blocks adds to, and what is computed anew for every answer.

Below a cut the rows of a block come when the block is read and never change (a *delta*): batch after
batch is folded into a state. Above it (the *top*) everything is recomputed from the states. Parts
that read no streamed table are *static*: read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Filter,
    Intersect,
    Item,
    Join,
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
from sooner.algebra.scalar import column
from sooner.analysis import Sizes, TableInfo, clustering_key, never_null
from sooner.analysis.facts import table_info
from sooner.progressive.cut_aggregates import cut_aggregate
from sooner.progressive.cut_joins import cut_join
from sooner.progressive.gates import CannotGate
from sooner.progressive.parts import (
    CannotStream,
    Cut,
    Part,
    State,
    in_order,
    require_deterministic,
    require_seen,
    scans,
    stream_name,
)
from sooner.progressive.statics_once import statics_once
from sooner.storage.layout import REPLICATE

_MOST_ROWS = 2_000_000
# Of the rows that a condition on an open value could concern, about so many are not decided yet.
_WAITING_SHARE = 0.02


def cut(
    plan: Relation,
    tables: Mapping[str, TableInfo],
    streamed: Mapping[int, tuple[str, ...]],
    gated: bool = True,
    sizes: Sizes | None = None,
) -> Cut:
    """Cut a plan; ``streamed`` gives the scramble key of each streamed scan by its place.

    A scan without a key is read in no order: none of its groups is complete before the end.
    Unless ``gated``, all rows that meet an open aggregate are kept. ``sizes`` saves estimating the same
    plan again.
    """
    read = [node for node in walk(plan) if isinstance(node, Scan)]
    rows = {place: table_info(tables, read[place].table).facts.rows or 0 for place in streamed}
    for gating in (True, False) if gated else (False,):
        cutter = Cutter(tables, streamed, rows, gating, sizes or Sizes(tables))
        try:
            top = cutter.as_top(cutter.visit(plan, 0))
            if top.names == plan.names:
                return statics_once(Cut(top, tuple(cutter.states), cutter.statics))
        except CannotGate:
            assert gating
    raise AssertionError("a cut without gates gives all columns")


@dataclass
class Cutter:
    """One walk over a plan, and the states and static parts found on it.

    ``rows`` are those of the streamed scans. A subtree is visited with the place of its first scan.
    """

    tables: Mapping[str, TableInfo]
    streamed: Mapping[int, tuple[str, ...]]
    rows: Mapping[int, int]
    gating: bool
    sizes: Sizes
    states: list[State] = field(default_factory=list)
    statics: dict[str, Relation] = field(default_factory=dict)

    def visit(self, plan: Relation, first: int) -> Part:
        """A subtree with its role."""
        part = self._visit(plan, first)
        return replace(part, expected_rows=self.sizes.of(plan).rows)

    def _visit(self, plan: Relation, first: int) -> Part:
        match plan:
            case Scan():
                return self._scan(plan, first)
            case Filter():
                require_deterministic(plan.condition)
                return self._row_by_row(plan, first)
            case Project():
                require_deterministic(*(item.scalar for item in plan.items))
                return self._row_by_row(plan, first)
            case Aggregate():
                return cut_aggregate(self, plan, first)
            case Sort():
                child = self.visit(plan.child, first)
                if child.is_static:
                    return Part(plan.with_children(child.plan), is_static=True)
                return Part(plan.with_children(self.as_top(child)))
            case Limit():
                return self._limit(plan, first)
            case Join():
                return cut_join(self, plan, first)
            case Union() | Intersect() | Except():
                return self._set_operation(plan, first)
            case Map():
                return self._map(plan, first)
        if isinstance(plan, Opaque):
            raise CannotStream(f"Spark answers the text as written, because of {plan.reason}")
        raise AssertionError(f"no cut for {type(plan).__name__}")

    def _scan(self, plan: Scan, place: int) -> Part:
        if place not in self.streamed:
            return Part(plan, is_static=True)
        plain = Scan(stream_name(place), plan.sources, plan.columns)
        carried = Scan(
            stream_name(place),
            (*plan.sources, REPLICATE),
            (*plan.columns, Column(REPLICATE, "tinyint")),
        )
        return Part(plain, carried, place)

    def _row_by_row(self, plan: Filter | Project, first: int) -> Part:
        child = self.visit(plan.child, first)
        scalars = [plan.condition] if isinstance(plan, Filter) else [i.scalar for i in plan.items]
        require_seen(child, scalars)
        if child.carried is None:
            return Part(plan.with_children(child.plan), is_static=child.is_static)
        if isinstance(plan, Filter):
            new, carried = plan.with_children(child.plan), plan.with_children(child.carried)
            return Part(new, carried, child.counted, gates=child.gates)
        hidden = tuple(Item(name, column(name)) for name in child.hidden)
        replicate = Item(REPLICATE, column(REPLICATE))
        return Part(
            Project(child.plan, (*plan.items, *hidden)),
            Project(child.carried, (*plan.items, *hidden, replicate)),
            child.counted,
            gates=child.gates,
        )

    def waiting(self, part: Part) -> float:
        """About how many rows wait for open values."""
        return part.expected_rows * _WAITING_SHARE

    def complete_groups(self, plan: Aggregate, first: int) -> bool:
        """Whether a group's rows are all in the blocks of one key, so that it is never half read."""
        clusters = clustering_key(plan, self.tables, self.within(plan, first))
        solid = never_null(plan, self.tables)
        return any(set(key) <= solid for key in clusters)

    def _map(self, plan: Map, first: int) -> Part:
        """A function of rows that never change, each call with rows of one replicate."""
        child = self.visit(plan.child, first)
        if child.is_static:
            return Part(plan.with_children(child.plan), is_static=True)
        if child.is_top:
            raise CannotStream("a function of yours takes values that are still estimates")
        if child.gates:
            raise CannotGate(
                "a function of yours takes rows of which it is open whether they count"
            )
        if plan.by and not self.complete_groups(Aggregate(plan.child, plan.by), first):
            raise CannotStream(
                f"a function of yours takes all rows of each {', '.join(plan.by)} at once, "
                "and they are in many blocks"
            )
        # Rows that agree on the stream key are of one replicate; without `by` any parts will do.
        by = plan.by or (REPLICATE,)
        carried = replace(plan, child=in_order(child), by=by, apart=REPLICATE)
        return Part(plan.with_children(child.plan), carried, child.counted)

    def _limit(self, plan: Limit, first: int) -> Part:
        sort = plan.child
        if isinstance(sort, Sort) and plan.count is not None:
            child = self.visit(sort.child, first)
            if child.is_delta:
                keep = plan.count + plan.offset
                # Of rows that may yet fail, the first ones do not suffice.
                scan = self._rows(child) if child.gates else self._rows(child, sort.by, keep)
                return Part(plan.with_children(sort.with_children(scan)))
            part = Part(sort.with_children(child.plan), is_static=child.is_static)
        else:
            part = self.visit(plan.child, first)
            if not part.is_top:
                raise CannotStream("LIMIT without ORDER BY takes any rows: Spark chooses them")
        return Part(plan.with_children(part.plan), is_static=part.is_static)

    def _set_operation(self, plan: Union | Intersect | Except, first: int) -> Part:
        left = self.visit(plan.left, first)
        right = self.visit(plan.right, first + scans(plan.left))
        if left.gates or right.gates:
            raise CannotGate("a set operation of rows that are open")
        new = plan.with_children(left.plan, right.plan)
        if left.is_static and right.is_static:
            return Part(new, is_static=True)
        together = isinstance(plan, Union) or self._same_block(plan, first)
        if left.is_delta and right.is_delta and together:
            sides = (in_order(left), in_order(right))
            larger = max(left.counted, right.counted, key=self.rows.__getitem__)
            return Part(new, plan.with_children(*sides), larger)
        if left.is_top or right.is_top:
            return Part(plan.with_children(self.as_top(left), self.as_top(right)))
        raise CannotStream("a set operation of streamed and other rows")

    def _same_block(self, plan: Intersect | Except, first: int) -> bool:
        """Whether equal rows of both sides are always in one block: by a key without nulls."""
        positions = dict(zip(plan.names, plan.right.names, strict=True))
        solid, also = never_null(plan.left, self.tables), never_null(plan.right, self.tables)
        return any(
            all(name in solid and positions[name] in also for name in key)
            for key in clustering_key(plan, self.tables, self.within(plan, first))
        )

    def as_top(self, part: Part) -> Relation:
        """A part as something the top can read: states and static parts become scans."""
        if part.is_static:
            return self.static(part)
        return self._rows(part) if part.is_delta else part.plan

    def require_few(self, part: Part) -> None:
        """Refuse to keep rows of which there will be too many."""
        if part.expected_rows > _MOST_ROWS:
            raise CannotStream("the answer has too many rows to keep")

    def _rows(self, part: Part, by: tuple[SortKey, ...] = (), keep: int | None = None) -> Scan:
        if keep is None:
            self.require_few(part)
        if part.gates:
            return self._gated_rows(part)
        state = State(self.name(), part.plan, part.counted, by=by, keep=keep)
        return self.state(
            replace(state, expected_rows=part.expected_rows if keep is None else keep)
        )

    def _gated_rows(self, part: Part) -> Scan:
        hidden = set(part.hidden)
        seen = tuple(Item(name, column(name)) for name in part.plan.names if name not in hidden)
        state = State(self.name(), Project(part.plan, seen), part.counted, carried=part.carried)
        return self.state(replace(state, gates=part.gates, expected_rows=self.waiting(part)))

    def state(self, state: State) -> Scan:
        """Keep a state; what reads it."""
        shown = state.aggregate or state.delta
        self.states.append(state)
        return Scan(state.name, shown.names, shown.schema)

    def static(self, part: Part) -> Scan:
        """Keep a static part; what reads it."""
        name = f"__static_{len(self.statics)}"
        self.statics[name] = part.plan
        return Scan(name, part.plan.names, part.plan.schema)

    def name(self) -> str:
        """The name of the next state."""
        return f"__state_{len(self.states)}"

    def within(self, plan: Relation, first: int) -> dict[int, tuple[str, ...]]:
        """The streamed scans of a subtree, by their places within it."""
        last = first + scans(plan)
        return {p - first: key for p, key in self.streamed.items() if first <= p < last}
