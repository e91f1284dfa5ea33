"""By which columns the rows of a plan come together when its tables are read in hash order.

A scramble keeps the rows of one key in one block, and blocks of the same hash range are read at one
time (DeepOLA §3.3.1 and §3.4.2, clustering key). A plan is clustered by a key if, once the blocks
of a key value have been read, all output rows with that value are there and none can still change.

This holds for key values without nulls: rows whose scramble key has a null are spread over all
blocks, and an outer join's rows of nulls are too. Ask ``never_null`` whether a key can have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from sooner.algebra import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Limit,
    Map,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
    walk,
)
from sooner.algebra.scalar import is_column
from sooner.analysis.conditions import implied
from sooner.analysis.facts import TableInfo, table_info
from sooner.analysis.plan_dependencies import column_types
from sooner.analysis.types import hashed_as

# Columns in the order they are hashed: (a, b) and (b, a) are different scrambles.
ClusteringKey: TypeAlias = tuple[str, ...]
_Pairs: TypeAlias = Iterable[tuple[str, str]]


def clustering_key(
    plan: Relation,
    tables: Mapping[str, TableInfo],
    streamed: Mapping[int, tuple[str, ...]] | None = None,
) -> frozenset[ClusteringKey]:
    """The keys by which the output can be clustered, each for some way of reading the tables.

    Every scan is either streamed in the order of one of its scrambles or static, that is read
    completely before the first block. ``streamed`` says which: the place of a scan among the plan's
    scans from left to right (from 0), and the source columns of its scramble, or none if it is read
    in another order; others are static.
    Without it every choice is tried, and a key is returned if some choice gives it.

    A clustered aggregate is exact for every key already read (``progressive.md`` §1).
    Two streamed inputs are taken to be scrambled alike (salt and hash ranges) where types agree.
    """
    return _Walk(tables, streamed).of(plan, 0).keys


@dataclass(frozen=True, slots=True)
class _Clusters:
    """``static``: whether all of it can be (or is) read before the first block."""

    static: bool
    keys: frozenset[ClusteringKey] = frozenset()


class _Walk:
    def __init__(
        self, tables: Mapping[str, TableInfo], streamed: Mapping[int, tuple[str, ...]] | None
    ) -> None:
        self.tables = tables
        self.streamed = streamed
        self.found: dict[tuple[int, int], _Clusters] = {}

    def of(self, plan: Relation, first: int) -> _Clusters:
        """``first`` is the place of the plan's first scan; a shared node has several places."""
        place = (id(plan), first if self.streamed is not None else 0)
        if place not in self.found:
            self.found[place] = self._derive(plan, first)
        return self.found[place]

    def _derive(self, plan: Relation, first: int) -> _Clusters:
        if isinstance(plan, Scan):
            return self._scan(plan, first)
        starts = [first]
        for input_ in plan.children[:-1]:
            starts.append(starts[-1] + sum(isinstance(node, Scan) for node in walk(input_)))
        inputs = [self.of(node, start) for node, start in zip(plan.children, starts, strict=True)]
        one, other = inputs[0], inputs[-1]
        match plan:
            case Sort():
                return one
            case Filter():
                equal = implied(plan.condition, column_types(plan.child)).equal
                return _Clusters(one.static, _respelled(one.keys, equal))
            case Project():
                copies = [(i.scalar.name, i.name) for i in plan.items if is_column(i.scalar)]
                return _Clusters(one.static, _renamed(one.keys, copies))
            case Join():
                keys = _joined(plan, one, other)
                return _Clusters(one.static and other.static, keys)
            case Aggregate():
                keys = frozenset(key for key in one.keys if set(key) <= set(plan.keys))
                return _Clusters(one.static, keys)
            case Union() | Intersect() | Except():
                keys = _set_operation(plan, one, other)
                return _Clusters(one.static and other.static, keys)
            case Limit() | Map():
                # Which rows come first is open to the end; what a user's function returns, always.
                return _Clusters(one.static)
        raise AssertionError(f"no clustering for {type(plan).__name__}")

    def _scan(self, plan: Scan, place: int) -> _Clusters:
        if self.streamed is not None and place not in self.streamed:
            return _Clusters(static=True)
        scrambles = table_info(self.tables, plan.table).scrambles
        if self.streamed is not None:
            scrambles = (self.streamed[place],)
        # Without a key, read by row groups, nothing lies together.
        lowered = frozenset(tuple(source.lower() for source in key) for key in scrambles if key)
        names = [(s.lower(), n) for s, n in zip(plan.sources, plan.names, strict=True)]
        return _Clusters(self.streamed is None, _renamed(lowered, names))


