"""A cleaned sample is the sample of the fresh view: the same rows, with and without pushing down (§4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from video_views import MADE_AGAIN, VIEWS, changes, counted, videos

from sooner.algebra.scalar import to_sql
from sooner.engine.rows import stored_rows
from sooner.views.deltas import SIGN
from sooner.views.unit import HASH, Portion

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import Database
    from sooner.views.upkeep import Upkeep

pytestmark = pytest.mark.spark

PORTIONS = [Portion(high=0.4), Portion(low=0.4, high=0.8), Portion(low=0.8)]


@pytest.fixture
def opened(small_spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    with videos(small_spark, tmp_path) as database:
        yield database


def signed(upkeep: Upkeep, portion: Portion | None) -> Counter[Any]:
    """What the view, or a portion of it, loses and gains, without what comes and goes unchanged."""
    found: Counter[Any] = Counter()
    with upkeep.signed(portion) as rows:
        assert upkeep.unit is not None
        placed = rows.selectExpr(f"{upkeep.unit.sql} AS {HASH}", "*")
        for row in counted([one.asDict() for one in placed.collect()]).elements():
            found[row[:-1]] += row[-1]
    return Counter({row: number for row, number in found.items() if number})


def _assert_same_sample(database: Database, names: list[str]) -> None:
    for name in names:
        database.view(name, VIEWS[name], sample=0.4)
    for number, _ in enumerate(changes(database)):
        if number % 2 == 0:
            continue  # two changes at a time
        for name in names:
            upkeep = database.view(name)._upkeep()
            if upkeep.unit is None or not upkeep.is_stale:
                assert upkeep.unit is not None or name == "total"
                continue
            whole = signed(upkeep, None)
            parts: Counter[Any] = Counter()
            for portion in PORTIONS:
                sample = signed(upkeep, portion)
                within = Counter({r: n for r, n in whole.items() if portion.holds(r[0])})
                assert sample == within, (name, portion)
                parts += Counter({row: abs(n) for row, n in sample.items()})
            assert sum(parts.values()) == sum(abs(n) for n in whole.values())
            database.view(name).refresh("incremental")


def test_some_samples_are_those_of_the_whole(opened: Database) -> None:
    _assert_same_sample(opened, ["visits", "ends", "joined"])


@pytest.mark.slow
def test_all_samples_are_those_of_the_whole(opened: Database) -> None:
    _assert_same_sample(opened, [name for name in VIEWS if name not in MADE_AGAIN])


def test_blocks_of_a_scramble_give_the_same_sample(opened: Database) -> None:
    """By blocks or by a filter: the sample is the same, and it says when it reads by blocks."""
    opened.scramble("log", by="videoId", blocks=8)
    opened.scramble("video", by="videoId", blocks=8)
    view = opened.view("visits", VIEWS["visits"], sample=0.4)
    for _ in changes(opened):
        pass
    upkeep = view._upkeep()
    whole = signed(upkeep, None)
    read = 0
    for portion in PORTIONS:
        push, found = upkeep._pushing(portion)
        read += len(upkeep._blocks(found, upkeep._steps(push, {}), portion))
        within = Counter({r: n for r, n in whole.items() if portion.holds(r[0])})
        assert signed(upkeep, portion) == within
    assert read >= 4  # where rows without a video would be, a filter finds them


def test_samples_correspond(opened: Database) -> None:
    """Property 1: rows that are no more are taken away, new ones come, updated ones keep their keys."""
    view = opened.view("visits", VIEWS["visits"], sample=0.5)
    for _ in changes(opened):
        pass
    upkeep = view._upkeep()
    half = to_sql(Portion(high=0.5).stored or pytest.fail())
    old = {row.videoId for row in stored_rows(opened.spark, upkeep.table).where(half).collect()}
    with upkeep.signed(Portion(high=0.5)) as rows:
        found = rows.collect()
    gone = {row.videoId for row in found if row[SIGN] < 0}
    came = {row.videoId for row in found if row[SIGN] > 0}
    view.refresh("incremental")
    table = view._upkeep().table
    new = {row.videoId for row in stored_rows(opened.spark, table).where(half).collect()}
    assert gone <= old
    assert (old - gone) | came == new
