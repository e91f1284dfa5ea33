"""What a progressive query keeps between batches, on the driver: groups that merge, rows that add up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra import Aggregate, Limit, Relation, Sort
from sooner.progressive.cut import CannotStream, State
from sooner.progressive.estimates import Column, Extreme, Rows, Varying, certain_rows
from sooner.progressive.partials import Accumulator, Scaling, accumulator
from sooner.statistics.arrays import Floats
from sooner.storage.layout import REPLICATE

# Beyond this many groups their replicates are not kept, and intervals are unknown.
_MOST_REPLICATED_GROUPS = 50_000


class SumTooLarge(Exception):
    """A sum that is too large for its type: Spark says how such a query ends."""


class Kept:
    """A state and what it holds so far. ``schema`` are the columns it stands for, as Spark types them."""

    def __init__(self, state: State, schema: pa.Schema, replicates: int) -> None:
        self.state = state
        self.schema = schema
        self._replicates = replicates
        self._replicated = state.carried is not None
        self._table: pa.Table | None = None
        if state.aggregate is not None:
            _require_mergeable(schema)

    @cached_property
    def _accumulators(self) -> tuple[Accumulator, ...]:
        assert self.state.aggregate is not None
        aggregate = self.state.aggregate
        types = self.schema.types[len(aggregate.keys) :]
        found = [accumulator(item, t) for item, t in zip(aggregate.aggregates, types, strict=True)]
        return tuple(one for one in found if one is not None)

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks."""
        state = self.state
        if state.aggregate is None:
            if state.keep is None:
                return state.delta
            return Limit(Sort(state.delta, state.by), state.keep)
        partials = tuple(part for one in self._accumulators for part in one.partials)
        delta = state.carried if self._replicated and state.carried is not None else state.delta
        return Aggregate(delta, self._grouping, partials)

    @property
    def _grouping(self) -> tuple[str, ...]:
        assert self.state.aggregate is not None
        keys = self.state.aggregate.keys
        return (*keys, REPLICATE) if self._replicated else keys

    def add(self, batch: pa.Table) -> None:
        """Fold a batch in."""
        batch = batch.cast(pa.schema([field.with_nullable(True) for field in batch.schema]))
        if self.state.aggregate is None:
            self._table = batch if self._table is None else pa.concat_tables([self._table, batch])
            return
        if not self._replicated and REPLICATE in batch.column_names:
            batch = self._merged(batch, self._grouping)  # asked for while there were fewer groups
        if self._table is not None:
            both = pa.concat_tables([self._table, batch.select(self._table.column_names)])
            batch = self._merged(both, self._grouping)
        self._table = batch
        if self._replicated and batch.num_rows > _MOST_REPLICATED_GROUPS:
            self._replicated = self._groups() <= _MOST_REPLICATED_GROUPS
            if not self._replicated:
                self._table = self._merged(batch, self._grouping)

    def _groups(self) -> int:
        assert self._table is not None and self.state.aggregate is not None
        keys = list(self.state.aggregate.keys)
        return int(self._table.group_by(keys, use_threads=False).aggregate([]).num_rows)

    def _merged(self, table: pa.Table, by: Sequence[str]) -> pa.Table:
        merges = [
            (part.name, merge)
            for one in self._accumulators
            for part, merge in zip(one.partials, one.merge, strict=True)
        ]
        types = {name: table.schema.field(name).type for name, _ in merges}
        table, nan = _without_nan(_widened(table, merges), merges)
        merged = table.group_by(list(by), use_threads=False).aggregate(
            [*merges, *((name, "any") for name in nan.values())]
        )
        columns = [merged.column(name) for name in by]
        for name, merge in merges:
            values = merged.column(f"{name}_{merge}")
            if name in nan:
                found = merged.column(f"{nan[name]}_any")
                # Spark's NaN is the greatest number: the largest where there is one, else the last resort.
                wins = found if merge == "max" else pc.and_(found, pc.is_null(values))
                values = pc.if_else(pc.fill_null(wins, False), float("nan"), values)
            columns.append(_narrowed(values, types[name]))
        return pa.Table.from_arrays(columns, names=[*by, *(name for name, _ in merges)])

    @property
    def bytes(self) -> int:
        """How large the state is."""
        return 0 if self._table is None else self._table.nbytes

    def exact(self) -> pa.Table:
        """The state's value once everything has been read."""
        assert self._table is not None
        if self.state.aggregate is None:
            return self._table
        keys = self.state.aggregate.keys
        whole = self._merged(self._table, keys)
        if not keys and not whole.num_rows:  # a total of nothing is still one row
            whole = pa.table({f.name: pa.nulls(1, f.type) for f in whole.schema})
        columns = [whole.column(key) for key in keys]
        for one, field in zip(self._accumulators, list(self.schema)[len(keys) :], strict=True):
            columns.append(one.exact([whole.column(p.name) for p in one.partials], field.type))
        return pa.Table.from_arrays(columns, names=self.schema.names)

    def estimated(self, scaling: Scaling) -> Rows:
        """The state's value as it looks now: totals scaled up, with their replicates."""
        assert self._table is not None
        if self.state.aggregate is None or not self._accumulators:
            table = self._table
            if self.state.aggregate is not None:
                table = self._merged(table, self.state.aggregate.keys)
            columns: dict[str, Column] = dict(zip(table.column_names, table.columns, strict=True))
            rows = certain_rows(columns, table.num_rows)
            return rows.also_chosen(self.state.keep is not None)
        keys = self.state.aggregate.keys
        whole = self._merged(self._table, keys)
        columns = {key: whole.column(key) for key in keys}
        groups = places(whole, self._table, keys)
        replicate = self._replicate()
        for one in self._accumulators:
            if one.is_extreme:
                values = whole.column(one.partials[0].name)
                columns[one.name] = Extreme(values, least=one.merge == ("min",))
            else:
                parts = [
                    self._dense(part.name, groups, replicate, whole.num_rows)
                    for part in one.partials
                ]
                columns[one.name] = self._varying(one, parts, scaling)
        return certain_rows(columns, whole.num_rows)

    def _replicate(self) -> npt.NDArray[np.int64]:
        assert self._table is not None
        if self._replicated:
            return np.asarray(self._table.column(REPLICATE).to_numpy(), np.int64)
        return np.zeros(self._table.num_rows, np.int64)

    def _dense(
        self, name: str, groups: npt.NDArray[np.int64], replicate: npt.NDArray[np.int64], count: int
    ) -> Floats:
        """A partial as a table of groups and replicates; NaN where there is nothing."""
        assert self._table is not None
        dense = np.full((count, self._replicates if self._replicated else 1), np.nan)
        dense[groups, replicate] = (
            self._table.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        )
        return dense

    def _varying(self, one: Accumulator, parts: Sequence[Floats], scaling: Scaling) -> Varying:
        if not self._replicated:
            scaling = Scaling(scaling.rows.sum(keepdims=True), scaling.total)
        seen = ~np.isnan(parts[0]).all(axis=1)
        filled = [np.nan_to_num(part, nan=0.0) for part in parts]
        theta = np.where(seen, one.estimates(filled, scaling), np.nan)
        if not self._replicated:
            theta = theta[:1]
        return Varying(
            theta,
            contributions=np.abs(filled[-1]),
            positive=bool((filled[0] >= 0).all()),
            certain_low=filled[0].sum(axis=1) if one.is_count else None,
        )


