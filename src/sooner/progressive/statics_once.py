"""Static parts of the same rows are kept once, with the columns of all that read them.

A nested query often joins its aggregate with the same small tables as the rows around it, and needs
fewer of their columns. As one part they are read once; and rows that meet them in both places are seen
to be the same (:mod:`read_once`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sooner.algebra import Relation
from sooner.analysis.normal_form import normal_form
from sooner.progressive.parts import Cut
from sooner.progressive.renaming import Renaming
from sooner.progressive.unify import unify


def statics_once(cut: Cut) -> Cut:
    """The cut with one static part for all that have the same rows."""
    # What columns are looked up in later is found by its own name, and what may have other rows from one
    # reading to the next is read for everyone.
    late = {state.late.static for state in cut.states if state.late is not None}
    apart = late | {name for name, plan in cut.statics.items() if normal_form(plan) is None}
    statics: dict[str, Relation] = {}
    names = Renaming()
    for name, plan in cut.statics.items():
        if name in apart or not serve(statics, names, name, plan, lambda here: here not in apart):
            statics[name] = plan
    if len(statics) == len(cut.statics):
        return cut
    states = tuple(names.state(state) for state in cut.states)
    return replace(cut, top=names.plan(cut.top), states=states, statics=statics)


def serve(
    statics: dict[str, Relation],
    names: Renaming,
    name: str,
    plan: Relation,
    may: Callable[[str], bool],
) -> bool:
    """Whether one of the statics that ``may`` now stands for a plan too, made wider if need be."""
    for here, other in statics.items():
        both = unify(other, plan) if may(here) else None
        if both is not None:
            statics[here] = both.plan
            names.tables[name], names.columns[name] = here, both.names
            return True
    return False
