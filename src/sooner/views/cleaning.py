"""Cleaning a sample of a view: what changes in a part of it, kept until one of its tables changes again."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from time import perf_counter

from sooner.engine.change_rows import change_rows
from sooner.engine.view_rows import outlier_hashes, written_changes
from sooner.engine.writing import reservation
from sooner.storage.views import Cleaned, record_cleaned
from sooner.views.deltas import SIGN
from sooner.views.outliers import MOST_OUTLIERS, outlier_way
from sooner.views.refreshing import write
from sooner.views.unit import Portion
from sooner.views.upkeep import Upkeep


def clean(upkeep: Upkeep) -> Cleaned:
    """Clean a sample of a view, and keep it for questions to come."""
    ratio = upkeep.definition.sample
    assert ratio is not None, "a view that is sampled has a share"
    certain = outliers_now(upkeep)
    with reservation(upkeep.catalog, upkeep.table) as reserved:
        directory = reserved.directory("clean")
        parts = [Portion(high=ratio)]
        if certain and ratio < 1:
            parts.append(Portion(low=ratio, only=certain))
        for part in parts:
            write(upkeep, directory, part)
        counts = {one.kind: one.rows or 0 for one in written_changes(upkeep.table, directory)}
        cleaned = Cleaned(
            upkeep.reflects,
            ratio,
            directory,
            counts.get("delete", 0),
            counts.get("insert", 0),
            upkeep.table.version,
            certain,
            datetime.now(UTC).isoformat(),
        )
        record_cleaned(upkeep.catalog, upkeep.stored, cleaned, reserved.directories)
    return cleaned


def try_cleaning(upkeep: Upkeep, share: float) -> float:
    """How long it takes to clean so much of a view; nothing is kept."""
    start = perf_counter()
    with reservation(upkeep.catalog, upkeep.table) as reserved:
        write(upkeep, reserved.directory("clean"), Portion(high=share))
        reserved.give_up()
    return perf_counter() - start


def outliers_now(upkeep: Upkeep) -> tuple[int, ...]:
    """The hashes of outliers: those there were, and those among the rows that have changed since."""
    found = set(upkeep.definition.certain)
    for one in upkeep.definition.outliers:
        name = one.table.lower()
        way = outlier_way(upkeep.form, upkeep.definition.unit, name)
        if one.threshold is None or way is None:
            continue
        rows = change_rows(upkeep.spark, upkeep.before[name], upkeep.now[name], SIGN)
        room = MOST_OUTLIERS - len(found)
        with ExitStack() as stack:
            if name in upkeep.below:  # a view that is stale: it would have other rows
                rows = rows.unionByName(stack.enter_context(upkeep.below[name].shown()))
            found |= set(outlier_hashes(rows, one.column, one.threshold, way, max(0, room)))
    return tuple(sorted(found))
