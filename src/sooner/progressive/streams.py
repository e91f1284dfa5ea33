"""Which tables a query streams, block by block, and which it reads once before the first block.

Every occurrence of a table in a plan, a scan, is streamed in the order of one of the table's scrambles
or is static. A choice is good if the plan can be cut under it (see :mod:`cut`) and little has to be read
before the first answer. Where no choice of scrambles is good, one table that has none is streamed by its
row groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, islice, product

from sooner.algebra import Relation, Scan, walk
from sooner.analysis import Sizes, TableInfo, estimate
from sooner.progressive.by_row_groups import (
    ENOUGH,
    ByRowGroups,
    by_row_groups,
    filters_over_scans,
)
from sooner.progressive.cut import cut
from sooner.progressive.openness import selects_by_estimate, uncertain_columns
from sooner.progressive.parts import CannotStream, Cut
from sooner.progressive.streamed import ByScramble, Streamed
from sooner.storage import Table

_MOST_CHOICES = 512
_BYTES_OF_A_KEPT_ROW = 100
# Below this most first estimates come less than twice as soon as Spark's exact answer (bench/break_even.py).
_WORTH_BYTES = 70_000_000


@dataclass(frozen=True)
class Stream:
    """A choice: the streamed scans by their place in the plan, and the plan cut accordingly.

    ``shares`` are those of the columns that each of them reads.
    """

    scans: Mapping[int, Streamed]
    cut: Cut
    static_bytes: float
    infos: Mapping[str, TableInfo]
    shares: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_worth_it(self) -> bool:
        """Whether an estimate comes much sooner than the answer, and says something."""
        return self.why_at_once is None

    @property
    def why_at_once(self) -> str | None:
        """Why the exact answer may as well come at once; ``None`` if going in steps is worth it."""
        if self.bytes < _WORTH_BYTES:
            return "So little data is answered exactly at once, unless batches= is given."
        first = next(iter(self.scans.values()))
        if isinstance(first, ByRowGroups) and first.blocks < ENOUGH:
            return (
                f"{first.blocks} row groups are too few for honest intervals: answered exactly at "
                f"once, unless batches= is given. db.scramble({first.table.name!r}, by=…) helps."
            )
        return None

    @property
    def has_estimates(self) -> bool:
        """Whether more data makes the first answer more exact, and not only longer."""
        top, states = self.cut.top, self.cut.states
        return bool(uncertain_columns(top, states)) and not selects_by_estimate(top, states)

    @property
    def bytes(self) -> int:
        """How much is read in steps."""
        return sum(one.bytes for one in self.scans.values())

    @property
    def block_bytes(self) -> float:
        """How much a block has to be read: the columns that are needed, thought alike."""
        read = sum(one.bytes * self.shares.get(place, 1.0) for place, one in self.scans.items())
        return read / self.blocks

    @property
    def blocks(self) -> int:
        """The number of blocks, the same for all streamed scans."""
        return next(iter(self.scans.values())).blocks

    @property
    def replicates(self) -> int:
        """The number of replicates, the same for all streamed scans."""
        return next(iter(self.scans.values())).replicates


def choose_stream(
    plan: Relation,
    tables: Mapping[str, Table],
    infos: Mapping[str, TableInfo],
    wanted: Collection[str] | None,
    seed: int = 0,
    gated: bool = True,
) -> Stream:
    """The stream that reads least before its first answer; ``wanted`` names the tables to stream.

    Scrambles come first; row groups are for where those do not work or are too small to be worth it.
    ``seed`` deals row groups into replicates. Unless ``gated``, all rows that meet an open aggregate are
    kept. Raises :class:`CannotStream` with the reason if there is
    no stream.
    """
    search = _Search(plan, tables, infos, gated)
    scrambled = search.best(_choices(search.scans, tables, wanted))
    if scrambled is not None and scrambled.is_worth_it:
        return scrambled
    grouped = search.best(search.by_row_groups(wanted, seed))
    if grouped is not None and (scrambled is None or grouped.is_worth_it):
        return grouped
    if scrambled is None:
        raise CannotStream(search.reason or _obstacle(plan) or search.unreadable)
    return scrambled


class _Search:
    """Choices tried one after the other, and why the last ones did not work."""

    def __init__(
        self,
        plan: Relation,
        tables: Mapping[str, Table],
        infos: Mapping[str, TableInfo],
        gated: bool,
    ) -> None:
        self.scans = [node for node in walk(plan) if isinstance(node, Scan)]
        self.reason: str | None = None
        self.unreadable = "no table of the query is scrambled"
        self._plan = plan
        self._tables = tables
        self._infos = infos
        self._gated = gated
        self._sizes = Sizes(infos)

    def best(self, choices: Iterable[Mapping[int, Streamed]]) -> Stream | None:
        """The cheapest of the choices under which the plan can be cut."""
        best: Stream | None = None
        for choice in choices:
            keys = {place: streamed.key for place, streamed in choice.items()}
            try:
                found = cut(self._plan, self._infos, keys, self._gated, self._sizes)
            except CannotStream as error:
                self.reason = str(error)
                continue
            static = _static_bytes(self.scans, self._tables, choice)
            shares = {place: self._share(place) for place in choice}
            stream = Stream(choice, found, static, self._infos, shares)
            if best is None or _cost(stream) < _cost(best):
                best = stream
        return best

    def _share(self, place: int) -> float:
        scan = self.scans[place]
        return _column_share(scan, self._tables[scan.table.lower()])

    def by_row_groups(
        self, wanted: Collection[str] | None, seed: int
    ) -> Iterator[dict[int, Streamed]]:
        """Every way of streaming one unscrambled table: some or all of its scans, more of them first."""
        filters = filters_over_scans(self._plan)
        for name in dict.fromkeys(scan.table.lower() for scan in self.scans):
            table = self._tables[name]
            if table.scrambles or not _is_wanted(table, wanted):
                continue
            own = {n: scan for n, scan in enumerate(self.scans) if scan.table.lower() == name}
            for places in _subsets(list(own)):
                try:
                    way = by_row_groups(table, {n: own[n] for n in places}, filters, seed)
                except CannotStream as error:
                    self.unreadable = f"no table of the query is scrambled, and {error}"
                    continue
                yield dict.fromkeys(places, way)


def _subsets(places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All choices of some places, larger ones first."""
    sizes = range(len(places), 0, -1)
    return islice(chain.from_iterable(combinations(places, n) for n in sizes), _MOST_CHOICES)


def _is_wanted(table: Table, wanted: Collection[str] | None) -> bool:
    return wanted is None or table.name.lower() in {name.lower() for name in wanted}


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
    for static in stream.cut.statics.values():
        kept += estimate(static, stream.infos).rows
    # Groups that come complete are exact at once; others are estimates.
    estimated = sum(state.aggregate is not None for state in stream.cut.states)
    return stream.static_bytes + kept * _BYTES_OF_A_KEPT_ROW, estimated


def _choices(
    scans: Sequence[Scan], tables: Mapping[str, Table], wanted: Collection[str] | None
) -> Iterator[dict[int, ByScramble]]:
    """Every way of streaming some scans by scrambles that fit together, more streamed scans first."""
    options: list[list[ByScramble | None]] = []
    for scan in scans:
        table = tables[scan.table.lower()]
        chosen = _is_wanted(table, wanted)
        ways: list[ByScramble | None] = [ByScramble(table, s) for s in table.scrambles if chosen]
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
            total += (table.facts.bytes or 0) * _column_share(scan, table)
    return total


def _column_share(scan: Scan, table: Table) -> float:
    return len(scan.columns) / max(1, len(table.columns))
