"""Bringing a view up to date: its changes brought in, or all of its rows made again, in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from sooner.engine.session import zone_name
from sooner.engine.view_rows import view_schema, write_changes, written_changes
from sooner.engine.writing import reservation
from sooner.errors import QueryCancelled, QueryFailed
from sooner.storage.footers import facts_of
from sooner.storage.records import Table
from sooner.storage.views import Refreshed, record_refresh, reflecting
from sooner.views.definition import Definition, as_text
from sooner.views.deltas import SIGN
from sooner.views.made import Made
from sooner.views.outliers import with_outliers
from sooner.views.unit import HASH, Portion, unit_of
from sooner.views.upkeep import Choice, How, Upkeep

# Changes are looked at with rows that have gone again, and with pairs that never were: one side as it was,
# the other as it is. An expression may fail on these and on none that is there.
GONE = "bringing changes in failed, perhaps on rows that are gone again"


def refresh(upkeep: Upkeep, how: How = "auto") -> Refreshed:
    """Bring a view up to date."""
    choice = upkeep.chosen(how)
    if not choice.incremental:
        return _made_again(upkeep, choice)
    try:
        return _brought_in(upkeep, choice)
    except QueryFailed as error:
        if how != "auto" or isinstance(error, QueryCancelled):
            raise
        return _made_again(upkeep, Choice(False, f"made again, because {GONE}"))


def _brought_in(upkeep: Upkeep, choice: Choice) -> Refreshed:
    start = perf_counter()
    with reservation(upkeep.catalog, upkeep.table) as reserved:
        directory = reserved.directory("refresh")
        write(upkeep, directory)
        return commit(upkeep, directory, choice, start, reserved)


def write(upkeep: Upkeep, directory: str, part: Portion | None = None) -> None:
    """Add what a view loses and gains, or a portion of it, to a directory."""
    hash_sql = None if upkeep.unit is None else upkeep.unit.sql
    with upkeep.signed(part) as rows:
        write_changes(upkeep.table, rows, SIGN, hash_sql, HASH, directory)


def commit(
    upkeep: Upkeep, directory: str, choice: Choice, start: float, reserved: Any
) -> Refreshed:
    """Make what was written to a directory part of a view."""
    changes = written_changes(upkeep.table, directory)
    counts = {change.kind: change.rows or 0 for change in changes}
    came, went = counts.get("insert", 0), counts.get("delete", 0)
    done = Refreshed("incremental", choice.why, perf_counter() - start, came, went)
    note = _noting(upkeep, done, upkeep.definition)
    if not changes:
        reserved.give_up()
        with upkeep.catalog.database.writing() as connection:
            note(connection, upkeep.table)
        return done
    added = [file.path for change in changes if change.kind == "insert" for file in change.files]
    facts = facts_of(added) if added else None
    upkeep.catalog.commit_change(upkeep.table, changes, facts, reserved.directories, also=note)
    return done


def _noting(
    upkeep: Upkeep, done: Refreshed, definition: Definition
) -> Callable[[Any, Table], None]:
    """Records a refresh in its commit; the outliers become those of the tables as they are."""
    text = as_text(with_outliers(upkeep.spark, definition, upkeep.form, upkeep.now))
    now = reflecting(list(upkeep.now.values()))
    return partial(record_refresh, view=upkeep.stored, definition=text, reflects=now, done=done)


def _made_again(upkeep: Upkeep, choice: Choice) -> Refreshed:
    start = perf_counter()
    with upkeep.whole() as rows, reservation(upkeep.catalog, None) as reserved:
        definition = replace(_retyped(upkeep, rows), zone=zone_name(upkeep.spark))
        made = Made(rows, upkeep.form, definition.unit, reserved.directory("view"))
        seconds = perf_counter() - start
        done = Refreshed("recomputed", choice.why, seconds, made.rows, upkeep.table.facts.rows)
        note = _noting(upkeep, done, definition)
        made.commit(upkeep.catalog, upkeep.table.name, reserved, note, True)
    return done


def _retyped(upkeep: Upkeep, rows: Any) -> Definition:
    """The definition for rows whose types may be others by now."""
    definition, unit = upkeep.definition, upkeep.unit
    if unit is None:
        return definition
    types = {one.name: str(one.type) for one in view_schema(rows, 0)[0]}
    if upkeep.form.key is None or any(name not in types for name in unit.columns):
        again = None
    else:
        again = unit_of(unit.columns, types, unit.salt)
    if again is not None:
        return replace(definition, unit=again)
    why = "nothing tells its rows apart any more"
    return replace(definition, unit=None, sample=None, outliers=(), certain=(), why_not=why)
