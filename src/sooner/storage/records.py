"""What the catalog records, as plain values: files, scrambles, changes, tables, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from sooner.algebra.schema import Schema
from sooner.analysis.facts import TableFacts
from sooner.errors import CatalogError, InvalidArgument

Format: TypeAlias = Literal["parquet", "csv", "view"]
ChangeKind: TypeAlias = Literal["insert", "delete"]
What: TypeAlias = Literal["register", "insert", "delete", "update"]
KeyType: TypeAlias = Literal["bigint", "string"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file, as it was when it was recorded.

    ``row_groups`` holds the rows of each Parquet row group; ``block`` is the hash block of a
    scramble that the file belongs to; ``schema`` is the text that :func:`schema_text` makes of the
    file's Arrow schema, kept to say later which columns changed.

    >>> DataFile("/data/a.parquet", rows=5, bytes=900, row_groups=(3, 2)).rows
    5
    """

    path: str
    rows: int | None
    bytes: int
    modified_ns: int | None = None
    row_groups: tuple[int, ...] = ()
    block: int | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.row_groups and self.rows != sum(self.row_groups):
            raise InvalidArgument(
                f"{self.path}: {self.rows} rows, but its row groups hold {sum(self.row_groups)}."
            )


@dataclass(frozen=True, slots=True)
class Source:
    """Where a table's rows come from: what the user gave when registering it.

    >>> Source("parquet", ("data/*.parquet",)).location
    ('data/*.parquet',)
    """

    format: Format
    location: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("format", self.format, get_args(Format))


@dataclass(frozen=True, slots=True)
class Scramble:
    """A second layout of a table's content at ``base_version``: blocks in hash order of ``by``.

    ``types`` are the canonical types the key is cast to before hashing. ``id`` is 0 until the
    catalog gives it one.
    """

    id: int
    by: tuple[str, ...]
    types: tuple[KeyType, ...]
    salt: int
    blocks: int
    replicates: int
    base_version: int
    directory: str
    files: tuple[DataFile, ...] = ()

    def __post_init__(self) -> None:
        if len(self.types) != len(self.by):
            raise InvalidArgument(f"{len(self.by)} key columns but {len(self.types)} key types.")
        for key_type in self.types:
            _one_of("key type", key_type, get_args(KeyType))
        for name, value in (("blocks", self.blocks), ("replicates", self.replicates)):
            if value < 1:
                raise InvalidArgument(f"A scramble needs at least 1 of {name}, not {value}.")
        if not -(2**63) <= self.salt < 2**63:
            raise InvalidArgument(f"The salt {self.salt} does not fit 64 bits.")
        for file in self.files:
            if file.block is not None and not 0 <= file.block < self.blocks:
                raise InvalidArgument(f"{file.path}: block {file.block} of {self.blocks}.")

    def same_layout(self, other: Scramble) -> bool:
        """Whether both put every row into the same block."""
        mine, theirs = (
            (tuple(column.lower() for column in s.by), s.types, s.salt, s.blocks)
            for s in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that one version adds or takes away, in one layout.

    ``scramble_id`` is ``None`` for the plain layout. Deletes hold the full old rows.
    """

    version: int
    kind: ChangeKind
    scramble_id: int | None
    directory: str
    files: tuple[DataFile, ...] = ()

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, get_args(ChangeKind))
        if self.version < 2:
            raise InvalidArgument("Version 1 is the registration; changes start at version 2.")

    @property
    def rows(self) -> int | None:
        """The rows in all files of this change; ``None`` where a file does not say."""
        return total_rows(self.files)


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one version: everything a reader needs, from one catalog transaction.

    ``scrambles`` and ``changes`` are only those that this version can use: the content is
    ``files`` plus the plain inserts minus the plain deletes, or the same with a scramble.
    ``facts.bytes`` counts what a reader of the plain layout reads, delete files included;
    ``minimum`` and ``maximum`` are bounds of the values (floating NaN aside), not always values.
    ``missing`` says which rows may be missing, as a file of constraints does. ``hidden`` are columns that
    are stored for Sooner's own use and that no query sees.
    """

    id: int
    name: str
    columns: Schema
    key: tuple[str, ...]
    source: Source
    version: int
    files: tuple[DataFile, ...]
    scrambles: tuple[Scramble, ...]
    changes: tuple[Change, ...]
    facts: TableFacts
    missing: str | None = None
    hidden: Schema = ()

    @property
    def stored(self) -> Schema:
        """All columns that its files have."""
        return self.columns + self.hidden

    def scramble(self, scramble_id: int) -> Scramble:
        """The scramble with this id."""
        for scramble in self.scrambles:
            if scramble.id == scramble_id:
                return scramble
        raise CatalogError(
            f"Table {self.name!r} at version {self.version} has no scramble {scramble_id}. "
            "It may have been dropped: read the table again."
        )

    def scramble_by(self, by: Sequence[str]) -> Scramble | None:
        """The newest scramble by exactly these columns in this order, letter case aside."""
        wanted = [column.lower() for column in by]
        for scramble in reversed(self.scrambles):
            if [column.lower() for column in scramble.by] == wanted:
                return scramble
        return None

    def changes_of(self, scramble_id: int | None) -> tuple[Change, ...]:
        """The changes to apply, in order, to a scramble's files or (``None``) to the base files."""
        since = 1 if scramble_id is None else self.scramble(scramble_id).base_version
        return tuple(
            change
            for change in self.changes
            if change.scramble_id == scramble_id and change.version > since
        )


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of a table: when it was committed (UTC) and what it did."""

    version: int
    committed_at: datetime
    what: What
    inserted: int | None
    deleted: int | None


def total_rows(files: Sequence[DataFile]) -> int | None:
    """The rows of all files, or ``None`` where one of them does not say.

    >>> total_rows([DataFile("a", 2, 10), DataFile("b", 3, 10)])
    5
    """
    total = 0
    for file in files:
        if file.rows is None:
            return None
        total += file.rows
    return total


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"Unknown {what} {value!r}; use one of {', '.join(allowed)}.")
