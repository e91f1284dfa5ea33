"""What a progressive query keeps between batches, on the driver: groups that merge, rows that add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Aggregate, Item, Limit, Relation, Sort
from sooner.progressive.estimates import Column, Extreme, Rows, Varying, certain_rows
from sooner.progressive.partials import Accumulator, Scaling, accumulator
from sooner.progressive.parts import CannotStream, State
from sooner.progressive.unseen import unseen_share
from sooner.statistics import growth, shared_growth
from sooner.statistics.arrays import Floats
from sooner.statistics.places import places
from sooner.storage.layout import REPLICATE

# Beyond this many groups their replicates are not kept, and intervals are unknown.
_MOST_REPLICATED_GROUPS = 50_000


# Groups in fewer replicates have no interval of their own.
_FEWEST = 5
# The rows of each group, whatever else is asked of it.
_ROWS = "__rows"


class SumTooLarge(Exception):
    """A sum that is too large for its type: Spark says how such a query ends."""


class TooManyRows(Exception):
    """More rows to keep than the driver should hold: Spark answers in one step."""


class Kept:
    """A state and what it holds so far. ``schema`` are the columns it stands for, as Spark types them.

    Beyond ``most_replicated`` groups their replicates are given up.
    """

    def __init__(
        self,
        state: State,
        schema: pa.Schema,
        replicates: int,
        most_replicated: int | None = None,
    ) -> None:
        self.state = state
        self.schema = schema
        self._replicates = replicates
        self._most = _MOST_REPLICATED_GROUPS if most_replicated is None else most_replicated
        self._replicated = state.carried is not None
        self._table: pa.Table | None = None
        self._new = 0.0  # the share of groups in the last batch that were new, without replicates
        if state.aggregate is not None:
            _require_mergeable(schema)

    @cached_property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """How each aggregate is kept."""
        assert self.state.aggregate is not None
        aggregate = self.state.aggregate
        types = self.schema.types[len(aggregate.keys) :]
        found = [accumulator(item, t) for item, t in zip(aggregate.aggregates, types, strict=True)]
        return tuple(one for one in found if one is not None)

    @cached_property
    def _rows(self) -> str:
        """The name of the partial that counts the rows of a group: one that is asked for, or our own."""
        partials = [part for one in self.accumulators for part in one.partials]
        return next((p.name for p in partials if p.scalar.sql("spark") == "COUNT(*)"), _ROWS)

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks."""
        state = self.state
        if state.aggregate is None:
            if state.keep is None:
                return state.delta
            return Limit(Sort(state.delta, state.by), state.keep)
        partials = tuple(part for one in self.accumulators for part in one.partials)
        if partials and state.aggregate.keys and self._rows == _ROWS:
            partials += (Item(_ROWS, exp.Count(this=exp.Star(), big_int=True)),)
        delta = state.carried if self._replicated and state.carried is not None else state.delta
        return Aggregate(delta, self._grouping, partials)

    @property
    def _grouping(self) -> tuple[str, ...]:
        assert self.state.aggregate is not None
        keys = self.state.aggregate.keys
        return (*keys, REPLICATE) if self._replicated else keys

    def add(self, batch: pa.Table) -> None:
        """Fold a batch in."""
        batch = nullable(batch)
        if self.state.aggregate is None:
            self._table = batch if self._table is None else pa.concat_tables([self._table, batch])
            return
        if not self._replicated and REPLICATE in batch.column_names:
            batch = self.merged(batch, self._grouping)  # asked for while there were fewer groups
        if self._table is not None:
            both = pa.concat_tables([self._table, batch.select(self._table.column_names)])
            merged = self.merged(both, self._grouping)
            if batch.num_rows:
                self._new = (merged.num_rows - self._table.num_rows) / batch.num_rows
            batch = merged
        self._table = batch
        if self._replicated and batch.num_rows > self._most:
            seen = self._seen()
            if not self.keeps_replicates(len(seen)):
                self._replicated = False
                self._new = np.count_nonzero(seen == 1) / batch.num_rows  # Good and Turing's
                self._table = self.merged(batch, self._grouping)

    def _seen(self) -> npt.NDArray[np.int64]:
        """In how many replicates each group is."""
        assert self._table is not None and self.state.aggregate is not None
        keys = list(self.state.aggregate.keys)
        counted = self._table.group_by(keys, use_threads=False).aggregate([([], "count_all")])
        return np.asarray(counted.column("count_all").to_numpy(), np.int64)

    @cached_property
    def merges(self) -> dict[str, str]:
        """What brings the parts of each partial together, where that goes one by one."""
        found = {
            part.name: merge
            for one in self.accumulators
            if one.merge_together is None
            for part, merge in zip(one.partials, one.merge, strict=True)
        }
        return {**found, _ROWS: "sum"}

    def merged(self, table: pa.Table, by: Sequence[str]) -> pa.Table:
        """Partial results with one row for each combination of these columns."""
        merges = [(n, merge) for n, merge in self.merges.items() if n in table.column_names]
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
        names = [*by, *(name for name, _ in merges)]
        together = [one for one in self.accumulators if one.merge_together is not None]
        groups = (
            places(merged.select(list(by)), table.select(list(by)))
            if together
            else np.zeros(0, np.int64)
        )
        for one in together:
            assert one.merge_together is not None
            parts = [part.name for part in one.partials]
            columns += one.merge_together(
                groups, merged.num_rows, [table.column(name) for name in parts]
            )
            names += parts
        return pa.Table.from_arrays(columns, names=names)

    @property
    def table(self) -> pa.Table:
        """The partials so far, by group, and by replicate if it ``is_replicated``."""
        assert self._table is not None
        return self._table

    @property
    def is_replicated(self) -> bool:
        """Whether the partials are kept by replicate."""
        return self._replicated

    def keeps_replicates(self, groups: int) -> bool:
        """Whether so many groups are kept by replicate."""
        return self._replicated and groups <= self._most

    def unseen_share(self) -> float | None:
        """The share of unread rows that are in groups not seen yet; ``None`` where that is not known."""
        if not self._replicated or self._table is None:
            return None
        assert self.state.aggregate is not None
        keys = list(self.state.aggregate.keys)
        if not keys or self._rows not in self._table.column_names:
            return None
        groups = self._table.group_by(keys, use_threads=False).aggregate([])
        rows = self._table.column(self._rows).to_numpy().astype(np.float64)
        return unseen_share(
            places(groups.select(list(keys)), self._table.select(list(keys))),
            self._replicate(),
            rows,
        )

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
        whole = self._whole()
        if not keys and not whole.num_rows:  # a total of nothing is still one row
            whole = pa.table({f.name: pa.nulls(1, f.type) for f in whole.schema})
        columns = [whole.column(key) for key in keys]
        for one, field in zip(self.accumulators, list(self.schema)[len(keys) :], strict=True):
            columns.append(one.exact([whole.column(p.name) for p in one.partials], field.type))
        return pa.Table.from_arrays(columns, names=self.schema.names)

    def estimated(self, scaling: Scaling) -> Rows:
        """The state's value as it looks now: totals scaled up, with their replicates."""
        assert self._table is not None
        if self.state.aggregate is None or not self.accumulators:
            table = self._table if self.state.aggregate is None else self._whole()
            columns: dict[str, Column] = dict(zip(table.column_names, table.columns, strict=True))
            rows = certain_rows(columns, table.num_rows)
            return rows.also_chosen(self.state.keep is not None)
        keys = self.state.aggregate.keys
        whole = self._whole()
        columns = {key: whole.column(key) for key in keys}
        groups = (
            places(whole.select(list(keys)), self._table.select(list(keys)))
            if whole is not self._table
            else np.arange(whole.num_rows)
        )
        replicate = self._replicate()
        grown = self._growth(groups, scaling) if keys else None
        for one in self.accumulators:
            if one.is_extreme:
                values = whole.column(one.partials[0].name)
                columns[one.name] = Extreme(values, least=one.merge == ("min",))
            else:
                parts = [
                    self._dense(part.name, groups, replicate, whole.num_rows)
                    for part in one.partials
                ]
                seen = whole.column(one.partials[0].name).is_valid().to_numpy()
                varying = self._varying(one, parts, seen, scaling)
                columns[one.name] = replace(varying, growth=grown) if one.is_total else varying
        return certain_rows(columns, whole.num_rows)

    def _growth(self, groups: npt.NDArray[np.int64], scaling: Scaling) -> Floats:
        """What groups that were seen little are to be multiplied with where they are shown."""
        progress = float(scaling.rows.sum()) / scaling.total if scaling.total else 1.0
        if self._replicated:
            return growth(np.bincount(groups), progress, _FEWEST)
        return np.full(len(groups), shared_growth(self._new, progress))

    def _whole(self) -> pa.Table:
        """The partials by group alone."""
        assert self._table is not None and self.state.aggregate is not None
        keys = self.state.aggregate.keys
        return self.merged(self._table, keys) if self._replicated or not keys else self._table

    def _replicate(self) -> npt.NDArray[np.int64]:
        assert self._table is not None
        if self._replicated:
            return np.asarray(self._table.column(REPLICATE).to_numpy(), np.int64)
        return np.zeros(self._table.num_rows, np.int64)

    def _dense(
        self, name: str, groups: npt.NDArray[np.int64], replicate: npt.NDArray[np.int64], count: int
    ) -> Floats:
        """A partial as a table of groups and replicates; zero where there is nothing."""
        assert self._table is not None
        dense = np.zeros((count, self._replicates if self._replicated else 1))
        values = pc.fill_null(self._table.column(name).cast(pa.float64(), safe=False), 0.0)
        dense[groups, replicate] = values.to_numpy()
        return dense

    def _varying(
        self,
        one: Accumulator,
        parts: Sequence[Floats],
        seen: npt.NDArray[np.bool_],
        scaling: Scaling,
    ) -> Varying:
        if not self._replicated:
            scaling = scaling.together
        # A value that is not a number, or not finite, leaves no estimate but itself.
        with np.errstate(invalid="ignore", over="ignore"):
            theta = np.where(seen, one.estimates(parts, scaling), np.nan)
            contributions = one.contributions(parts)
        if not self._replicated:
            theta = theta[:1]
        return Varying(
            theta,
            contributions=np.where(np.isfinite(contributions), contributions, 0.0),
            positive=bool((parts[0] >= 0).all()),
            certain_low=parts[0].sum(axis=1) if one.is_count else None,
            fewest=max(one.fewest, scaling.fewest_now),
        )


def nullable(table: pa.Table) -> pa.Table:
    """The table with columns that may be null: what one batch has none of, the next may have."""
    if all(field.nullable for field in table.schema):
        return table
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def _widened(table: pa.Table, merges: Sequence[tuple[str, str]]) -> pa.Table:
    """Numbers to be summed in a type that their sum fits: it is cast back, or too large."""
    for name, merge in merges:
        values = table.column(name)
        whole, decimal = pa.types.is_integer(values.type), pa.types.is_decimal(values.type)
        if merge == "sum" and (whole or decimal) and not _sum_fits(values):
            wide = pa.decimal256(76, values.type.scale) if decimal else pa.decimal128(38)
            place = table.column_names.index(name)
            table = table.set_column(place, name, values.cast(wide))
    return table


def _sum_fits(values: pa.ChunkedArray) -> bool:
    """Whether no sum of some of these numbers is too large for their type; wider ones are slow."""
    ends = pc.min_max(values).as_py()
    furthest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    type_ = values.type
    limit = 10 ** (type_.precision - type_.scale) if pa.types.is_decimal(type_) else 2**63
    return bool((int(furthest) + 1) * len(values) < limit)


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
