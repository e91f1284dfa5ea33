"""What a progressive query will do, in words, before anything runs."""

from __future__ import annotations

from sooner.algebra import Filter, Join, Limit, Relation, Scan, walk
from sooner.algebra.scalar import columns_of
from sooner.analysis import How, derivation
from sooner.progressive.cut import State
from sooner.progressive.streams import Stream


def describe(stream: Stream) -> list[str]:
    """A line for what is streamed, what is read beforehand, what is kept, and what stays open."""
    notes = dict.fromkeys(note for one in stream.scans.values() for note in one.notes)
    lines = [_streamed(stream), *notes]
    statics = [_tables(plan) for plan in stream.cut.statics.values()]
    if statics:
        lines.append(f"Read once and kept: {'; '.join(dict.fromkeys(statics))}.")
    lines += [f"Kept between batches: {_kept(state)}." for state in stream.cut.states]
    names = stream.cut.top.names
    uncertain = [names[place] for place in uncertain_columns(stream.cut.top, stream.cut.states)]
    if uncertain:
        lines.append(f"Estimates until the end: {', '.join(uncertain)}.")
    elif selects_by_estimate(stream.cut.top, stream.cut.states):
        lines.append("Every value shown is exact; which rows there are can change until the end.")
    else:
        lines.append("Every row shown is exact; the list grows until the end.")
    return lines


def uncertain_columns(top: Relation, states: tuple[State, ...]) -> list[int]:
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


def selects_by_estimate(top: Relation, states: tuple[State, ...]) -> bool:
    """Whether a value that can still change decides which rows there are."""
    for node in walk(top):
        if isinstance(node, Limit):
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


def _streamed(stream: Stream) -> str:
    ways = dict.fromkeys(one.description for one in stream.scans.values())
    return f"Read in steps, {stream.blocks} blocks in random order: {'; '.join(ways)}."


def _tables(plan: Relation) -> str:
    names = dict.fromkeys(node.table for node in walk(plan) if isinstance(node, Scan))
    return " with ".join(names)


def _kept(state: State) -> str:
    if state.aggregate is None:
        return "all rows so far" if state.keep is None else f"the first {state.keep} rows so far"
    keys = ", ".join(state.aggregate.keys)
    if not state.aggregate.aggregates:
        return f"the distinct {keys}"
    totals = "sums and counts by replicate"
    return f"{totals} for each {keys}" if keys else totals
