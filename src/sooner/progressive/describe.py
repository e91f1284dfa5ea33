"""What a progressive query will do, in words, before anything runs."""

from __future__ import annotations

from dataclasses import replace

from sooner.algebra import Relation, Scan, walk
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.parts import State
from sooner.progressive.samplers import MOST_ROWS
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
        if any(state.samplers for state in stream.cut.states):
            lines.append("Once the sample is full, Spark gives the exact answer in one run.")
    elif selects_by_estimate(stream.cut.top, stream.cut.states):
        lines.append("Every value shown is exact; which rows there are can change until the end.")
    else:
        lines.append("Every row shown is exact; the list grows until the end.")
    return lines


def _streamed(stream: Stream) -> str:
    ways = dict.fromkeys(one.description for one in stream.scans.values())
    return f"Read in steps, {stream.blocks} blocks in random order: {'; '.join(ways)}."


def _tables(plan: Relation) -> str:
    names = dict.fromkeys(node.table for node in walk(plan) if isinstance(node, Scan))
    return " with ".join(names)


def _kept(state: State) -> str:
    if state.gates:
        waiting = "; ".join(map(str, state.gates))
        return f"{_kept(replace(state, gates=()))}, and rows that {waiting} may yet let pass or not"
    if state.aggregate is None:
        return "all rows so far" if state.keep is None else f"the first {state.keep} rows so far"
    keys = ", ".join(state.aggregate.keys)
    if state.pairs is not None:
        values = "the distinct values that are counted, by replicate"
        return f"{values}, for each {keys}" if keys else values
    if state.samplers:
        return f"a sample of {MOST_ROWS:,} rows, for what does not add up"
    if not state.aggregate.aggregates:
        return f"the distinct {keys}"
    totals = "sums and counts by replicate"
    return f"{totals} for each {keys}" if keys else totals
