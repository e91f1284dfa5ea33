"""A view's rows with columns that tell them apart, added where the query itself leaves them out.

Stale View Cleaning §4.3: every expression has a key made of its inputs' keys. A view that does not show it
keeps it in columns that no query sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sooner.algebra import Filter, Item, Project, Relation, Union
from sooner.algebra.scalar import column, is_column
from sooner.analysis.facts import TableInfo
from sooner.analysis.keys import primary_key, union_key

KEY = "__sooner_k"


def keyed(
    plan: Relation, tables: Mapping[str, TableInfo]
) -> tuple[Relation, tuple[str, ...]] | None:
    """The plan, with more columns if it needs them, and its key; ``None`` if it has none."""
    key = primary_key(plan, tables)
    if key is not None:
        return plan, tuple(name for name in plan.names if name in key)
    match plan:
        case Project():
            below = keyed(plan.child, tables)
            return None if below is None else _shown(plan, *below)
        case Filter():
            below = keyed(plan.child, tables)
            return None if below is None else (replace(plan, child=below[0]), below[1])
        case Union():
            return _tagged(plan, tables)
    return None


def _shown(
    plan: Project, child: Relation, key: tuple[str, ...]
) -> tuple[Relation, tuple[str, ...]]:
    shown = {item.scalar.name: item.name for item in plan.items if is_column(item.scalar)}
    items, names = list(plan.items), []
    for name in key:
        if name not in shown:
            shown[name] = f"{KEY}{len(items)}"
            items.append(Item(shown[name], column(name)))
        names.append(shown[name])
    return Project(child, tuple(items)), tuple(names)


def _tagged(
    plan: Union, tables: Mapping[str, TableInfo]
) -> tuple[Relation, tuple[str, ...]] | None:
    """A union with the number of the branch that a row comes from: two may have the same row."""
    found = union_key(plan, tables)
    if found is None:
        return None
    tag = f"{KEY}b"
    whole: Relation | None = None
    for number, branch in enumerate(found.branches):
        items = [Item(name, column(name)) for name in branch.names]
        tagged = Project(branch, (*items, Item(tag, exp.convert(number))))
        whole = tagged if whole is None else Union(whole, tagged)
    assert whole is not None
    return whole, (*(name for name in plan.names if name in found.columns), tag)
