"""Missing rows while the known ones are still being read: the interval and the hard range side by side.

Estimates of the known rows have an interval; what can be missing is added to both of its ends. For certain is
only what has been read: an unread row is one more of which little is known, that there are so many of
them and how far the values of the table reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra.schema import Column
from sooner.analysis.facts import TableFacts
from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.missing.bounds import Laid, Missing
from sooner.missing.constraint import Constraint, Range
from sooner.missing.with_nulls import with_nulls
from sooner.synopses.axes import Axis

METHOD = "progressive, with rows missing"
_TAG = "__unread"
_NUMBERS = ("whole", "decimal", "floating", "date")


@dataclass(frozen=True)
class Unread:
    """What has been read, as an answer to :attr:`Asked.text`, and the rows that have not."""

    seen: pa.Table
    rows: int
    facts: TableFacts


def on_the_way(missing: Missing, estimate: Answer, unread: Unread | None) -> Answer:
    """The answer as it looks now; ``estimate`` is one on the way to that of :attr:`Asked.text`.

    Without ``unread`` nothing is certain yet.
    """
    laid = missing.laid(estimate.table)
    uncertain = {
        name: _between(laid, estimate, name, corners)
        for name, corners in _corners(laid, estimate).items()
    }
    hard = {} if unread is None else _hard(missing, laid, estimate.table, unread)
    return replace(
        estimate,
        table=laid.table(estimate.table),
        method=METHOD,
        details={**estimate.details, "notes": tuple(laid.notes)},
        hard_bounds=hard,
        uncertain=uncertain,
    )


def _corners(laid: Laid, estimate: Answer) -> dict[str, list[Uncertainty]]:
    """The ranges of each aggregate, with counts and sums of known rows at the ends of their intervals."""
    tables = [_at(estimate, *sides) for sides in product((False, True), repeat=2)]
    found = [laid.uncertain(table) for table in tables]
    return {name: [one[name] for one in found] for name in found[0]}


def _at(estimate: Answer, high_counts: bool, high_sums: bool) -> pa.Table:
    """An estimate with its values at an end of their intervals; as they are where there is none."""
    table = estimate.table
    for name, one in estimate.uncertain.items():
        high = high_counts if name == "__rows" or name.startswith("__count_") else high_sums
        end = one.bounds.high if high else one.bounds.low
        place = table.column_names.index(name)
        own = table.column(name).cast(end.type)
        table = table.set_column(place, name, pc.coalesce(end, own))
    return table


def _between(
    laid: Laid, estimate: Answer, name: str, corners: Sequence[Uncertainty]
) -> Uncertainty:
    """From the lowest to the highest corner, where the known rows have an interval at all."""
    place = laid.missing.contract.names.index(name)
    needed = _needed(laid.missing, place)
    lows: list[Any] = []
    highs: list[Any] = []
    status: list[Status] = []
    for row in range(len(laid.questions)):
        ends = [
            [side[row].as_py() for side in (one.bounds.low, one.bounds.high)] for one in corners
        ]
        there = [pair for pair in ends if None not in pair]
        known = row < laid.known
        if known and not all(_has_interval(estimate, column, row) for column in needed):
            lows.append(None)
            highs.append(None)
            status.append(Status.UNKNOWN)
            continue
        complete = len(there) == len(ends)
        lows.append(min(pair[0] for pair in there) if complete else None)
        highs.append(max(pair[1] for pair in there) if complete else None)
        exact = {one.status[row] for one in corners} == {Status.EXACT} and lows[-1] == highs[-1]
        status.append(Status.EXACT if exact else Status.RANGE if complete else Status.UNKNOWN)
    type_ = laid.missing.contract.types[place]
    arrays = [pa.chunked_array([pa.array(side, type_)]) for side in (lows, highs)]
    return Uncertainty(Bounds(*arrays), tuple(status))


def _needed(missing: Missing, place: int) -> list[str]:
    """The columns of :attr:`Asked.text` that a range goes by."""
    one = missing.asked.outputs[place]
    if one.function == "count" and one.of is None:
        return ["__rows"]
    n = missing.asked.measures.index(one.of or "")
    if one.function in ("min", "max"):
        return [f"__{one.function}_{n}"]
    return [f"__count_{n}", *([f"__sum_{n}"] if one.function != "count" else [])]


def _has_interval(estimate: Answer, column: str, row: int) -> bool:
    if column not in estimate.uncertain:
        return True
    one = estimate.uncertain[column]
    if one.status[row] is Status.EXACT:
        return True
    return bool(one.bounds.low[row].is_valid and one.bounds.high[row].is_valid)


def _hard(missing: Missing, laid: Laid, shown: pa.Table, unread: Unread) -> Mapping[str, Bounds]:
    """What holds for certain: of the rows that were read, of those that were not, and of missing ones."""
    ours = [
        replace(one, where=f"({one.where}) AND {_TAG} = 0" if one.where else f"{_TAG} = 0")
        for one in missing.constraints
        if one.is_about(missing.asked.table)
    ]
    both = replace(
        missing,
        constraints=[*ours, *_unread_rows(missing, unread)],
        schema=(*missing.schema, Column(_TAG, "int")),
    )
    order = {group: n for n, group in enumerate(missing.groups(unread.seen, laid.keys))}
    groups = missing.groups(shown, laid.keys)
    if any(group not in order for group in groups):
        return {}
    seen = unread.seen.take(pa.array([order[group] for group in groups], pa.int64()))
    found = both.laid(seen, laid.new).uncertain(seen)
    return {name: one.bounds for name, one in found.items()}


def _unread_rows(missing: Missing, unread: Unread) -> Iterator[Constraint]:
    """Unread rows as constraints."""
    asked = missing.asked
    named = {column.name for one in asked.where for column in one.find_all(exp.Column)}
    used = {name.lower() for name in (*asked.measures, *asked.keys, *named)}
    values: dict[str, Range] = {}
    nulls: dict[str, int | None] = {}
    for column in missing.schema:
        facts = unread.facts.column(column.name)
        if column.name.lower() not in used or facts.minimum is None or facts.maximum is None:
            continue
        if Axis(column.name, str(column.type)).kind in _NUMBERS:
            values[column.name] = (facts.minimum, facts.maximum)
            nulls[column.name] = facts.nulls
    return with_nulls([f"{_TAG} = 1"], values, nulls, (unread.rows, unread.rows))
