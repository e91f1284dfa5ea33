"""A table that is read block by block: what any way of doing so has to offer, and the way by a scramble."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from sooner.engine.streaming import Streaming
from sooner.progressive.partials import Scaling
from sooner.statistics.arrays import Floats
from sooner.storage import Table
from sooner.storage.records import Scramble, total_rows
from sooner.storage.replicate_rows import replicate_rows


class Streamed(Protocol):
    """A scan that advances block by block; every row is in one block and in one replicate."""

    @property
    def table(self) -> Table:
        """The table, at the version that is read."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns whose equal values lie in one block; none if nothing lies together."""

    @property
    def blocks(self) -> int:
        """How many blocks there are."""

    @property
    def replicates(self) -> int:
        """How many replicates there are."""

    @property
    def fewest(self) -> int:
        """How many replicates with something in them an interval takes, or most of those read."""

    @property
    def rows(self) -> int:
        """The rows of all blocks."""

    @property
    def bytes(self) -> int:
        """How much there is to read."""

    @property
    def description(self) -> str:
        """The table and how it is read, in a few words."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about reading it so."""

    def rows_of(self, blocks: Collection[int]) -> Floats:
        """The rows of these blocks, by replicate."""

    def open(self, streaming: Streaming, name: str) -> None:
        """Make the rows readable under a name. Raises ``CannotStream`` if Spark is set against it."""


@dataclass(frozen=True)
class ByScramble:
    """Read in the order of a scramble."""

    table: Table
    scramble: Scramble

    @property
    def key(self) -> tuple[str, ...]:
        """The key of the scramble."""
        return self.scramble.by

    @property
    def blocks(self) -> int:
        """The blocks of the scramble."""
        return self.scramble.blocks

    @property
    def replicates(self) -> int:
        """The replicates of the scramble."""
        return self.scramble.replicates

    @property
    def fewest(self) -> int:
        """As always: what is in a replicate is a matter of chance."""
        return Scaling.fewest

    @property
    def rows(self) -> int:
        """The rows of the table's version: those of the scramble and of the changes since."""
        rows = total_rows(self.scramble.files) or 0
        for change in self.table.changes_of(self.scramble.id):
            rows += (change.rows or 0) * (1 if change.kind == "insert" else -1)
        return rows

    @property
    def bytes(self) -> int:
        """The size of the table, or of the scramble's files: the latter may be large to be read sooner."""
        own = sum(file.bytes for file in self.scramble.files)
        return min(own, self.table.facts.bytes or own)

    @property
    def description(self) -> str:
        """The table and its key."""
        return f"{self.table.name} by {', '.join(self.scramble.by)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: this is how it should be."""
        return ()

    def rows_of(self, blocks: Collection[int]) -> Floats:
        """The rows of these blocks, by replicate."""
        return replicate_rows(self.table, self.scramble, blocks)

    def open(self, streaming: Streaming, name: str) -> None:
        """Make the rows readable under a name."""
        streaming.open_scramble(name, self.table, self.scramble)
