"""What Parquet footers say: rows, row groups, bounds and nulls, without reading any data."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.errors import CatalogError, MissingFile
from sooner.storage.encoding import storable
from sooner.storage.expand import local_path
from sooner.storage.records import DataFile
from sooner.storage.widen import widen

_MANY = 8
_THREADS = 16

BlockOf = Callable[[str], int | None]


def read_footers(paths: Sequence[str], block_of: BlockOf | None = None) -> tuple[DataFile, ...]:
    """The files as the catalog records them; ``block_of`` tells the hash block of a path."""
    return survey(paths, block_of)[0]


def facts_of(paths: Sequence[str]) -> TableFacts:
    """Rows, bytes, bounds and nulls of these files together."""
    return survey(paths)[1]


def survey(
    paths: Sequence[str], block_of: BlockOf | None = None
) -> tuple[tuple[DataFile, ...], TableFacts]:
    """Both :func:`read_footers` and :func:`facts_of`, reading each footer once."""
    if len(paths) < _MANY:
        read = [_read(path) for path in paths]
    else:
        with ThreadPoolExecutor(_THREADS) as pool:
            read = list(pool.map(_read, paths))
    files = tuple(
        file if block_of is None else replace(file, block=block_of(file.path)) for file, _ in read
    )
    facts = functools.reduce(widen, (found for _, found in read), TableFacts(rows=0, bytes=0))
    return files, facts


def arrow_schema(path: str) -> pa.Schema:
    """The Arrow schema of a Parquet file."""
    return open_parquet(path).schema_arrow


def schema_text(schema: pa.Schema) -> str:
    """An Arrow schema as text that two schemas share if their columns and types agree.

    >>> schema_text(pa.schema([("a", pa.int64())]))
    '[["a", "int64"]]'
    """
    return json.dumps([[field.name, str(field.type)] for field in schema])


def open_parquet(path: str) -> pq.ParquetFile:
    """A Parquet file, its footer read; or the error that says what is there instead."""
    try:
        # No memory map: a file that shrinks under one kills the process.
        return pq.ParquetFile(local_path(path), memory_map=False)
    except FileNotFoundError as error:
        raise MissingFile(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise CatalogError(f"{path} is a directory, not a Parquet file.") from error
    except (pa.ArrowException, OSError) as error:
        raise CatalogError(f"{path} cannot be read as Parquet: {error}") from error


def _read(path: str) -> tuple[DataFile, TableFacts]:
    plain = local_path(path)
    try:
        # Before reading, so that a file replaced in between looks changed later.
        status = os.stat(plain)
    except FileNotFoundError as error:
        raise MissingFile(f"There is no file {path}.") from error
    with open_parquet(path) as opened:
        footer = opened.metadata
        text = schema_text(opened.schema_arrow)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    flat = flat_columns(footer)
    facts = functools.reduce(
        widen, (_group_facts(group, flat) for group in groups), TableFacts(rows=0, bytes=0)
    )
    file = DataFile(
        path=os.path.abspath(plain),
        rows=footer.num_rows,
        bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        row_groups=tuple(group.num_rows for group in groups),
        schema=text,
    )
    return file, replace(facts, bytes=status.st_size)


def flat_columns(footer: Any) -> dict[str, int]:
    """The places of the columns that are not nested, by name."""
    flat = {}
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        # The path of a nested column is longer than its own name.
        if column.max_repetition_level == 0 and column.name == column.path:
            flat[column.name] = number
    return flat


def _group_facts(group: Any, flat: dict[str, int]) -> TableFacts:
    columns = {name: column_facts(group.column(number)) for name, number in flat.items()}
    return TableFacts(rows=group.num_rows, bytes=0, columns=columns)


def column_facts(chunk: Any) -> ColumnFacts:
    """Bounds and nulls of one column in one row group, as far as its statistics can be trusted."""
    statistics = chunk.statistics
    if statistics is None:
        return ColumnFacts()
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return ColumnFacts(nulls=nulls)
    try:
        low, high = _to_microseconds(statistics.min, up=False), _to_microseconds(statistics.max)
    except (pa.ArrowException, ValueError, OverflowError, NotImplementedError):
        # A cut-off string need not be valid UTF-8, and a date may lie beyond Python's calendar.
        return ColumnFacts(nulls=nulls)
    # A NaN among the statistics says nothing about the other values (the Parquet format's rule).
    if not (storable(low) and storable(high)) or _is_nan(low) or _is_nan(high):
        return ColumnFacts(nulls=nulls)
    return ColumnFacts(low, high, nulls)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _to_microseconds(value: Any, up: bool = True) -> Any:
    """Nanosecond timestamps come as pandas values: round outwards to what Python can hold."""
    if not hasattr(value, "to_pydatetime"):
        return value
    rounded = value.floor("us").to_pydatetime(warn=False)
    return rounded + timedelta(microseconds=1) if up and value.nanosecond else rounded