def places(groups: pa.Table, rows: pa.Table, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """For each row the place of its group in a table that has every group once; -1 without one."""
    if not keys:
        return np.zeros(rows.num_rows, np.int64)
    both = pa.concat_tables([groups.select(list(keys)), rows.select(list(keys))])
    numbers = np.zeros(both.num_rows, np.int64)
    for key in keys:
        codes = both.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        indices = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered anew after every key, so that the product stays small.
        _, numbers = np.unique(numbers * (len(codes.dictionary) + 1) + indices, return_inverse=True)
    place = np.full(numbers.max(initial=-1) + 1, -1)
    place[numbers[: groups.num_rows]] = np.arange(groups.num_rows)
    return place[numbers[groups.num_rows :]]


def _widened(table: pa.Table, merges: Sequence[tuple[str, str]]) -> pa.Table:
    """Whole numbers to be summed in a type that their sum fits: it is cast back, or too large."""
    for name, merge in merges:
        if merge == "sum" and pa.types.is_integer(table.schema.field(name).type):
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.decimal128(38)))
    return table


def _narrowed(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Merged values in the type of their parts: Arrow widens, and would again and again."""
    try:
        return values.cast(type_)
    except pa.ArrowInvalid as error:
        raise SumTooLarge(f"a sum does not fit {type_}") from error


def _without_nan(
    table: pa.Table, merges: Sequence[tuple[str, str]]
) -> tuple[pa.Table, dict[str, str]]:
    """Floating columns to be merged by min or max without their NaN, and flags of where they were."""
    flags = {}
    for name, merge in merges:
        values = table.column(name)
        if merge in ("min", "max") and pa.types.is_floating(values.type):
            flags[name] = f"{name}__nan"
            is_nan = pc.is_nan(values)
            place = table.column_names.index(name)
            table = table.append_column(flags[name], is_nan)
            plain = pc.if_else(pc.fill_null(is_nan, False), pa.scalar(None, values.type), values)
            table = table.set_column(place, name, plain)
    return table, flags


def _require_mergeable(schema: pa.Schema) -> None:
    for field in schema:
        if pa.types.is_nested(field.type) or pa.types.is_duration(field.type):
            raise CannotStream(f"{field.name} is of type {field.type}, which is not merged")