def _renamed(keys: Iterable[ClusteringKey], copies: _Pairs) -> frozenset[ClusteringKey]:
    """The keys under every new name of their columns; a key with a column that is gone is lost."""
    new: dict[str, list[str]] = {}
    for old, name in copies:
        new.setdefault(old, []).append(name)
    return frozenset(
        spelled for key in keys for spelled in product(*(new.get(name, []) for name in key))
    )


def _respelled(keys: Iterable[ClusteringKey], equal: _Pairs) -> frozenset[ClusteringKey]:
    """The keys in all spellings, for columns that are equal in all rows."""
    return _respelled_to(keys, [pair for a, b in equal for pair in ((a, b), (b, a))])


def _respelled_to(keys: Iterable[ClusteringKey], equal: _Pairs) -> frozenset[ClusteringKey]:
    """The keys with any of their columns exchanged for one that equals it, given as (old, new)."""
    reach: dict[str, set[str]] = {}
    for old, new in equal:
        reach.setdefault(old, set()).add(new)

    def spellings(name: str) -> set[str]:
        found, waiting = {name}, [name]
        while waiting:
            for other in reach.get(waiting.pop(), set()) - found:
                found.add(other)
                waiting.append(other)
        return found

    return frozenset(
        spelled for key in keys for spelled in product(*(sorted(spellings(name)) for name in key))
    )


def _joined(plan: Join, left: _Clusters, right: _Clusters) -> frozenset[ClusteringKey]:
    types = column_types(plan.left, plan.right)
    equal = implied(plan.condition, types).equal
    both_ways = {pair for a, b in equal for pair in ((a, b), (b, a))}
    aligned = [
        (a, b)
        for a in left.keys
        for b in right.keys
        if len(a) == len(b)
        and all(pair in both_ways for pair in zip(a, b, strict=True))
        and all(hashed_as(types[x]) == hashed_as(types[y]) for x, y in zip(a, b, strict=True))
    ]
    lefts = frozenset(a for a, _ in aligned)
    rights = frozenset(b for _, b in aligned)
    # A row that waits for a partner, or for there being none, waits for its own block or for
    # nothing at all: the other side is streamed by the same key or static.
    against_static = left.keys if right.static else frozenset()
    match plan.kind:
        case JoinKind.INNER:
            other = right.keys if left.static else frozenset()
            return _respelled(lefts | rights | against_static | other, equal)
        case JoinKind.LEFT:
            return _respelled_to(lefts | rights | against_static, _to(both_ways, plan.right))
        case JoinKind.RIGHT:
            other = right.keys if left.static else frozenset()
            return _respelled_to(lefts | rights | other, _to(both_ways, plan.left))
        case JoinKind.FULL:
            return lefts | rights
        case JoinKind.SEMI:
            return _respelled(lefts | against_static, _inside(equal, plan.left))
        case JoinKind.ANTI:
            return lefts | against_static
        case JoinKind.NULL_AWARE_ANTI:
            # One null on the right, in whatever block, removes every row: it must be known first.
            return against_static
    raise AssertionError(plan.kind)


def _to(pairs: Iterable[tuple[str, str]], padded: Relation) -> list[tuple[str, str]]:
    """Spellings by the padded side of an outer join: not null there means that there is a pair."""
    return [(old, new) for old, new in pairs if new in padded.name_set]


def _inside(pairs: _Pairs, side: Relation) -> list[tuple[str, str]]:
    return [(a, b) for a, b in pairs if a in side.name_set and b in side.name_set]


def _set_operation(
    plan: Union | Intersect | Except, left: _Clusters, right: _Clusters
) -> frozenset[ClusteringKey]:
    # A column that is cast to a wider type has other values than the ones that were hashed.
    kept = {column.name for column in plan.schema if column.type is not None}
    positions = [(new, new) for new in plan.left.names if new in kept]
    lefts = _renamed(left.keys, positions)
    rights = _renamed(
        right.keys,
        [(old, new) for old, new in zip(plan.right.names, plan.names, strict=True) if new in kept],
    )
    keys = lefts & rights
    # Static rows of a union would be there before the blocks of their keys have been read.
    if not isinstance(plan, Union) and right.static:
        keys |= lefts
    if isinstance(plan, Intersect) and left.static:
        keys |= rights
    return keys
