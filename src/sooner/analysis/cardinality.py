"""How many rows a plan has and how wide they are, from what is known of its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
    Scalar,
    Scan,
    Sort,
    Union,
)
from sooner.algebra.scalar import all_of, columns_of, conjuncts, equality_sides, is_column
from sooner.analysis.column_size import (
    TEXT_BYTES,
    ColumnSize,
    aggregated_column,
    combinations,
    computed_column,
    scanned_column,
    type_bytes,
    unknown_column,
)
from sooner.analysis.facts import ColumnFacts, TableInfo, table_info
from sooner.analysis.plan_dependencies import dependency_finder
from sooner.analysis.ranges import Range
from sooner.analysis.selectivity import selectivity

# A table nobody has counted is taken to be large: a large table held in memory costs more than a
# small one that is streamed.
UNKNOWN_ROWS = 1_000_000.0
# NOT EXISTS and outer joins are written where some rows are expected to have no partner; that the
# smaller set of values is part of the larger would often leave none.
LEAST_UNMATCHED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """An estimate of a relation: rows, bytes per row in memory, and its columns by name."""

    rows: float
    row_bytes: float
    columns: Mapping[str, ColumnSize]

    @property
    def bytes(self) -> float:
        """Rows times bytes per row."""
        return self.rows * self.row_bytes


def estimate(plan: Relation, tables: Mapping[str, TableInfo]) -> Size:
    """The estimated size of a plan's output.

    >>> from sooner.algebra import Column, Scan
    >>> from sooner.analysis.facts import TableFacts
    >>> scan = Scan("t", ("a",), (Column("a", "int"),))
    >>> estimate(scan, {"t": TableInfo(facts=TableFacts(rows=10))}).rows
    10.0
    """
    return Sizes(tables).of(plan)


class Sizes:
    """Estimates of many plans over the same tables: parts that plans share are estimated once."""

    def __init__(self, tables: Mapping[str, TableInfo]) -> None:
        self.tables = tables
        self.dependencies = dependency_finder(tables)
        # With the plan itself, so that its id is nobody else's.
        self.found: dict[int, tuple[Relation, Size]] = {}

    def of(self, plan: Relation) -> Size:
        """The estimated size of a plan's output."""
        if id(plan) not in self.found:
            self.found[id(plan)] = (plan, self._estimate(plan))
        return self.found[id(plan)][1]

    def _estimate(self, plan: Relation) -> Size:
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter():
                return _filtered(self.of(plan.child), plan.condition)
            case Project():
                child = self.of(plan.child)
                columns = {i.name: computed_column(i.scalar, child.columns) for i in plan.items}
                return _sized(child.rows, columns)
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Union():
                return _union(plan, self.of(plan.left), self.of(plan.right))
            case Intersect() | Except():
                return self._kept_of_left(plan)
            case Sort():
                return self.of(plan.child)
            case Limit():
                child = self.of(plan.child)
                rows = max(0.0, child.rows - plan.offset)
                return _sized(rows if plan.count is None else min(rows, plan.count), child.columns)
            case Map():
                # Most functions over rows return a row for each; nothing else is known of them.
                rows = self.of(plan.child).rows
                columns = {c.name: unknown_column(rows, c.type) for c in plan.columns}
                return _sized(rows, columns)
        raise AssertionError(f"no estimate for {type(plan).__name__}")

    def _scan(self, plan: Scan) -> Size:
        info = table_info(self.tables, plan.table)
        rows = UNKNOWN_ROWS if info.facts.rows is None else float(info.facts.rows)
        known = {source.lower(): facts for source, facts in info.facts.columns.items()}
        # Files are compressed: if they hold more per column than a short text, texts are long.
        stored = (info.facts.bytes or 0.0) / max(rows, 1.0)
        text_bytes = max(TEXT_BYTES, stored / max(len(known), len(plan.sources), 1))
        key = [source.lower() for source in info.key]
        columns: dict[str, ColumnSize] = {}
        for source, column in zip(plan.sources, plan.columns, strict=True):
            facts = known.get(source.lower(), ColumnFacts())
            width = type_bytes(column.type, text_bytes)
            alone = [source.lower()] == key
            columns[column.name] = scanned_column(rows, facts, column.type, width, alone)
        return _sized(rows, columns)

    def _aggregate(self, plan: Aggregate) -> Size:
        child = self.of(plan.child)
        rows = self._distinct_rows(plan.child, plan.keys) if plan.keys else 1.0
        columns = {key: child.columns[key] for key in plan.keys}
        columns |= {
            item.name: aggregated_column(item, child.columns, rows) for item in plan.aggregates
        }
        return _sized(rows, columns)

    def _distinct_rows(self, plan: Relation, names: Iterable[str]) -> float:
        size = self.of(plan)
        few = self.dependencies(plan).smallest(names)
        return min(size.rows, combinations(size.columns[name] for name in few))

    def _kept_of_left(self, plan: Intersect | Except) -> Size:
        left = self.of(plan.left)
        rows, other = left.rows, self.of(plan.right).rows
        if not plan.all:
            rows = self._distinct_rows(plan.left, plan.left.names)
            other = self._distinct_rows(plan.right, plan.right.names)
        if isinstance(plan, Intersect):
            rows = min(rows, other)
        return _sized(rows, left.columns)

    def _join(self, plan: Join) -> Size:
        left, right = self.of(plan.left), self.of(plan.right)
        pairs, rest = _equalities(plan)
        a = self._matching(plan.left, left, [name for name, _ in pairs])
        b = self._matching(plan.right, right, [name for _, name in pairs])
        if plan.kind is JoinKind.SEMI:
            # Other conditions have many partners to hold for, unless they read the left row only.
            alone = all_of(part for part in rest if columns_of(part) <= plan.left.name_set)
            return _filtered(_sized(left.rows * a.met_by(b), left.columns), alone)
        if not plan.kind.keeps_right:
            return _sized(left.rows * a.missed_by(b), left.columns)
        rows = left.rows * a.present * right.rows * b.present / max(a.distinct, b.distinct, 1.0)
        columns = {**left.columns, **right.columns}
        inner = _filtered(_sized(rows, _equated(columns, pairs)), all_of(rest))
        if plan.kind is JoinKind.INNER:
            return inner
        kept_left = plan.kind in (JoinKind.LEFT, JoinKind.FULL)
        kept_right = plan.kind in (JoinKind.RIGHT, JoinKind.FULL)
        # Every row of a preserved side is there at least once.
        rows = max(inner.rows, left.rows * kept_left, right.rows * kept_right)
        if kept_left and rows > 0:
            columns |= _padded(right.columns, left.rows * a.missed_by(b) / rows)
        if kept_right and rows > 0:
            columns |= _padded(left.columns, right.rows * b.missed_by(a) / rows)
        return _sized(rows, columns)

    def _matching(self, plan: Relation, size: Size, names: list[str]) -> _Matching:
        present = math.prod(size.columns[name].present for name in names)
        distinct = min(size.rows, math.prod(size.columns[name].distinct for name in names))
        # Joined by its key, a side has as many values as rows: what is left after a filter is
        # then met by that share of the foreign keys.
        if names and self.dependencies(plan).is_key(names):
            distinct = size.rows
        return _Matching(present, distinct)


