"""Few rows out of many that a query reads in several places: of every batch they are read once.

A nested query often asks of an aggregate what it asks of its rows: the same joins and filters, under
other names and with other columns. Kept while the batch is folded in, these rows cost one scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sooner.algebra import Filter, Item, Join, JoinKind, Project, Relation, Scan, transform_up, walk
from sooner.algebra.scalar import Scalar, all_of, column, conjuncts, equality_sides
from sooner.analysis import TableInfo, estimate, primary_key
from sooner.analysis.conditions import implied
from sooner.analysis.facts import table_info
from sooner.progressive.hints import batch_infos
from sooner.progressive.parts import State, stream_name
from sooner.progressive.streams import Stream
from sooner.progressive.unify import unify

# To keep a row costs several times as much as to read it once more.
_FEW = 0.2
_NAME = "__common_0"


@dataclass(frozen=True)
class _Common:
    """Rows, and what the plans that have them call their columns; a plan is known by its ``id``."""

    rows: Relation
    names: Mapping[int, Mapping[str, str]]


def read_once(stream: Stream) -> Stream:
    """The stream with the most that it reads twice among its commons."""
    cut = stream.cut
    infos = batch_infos(stream, 1.0)
    spelling = _Spelling(stream, infos)
    joins = [
        node
        for state in cut.states
        if _is_plain(state)
        for node in walk(_read(state))
        if isinstance(node, Join) and _is_streamed(node, stream)
    ]
    joins.sort(key=lambda join: -len(list(walk(join))))
    for join in joins:
        common = _common(join, joins, spelling)
        if len(common.names) > 1 and spelling.share(common.rows) <= _FEW:
            states = tuple(
                _over(state, common) if _is_plain(state) else state for state in cut.states
            )
            return replace(stream, cut=replace(cut, states=states, commons={_NAME: common.rows}))
    return stream


def _is_plain(state: State) -> bool:
    """Whether a state only reads its rows, through gates or not."""
    return not replace(state, gates=()).is_special


def _read(state: State) -> Relation:
    return state.delta if state.carried is None else state.carried


def _is_streamed(plan: Relation, stream: Stream) -> bool:
    names = {stream_name(place) for place in stream.scans}
    return any(isinstance(node, Scan) and node.table in names for node in walk(plan))


def _common(join: Join, joins: Sequence[Join], spelling: _Spelling) -> _Common:
    """The rows of a join, with the columns that others have of them."""
    rows = spelling.of(join)
    names = {id(join): {name: name for name in join.names}}
    inside = {id(node) for node in walk(join)}
    for other in joins:
        apart = inside.isdisjoint(id(node) for node in walk(other))
        both = unify(rows, spelling.of(other)) if apart else None
        if both is not None:
            rows = both.plan
            names[id(other)] = dict(both.names)
            inside |= {id(node) for node in walk(other)}
    return _Common(rows, names)


def _over(state: State, common: _Common) -> State:
    """A state that has the common rows from where they are kept."""

    def reading(plan: Relation) -> Relation:
        names = common.names.get(id(plan))
        if names is not None:
            return Scan(_NAME, tuple(names[name] for name in plan.names), plan.schema)
        return plan.with_children(*(reading(child) for child in plan.children))

    plan = reading(_read(state))
    return replace(state, delta=plan) if state.carried is None else replace(state, carried=plan)


class _Spelling:
    """Plans written so that those of the same rows look alike."""

    def __init__(self, stream: Stream, infos: Mapping[str, TableInfo]) -> None:
        self._infos = {**stream.infos, **infos}
        self._first: dict[str, str] = {}
        for place, one in stream.scans.items():
            same = next(first for first, other in stream.scans.items() if other == one)
            self._first[stream_name(place)] = stream_name(same)
        self._statics = stream.cut.statics

    def of(self, plan: Relation) -> Relation:
        """The same rows and columns in the common spelling."""
        return transform_up(plan, self._node)

    def _node(self, node: Relation) -> Relation:
        match node:
            case Scan():
                return self._scan(node)
            case Join():
                return self._join(node)
        return node

    def _scan(self, scan: Scan) -> Scan:
        """The first of the streams that have these rows."""
        first = self._first.get(scan.table, scan.table)
        return Scan(first, scan.sources, scan.columns)

    def _join(self, join: Join) -> Relation:
        """Equalities with the left side first; where one row at most can be met, to meet is to join.

        Of two sides that are joined, what is met once comes second.
        """
        names, swapped = join.names, replace(join, left=join.right, right=join.left)
        match join.kind:
            case JoinKind.INNER if self._meets_one(swapped) and not self._meets_one(join):
                join = swapped
            case JoinKind.SEMI if self._meets_one(join):
                join = replace(join, kind=JoinKind.INNER)
        parts = [_oriented(part, join.left.name_set) for part in conjuncts(join.condition)]
        join = replace(join, condition=all_of(parts))
        if join.names == names:
            return join
        return Project(join, tuple(Item(name, column(name)) for name in names))

    def _meets_one(self, join: Join) -> bool:
        key = primary_key(join.right, self._infos)
        types = {one.name: one.type for one in (*join.left.schema, *join.right.schema)}
        equal = implied(join.condition, types).equal
        left = join.left.name_set
        fixed = {b if a in left else a for a, b in equal if (a in left) != (b in left)}
        return key is not None and key <= fixed

    def share(self, plan: Relation) -> float:
        """The share of the rows on its left that a plan keeps, as far as can be told.

        Of rows that look up a key, as many stay as the other side has kept of its own.
        """
        match plan:
            case Project():
                return self.share(plan.child)
            case Filter():
                rows, before = (estimate(one, self._infos).rows for one in (plan, plan.child))
                return self.share(plan.child) * min(1.0, rows / max(before, 1.0))
            case Join(kind=JoinKind.INNER | JoinKind.SEMI) if self._meets_one(plan):
                rows = estimate(plan.right, self._infos).rows
                return self.share(plan.left) * min(1.0, rows / max(self._largest(plan.right), 1.0))
        return 1.0

    def _largest(self, plan: Relation) -> float:
        """The rows of the largest table behind a plan."""
        sizes = [0.0]
        for node in walk(plan):
            if isinstance(node, Scan) and node.table in self._statics:
                sizes.append(self._largest(self._statics[node.table]))
            elif isinstance(node, Scan):
                sizes.append(float(table_info(self._infos, node.table).facts.rows or 0))
        return max(sizes)


def _oriented(part: Scalar, left: frozenset[str]) -> Scalar:
    sides = equality_sides(part)
    if sides is None:
        return part
    one, other = sides
    if isinstance(one, exp.Column) and isinstance(other, exp.Column) and other.name in left:
        one, other = other, one
    return exp.EQ(this=one, expression=other)
