"""Walking and rebuilding plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sooner.algebra.relation import Opaque, Relation, Scan


def walk(plan: Relation) -> Iterator[Relation]:
    """Every node, parents before their children, left before right."""
    yield plan
    for child in plan.children:
        yield from walk(child)


def transform_up(plan: Relation, function: Callable[[Relation], Relation]) -> Relation:
    """Apply a function to every node, children first. Unchanged parts stay the same objects."""
    children = tuple(transform_up(child, function) for child in plan.children)
    return function(plan.with_children(*children))


def tables(plan: Relation) -> tuple[str, ...]:
    """The tables a plan reads, each once, in the order they appear."""
    found: dict[str, None] = {}
    for node in walk(plan):
        if isinstance(node, Scan):
            found.setdefault(node.table)
        elif isinstance(node, Opaque):
            found.update(dict.fromkeys(node.reads))
    return tuple(found)
