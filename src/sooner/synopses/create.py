"""Building a synopsis on Spark in two passes: a sample to choose the leaves from, then filling them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sooner.engine.hashed_rows import HashedRows
from sooner.engine.writing import reservation
from sooner.errors import InvalidArgument, UnknownColumn, nearest
from sooner.storage import Catalog, Table
from sooner.storage.layout import HASH
from sooner.storage.synopses import StoredSynopsis, commit_synopsis
from sooner.synopses.axes import Axis
from sooner.synopses.budgets import within_budgets
from sooner.synopses.build import filling
from sooner.synopses.definition import Definition, Knobs
from sooner.synopses.files import as_text, write
from sooner.synopses.layout import lay_out
from sooner.synopses.measures import Measure
from sooner.synopses.parcels import fill, unpacked
from sooner.synopses.summary import Summary

_MOST_WORDS = 100_000


def define(
    name: str,
    table: Table,
    measures: Sequence[str],
    over: Sequence[str],
    keep: Sequence[str],
    knobs: Knobs,
) -> Definition:
    """A definition whose columns are there and of types that fit."""
    if not measures:
        raise InvalidArgument(
            "measure= names the column of numbers to aggregate: give one or more."
        )
    if not over:
        raise InvalidArgument("over= names the columns that conditions go by: give one or more.")
    columns = {column.name.lower(): column for column in table.columns}
    for one in (*measures, *over, *keep):
        if one.lower() not in columns:
            known = [column.name for column in table.columns]
            raise UnknownColumn(f"Table {table.name!r} has no column {one!r}.{nearest(one, known)}")
    spelled = [columns[one.lower()] for one in (*over, *keep)]
    axes = [Axis(column.name, str(column.type)) for column in spelled]
    if len({axis.name for axis in axes}) < len(axes):
        raise InvalidArgument("A column is named twice in over= and keep=.")
    for axis in axes:
        _ = axis.kind  # says so if the type does not fit
    if len(over) > 1 and knobs.partitioning not in ("fast", "equal"):
        raise InvalidArgument(
            f"partitioning={knobs.partitioning!r} is for one column; over several use 'fast' or 'equal'."
        )
    found = {one.lower(): columns[one.lower()] for one in measures}
    return Definition(
        name,
        table.name,
        table.version,
        tuple(Measure(column.name, str(column.type)) for column in found.values()),
        tuple(axes[: len(over)]),
        tuple(axes[len(over) :]),
        knobs,
    )


def summarize(
    rows_of: Callable[[Sequence[str], str, int], HashedRows],
    definition: Definition,
    build_within: float | None = None,
    query_within: float | None = None,
    size: int | str | None = None,
) -> Summary:
    """The summary of a table as defined, or within budgets; ``rows_of`` gives its rows with a hash."""
    axes, measures = (*definition.over, *definition.keep), definition.measures
    names = dict.fromkeys([*(one.name for one in axes), *(one.name for one in measures)])
    knobs = definition.knobs
    rows = rows_of(list(names), HASH, knobs.seed)
    sample, total = rows.some(knobs.optimizer)
    if total == 0 or sample.num_rows == 0:
        raise InvalidArgument(f"{definition.table!r} has no rows to summarize.")
    knobs = within_budgets(knobs, total, len(names), build_within, query_within, size)
    if knobs.leaves > total:
        raise InvalidArgument(
            f"leaves={knobs.leaves}, but {definition.table!r} has only {total:,} rows. Give fewer leaves."
        )
    definition = replace(definition, knobs=knobs)
    how = filling(definition, lay_out(sample, definition), total)
    parts = [unpacked(one, how) for one in rows.in_partitions(partial(fill, how))]
    summary = how.finish(parts)
    for axis in summary.definition.over:
        if len(axis.words) > _MOST_WORDS:
            raise InvalidArgument(
                f"over={axis.name!r} has {len(axis.words):,} different words; a synopsis takes up to "
                f"{_MOST_WORDS:,}."
            )
    return summary


def save(catalog: Catalog, table: Table, summary: Summary, replace: bool) -> StoredSynopsis:
    """Write a summary into a directory of its own and tell the catalog."""
    definition = summary.definition
    with reservation(catalog, table) as reserved:
        directory = reserved.directory("synopsis")
        write(summary, directory)
        stored = StoredSynopsis(
            definition.name, table.name, table.version, as_text(definition), directory
        )
        commit_synopsis(catalog, table, stored, reserved.directories, replace)
    return stored
