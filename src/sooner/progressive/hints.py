"""How Spark is to join within a batch: it thinks of all blocks, and would shuffle what is small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sooner.algebra import Join, JoinKind, Relation, Scan, walk
from sooner.analysis import ColumnFacts, TableFacts, TableInfo, estimate, primary_key
from sooner.analysis.facts import table_info
from sooner.progressive.gates import range_name
from sooner.progressive.parts import stream_name
from sooner.progressive.streams import Stream
from sooner.sql import Hint

# Looking up so many rows costs less than moving those of the other side about.
_MOST_BROADCAST_ROWS = 2_000_000
_MOST_HASHED_ROWS = 8_000_000
_MOST_SCANNED_ROWS = 30_000_000
# Ranges are for few keys.
_RANGES = 1_000
_BUILD_SIDES = {
    JoinKind.INNER: (True, False),
    JoinKind.LEFT: (True,),
    JoinKind.SEMI: (True,),
    JoinKind.ANTI: (True,),
    JoinKind.RIGHT: (False,),
}


def join_hints(stream: Stream, share: float) -> Callable[[Join], Hint | None]:
    """Hints for the joins of a batch that reads a share of all blocks."""
    infos = batch_infos(stream, share)

    def hint(join: Join) -> Hint | None:
        sides = _BUILD_SIDES.get(join.kind, ())
        if not sides:
            return None
        rows = {right: estimate(join.right if right else join.left, infos).rows for right in sides}
        smaller = min(rows, key=rows.__getitem__)
        if _largest(join.right if smaller else join.left, infos) > _MOST_SCANNED_ROWS:
            return None  # if a filter lets more pass than was thought, memory would not do
        if rows[smaller] <= _MOST_BROADCAST_ROWS:
            return Hint("BROADCAST", smaller)
        if rows[smaller] <= _MOST_HASHED_ROWS:
            return Hint("SHUFFLE_HASH", smaller)
        return None

    return hint


def _largest(plan: Relation, infos: Mapping[str, TableInfo]) -> float:
    """The rows of the largest table a plan reads."""
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    return max((table_info(infos, scan.table).facts.rows or 0 for scan in scans), default=0)


def batch_infos(stream: Stream, share: float) -> Mapping[str, TableInfo]:
    """What is known of all that a batch reads, if it reads a share of all blocks."""
    infos = {}
    for place, one in stream.scans.items():
        info = stream.infos[one.table.name.lower()]
        facts = replace(
            info.facts,
            rows=round((info.facts.rows or 0) * share),
            bytes=round((info.facts.bytes or 0) * share),
        )
        infos[stream_name(place)] = replace(info, facts=facts)
    for name, plan in stream.cut.statics.items():
        infos[name] = _static_info(plan, stream.infos)
    for name, plan in stream.cut.commons.items():
        infos[name] = _static_info(plan, infos)
    for state in stream.cut.states:
        for place in range(len(state.gates)):
            infos[range_name(state.name, place)] = TableInfo(facts=TableFacts(rows=_RANGES))
    return infos


def _static_info(plan: Relation, infos: Mapping[str, TableInfo]) -> TableInfo:
    """What is known of a static part: without its key every join with it would look too large."""
    size = estimate(plan, infos)
    columns = {n: ColumnFacts(distinct=round(one.distinct)) for n, one in size.columns.items()}
    facts = TableFacts(rows=round(size.rows), columns=columns)
    return TableInfo(key=tuple(sorted(primary_key(plan, infos) or ())), facts=facts)
