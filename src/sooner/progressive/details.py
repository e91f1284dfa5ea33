"""What an answer on the way says of itself beside its cells: rows to come, groups not seen, choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sooner.algebra import Filter, Limit, Project, Relation, Scan, Sort
from sooner.algebra.scalar import columns_of, is_column, to_sql
from sooner.progressive.estimates import Rows, Varying
from sooner.progressive.openness import uncertain_columns
from sooner.progressive.parts import Cut, State
from sooner.progressive.top import over_estimates
from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.evaluate import NotNumeric


def details(
    cut: Cut,
    estimates: Mapping[str, Rows],
    shown: int,
    share: float,
    unseen: Sequence[float | None],
    confidence: float,
) -> dict[str, Any]:
    """The details of an answer of ``shown`` rows after a ``share`` of the data.

    ``unseen`` are the shares of unread rows in groups not seen yet, of each state that knows one.
    """
    found: dict[str, Any] = {}
    expected = rows_expected(cut.top, cut.states, shown, share)
    if expected is not None:
        found["rows_expected"] = expected
    known = [one for one in unseen if one is not None]
    if known:
        # What has been read is in groups that were seen.
        found["unseen_groups"] = max(known) * (1.0 - share)
    notes = [note for note in (_note_of_limit(cut, estimates, share, confidence),) if note]
    if notes:
        found["notes"] = notes
    return found


def rows_expected(top: Relation, states: Sequence[State], shown: int, share: float) -> int | None:
    """How many rows the last answer will have, for a list of complete rows that grows with what is read.

    ``None`` where rows are not just collected, or nothing can be said.
    """
    limit, rest = _limit(top)
    while isinstance(rest, Project | Sort | Filter):
        rest = rest.child
    if not isinstance(rest, Scan) or share <= 0:
        return None
    state = next((one for one in states if one.name == rest.table), None)
    if state is None or state.aggregate is not None:
        return None
    if limit is None:
        return round(shown / share)
    if limit.count is not None and shown >= limit.count:
        return limit.count
    if not shown and limit.offset:
        return None
    whole = round((shown + limit.offset) / share) - limit.offset
    return whole if limit.count is None else min(limit.count, whole)


def _limit(top: Relation) -> tuple[Limit | None, Relation]:
    """The LIMIT of a query and what is below it, or what is below its projection."""
    node = top
    while isinstance(node, Project):
        node = node.child
    return (node, node.child) if isinstance(node, Limit) else (None, top)


def _note_of_limit(
    cut: Cut, estimates: Mapping[str, Rows], share: float, confidence: float
) -> str | None:
    """Whether another row may yet be among the first."""
    limit, sort = _limit(cut.top)
    if limit is None or limit.count is None or not isinstance(sort, Sort):
        return None
    last = limit.offset + limit.count
    by = sort.by[0]
    places = uncertain_columns(sort.child, cut.states)
    uncertain = {sort.child.names[place] for place in places}
    if not columns_of(by.scalar) & uncertain:
        if any(state.keep is not None for state in cut.states):
            return f"rows not read yet can still be among the first {last}"
        return None
    text = f"the first {last} are chosen by estimates of {to_sql(by.scalar).replace('`', '')}"
    try:
        rows = over_estimates(sort, estimates)
    except NotNumeric:
        return f"{text}: others may take their place"
    column = rows.columns.get(by.scalar.name) if is_column(by.scalar) else None
    if not isinstance(column, Varying):
        return f"{text}: others may take their place"
    if rows.count <= last:
        return None
    ends = column.interval(share, confidence)
    low, high = (-ends.high, -ends.low) if not by.descending else (ends.low, ends.high)
    others = int(np.count_nonzero(_could_enter(low, high, last)))
    if not others:
        return None
    noun = "other" if others == 1 else "others"
    return f"{text}: {others:,} {noun} could still be among them"


def _could_enter(low: Floats, high: Floats, last: int) -> Booleans:
    """Of the rows after the first ones, those that are not surely below all of these."""
    inside, outside = low[:last], high[last:]
    # An end that is unknown could be anything.
    if np.isnan(inside).any():
        return np.ones(outside.shape, np.bool_)
    return np.asarray(~(outside < inside.min(initial=np.inf)))
