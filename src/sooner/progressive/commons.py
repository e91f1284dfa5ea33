"""Rows that several states are made of: of every batch they are read once, and kept while it is folded in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sooner.algebra import Relation, Scan
from sooner.progressive.parts import Cut, State
from sooner.progressive.unify import Unified, unify


@dataclass
class _Common:
    """Rows, and by its state's name what each user of them calls their columns."""

    rows: Relation
    names: dict[str, Mapping[str, str]]


def with_commons(cut: Cut) -> Cut:
    """The cut with rows of its own for states of other groups over the same rows.

    Only states that add up by group: others read for themselves.
    """
    found: list[_Common] = []
    for state in cut.states:
        if _adds_up(state):
            _find(found, state)
    shared = {f"__common_{n}": one for n, one in enumerate(found) if len(one.names) > 1}
    places = {state: name for name, one in shared.items() for state in one.names}
    states = tuple(
        _over(state, places[state.name], shared[places[state.name]])
        if state.name in places
        else state
        for state in cut.states
    )
    commons = {name: one.rows for name, one in shared.items()}
    return replace(cut, states=states, commons=commons)


def _adds_up(state: State) -> bool:
    return state.aggregate is not None and state.carried is not None and not state.is_special


def _find(found: list[_Common], state: State) -> None:
    assert state.carried is not None
    for one in found:
        both: Unified | None = unify(one.rows, state.carried)
        if both is not None:
            one.rows = both.plan
            one.names[state.name] = both.names
            return
    found.append(_Common(state.carried, {state.name: {n: n for n in state.carried.names}}))


def _over(state: State, name: str, common: _Common) -> State:
    """A state that reads the common rows."""
    names = common.names[state.name]

    def scan(plan: Relation) -> Scan:
        return Scan(name, tuple(names[column] for column in plan.names), plan.schema)

    assert state.carried is not None
    return replace(state, delta=scan(state.delta), carried=scan(state.carried))
