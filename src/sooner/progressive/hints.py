"""How Spark is to join within a batch: it thinks of all blocks, and would shuffle what is small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sooner.algebra import Join, JoinKind
from sooner.analysis import TableFacts, TableInfo, estimate
from sooner.progressive.gates import RANGES
from sooner.progressive.parts import stream_name
from sooner.progressive.streams import Stream
from sooner.sql import Hint

# Looking up so many rows costs less than moving those of the other side about.
_MOST_BROADCAST_ROWS = 2_000_000
_MOST_HASHED_ROWS = 20_000_000
_BUILD_SIDES = {
    JoinKind.INNER: (True, False),
    JoinKind.LEFT: (True,),
    JoinKind.SEMI: (True,),
    JoinKind.ANTI: (True,),
    JoinKind.RIGHT: (False,),
}


def join_hints(stream: Stream, share: float) -> Callable[[Join], Hint | None]:
    """Hints for the joins of a batch that reads a share of all blocks."""
    infos = _Infos(_batch_infos(stream, share))

    def hint(join: Join) -> Hint | None:
        sides = _BUILD_SIDES.get(join.kind, ())
        if not sides:
            return None
        rows = {right: estimate(join.right if right else join.left, infos).rows for right in sides}
        smaller = min(rows, key=rows.__getitem__)
        if rows[smaller] <= _MOST_BROADCAST_ROWS:
            return Hint("BROADCAST", smaller)
        if rows[smaller] <= _MOST_HASHED_ROWS:
            return Hint("SHUFFLE_HASH", smaller)
        return None

    return hint


class _Infos(dict[str, TableInfo]):
    """Ranges are few, whatever they are called."""

    def __missing__(self, name: str) -> TableInfo:
        if name.startswith(RANGES):
            return TableInfo(facts=TableFacts(rows=1000))
        raise KeyError(name)


def _batch_infos(stream: Stream, share: float) -> Mapping[str, TableInfo]:
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
        rows = round(estimate(plan, stream.infos).rows)
        infos[name] = TableInfo(facts=TableFacts(rows=rows))
    return infos
