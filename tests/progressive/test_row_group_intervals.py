"""Intervals from row groups hold on files in which neighbours are alike; those from rows would not.

No Spark: what each row group adds is computed once with Arrow and replayed for many seeds, through the
same states and estimates as a real run. A seed is a group there, so that one state holds all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import sqlglot

from sooner.algebra import Aggregate, Column, Filter, Item, Join, JoinKind, Scan, Union
from sooner.algebra.relation import Intersect
from sooner.analysis import ColumnFacts, TableFacts, TableInfo
from sooner.progressive.batches import random_order
from sooner.progressive.by_row_groups import FEW, MOST_REPLICATES, ByRowGroups, filters_over_scans
from sooner.progressive.cut import cut
from sooner.progressive.estimates import Varying
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import CannotStream
from sooner.progressive.states import Kept
from sooner.progressive.top import over_estimates
from sooner.storage import DataFile, Source, Table
from sooner.storage.layout import REPLICATE
from sooner.storage.row_groups import RowGroup

pytestmark = pytest.mark.simulation

GROUPS = 4
SEEDS = 200
KEYS = [("seed", pa.int64()), ("g", pa.int64())]
SCHEMA = pa.schema([*KEYS, ("s", pa.float64()), ("m", pa.float64()), ("n", pa.int64())])
COLUMNS = tuple(Column(name, "int") for name in ("g", "v"))
SCAN = Scan("t", ("g", "v"), COLUMNS)


def scalar(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


AGGREGATES = (
    Item("s", scalar("sum(v)")),
    Item("m", scalar("avg(v)")),
    Item("n", scalar("count(*)")),
)
PLAN = Aggregate(SCAN, ("g",), AGGREGATES)
SEEDED = Aggregate(
    Scan("t", ("seed", "g", "v"), (Column("seed", "int"), *COLUMNS)), ("seed", "g"), AGGREGATES
)


@cache
def sorted_file(row_groups: int) -> pa.Table:
    """Rows sorted by a day on which both the value and the groups depend; row groups of unlike size."""
    generator = np.random.default_rng(row_groups)
    sizes = generator.integers(60, 140, row_groups)
    group = np.repeat(np.arange(row_groups), sizes)
    day = (np.arange(len(group)) + 0.5) / len(group)
    value = (20 + 60 * day) * generator.lognormal(0.0, 0.5, len(group))
    odds = np.array([1.0, 1.0, 1.0, 0.0]) + np.outer(day, [0.0, 1.0, -0.7, 0.5])
    chosen = (generator.random(len(group))[:, None] * odds.sum(1, keepdims=True)) > odds.cumsum(1)
    return pa.table({"row_group": group, "g": chosen.sum(1), "v": value})


def parts_of(rows: pa.Table, by: list[str]) -> pa.Table:
    """What each row group (and each other part of ``by``) adds to every group."""
    found = rows.group_by(["g", "row_group", *by], use_threads=False).aggregate(
        [("v", "sum"), ("v", "count")]
    )
    total, count = found.column("v_sum"), found.column("v_count")
    columns = {name: found.column(name) for name in ("g", "row_group", *by)}
    return pa.table({**columns, "s__0": total, "m__0": total, "m__1": count, "n__0": count})


@cache
def table_of(row_groups: int) -> tuple[Table, tuple[RowGroup, ...]]:
    """The table of the sorted file, and its row groups."""
    sizes = np.bincount(sorted_file(row_groups).column("row_group").to_numpy())
    file = DataFile("/t.parquet", int(sizes.sum()), 0, row_groups=tuple(int(n) for n in sizes))
    table = Table(1, "t", COLUMNS, (), Source("parquet", ("/t",)), 1, (file,), (), (), TableFacts())
    return table, tuple(RowGroup(file, n, int(size), 0, {}) for n, size in enumerate(sizes))


@cache
def stream_of(row_groups: int, seed: int) -> ByRowGroups:
    return ByRowGroups(*table_of(row_groups), seed)


def estimates(part: pa.Table, rows: npt.NDArray[np.float64], total: float) -> dict[str, Varying]:
    """The estimates of all columns from partial results that carry their seed and replicate.

    ``rows`` are those read of each seed, by replicate. The cells come by seed, then by group.
    """
    found = cut(SEEDED, {"t": TableInfo()}, {0: ()})
    (state,) = found.states
    kept = Kept(state, SCHEMA, rows.shape[1])
    kept.add(part.slice(0, 0))
    kept.add(part)
    groups = kept.exact().select(["seed", "g"])
    (fewest,) = {Scaling(own, total, FEW).fewest_now for own in rows}
    scaling = Scaling(rows[groups.column("seed").to_numpy()], total, fewest)
    shown = over_estimates(found.top, {state.name: kept.estimated(scaling)}).columns
    assert pa.table({name: shown[name] for name in ("seed", "g")}).equals(groups)
    order = np.lexsort([groups.column(name).to_numpy() for name in ("g", "seed")])
    return {n: c.take(order) for n, c in shown.items() if isinstance(c, Varying)}


def read_by_row_groups(row_groups: int, share: float) -> tuple[pa.Table, npt.NDArray[np.float64]]:
    """What the row groups add that each seed has read, with their replicates, and the rows of these."""
    parts = parts_of(sorted_file(row_groups), [])
    where = parts.column("row_group").to_numpy()
    places, replicates, rows = [], [], []
    for seed in range(SEEDS):
        stream = stream_of(row_groups, seed)
        order = random_order(row_groups, seed)[: round(share * row_groups)]
        read = np.zeros(row_groups, np.bool_)
        read[order] = True
        places.append(np.flatnonzero(read[where]))
        replicates.append(stream.replicate[where[places[-1]]])
        rows.append(stream.rows_of(order))
    seed = np.repeat(np.arange(SEEDS), [len(one) for one in places])
    part = parts.drop_columns(["row_group"]).take(pa.array(np.concatenate(places)))
    part = part.append_column("seed", pa.array(seed))
    return part.append_column(REPLICATE, pa.array(np.concatenate(replicates))), np.array(rows)


def read_by_rows(row_groups: int, share: float) -> tuple[pa.Table, npt.NDArray[np.float64]]:
    """The same with 32 replicates of single rows, dealt at random."""
    rows = sorted_file(row_groups)
    hashed = np.random.default_rng(1).integers(0, 32, rows.num_rows)
    where, group, value = (rows.column(name).to_numpy() for name in ("row_group", "g", "v"))
    cell = (where * GROUPS + group) * 32 + hashed
    size = row_groups * GROUPS * 32
    read = np.zeros((SEEDS, row_groups))
    for seed in range(SEEDS):
        read[seed, random_order(row_groups, seed)[: round(share * row_groups)]] = 1.0
    total = read @ np.bincount(cell, value, size).reshape(row_groups, -1)
    count = read @ np.bincount(cell, minlength=size).reshape(row_groups, -1)
    seed, inside = np.nonzero(count)
    total, number = total[seed, inside], count[seed, inside].astype(np.int64)
    part = pa.table(
        {
            "g": inside // 32,
            **{"s__0": total, "m__0": total, "m__1": number, "n__0": number},
            "seed": seed,
            REPLICATE: inside % 32,
        }
    )
    return part, count.reshape(SEEDS, GROUPS, 32).sum(axis=1)


def coverage(row_groups: int, share: float, by_rows: bool = False) -> dict[str, float]:
    """How often 95% intervals of each column hold the truth; by rows if they are the replicates."""
    rows = sorted_file(row_groups)
    part, by_replicate = (read_by_rows if by_rows else read_by_row_groups)(row_groups, share)
    progress = np.repeat(by_replicate.sum(axis=1) / rows.num_rows, GROUPS)
    truth = parts_of(rows.set_column(0, "row_group", pa.array(np.zeros(rows.num_rows, int))), [])
    order = np.argsort(truth.column("g").to_numpy())
    total, count = (truth.column(name).to_numpy()[order] for name in ("m__0", "m__1"))
    true = {"s": total, "m": total / count, "n": count}
    found = {}
    for name, column in estimates(part, by_replicate, float(rows.num_rows)).items():
        interval = column.interval(progress, 0.95)  # type: ignore[arg-type]
        known = int(interval.known.sum())
        assert known > 0.98 * SEEDS * GROUPS
        found[name] = int(interval.holds(np.tile(true[name], SEEDS)).sum()) / known
    assert found.keys() == true.keys()
    return found


# Measured: 92.5% to 96.3% over 300 seeds; with single rows as replicates 56% to 77%.
@pytest.mark.parametrize("row_groups", [60, 250])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_intervals_hold_on_a_sorted_file(row_groups: int, share: float) -> None:
    found = coverage(row_groups, share)
    print(row_groups, share, found)
    for name, held in found.items():
        assert 0.90 <= held <= 0.98, (name, held)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_replicates_of_single_rows_would_not_hold(share: float) -> None:
    found = coverage(250, share, by_rows=True)
    print(share, found)
    assert found["s"] < 0.75 and found["m"] < 0.65 and found["n"] < 0.82


def test_a_day_that_was_seen_whole_by_luck_has_no_interval() -> None:
    """It lies in five of a hundred row groups, and all five are among the ten that were read."""
    day, others = np.repeat(7, 50), np.repeat(np.arange(5), 10)
    part = pa.table({"row_group": others, "g": day, "v": np.arange(50.0)})
    spread = pa.table(
        {
            "row_group": np.repeat(np.arange(10), 10),
            "g": np.repeat(1, 100),
            "v": np.arange(100.0),
        }
    )
    parts = parts_of(pa.concat_tables([part, spread]), [])
    parts = parts.append_column(REPLICATE, parts.column("row_group")).drop_columns(["row_group"])
    parts = parts.append_column("seed", pa.array(np.zeros(parts.num_rows, np.int64)))
    read = np.zeros((1, 64))
    read[0, :10] = 100.0
    found = estimates(parts, read, 10_000.0)
    everywhere, by_luck = found["s"].interval(0.1, 0.95).known
    assert everywhere and not by_luck


@pytest.mark.parametrize("row_groups", [2, 60, 64, 65, 250])
def test_row_groups_are_dealt_evenly_at_any_time(row_groups: int) -> None:
    rows = sorted_file(row_groups)
    stream = stream_of(row_groups, seed=5)
    order = random_order(row_groups, 5)
    assert stream.replicates == min(row_groups, MOST_REPLICATES)
    for read in (1, row_groups // 2, row_groups):
        numbers = np.bincount(stream.replicate[order[:read]], minlength=stream.replicates)
        assert numbers.max() - numbers.min() <= 1
    assert stream.rows_of(order).sum() == rows.num_rows == stream.rows
    assert (stream_of(row_groups, seed=6).replicate != stream.replicate).any() or row_groups == 2


# --- Without a key nothing lies together ---------------------------------------------------------------

TABLES = {
    "t": TableInfo(
        key=("g",),
        scrambles=(("g",),),
        facts=TableFacts(rows=1000, columns={"g": ColumnFacts(nulls=0), "v": ColumnFacts(nulls=0)}),
    )
}
OTHER = Scan("t", ("g", "v"), (Column("g_2", "int"), Column("v_2", "int")))


def test_no_group_is_complete_without_a_key() -> None:
    (state,) = cut(PLAN, TABLES, {0: ()}).states
    assert state.aggregate is not None and state.carried is not None
    (complete,) = cut(PLAN, TABLES, {0: ("g",)}).states
    assert complete.aggregate is None


@pytest.mark.parametrize(
    "plan",
    [
        Join(SCAN, OTHER, JoinKind.INNER, scalar("g = g_2")),
        Join(SCAN, OTHER, JoinKind.SEMI, scalar("g = g_2")),
        Intersect(SCAN, OTHER),
    ],
    ids=["join", "semi", "intersect"],
)
def test_streams_without_a_key_do_not_meet(plan: Join | Intersect) -> None:
    cut(plan, TABLES, {0: ("g",), 1: ("g",)})
    with pytest.raises(CannotStream):
        cut(plan, TABLES, {0: (), 1: ()})


def test_filters_directly_over_a_scan() -> None:
    low, high = scalar("g > 1"), scalar("v < 5 AND g < 9")
    both = Union(Filter(Filter(SCAN, low), high), OTHER)
    found = filters_over_scans(Filter(both, scalar("g = 3")))
    assert [{one.sql() for one in conditions} for conditions in found] == [
        {"g > 1", "v < 5", "g < 9"},
        set(),
    ]
