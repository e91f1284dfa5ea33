"""Cleaning a sample of a view: what changes in a part of it, kept until one of its tables changes again."""

from __future__ import annotations

from datetime import UTC, datetime
from time import perf_counter

from sooner.engine.view_rows import written_changes
from sooner.engine.writing import reservation
from sooner.storage.views import Cleaned, record_cleaned
from sooner.views.outliers import outliers_now
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
