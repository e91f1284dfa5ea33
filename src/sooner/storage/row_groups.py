"""The row groups of a table's own Parquet files: what can be read at random where nothing is scrambled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from sooner.analysis.facts import ColumnFacts
from sooner.storage.arrow_types import readable_columns, reads_alike
from sooner.storage.expand import is_remote
from sooner.storage.footers import column_facts, flat_columns, open_parquet
from sooner.storage.records import DataFile, Table

_MANY = 8
_THREADS = 16


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that lie together in a file: its ``number`` there, and what the footer says of them."""

    file: DataFile
    number: int
    rows: int
    bytes: int
    columns: Mapping[str, ColumnFacts]


@dataclass(frozen=True, slots=True)
class _Footer:
    groups: tuple[RowGroup, ...]
    columns: Mapping[str, pa.DataType]


def row_groups(table: Table) -> tuple[RowGroup, ...]:
    """All row groups with rows, in the order of the files."""
    return tuple(group for footer in _footers(table) for group in footer.groups)


def why_not_by_row_groups(table: Table, columns: Collection[str]) -> str | None:
    """Why these columns can only be read by Spark, all row groups at once; ``None`` if they need not.

    ``columns`` are names of the table's own, in any letter case.
    """
    if table.source.format != "parquet":
        return f"{table.name} is not registered from Parquet files"
    if any(is_remote(file.path) for file in table.files):
        return f"{table.name} is not on a local file system"
    if table.source.options:
        return f"{table.name} is read with options, such as directories that are columns"
    if table.changes_of(None):
        return f"{table.name} has changes since it was registered"
    wanted = {name.lower() for name in columns}
    footers = _footers(table)
    for column in table.columns:
        if column.name.lower() not in wanted:
            continue
        for footer in footers:
            arrow = footer.columns.get(column.name)
            if arrow is None or not reads_alike(column.type or "", arrow):
                return f"column {column.name} of {table.name} ({column.type}) is for Spark to read"
    return None


def _footers(table: Table) -> list[_Footer]:
    if len(table.files) < _MANY:
        return [_footer(file) for file in table.files]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_footer, table.files))


# A file is recorded with its size and time: what was read once holds while those are the same.
@lru_cache(maxsize=16_384)
def _footer(file: DataFile) -> _Footer:
    with open_parquet(file.path) as opened:
        footer = opened.metadata
        columns = readable_columns(opened.schema_arrow, footer)
    flat = flat_columns(footer)
    groups = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = {name: group.column(place) for name, place in flat.items()}
        size = sum(group.column(place).total_compressed_size for place in range(group.num_columns))
        facts = {name: column_facts(chunk) for name, chunk in chunks.items()}
        if group.num_rows:
            groups.append(RowGroup(file, number, group.num_rows, size, facts))
    return _Footer(tuple(groups), columns)
