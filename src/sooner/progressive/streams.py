"""Which tables a query streams, block by block, and which it reads once before the first block.

Every occurrence of a table in a plan, a scan, is streamed in the order of one of the table's scrambles
or is static. A choice is good if the plan can be cut under it (see :mod:`cut`) and little has to be read
before the first answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sooner.algebra import Relation, Scan, walk
from sooner.analysis import TableInfo, estimate
from sooner.progressive.cut import CannotStream, Cut, cut
from sooner.storage import Table
from sooner.storage.records import Scramble, total_rows

_MOST_CHOICES = 512
_BYTES_OF_A_KEPT_ROW = 100
# Below this Spark's exact answer comes about as soon as a first estimate.
_WORTH_BYTES = 50_000_000


@dataclass(frozen=True)
class Streamed:
    """A scan that advances block by block."""

    table: Table
    scramble: Scramble

    @property
    def rows(self) -> int:
        """The rows of the table's version: those of the scramble and of the changes since."""
        rows = total_rows(self.scramble.files) or 0
        for change in self.table.changes_of(self.scramble.id):
            rows += (change.rows or 0) * (1 if change.kind == "insert" else -1)
        return rows


@dataclass(frozen=True)
class Stream:
    """A choice: the streamed scans by their place in the plan, and the plan cut accordingly."""

    scans: Mapping[int, Streamed]
    cut: Cut
    static_bytes: float
    infos: Mapping[str, TableInfo]

    @property
    def is_worth_it(self) -> bool:
        """Whether there is enough to stream for an estimate to come much sooner than the answer."""
        return self.bytes >= _WORTH_BYTES

    @property
    def bytes(self) -> int:
        """How much is read in steps."""
        return sum(file.bytes for one in self.scans.values() for file in one.scramble.files)

    @property
    def blocks(self) -> int:
        """The number of blocks, the same for all streamed scans."""
        return next(iter(self.scans.values())).scramble.blocks


def choose_stream(
    plan: Relation,
    tables: Mapping[str, Table],
    infos: Mapping[str, TableInfo],
    wanted: Collection[str] | None,
    gated: bool = True,
) -> Stream:
    """The stream that reads least before its first answer; ``wanted`` names the tables to stream.

    Unless ``gated``, all rows that meet an open aggregate are kept.

    Raises :class:`CannotStream` with the reason if there is none.
    """
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    best: Stream | None = None
    reason = _obstacle(plan) or "no table of the query is scrambled"
    for choice in _choices(scans, tables, wanted):
        keys = {place: streamed.scramble.by for place, streamed in choice.items()}
        try:
            found = cut(plan, infos, keys, gated)
        except CannotStream as error:
            reason = str(error)
            continue
        stream = Stream(choice, found, _static_bytes(scans, tables, choice), infos)
        if best is None or _cost(stream) < _cost(best):
            best = stream
    if best is None:
        raise CannotStream(reason)
    return best


def _obstacle(plan: Relation) -> str | None:
    """Why the plan could not be streamed even if all its tables were scrambled."""
    try:
        cut(plan, {}, {})
    except CannotStream as obstacle:
        return str(obstacle)
    return None


def _cost(stream: Stream) -> tuple[float, int]:
    """What is read before the first answer and what is handled again for each; then estimates."""
    kept = sum(state.expected_rows for state in stream.cut.states)
    for node in walk(stream.cut.top):
        if isinstance(node, Scan) and node.table in stream.cut.statics:
            kept += estimate(stream.cut.statics[node.table], stream.infos).rows
    # Groups that come complete are exact at once; others are estimates.
    estimated = sum(state.aggregate is not None for state in stream.cut.states)
    return stream.static_bytes + kept * _BYTES_OF_A_KEPT_ROW, estimated


def _choices(
    scans: Sequence[Scan], tables: Mapping[str, Table], wanted: Collection[str] | None
) -> Iterator[dict[int, Streamed]]:
    """Every way of streaming some scans by scrambles that fit together, more streamed scans first."""
    options: list[list[Streamed | None]] = []
    for scan in scans:
        table = tables[scan.table.lower()]
        chosen = wanted is None or table.name.lower() in {name.lower() for name in wanted}
        ways: list[Streamed | None] = [Streamed(table, s) for s in table.scrambles if chosen]
        options.append([*ways, None])
    for number, choice in enumerate(product(*options)):
        if number == _MOST_CHOICES:
            return
        streamed = {place: way for place, way in enumerate(choice) if way is not None}
        families = {
            (w.scramble.types, w.scramble.salt, w.scramble.blocks) for w in streamed.values()
        }
        if len(families) == 1:
            yield streamed


def _static_bytes(
    scans: Sequence[Scan], tables: Mapping[str, Table], choice: Mapping[int, Streamed]
) -> float:
    total = 0.0
    for place, scan in enumerate(scans):
        if place not in choice:
            table = tables[scan.table.lower()]
            share = len(scan.columns) / max(1, len(table.columns))
            total += (table.facts.bytes or 0) * share
    return total
