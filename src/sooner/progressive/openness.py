"""What of a plan over states can still change while blocks are unread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sooner.algebra import Aggregate, Filter, Join, Limit, Relation, Scan, walk
from sooner.algebra.scalar import columns_of
from sooner.analysis import How, derivation


class Held(Protocol):
    """What is known of a state before anything is read."""

    @property
    def name(self) -> str:
        """The name by which a plan scans it."""

    @property
    def aggregate(self) -> Aggregate | None:
        """The groups it keeps, if it keeps groups."""

    @property
    def gates(self) -> Sequence[object]:
        """The open conditions its rows must pass."""


def uncertain_columns(top: Relation, states: Sequence[Held]) -> list[int]:
    """The places of the output columns whose values can still change while blocks are unread."""
    open_values = {
        (state.name, item.name)
        for state in states
        if state.aggregate is not None
        for item in state.aggregate.aggregates
    }
    return [
        place
        for place, found in enumerate(derivation(top).values())
        if found.how is How.AGGREGATED
        or any((source.table, source.column) in open_values for source in found.sources)
    ]


def selects_by_estimate(top: Relation, states: Sequence[Held]) -> bool:
    """Whether a value that can still change decides which rows there are."""
    gated = {state.name for state in states if state.gates}
    for node in walk(top):
        if isinstance(node, Limit) or (isinstance(node, Scan) and node.table in gated):
            return True
        if isinstance(node, Filter | Join) and node.condition is not None:
            uncertain = {
                child.names[place]
                for child in node.children
                for place in uncertain_columns(child, states)
            }
            if columns_of(node.condition) & uncertain:
                return True
    return False
