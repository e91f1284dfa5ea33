"""Two plans that give the same rows, made one with the columns of both.

Frames derived from one another have much in common, but each plan reads only the columns it needs, under
names of its own. What is compared here is which rows there are; columns are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sooner.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Join,
    Project,
    Relation,
    Scan,
    SortKey,
    walk,
)
from sooner.algebra.scalar import Scalar, column, is_column, substitute


@dataclass(frozen=True)
class Unified:
    """A plan with all columns of ours, and those of theirs under the names given here."""

    plan: Relation
    names: Mapping[str, str]


def unify(ours: Relation, theirs: Relation) -> Unified | None:
    """The plan that stands for both; ``None`` if they differ in more than columns and names."""
    used = {name for node in walk(ours) for name in node.names}
    return _Unifier(used).visit(ours, theirs)


def renamed(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    """A scalar of theirs over the columns of both."""
    return substitute(scalar, {old: column(new) for old, new in names.items()})


def renamed_order(by: Iterable[SortKey], names: Mapping[str, str]) -> tuple[SortKey, ...]:
    """An order of theirs over the columns of both."""
    return tuple(replace(key, scalar=renamed(key.scalar, names)) for key in by)


def with_items(
    ours: tuple[Item, ...], theirs: Iterable[Item], names: Mapping[str, str], used: set[str]
) -> tuple[tuple[Item, ...], dict[str, str]]:
    """The items of both, equal ones once, and the names of theirs; new names are added to ``used``."""
    items, found = list(ours), {}
    for item in theirs:
        scalar = renamed(item.scalar, names)
        same = next((one for one in items if one.scalar == scalar), None)
        if same is None:
            # A column that is passed on keeps its name, as everywhere.
            passed = is_column(scalar) and scalar.name not in {one.name for one in items}
            name = scalar.name if passed else _fresh(item.name, used)
            same = Item(name, scalar)
            items.append(same)
        found[item.name] = same.name
    return tuple(items), found


def _fresh(name: str, used: set[str]) -> str:
    number, found = 0, name
    while found in used:
        number += 1
        found = f"{name}__also{number}"
    used.add(found)
    return found


@dataclass
class _Unifier:
    """One walk over two plans; ``used`` are the names that are taken."""

    used: set[str] = field(default_factory=set)

    def visit(self, ours: Relation, theirs: Relation) -> Unified | None:
        if ours == theirs:
            return Unified(ours, {name: name for name in ours.names})
        match ours, theirs:
            case Scan(), Scan():
                return self._scan(ours, theirs)
            case Filter(), Filter():
                return self._filter(ours, theirs)
            case (Project(), _) | (_, Project()):
                return self._project(ours, theirs)
            case Join(), Join():
                return self._join(ours, theirs)
            case Aggregate(), Aggregate():
                return self._aggregate(ours, theirs)
        return None

    def _scan(self, ours: Scan, theirs: Scan) -> Unified | None:
        if ours.table != theirs.table:
            return None
        names = dict(zip(ours.sources, ours.names, strict=True))
        sources, columns = list(ours.sources), list(ours.columns)
        for source, one in zip(theirs.sources, theirs.columns, strict=True):
            if source not in names:
                names[source] = _fresh(one.name, self.used)
                sources.append(source)
                columns.append(Column(names[source], one.type))
        found = {
            one.name: names[source]
            for source, one in zip(theirs.sources, theirs.columns, strict=True)
        }
        return Unified(Scan(ours.table, tuple(sources), tuple(columns)), found)

    def _filter(self, ours: Filter, theirs: Filter) -> Unified | None:
        child = self.visit(ours.child, theirs.child)
        if child is None or renamed(theirs.condition, child.names) != ours.condition:
            return None
        return Unified(ours.with_children(child.plan), child.names)

    def _project(self, ours: Relation, theirs: Relation) -> Unified | None:
        one, other = _as_project(ours), _as_project(theirs)
        child = self.visit(one.child, other.child)
        if child is None:
            return None
        items, names = with_items(one.items, other.items, child.names, self.used)
        changes = one is ours or any(not is_column(item.scalar) for item in items)
        return Unified(Project(child.plan, items) if changes else child.plan, names)

    def _join(self, ours: Join, theirs: Join) -> Unified | None:
        if ours.kind is not theirs.kind or (ours.condition is None) != (theirs.condition is None):
            return None
        left = self.visit(ours.left, theirs.left)
        right = self.visit(ours.right, theirs.right) if left is not None else None
        if left is None or right is None:
            return None
        both = {**left.names, **right.names}
        if theirs.condition is not None and renamed(theirs.condition, both) != ours.condition:
            return None
        kept = both if ours.kind.keeps_right else left.names
        return Unified(ours.with_children(left.plan, right.plan), kept)

    def _aggregate(self, ours: Aggregate, theirs: Aggregate) -> Unified | None:
        child = self.visit(ours.child, theirs.child)
        if child is None or {child.names[key] for key in theirs.keys} != set(ours.keys):
            return None
        items, names = with_items(ours.aggregates, theirs.aggregates, child.names, self.used)
        keys = {key: child.names[key] for key in theirs.keys}
        return Unified(Aggregate(child.plan, ours.keys, items), {**keys, **names})


def _as_project(plan: Relation) -> Project:
    """Columns that are only passed on are passed on by a projection as well."""
    if isinstance(plan, Project):
        return plan
    return Project(plan, tuple(Item(name, column(name)) for name in plan.names))
