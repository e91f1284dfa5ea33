"""How a view is stored: its own columns, and those that no query sees but that its upkeep needs.

A view that ends in an aggregate keeps what its aggregates are made of, so that changes can be merged into its
rows; every view keeps its key; a view that is sampled keeps the hash it is sampled by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Item, Limit, Opaque, Project, Relation, Sort, walk
from sooner.algebra.scalar import Scalar, column, is_column, to_sql
from sooner.algebra.schema import Schema
from sooner.analysis.facts import TableInfo
from sooner.analysis.keys import primary_key
from sooner.rewrites import rewrite
from sooner.views.keyed import KEY, keyed
from sooner.views.mergeable import Kept, Mergeable, argument, keep, mergeable
from sooner.views.rounded import goes_by_rounded

PART = "__sooner_p"
# Rows of each group: it is gone when there are none.
ROWS = f"{PART}n"

# A condition that stands in a plan twice would have to be brought up to date twice.
_NOT_FOR_VIEWS = ("reduce_groups",)

# The types of a plan's columns by name: Spark decides.
TypesOf: TypeAlias = Callable[[Relation], Mapping[str, str]]


@dataclass(frozen=True)
class Form:
    """A view as it is stored. ``plan`` gives its rows with all columns; ``hidden`` are the last of them.

    ``key`` is ``None`` if no columns tell its rows apart. ``why_whole`` says why changes cannot be brought
    in, so that the view is made again each time.
    """

    plan: Relation
    hidden: tuple[str, ...]
    key: tuple[str, ...] | None
    grouped: Grouped | None = None
    why_whole: str | None = None

    @property
    def visible(self) -> tuple[str, ...]:
        """The columns that queries see."""
        return self.plan.names[: len(self.plan.names) - len(self.hidden)]


@dataclass(frozen=True)
class Grouped:
    """A view that is an aggregate and what is made of each group.

    ``above`` are the nodes over the aggregate, the topmost first. ``stored`` says which stored column holds a
    column of the aggregate that upkeep needs: a key, or what is kept. ``values`` are the aggregates of the
    query, made of what is kept; ``None`` where only the rows can tell.
    """

    aggregate: Aggregate
    above: tuple[Relation, ...]
    kept: Mapping[str, Kept]
    values: Mapping[str, Scalar | None]
    adds_only: bool
    stored: Mapping[str, str]

    def over(self, groups: Relation) -> Relation:
        """The stored rows made of groups, which have the columns of the aggregate."""
        for node in reversed(self.above):
            groups = node.with_children(groups)
        return groups

    @property
    def rows(self) -> str:
        """Of what is kept, the number of rows."""
        return next(iter(self.kept))

    @property
    def merges_all(self) -> bool:
        """Whether every aggregate can be made of what is kept."""
        return all(value is not None for value in self.values.values())

    @cached_property
    def hides_groups(self) -> bool:
        """Whether a group may not be in the view (HAVING): then nothing is kept of it."""
        return any(isinstance(node, Filter) for node in self.above)

    @cached_property
    def merges(self) -> tuple[tuple[str, Kept], ...]:
        """What is kept, by the aggregate's name for it."""
        return tuple(self.kept.items())


def form_of(
    plan: Relation,
    columns: Schema,
    tables: Mapping[str, TableInfo],
    types_of: TypesOf,
    without: Sequence[str] = (),
) -> Form:
    """How to store a query as a view. ``columns`` are the names that it shows, by position."""
    names = tuple(one.name for one in columns)
    without = (*without, *_NOT_FOR_VIEWS)
    why = _why_whole(plan, types_of)
    if why is not None:
        return Form(_named(plan, plan.names, names, ()), (), None, why_whole=why)
    # Columns that nothing reads are needed for the key; what is written twice is not.
    straight = rewrite(plan, [*without, "prune_columns"]).plan
    found = _grouped_form(straight, names, tables, types_of, without)
    if found is not None:
        return found
    with_key = keyed(straight, tables)
    if with_key is None:
        return Form(_named(plan, plan.names, names, ()), (), None)
    stored, key = with_key
    hidden = stored.names[len(names) :]
    finished = rewrite(_named(stored, straight.names, names, hidden), without).plan
    shown = dict(zip(straight.names, names, strict=True)) | {one: one for one in hidden}
    return Form(finished, hidden, tuple(shown[one] for one in key))


def _why_whole(plan: Relation, types_of: TypesOf) -> str | None:
    for node in walk(plan):
        if isinstance(node, Opaque):
            return f"Spark answers it as written, because of {node.reason}"
        if isinstance(node, Limit):
            return "of LIMIT: a row that comes may push out any other"
    if goes_by_rounded(plan, types_of):
        return "rows go by floating sums, whose last digits may be others each time"
    top = plan
    while isinstance(top, Project):
        top = top.child
    return "its rows are in an order" if isinstance(top, Sort) else None


def _named(
    plan: Relation, old: Sequence[str], new: Sequence[str], hidden: Sequence[str]
) -> Relation:
    items = [Item(name, column(own)) for name, own in zip(new, old, strict=True)]
    return Project(plan, (*items, *(Item(name, column(name)) for name in hidden)))


