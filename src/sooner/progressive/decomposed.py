"""Query decomposition (iOLAP, App. B eq. 1): an aggregate pushed below its join with a static part.

Where groups go by the key of a static part, its other columns say nothing about the group that the key
does not say. So batches and states are without them, and they are looked up for the rows that are shown:
customers are summed by number, and only those in the answer get their names and addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import Scalar, column, columns_of, conjuncts, equality_sides
from sooner.analysis import TableInfo, primary_key


@dataclass(frozen=True)
class Late:
    """The columns that groups get from a static part, its ``rows``, when they are shown, by its ``key``.

    ``names`` are all columns of the groups in their order.
    """

    static: str
    rows: Relation
    key: str
    columns: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def kept(self) -> Relation:
        """What the batches need of the static part."""
        left = (name for name in self.rows.names if name not in self.columns)
        return Project(self.rows, tuple(Item(name, column(name)) for name in left))

    @property
    def view(self) -> str:
        """The name by which the rows are looked up."""
        return f"__late{self.static}"


@dataclass(frozen=True)
class Decomposed:
    """An aggregate and its delta with replicates, both without the late columns."""

    aggregate: Aggregate
    carried: Relation
    late: Late


def decomposed(
    plan: Aggregate,
    carried: Relation,
    statics: Mapping[str, Relation],
    tables: Mapping[str, TableInfo],
) -> Decomposed | None:
    """The aggregate of a delta without columns that can be looked up later; ``None`` if it has none.

    ``carried`` is the delta with its replicates, which loses the same columns.
    """
    used = {name for one in plan.aggregates for name in columns_of(one.scalar)}
    for name, static in statics.items():
        key = primary_key(static, tables)
        if key is None or len(key) != 1:
            continue
        (only,) = key
        late = tuple(k for k in plan.keys if k in static.name_set and k not in used | key)
        if only not in plan.keys or not late:
            continue
        new, also = (_without(rows, name, only, set(late)) for rows in (plan.child, carried))
        if new is None or also is None:
            continue
        keys = tuple(k for k in plan.keys if k not in late)
        aggregate = replace(plan, child=new, keys=keys)
        return Decomposed(aggregate, also, Late(name, static, only, late, plan.names))
    return None


def _without(plan: Relation, static: str, key: str, late: Collection[str]) -> Relation | None:
    """The plan without columns of a static part that nothing in it uses; ``None`` if something does."""
    match plan:
        case Filter():
            child = _without(plan.child, static, key, late)
            if child is None or columns_of(plan.condition) & set(late):
                return None
            return plan.with_children(child)
        case Project():
            child = _without(plan.child, static, key, late)
            items = tuple(one for one in plan.items if not _is_copy(one, late))
            if child is None or any(columns_of(one.scalar) & set(late) for one in items):
                return None
            return replace(plan, child=child, items=items)
        case Join() if plan.kind is JoinKind.INNER:
            if plan.condition is None or columns_of(plan.condition) & set(late):
                return None
            return _join_without(plan, static, key, late)
    return None


def _join_without(plan: Join, static: str, key: str, late: Collection[str]) -> Relation | None:
    sides = list(plan.children)
    for place, side in enumerate(sides):
        if isinstance(side, Scan) and side.table == static:
            if not _meets_by(plan.condition, key):
                return None
            left = [n for n, one in enumerate(side.columns) if one.name not in late]
            sides[place] = Scan(
                side.table,
                tuple(side.sources[n] for n in left),
                tuple(side.columns[n] for n in left),
            )
            return plan.with_children(*sides)
        found = _without(side, static, key, late)
        if found is not None:
            sides[place] = found
            return plan.with_children(*sides)
    return None


def _meets_by(condition: Scalar | None, key: str) -> bool:
    """Whether a row has at most one partner: the one with this key."""
    for part in conjuncts(condition):
        sides = equality_sides(part)
        if sides is not None and any(isinstance(s, exp.Column) and s.name == key for s in sides):
            return True
    return False


def _is_copy(item: Item, names: Collection[str]) -> bool:
    return (
        item.name in names and isinstance(item.scalar, exp.Column) and item.scalar.name == item.name
    )