@dataclass(frozen=True, slots=True)
class _Matching:
    """One side of an equality join: the share of rows without nulls, the distinct values."""

    present: float
    distinct: float

    def met_by(self, other: _Matching) -> float:
        """The share of rows with a partner, if the smaller set of values is part of the larger."""
        return self.present * min(1.0, other.distinct / max(self.distinct, 1.0))

    def missed_by(self, other: _Matching) -> float:
        """The share of rows without a partner."""
        return max(1.0 - self.met_by(other), LEAST_UNMATCHED_SHARE)


def _sized(rows: float, columns: Mapping[str, ColumnSize]) -> Size:
    capped = {name: column.at_most(rows) for name, column in columns.items()}
    return Size(rows, sum(column.width for column in capped.values()), capped)


def _filtered(size: Size, condition: Scalar | None) -> Size:
    kept = selectivity(condition, size.columns)
    return _sized(size.rows * kept.share, kept.columns)


def _equalities(plan: Join) -> tuple[list[tuple[str, str]], list[Scalar]]:
    """The pairs (left column, right column) that must be equal, and the other conditions."""
    pairs: list[tuple[str, str]] = []
    rest: list[Scalar] = []
    for part in conjuncts(plan.condition):
        sides = equality_sides(part)
        names = [side.name for side in sides if is_column(side)] if sides else []
        if len(names) == 2 and names[0] in plan.right.name_set:
            names.reverse()
        if len(names) == 2 and names[0] in plan.left.name_set and names[1] in plan.right.name_set:
            pairs.append((names[0], names[1]))
        else:
            rest.append(part)
    return pairs, rest


def _equated(
    columns: Mapping[str, ColumnSize], pairs: Iterable[tuple[str, str]]
) -> dict[str, ColumnSize]:
    new = dict(columns)
    for pair in pairs:
        fewer = min(new[name].distinct for name in pair)
        new |= {name: replace(new[name], distinct=fewer, null_share=0.0) for name in pair}
    return new


def _padded(columns: Mapping[str, ColumnSize], share: float) -> dict[str, ColumnSize]:
    """The columns of rows of which a share was added by an outer join and holds nulls only."""
    share = min(1.0, share)
    return {
        name: replace(column, null_share=share + (1.0 - share) * column.null_share)
        for name, column in columns.items()
    }


def _union(plan: Union, left: Size, right: Size) -> Size:
    rows = left.rows + right.rows
    columns: dict[str, ColumnSize] = {}
    for name, other in zip(plan.left.names, plan.right.names, strict=True):
        a, b = left.columns[name], right.columns[other]
        nulls = a.null_share * left.rows + b.null_share * right.rows
        # Nobody knows how many values are common; counting them twice errs by at most two.
        columns[name] = ColumnSize(
            distinct=a.distinct + b.distinct,
            null_share=nulls / rows if rows > 0 else 0.0,
            range=_hull(a.range, b.range),
            width=max(a.width, b.width),
        )
    return _sized(rows, columns)


def _hull(a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None or a.kind != b.kind:
        return None
    return Range(min(a.low, b.low), max(a.high, b.high), a.kind, a.whole and b.whole)
