"""Do intervals hold where rows are compared with an average that is an estimate too? Many samples."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Item, Join, JoinKind, Scan
from sooner.analysis import TableFacts, TableInfo
from sooner.progressive.cut import cut
from sooner.progressive.estimates import Rows, Varying
from sooner.progressive.gated import Gated
from sooner.progressive.gates import UNDECIDED
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import Cut
from sooner.progressive.states import Kept
from sooner.statistics.arrays import Floats
from sooner.storage.layout import REPLICATE

pytestmark = pytest.mark.simulation

KEYS = 2000
REPLICATES = 32
TABLES = {"s": TableInfo(scrambles=(("k",),), facts=TableFacts(rows=10_000))}


def scalar(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


@cache
def slow_buffering() -> Cut:
    outer = Scan("s", ("buffer", "play"), (Column("buffer", "double"), Column("play", "double")))
    inner = Aggregate(
        Scan("s", ("buffer",), (Column("buffer_2", "double"),)),
        (),
        (Item("average", scalar("avg(buffer_2)")),),
    )
    gated = Join(outer, inner, JoinKind.INNER, scalar("buffer > average"))
    aggregates = (
        Item("a", scalar("avg(play)")),
        Item("n", scalar("count(*)")),
        Item("p", scalar("sum(play)")),
    )
    return cut(Aggregate(gated, (), aggregates), TABLES, {0: ("k",), 1: ("k",)})


@dataclass(frozen=True)
class Sessions:
    """Rows of users that are alike among themselves, some with many rows."""

    key: np.ndarray
    buffer: Floats
    play: Floats
    replicate: np.ndarray

    def of(self, keys: np.ndarray) -> Sessions:
        inside = np.zeros(KEYS, np.bool_)
        inside[keys] = True
        chosen = inside[self.key]
        return Sessions(*(part[chosen] for part in vars(self).values()))

    @property
    def truth(self) -> dict[str, float]:
        slow = self.play[self.buffer > self.buffer.mean()]
        return {"a": slow.mean(), "n": float(len(slow)), "p": slow.sum()}


@cache
def sessions(seed: int) -> Sessions:
    generator = np.random.default_rng(seed)
    key = np.repeat(np.arange(KEYS), generator.geometric(0.2, KEYS))
    user = generator.normal(0, 0.5, KEYS)
    buffer = np.exp(3 + user[key] + generator.normal(0, 0.4, len(key)))
    play = np.exp(4 - 0.5 * user[key] + generator.normal(0, 0.6, len(key)))
    return Sessions(key, buffer, play, generator.integers(0, REPLICATES, KEYS)[key])


class Nothing:
    """Ranges go nowhere, and nothing is read again."""

    def provide(self, name: str, table: pa.Table) -> None:
        pass


@cache
def no_averages() -> Kept:
    """The state of the averages before anything is read; its plan is read once for all samples."""
    kept = Kept(slow_buffering().states[0], pa.schema([("average", pa.float64())]), REPLICATES)
    assert kept.merges
    return kept


def answer(plan: Cut, batches: list[Sessions], everything: Sessions) -> tuple[Rows, float]:
    """What is shown after these batches, rows being decided after each."""
    inner, outer = plan.states
    averages = copy(no_averages())
    schema = pa.schema([("a", pa.float64()), ("n", pa.int64()), ("p", pa.float64())])
    gated = Gated(outer, schema, REPLICATES, [{}], slack=2.0)
    counted = np.zeros(REPLICATES)
    for number, read in enumerate(batches):
        averages.add(_averages(read))
        gated.add(_rows(read, *outer.gates[0].columns), (number,))
        counted += np.bincount(read.replicate, minlength=REPLICATES)
        scaling = Scaling(counted, float(len(everything.key)))
        progress = counted.sum() / len(everything.key)
        gated.settle({inner.name: averages.estimated(scaling)}, progress, Nothing())  # type: ignore[arg-type]
    return gated.estimated(scaling), progress


def _averages(read: Sessions) -> pa.Table:
    counted = np.bincount(read.replicate, minlength=REPLICATES)
    sums = np.bincount(read.replicate, read.buffer, REPLICATES)
    replicate = pa.array(np.arange(REPLICATES), pa.int8())
    return pa.table({REPLICATE: replicate, "average__0": sums, "average__1": counted})


def _rows(read: Sessions, hidden: str) -> pa.Table:
    ones = np.ones(len(read.key), np.int64)
    return pa.table(
        {
            REPLICATE: pa.array(read.replicate, pa.int8()),
            UNDECIDED: pa.array(ones.astype(bool)),
            hidden: read.buffer,
            **{"a__0": read.play, "a__1": ones, "n__0": ones, "p__0": read.play},
        }
    )


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_nested_estimates_are_near_and_their_intervals_hold(share: float) -> None:
    plan = slow_buffering()
    samples, held, off = 120, dict.fromkeys("anp", 0), dict.fromkeys("anp", 0.0)
    for seed in range(samples):
        everything = sessions(seed)
        truth = everything.truth
        keys = np.random.default_rng(seed + 10_000).permutation(KEYS)[: round(share * KEYS)]
        rows, progress = answer(plan, [everything.of(keys)], everything)
        for name, column in rows.columns.items():
            assert isinstance(column, Varying)
            found = column.interval(progress, 0.95)
            held[name] += bool(found.holds(truth[name])[0])
            off[name] += (column.theta[0, 0] / truth[name] - 1) / samples
    for name in "anp":
        assert abs(off[name]) < 0.02, f"{name} is biased by {off[name]:.1%}"
        # 120 samples: three standard errors are 6%.
        assert held[name] / samples >= 0.89, f"{name}: {held[name] / samples:.1%}"


def test_deciding_by_ranges_does_not_change_the_estimate() -> None:
    plan, everything = slow_buffering(), sessions(1)
    whole, _ = answer(plan, [everything.of(np.arange(800))], everything)
    parts = [everything.of(np.arange(first, first + 200)) for first in range(0, 800, 200)]
    stepwise, _ = answer(plan, parts, everything)
    for name, column in whole.columns.items():
        other = stepwise.columns[name]
        assert isinstance(column, Varying) and isinstance(other, Varying)
        assert np.allclose(column.theta, other.theta)
