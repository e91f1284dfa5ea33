"""A bounded sample of rows: what is kept between batches for aggregates whose parts do not merge.

The rows of all blocks read so far are a sample of keys, each as likely as any other. When there are
more than the sample may hold, as many of them are taken at random, each as likely as any other, and
reading ends: nothing that is said of these columns would get better. What is left is the exact answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra import Aggregate, Column, Item, Project, Relation, Scan
from sooner.algebra.scalar import Scalar, column, columns_of
from sooner.progressive.estimates import Column as Estimate
from sooner.progressive.estimates import Rows, Varying, certain_rows
from sooner.progressive.numbers import numbers
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import CannotStream, State
from sooner.progressive.resampled import resampled
from sooner.progressive.samplers import MOST_ROWS, FunctionOf, QuantileOf, Sampler
from sooner.progressive.states import Kept
from sooner.progressive.woodruff import Woodruff
from sooner.statistics import Sample, sample_of
from sooner.statistics.places import places
from sooner.storage.layout import REPLICATE

_BATCH = "__batch"

Function = Callable[[Any], Any]
Finish = Callable[[Relation, Mapping[str, pa.Table]], pa.Table]


class Sampled:
    """A state of which rows are kept. ``beside`` is the state of the aggregates that do merge.

    ``finish`` has Spark run a plan over local tables; ``functions`` are the user's, by name.
    """

    def __init__(
        self,
        state: State,
        schema: pa.Schema,
        replicates: int,
        beside: Kept | None,
        functions: Mapping[str, Function],
        finish: Finish,
    ) -> None:
        assert state.aggregate is not None and state.carried is not None
        self.state = state
        self.schema = schema
        self._aggregate = state.aggregate
        self._carried = state.carried
        self._replicates = replicates
        self._beside = beside
        self._functions = functions
        self._finish = finish
        self._batches = 0
        self._rows: pa.Table | None = None
        self._share = 1.0
        for one in state.samplers:
            _require_number(schema.field(one.name))

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks: keys, what the aggregates read, and their values."""
        names = dict.fromkeys((*self._aggregate.keys, REPLICATE))
        for item in self._aggregate.aggregates:
            names |= dict.fromkeys(sorted(columns_of(item.scalar)))
        kept = tuple(Item(name, column(name)) for name in names)
        values = tuple(Item(_value(one), one.value) for one in self.state.samplers)
        return Project(self._carried, (*kept, *values))

    def require_readable(self, schema: pa.Schema) -> None:
        """Refuse rows that would not come back from Spark as they were."""
        for field in schema:
            naive = pa.types.is_timestamp(field.type) and field.type.tz is None
            if naive or pa.types.is_nested(field.type) or pa.types.is_duration(field.type):
                raise CannotStream(f"{field.name} is of type {field.type}, which is not sampled")
        for one in self.state.samplers:
            if isinstance(one, QuantileOf):
                _require_number(schema.field(_value(one)))

    def add(self, batch: pa.Table) -> None:
        """Fold a batch in; once the sample is full, nothing more is added."""
        if self.is_full:
            return
        self._batches += 1
        number = pa.array(np.full(batch.num_rows, self._batches, np.int64))
        batch = batch.append_column(_BATCH, number)
        batch = batch.cast(pa.schema([field.with_nullable(True) for field in batch.schema]))
        rows = batch if self._rows is None else pa.concat_tables([self._rows, batch])
        if rows.num_rows > MOST_ROWS:
            self._share = MOST_ROWS / rows.num_rows
            chosen = np.random.default_rng(0).choice(rows.num_rows, MOST_ROWS, replace=False)
            rows = rows.take(pa.array(np.sort(chosen)))
        self._rows = rows

    @property
    def is_full(self) -> bool:
        """Whether there were more rows than the sample holds."""
        return self._share < 1.0

    @property
    def is_exact(self) -> bool:
        """Whether the value follows from the kept rows, once everything has been read."""
        return not self.is_full and all(one.is_repeatable for one in self.state.samplers)

    @property
    def bytes(self) -> int:
        """How large the state is."""
        return 0 if self._rows is None else self._rows.nbytes

    def exact(self) -> pa.Table:
        """The state's value by Spark over the kept rows, which are all there are."""
        assert self._rows is not None
        rows = self._rows.drop_columns([_BATCH])
        name = f"{self.state.name}_rows"
        columns = tuple(Column(one) for one in rows.column_names)
        scan = Scan(name, tuple(rows.column_names), columns)
        plan = Aggregate(scan, self._aggregate.keys, self._aggregate.aggregates)
        return self._finish(plan, {name: rows})

    def estimated(self, scaling: Scaling) -> Rows:
        """The state's value as it looks now."""
        assert self._rows is not None
        keys = list(self._aggregate.keys)
        columns: dict[str, Estimate] = {}
        if self._beside is not None:
            merged = self._beside.estimated(scaling)
            columns, count = dict(merged.columns), merged.count
            groups = pa.table({key: columns[key] for key in keys})
        else:
            groups = self._rows.select(keys).group_by(keys, use_threads=False).aggregate([])
            count = groups.num_rows if keys else 1
            columns = dict(zip(keys, groups.columns, strict=True))
        group = places(groups.select(list(keys)), self._rows.select(list(keys)))
        rows, found = self._rows, group >= 0
        if not found.all():
            # Spark groups some rows that Arrow tells apart (-0.0 and 0.0): such a row is left out.
            rows, group = rows.take(np.flatnonzero(found)), group[found]
        samples: dict[Scalar, Sample] = {}
        for one in self.state.samplers:
            columns[one.name] = self._estimate(one, rows, group, count, samples)
        return certain_rows({name: columns[name] for name in self.schema.names}, count)

    def _estimate(
        self,
        one: Sampler,
        rows: pa.Table,
        group: npt.NDArray[np.int64],
        count: int,
        samples: dict[Scalar, Sample],
    ) -> Varying:
        """``samples`` are those of values that were asked for before: several quantiles go by one."""
        values = rows.column(_value(one)).combine_chunks()
        replicate = np.asarray(rows.column(REPLICATE).to_numpy(), np.int64)
        if isinstance(one, FunctionOf):
            # All rows of a key are in one batch and one replicate: such a part is a set of keys.
            part = np.asarray(rows.column(_BATCH).to_numpy(), np.int64)
            there = pc.is_valid(values).to_numpy(zero_copy_only=False)
            return resampled(
                self._functions[one.function],
                values.drop_null(),
                group[there],
                (part * self._replicates + replicate)[there],
                (count, self._replicates),
                self._share,
            )
        if one.value not in samples:
            found = numbers(values).copy()
            # Spark's NaN is the greatest number; null is left out.
            found[np.isnan(found) & pc.is_valid(values).to_numpy(zero_copy_only=False)] = np.inf
            shape = (count, self._replicates)
            samples[one.value] = sample_of(found, group, replicate, shape)
        return Woodruff.of(samples[one.value], one.probability, self._share)


def _value(one: Sampler) -> str:
    return f"{one.name}__value"


def _require_number(field: pa.Field) -> None:
    kind = field.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise CannotStream(f"{field.name} is of type {kind}, and only numbers are estimated")
