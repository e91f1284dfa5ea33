"""DeepOLA's worked example (§3.4.1): students by home state, after one and two of ten partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Item, Scan
from sooner.progressive.cut import cut
from sooner.progressive.estimates import Varying
from sooner.progressive.partials import Scaling
from sooner.progressive.states import Kept
from sooner.storage.layout import REPLICATE

STUDENTS = Scan("students", ("id", "state"), (Column("id", "bigint"), Column("state", "string")))
BY_STATE = Aggregate(STUDENTS, ("state",), (Item("n", sqlglot.parse_one("count(state)")),))
SCHEMA = pa.schema([("state", pa.string()), ("n", pa.int64())])
# Ten partitions of three students; the third one of the second partition has no home state.
FIRST = ([1, 2, 3], ["IL", "IL", "MI"])
SECOND = ([4, 5, 6], ["IL", "MI", None])
PARTITIONS, STUDENTS_EACH, REPLICATES = 10, 3, 8


def counted(ids: list[int], states: list[str | None]) -> pa.Table:
    """What Spark would give for a partition: counts by state and replicate."""
    table = pa.table({"state": states, REPLICATE: [number % REPLICATES for number in ids]})
    found = table.group_by(["state", REPLICATE]).aggregate([("state", "count")])
    return found.rename_columns(["state", REPLICATE, "n__0"])


def shown(kept: Kept, partitions: int) -> dict[str, float]:
    read = np.bincount(np.arange(1, partitions * STUDENTS_EACH + 1) % REPLICATES)
    rows = np.pad(read, (0, REPLICATES - len(read))).astype(float)
    estimates = kept.estimated(Scaling(rows, float(PARTITIONS * STUDENTS_EACH)))
    count = estimates.columns["n"]
    states = estimates.columns["state"]
    assert isinstance(count, Varying) and isinstance(states, pa.ChunkedArray)
    found = dict(zip(states.to_pylist(), count.theta[0].tolist(), strict=True))
    found.pop(None, None)
    return found


def test_counts_are_scaled_by_what_was_read() -> None:
    (state,) = cut(BY_STATE, {}, {0: ("id",)}).states
    kept = Kept(state, SCHEMA, REPLICATES)
    kept.add(counted(*FIRST))
    assert shown(kept, 1) == pytest.approx({"IL": 20, "MI": 10})
    kept.add(counted(*SECOND))
    assert shown(kept, 2) == pytest.approx({"IL": 15, "MI": 10})
    exact = kept.exact().to_pylist()
    assert {row["state"]: row["n"] for row in exact if row["state"]} == {"IL": 3, "MI": 2}
