"""The benchmark of intervals replays runs from what each block gave: that is what a real run shows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from sooner.answer import Status
from sooner.engine.streaming import Streaming
from sooner.progressive.estimates import Rows, Varying
from sooner.tpch.load import query

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "bench"))

from coverage import CONFIDENCE, Replay

if TYPE_CHECKING:
    from sooner import Answer, Database

pytestmark = pytest.mark.spark


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The blocks of every batch that is read."""
    found: list[list[int]] = []
    hold = Streaming.hold

    def spy(self: Streaming, blocks: Iterable[int], *rest: Any) -> None:
        found.append(list(blocks))
        hold(self, blocks, *rest)

    monkeypatch.setattr(Streaming, "hold", spy)
    return found


# A list whose least price is of the rows around it, a total and groups with open values inside.
@pytest.mark.parametrize("number", [2, 17, 22])
def test_it_shows_what_a_run_shows(scrambled: Database, held: list[list[int]], number: int) -> None:
    frame = scrambled.sql(query(number))
    first, *_, last = frame.progress(batches=2, seed=5, confidence=CONFIDENCE)
    blocks = np.array(held[0])
    replay = Replay(scrambled, query(number))
    assert_shown(first, replay.at(blocks), replay.share(blocks))
    assert_shown(last, replay.truth, 1.0)


def assert_shown(answer: Answer, rows: Rows, progress: float) -> None:
    assert rows.count == answer.table.num_rows
    named = dict(zip(answer.table.column_names, rows.columns.values(), strict=True))
    estimates = {name: column for name, column in named.items() if isinstance(column, Varying)}
    assert all(Status.ESTIMATE not in answer.status(name) for name in named.keys() - estimates)
    for name, column in estimates.items():
        assert_near(answer.table.column(name), column.theta[0])
        if not answer.final:
            interval = column.interval(progress, CONFIDENCE)
            assert_near(answer.bounds[name].low, interval.low)
            assert_near(answer.bounds[name].high, interval.high)


def assert_near(shown: pa.ChunkedArray, replayed: np.ndarray) -> None:
    """Counts are shown as whole numbers."""
    values = np.array([np.nan if value is None else float(value) for value in shown.to_pylist()])
    rounded = 0.5 if pa.types.is_integer(shown.type) else 0.0
    np.testing.assert_allclose(values, replayed, rtol=1e-4, atol=rounded)
