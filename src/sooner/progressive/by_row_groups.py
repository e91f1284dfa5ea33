"""A table without a scramble, read by its row groups in random order.

Rows of one row group are often alike (a file sorted by date), so whole row groups are the replicates:
estimates move by what a row group more or less would change, never by single rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sooner.algebra import Filter, Relation, Scan
from sooner.algebra.scalar import Scalar, conjuncts
from sooner.analysis.facts import ColumnFacts
from sooner.analysis.ruled_out import parted, ruled_out
from sooner.engine.streaming import Streaming
from sooner.progressive.batches import random_order
from sooner.progressive.parts import CannotStream
from sooner.statistics.arrays import Floats
from sooner.storage import Table
from sooner.storage.row_groups import RowGroup, row_groups, why_not_by_row_groups

MOST_REPLICATES = 64
# With fewer, those that an interval takes are a large part of the table, and few groups are in them.
ENOUGH = 20
# As many as an interval takes, if not most that were read. What is in fewer row groups, as a day in a file
# that is sorted by day, is seen whole by luck, and then nothing shows that too much of it was scaled up.
FEW = 8


@dataclass(frozen=True)
class ByRowGroups:
    """Read by those row groups that hold rows which pass the filters; a block is one of them.

    ``edges`` are the few of them that a filter cuts through while the others pass it whole, as in a file
    that is sorted by day. Until they are read, no estimate knows how unlike the others they are.
    """

    table: Table
    groups: tuple[RowGroup, ...]
    seed: int = 0
    edges: frozenset[int] = frozenset()

    @property
    def key(self) -> tuple[str, ...]:
        """None: values lie wherever the files have them."""
        return ()

    @property
    def blocks(self) -> int:
        """The number of row groups."""
        return len(self.groups)

    @property
    def replicates(self) -> int:
        """One for each row group, up to a limit."""
        return min(self.blocks, MOST_REPLICATES)

    @property
    def fewest(self) -> int:
        """How many row groups an interval takes, or most of those that were read."""
        return FEW

    @cached_property
    def rows(self) -> int:
        """The rows of these row groups."""
        return sum(group.rows for group in self.groups)

    @property
    def bytes(self) -> int:
        """The size of these row groups."""
        return sum(group.bytes for group in self.groups)

    @property
    def description(self) -> str:
        """The table and what is passed over."""
        passed = len(row_groups(self.table)) - self.blocks
        skipped = f" ({passed} more hold no row that passes the filter)" if passed else ""
        return f"{self.table.name} by row groups{skipped}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Why it is read so, and what would be better."""
        name = self.table.name
        return (
            f"{name} is not scrambled, so its files are read by random row groups. Rows of one row "
            "group are not independent: intervals go by whole row groups, which makes them wider.",
            f"db.scramble({name!r}, by=…) would give narrower intervals, exact groups of its key as "
            "they are read, and joins with other scrambled tables block by block.",
        )

    @cached_property
    def replicate(self) -> npt.NDArray[np.int64]:
        """The replicate of each row group: dealt in the order of reading, so that it is even at any time."""
        found = np.empty(self.blocks, np.int64)
        found[random_order(self.blocks, self.seed)] = np.arange(self.blocks) % MOST_REPLICATES
        return found

    def rows_of(self, blocks: Collection[int]) -> Floats:
        """The rows of these row groups, by replicate."""
        places = np.fromiter(blocks, np.int64, len(blocks))
        found = np.zeros(self.replicates)
        np.add.at(found, self.replicate[places], [self.groups[place].rows for place in places])
        return found

    def open(self, streaming: Streaming, name: str) -> None:
        """Make the rows readable under a name."""
        if streaming.shifts_days(self.table):
            raise CannotStream(
                "Spark is set to read dates by another calendar than they are stored"
            )
        streaming.open_row_groups(name, self.table, self.groups, self.replicate.tolist())


def by_row_groups(
    table: Table, scans: Mapping[int, Scan], filters: Sequence[Sequence[Scalar]], seed: int
) -> ByRowGroups:
    """The row groups that some of these scans need; ``filters`` are those over each scan of the plan.

    Raises :class:`CannotStream` with the reason where they cannot be read singly.
    """
    sources = {source for scan in scans.values() for source in scan.sources}
    reason = why_not_by_row_groups(table, sources)
    if reason is not None:
        raise CannotStream(reason)
    left = tuple(
        group
        for group in row_groups(table)
        if any(_is_needed(group, scan, filters[place]) for place, scan in scans.items())
    )
    if len(left) < 2:
        where = " that may pass the filter" if len(row_groups(table)) > 1 else ""
        raise CannotStream(
            f"{table.name} has {len(left) or 'no'} row group{where}; "
            f"db.scramble({table.name!r}, by=…) would make it one of blocks"
        )
    edges = (_edges(left, scan, filters[place]) for place, scan in scans.items())
    return ByRowGroups(table, left, seed, frozenset().union(*edges))


def filters_over_scans(plan: Relation, above: tuple[Scalar, ...] = ()) -> list[tuple[Scalar, ...]]:
    """For each scan of a plan, from left to right, the conditions directly over it."""
    if isinstance(plan, Scan):
        return [above]
    if isinstance(plan, Filter):
        return filters_over_scans(plan.child, (*above, *conjuncts(plan.condition)))
    return [found for child in plan.children for found in filters_over_scans(child)]


def _is_needed(group: RowGroup, scan: Scan, conditions: Sequence[Scalar]) -> bool:
    return not ruled_out(conditions, _types(scan), _facts(group, scan), group.rows)


def _edges(groups: Sequence[RowGroup], scan: Scan, conditions: Sequence[Scalar]) -> frozenset[int]:
    """The places of row groups that a comparison cuts through, if it does so with few of them."""
    found: set[int] = set()
    for condition in conditions:
        cut = [parted(condition, _types(scan), _facts(group, scan)) for group in groups]
        for comparison in zip(*cut, strict=True):
            mine = [place for place, is_cut in enumerate(comparison) if is_cut]
            if len(mine) < FEW:
                found.update(mine)
    return frozenset(found)


def _facts(group: RowGroup, scan: Scan) -> dict[str, ColumnFacts]:
    known = {name.lower(): facts for name, facts in group.columns.items()}
    return {
        column.name: known[source.lower()]
        for source, column in zip(scan.sources, scan.columns, strict=True)
        if source.lower() in known
    }


def _types(scan: Scan) -> dict[str, str | None]:
    return {column.name: column.type for column in scan.columns}
