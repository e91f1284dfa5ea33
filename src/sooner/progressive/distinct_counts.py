"""COUNT(DISTINCT …) on the way: the distinct values so far, and how many there will be.

What is kept are the values of each group with, by replicate, in how many stream keys each was seen.
A stream key is read in one batch, so these counts add up; rows would make values look more frequent
than they are, because rows of one key are alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra import Relation
from sooner.progressive.estimates import Column, DistinctCount, Rows, certain_rows
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State
from sooner.progressive.states import Kept
from sooner.progressive.unseen import unseen_share
from sooner.statistics import leave_one_out, leave_one_out_distinct, maybe_skewed
from sooner.statistics.arrays import Booleans, Floats, Integers
from sooner.statistics.places import places
from sooner.storage.layout import REPLICATE

# Beyond so many values their replicates are not kept, and only what was seen is certain.
MOST_REPLICATED_VALUES = 2_000_000
# Beyond so many groups no leave-one-out counts are computed: 33 numbers for each at every answer.
_MOST_REPLICATED_GROUPS = 50_000
_PRESENT = "__present"


class KeptDistinct:
    """A state of distinct counts; ``pairs`` keeps the values, one row for each and each replicate."""

    def __init__(self, state: State, schema: pa.Schema, pairs: Kept) -> None:
        assert state.aggregate is not None and pairs.state.aggregate is not None
        self.state = state
        self.schema = schema
        self._pairs = pairs
        self._keys = list(state.aggregate.keys)
        self._values = [name for name in pairs.state.aggregate.keys if name not in self._keys]
        (counted,) = pairs.state.aggregate.aggregates
        self._times = f"{counted.name}__0"

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks."""
        return self._pairs.batch

    def add(self, batch: pa.Table) -> None:
        """Fold a batch in."""
        self._pairs.add(batch)

    @property
    def bytes(self) -> int:
        """How large the state is."""
        return self._pairs.bytes

    def unseen_share(self) -> float | None:
        """As of other states, but of (stream key, value) pairs, not of rows."""
        if not self._keys or not self._pairs.is_replicated:
            return None
        table = self._pairs.table
        groups = table.group_by(self._keys, use_threads=False).aggregate([])
        replicate = _numbers(table, REPLICATE).astype(np.int64)
        return unseen_share(
            *_cells(
                places(groups.select(list(self._keys)), table.select(list(self._keys))),
                replicate,
                _numbers(table, self._times),
            )
        )

    def exact(self) -> pa.Table:
        """The counts once everything has been read."""
        values = self._pairs.exact()
        present = pa.array(self._present(values).astype(np.int64))
        counted = values.append_column(_PRESENT, present)
        groups = counted.group_by(self._keys, use_threads=False).aggregate([(_PRESENT, "sum")])
        count = pc.fill_null(groups.column(f"{_PRESENT}_sum"), 0)
        columns = [groups.column(key) for key in self._keys]
        columns += [count.cast(field.type) for field in list(self.schema)[len(columns) :]]
        return pa.Table.from_arrays(columns, names=self.schema.names)

    def estimated(self, scaling: Scaling) -> Rows:
        """The counts as they look now."""
        table = self._pairs.table
        groups = table.group_by(self._keys, use_threads=False).aggregate([])
        replicated = self._pairs.is_replicated and groups.num_rows <= _MOST_REPLICATED_GROUPS
        found = self._count(table, groups, scaling, replicated)
        columns: dict[str, Column] = {key: groups.column(key) for key in self._keys}
        columns.update(dict.fromkeys(self.schema.names[len(self._keys) :], found))
        return certain_rows(columns, groups.num_rows)

    def _count(
        self, table: pa.Table, groups: pa.Table, scaling: Scaling, replicated: bool
    ) -> DistinctCount:
        count = groups.num_rows
        rows = scaling.rows if replicated else scaling.rows.sum(keepdims=True)
        width = len(rows)

        def by_replicate(group: Integers, replicate: Integers, weights: Floats) -> Floats:
            cells = np.bincount(group * width + replicate, weights, minlength=count * width)
            return cells.reshape(count, width).astype(np.float64)

        table = table.filter(pa.array(self._present(table)))
        times = _numbers(table, self._times)
        replicate = np.zeros(table.num_rows, np.int64)
        if replicated:
            replicate = _numbers(table, REPLICATE).astype(np.int64)
        pairs = by_replicate(
            places(groups.select(list(self._keys)), table.select(list(self._keys))),
            replicate,
            times,
        )

        whole = pa.table(
            {
                **{name: table.column(name) for name in (*self._keys, *self._values)},
                "times": times,
                "replicate": replicate,
            }
        )
        values = whole.group_by([*self._keys, *self._values], use_threads=False).aggregate(
            [("times", "sum"), ("replicate", "min"), ("replicate", "max")]
        )
        group = places(groups.select(list(self._keys)), values.select(list(self._keys)))
        times = _numbers(values, "times_sum")
        least = _numbers(values, "replicate_min").astype(np.int64)
        only = (least == _numbers(values, "replicate_max")).astype(np.float64)
        distinct = np.bincount(group, minlength=count).astype(np.float64)
        repeats = np.bincount(group, times * (times - 1.0), minlength=count).astype(np.float64)

        totals = leave_one_out(pairs, rows, scaling.total)
        theta = leave_one_out_distinct(distinct, by_replicate(group, least, only), pairs, totals)
        skewed = maybe_skewed(theta[0], pairs.sum(axis=1), totals[0], repeats)
        # Of a group without a value it is known that there is none so far.
        theta[0] = np.where(np.isnan(theta[0]), distinct, theta[0])
        return DistinctCount(
            theta if replicated else theta[:1],
            contributions=np.where(skewed[:, None], 0.0, pairs),
            positive=True,
            certain_low=distinct,
            skewed=skewed,
        )

    def _present(self, table: pa.Table) -> Booleans:
        """The rows without a null among the values: those that are counted."""
        present = np.ones(table.num_rows, np.bool_)
        for name in self._values:
            present &= table.column(name).is_valid().to_numpy()
        return present


def _cells(
    groups: Integers, replicate: Integers, weights: Floats
) -> tuple[Integers, Integers, Floats]:
    """Weights summed by group and replicate."""
    width = int(replicate.max(initial=0)) + 1
    summed = np.bincount(groups * width + replicate, weights).astype(np.float64)
    places_ = np.flatnonzero(summed)
    return places_ // width, places_ % width, summed[places_]


def _numbers(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), np.float64)


def kept(
    state: State, schema_of: Callable[[Relation], pa.Schema], replicates: int
) -> Kept | KeptDistinct:
    """What holds a state; ``schema_of`` gives the columns of a plan as Spark types them."""
    schema = schema_of(state.aggregate or state.delta)
    if state.pairs is None:
        return Kept(state, schema, replicates)
    assert state.pairs.aggregate is not None
    of_pairs = schema_of(state.pairs.aggregate)
    pairs = Kept(state.pairs, of_pairs, replicates, MOST_REPLICATED_VALUES)
    return KeptDistinct(state, schema, pairs)