def _grouped_form(
    plan: Relation,
    names: tuple[str, ...],
    tables: Mapping[str, TableInfo],
    types_of: TypesOf,
    without: Sequence[str],
) -> Form | None:
    above: list[Relation] = []
    bottom = plan
    while isinstance(bottom, Project | Filter | Sort):
        if not isinstance(bottom, Sort):
            above.append(bottom)
        bottom = bottom.child
    if not isinstance(bottom, Aggregate):
        return None
    ways = _ways(bottom, types_of)
    kept, values = _kept(bottom, ways)
    own = {item.name for item in bottom.aggregates}
    added = tuple(Item(name, one.call.copy()) for name, one in kept.items() if name not in own)
    whole = replace(bottom, aggregates=(*bottom.aggregates, *added))
    aggregate = rewrite(whole, without).plan
    if not isinstance(aggregate, Aggregate) or aggregate.names != whole.names:
        return None
    nodes, stored, hidden = _lifted(above, whole, kept)
    top = nodes[0] if nodes else whole
    shown = dict(zip(plan.names, names, strict=True)) | {name: name for name in hidden}
    final = _named(top, plan.names, names, hidden)
    assert isinstance(final, Project)
    adds_only = any(way is not None and not way.takes_away for way in ways.values())
    grouped = Grouped(
        aggregate,
        (final, *nodes),
        kept,
        values,
        adds_only,
        {name: shown[at] for name, at in stored.items()},
    )
    finished = grouped.over(aggregate)
    key = primary_key(finished, tables)
    by_group = tuple(grouped.stored[name] for name in bottom.keys)
    return Form(
        finished,
        tuple(hidden),
        by_group if key is None else tuple(name for name in finished.names if name in key),
        grouped,
    )


def _ways(plan: Aggregate, types_of: TypesOf) -> dict[str, Mergeable | None]:
    """How each aggregate merges."""
    arguments = {item.name: argument(item.scalar) for item in plan.aggregates}
    known = [Item(name, one) for name, one in arguments.items() if one is not None]
    types = types_of(Project(plan.child, tuple(known))) if known else {}
    return {item.name: mergeable(item.scalar, types.get(item.name)) for item in plan.aggregates}


def _kept(
    plan: Aggregate, ways: Mapping[str, Mergeable | None]
) -> tuple[dict[str, Kept], dict[str, Scalar | None]]:
    """What is kept, by name, and each aggregate's value of it."""
    rows = exp.Count(this=exp.Star(), big_int=True)
    known = {_text(item.scalar): item.name for item in reversed(plan.aggregates)}
    kept: dict[str, Kept] = {}
    names = {_text(rows): known.get(_text(rows), ROWS)}
    kept[names[_text(rows)]] = keep(rows, "sum")
    values: dict[str, Scalar | None] = {}
    for item in plan.aggregates:
        way = ways[item.name]
        if way is None:
            values[item.name] = None
            continue
        columns = []
        for one in way.kept:
            text = _text(one.call)
            if text not in names:
                names[text] = known.get(text, f"{PART}{len(names)}")
                kept[names[text]] = one
            columns.append(column(names[text]))
        values[item.name] = way.value(columns)
    return kept, values


def _text(call: Scalar) -> str:
    """An aggregate as text, the same for all ways to count rows."""
    inner = call.this if isinstance(call, exp.Count) else None
    constant = isinstance(inner, exp.Literal | exp.Boolean)
    return "COUNT(*)" if isinstance(inner, exp.Star) or constant else to_sql(call)


def _lifted(
    above: Sequence[Relation], aggregate: Aggregate, kept: Mapping[str, Kept]
) -> tuple[list[Relation], dict[str, str], list[str]]:
    """The nodes over an aggregate, passing on what upkeep needs; under which name; what was added."""
    at = {name: name for name in (*aggregate.keys, *kept)}
    hidden: list[str] = []
    below: Relation = aggregate
    nodes: list[Relation] = []
    for node in reversed(above):
        over = node.with_children(below)
        if isinstance(node, Project):
            shown = {i.scalar.name: i.name for i in reversed(node.items) if is_column(i.scalar)}
            items = list(node.items)
            names = {item.name for item in items}
            for place, (name, here) in enumerate(list(at.items())):
                if here not in shown:
                    own = name if name.startswith(PART) else f"{KEY}{place}"
                    assert own not in names, "names that no query has"
                    shown[here] = own
                    items.append(Item(own, column(here)))
                at[name] = shown[here]
            over = Project(below, tuple(items))
        nodes.append(over)
        below = over
    visible = len(above[0].names) if above else len(aggregate.names) - _added(aggregate, kept)
    hidden = list(below.names[visible:])
    return nodes[::-1], at, hidden


def _added(aggregate: Aggregate, kept: Mapping[str, Kept]) -> int:
    return sum(name.startswith(PART) for name in aggregate.names if name in kept)
