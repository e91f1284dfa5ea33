"""A state behind gates: what has passed for good, what still waits, and the way back (iOLAP §5, §6).

Rows decided by the ranges are folded in or dropped. The others wait with only what the gates need of
them, and are judged anew for every answer, in each of the R + 1 versions. When a value leaves a range
on which rows were decided, the state goes back to before that range and reads on from there.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.algebra import Relation, Scan
from sooner.algebra.schema import Column
from sooner.progressive.estimates import Rows, Varying, certain_rows
from sooner.progressive.gates import (
    UNDECIDED,
    CannotGate,
    Gate,
    decided,
    partial_groups,
    passing,
    range_name,
)
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State
from sooner.progressive.places import places
from sooner.progressive.ranges import (
    Values,
    compare,
    narrowed,
    no_ranges,
    numbers,
    values_of,
)
from sooner.progressive.states import Kept, TooManyRows, nullable
from sooner.statistics import all_but_one
from sooner.statistics.arrays import Floats
from sooner.storage.layout import REPLICATE

_MOST_WAITING = 2_000_000
# An aggregate for each key is biased while its keys hold few rows; 30 keys fill 20 of 32 replicates.
_REPLICATES_OF_A_KEY = 20 / 32
# Nested values need more replicates than a total (progressive.md §4).
_FEWEST = 12


class Reader(Protocol):
    """What going back needs of the engine."""

    def provide(self, name: str, table: pa.Table) -> None:
        """Make a small table readable under a name."""

    def run(self, plan: Relation, blocks: Collection[int]) -> pa.Table:
        """The rows a plan gives from some blocks."""

    def finish(self, plan: Relation, states: Mapping[str, pa.Table]) -> pa.Table:
        """The rows a plan gives over local tables."""


@dataclass(frozen=True)
class _Before:
    """How things stood before a set of ranges was first used."""

    passed: Kept
    waiting: pa.Table | None
    batches: int


class Gated:
    """A state with gates; see the module."""

    def __init__(
        self,
        state: State,
        schema: pa.Schema,
        replicates: int,
        key_types: Sequence[Mapping[str, pa.DataType]],
        slack: float,
    ) -> None:
        """``key_types`` are the types of the columns of each gate's top."""
        self.state = state
        self.schema = schema
        self.recoveries = 0
        self.judged = 0
        # Whether all that was decided holds for the values as they are now.
        self.is_sure = True
        self._replicates = replicates
        self._slack = slack
        self._passed = Kept(replace(state, gates=()), schema, replicates)
        self._waiting: pa.Table | None = None
        self._batches: list[Collection[int]] = []
        self._ranges = [
            tuple(
                no_ranges(gate, types) for gate, types in zip(state.gates, key_types, strict=True)
            )
        ]
        self._before: list[_Before] = []
        self._values: tuple[Values, ...] | None = None

    @property
    def _hidden(self) -> tuple[str, ...]:
        return tuple(name for gate in self.state.gates for name in gate.columns)

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks."""
        state = self.state
        assert state.carried is not None
        rows = decided(state.carried, state.gates, state.name)
        if state.aggregate is None:
            return rows
        partials = [part for one in self._passed.accumulators for part in one.partials]
        return partial_groups(rows, state.aggregate.keys, state.gates, partials)

    def provide(self, reader: Reader) -> None:
        """Let the next batches decide by the ranges there are."""
        for place, (gate, ranges) in enumerate(
            zip(self.state.gates, self._ranges[-1], strict=True)
        ):
            reader.provide(range_name(self.state.name, place), ranges.table(gate))

    def require_numbers(self, schema: pa.Schema) -> None:
        """Refuse gates that compare something else; ``schema`` is that of a batch."""
        for gate in self.state.gates:
            for check in gate.checks:
                kind = schema.field(check.column).type
                if not (
                    pa.types.is_decimal(kind)
                    or pa.types.is_integer(kind)
                    or pa.types.is_floating(kind)
                ):
                    raise CannotGate(f"{check.column} is of type {kind}")

    def add(self, batch: pa.Table, blocks: Collection[int]) -> None:
        """Fold a batch in."""
        self._batches.append(blocks)
        self._fold(batch)

    def _fold(self, batch: pa.Table) -> None:
        undecided = batch.column(UNDECIDED).to_numpy(zero_copy_only=False).astype(bool)
        batch = nullable(batch.drop_columns([UNDECIDED]))
        self._pass(batch.filter(pa.array(~undecided)))
        waiting = batch.filter(pa.array(undecided))
        if self._waiting is not None:
            waiting = self._alike(pa.concat_tables([self._waiting, waiting]))
        if waiting.num_rows > _MOST_WAITING:
            raise TooManyRows(f"{waiting.num_rows:,} rows wait for a value that is still open")
        self._waiting = waiting

    def _alike(self, waiting: pa.Table) -> pa.Table:
        """Waiting rows with equal lineage as one, where only their sums are asked for."""
        aggregate = self.state.aggregate
        if aggregate is None:
            return waiting
        by = (*aggregate.keys, REPLICATE, *self._hidden)
        return self._passed.merged(waiting, by).select(waiting.column_names)

    def _pass(self, rows: pa.Table) -> None:
        hidden = {*self._hidden, *([REPLICATE] if self.state.aggregate is None else ())}
        self._passed.add(rows.drop_columns([n for n in rows.column_names if n in hidden]))

    @property
    def waiting(self) -> int:
        """How many rows, or groups of like rows, are undecided."""
        return 0 if self._waiting is None else self._waiting.num_rows

    @property
    def bytes(self) -> int:
        """How large the state is."""
        return self._passed.bytes + (0 if self._waiting is None else self._waiting.nbytes)

    def settle(self, states: Mapping[str, Rows], progress: float, reader: Reader) -> None:
        """Take back what the values as they are now forbid, then decide by narrower ranges.

        Raises ``NotNumeric`` where only Spark knows the values: then every row waits until the end.
        """
        self._values = None
        self.is_sure = len(self._ranges) == 1
        values = tuple(values_of(gate, states, self._slack) for gate in self.state.gates)
        if not self._hold(len(self._ranges) - 1, values):
            self._go_back(values, reader)
        self._values = values
        self.is_sure = True
        self.judged = self.waiting
        if progress >= 1.0:
            return
        self._before.append(_Before(copy.copy(self._passed), self._waiting, len(self._batches)))
        pairs = zip(self._ranges[-1], values, strict=True)
        self._ranges.append(tuple(narrowed(old, new, progress, self._slack) for old, new in pairs))
        self._decide()
        self.provide(reader)

    def _hold(self, number: int, values: Sequence[Values]) -> bool:
        pairs = zip(self._ranges[number], values, strict=True)
        return all(ranges.hold(new) for ranges, new in pairs)

    def _go_back(self, values: Sequence[Values], reader: Reader) -> None:
        """To the last ranges that still hold; the blocks read since are read again."""
        self.recoveries += 1
        number = max(n for n in range(len(self._ranges)) if self._hold(n, values))
        before = self._before[number]
        self._ranges = self._ranges[: number + 1]
        self._before = self._before[:number]
        self._passed, self._waiting = copy.copy(before.passed), before.waiting
        self.provide(reader)
        again = [block for blocks in self._batches[before.batches :] for block in blocks]
        if again:
            self._fold(reader.run(self.batch, again))

    def _decide(self) -> None:
        assert self._waiting is not None
        passes, fails = np.ones(self.waiting, np.bool_), np.zeros(self.waiting, np.bool_)
        for gate, ranges in zip(self.state.gates, self._ranges[-1], strict=True):
            yes, no = ranges.decisions(gate, self._waiting)
            passes &= yes
            fails |= no
        self._pass(self._waiting.filter(pa.array(passes & ~fails)))
        self._waiting = self._waiting.filter(pa.array(~passes & ~fails))

    def exact(self, tables: Mapping[str, pa.Table], reader: Reader) -> pa.Table:
        """The state's value once everything has been read and the other states are exact."""
        rows = self._passing(tables, reader)
        whole = copy.copy(self._passed)
        whole.add(rows)
        return whole.exact()

    def guessed(self, scaling: Scaling, tables: Mapping[str, pa.Table], reader: Reader) -> Rows:
        """The state's value by Spark's reading of the other states as they look now."""
        whole = copy.copy(self._passed)
        whole.add(self._passing(tables, reader))
        return whole.estimated(scaling).also_chosen(self.state.aggregate is None)

    def _passing(self, tables: Mapping[str, pa.Table], reader: Reader) -> pa.Table:
        assert self._waiting is not None
        hidden = {*self._hidden, *([REPLICATE] if self.state.aggregate is None else ())}
        names = self._waiting.column_names
        scan = Scan(f"__waiting{self.state.name}", tuple(names), tuple(Column(n) for n in names))
        plan = passing(scan, self.state.gates, [name for name in names if name not in hidden])
        return reader.finish(plan, {**tables, scan.table: self._waiting})

    def estimated(self, scaling: Scaling) -> Rows:
        """The state's value as it looks now, by the values of the last :meth:`settle`."""
        assert self._waiting is not None and self._values is not None
        versions = _versions(self.state.gates, self._values, self._waiting)
        if self.state.aggregate is None:
            return self._list(next(versions))
        return self._groups(scaling, list(versions))

    def _list(self, passes: npt.NDArray[np.bool_]) -> Rows:
        assert self._waiting is not None
        passed = self._passed.estimated(Scaling(np.zeros(1), 0.0))
        now = self._waiting.filter(pa.array(passes)).select(list(passed.columns))
        columns = {
            name: pa.chunked_array(
                [*column.chunks, *now.column(name).cast(column.type).chunks], column.type
            )
            for name, column in passed.columns.items()
            if isinstance(column, pa.ChunkedArray)
        }
        chosen = np.arange(passed.count + now.num_rows) >= passed.count
        return Rows(columns, chosen)

    def _groups(self, scaling: Scaling, versions: Sequence[npt.NDArray[np.bool_]]) -> Rows:
        assert self._waiting is not None and self.state.aggregate is not None
        keys = list(self.state.aggregate.keys)
        passed = self._passed.table
        names = [name for name in passed.column_names if name != REPLICATE]
        waiting = self._waiting.select(
            passed.column_names if REPLICATE in passed.column_names else names
        )
        both = pa.concat_tables([passed, waiting.cast(passed.schema)])
        groups = both.select(keys).group_by(keys, use_threads=False).aggregate([]) if keys else None
        count = groups.num_rows if groups is not None else 1
        at = [
            places(groups, table.select(keys))
            if groups is not None
            else np.zeros(table.num_rows, np.int64)
            for table in (passed, waiting)
        ]
        own = _replicate(self._waiting)
        sums = _Sums(at[0], _replicate(passed), at[1], own, versions, (count, self._replicates))
        columns: dict[str, pa.ChunkedArray | Varying] = {
            key: groups.column(key) for key in keys if groups is not None
        }
        trusted = self._is_settled()
        for one in self._passed.accumulators:
            assert one.combine is not None, "a gate lets only sums through"
            parts = [sums.of(passed.column(p.name), waiting.column(p.name)) for p in one.partials]
            theta = one.combine([part.scaled(scaling) for part in parts])
            theta = np.where(parts[0].seen, theta, np.nan)
            contributions = np.abs(parts[-1].by_replicate)
            columns[one.name] = Varying(
                theta if self._passed.is_replicated else theta[:1],
                contributions=contributions if trusted else np.zeros_like(contributions),
                positive=bool((parts[0].by_replicate >= 0).all()),
                certain_low=parts[0].certain if one.is_count else None,
                fewest=_FEWEST,
            )
        # A group of which no row passes as it looks now is not one.
        there = np.flatnonzero(sums.present) if keys else np.arange(1)
        return certain_rows(columns, count).take(there)

    def _is_settled(self) -> bool:
        """Whether the keys that rows wait for rest on enough for an unbiased estimate."""
        assert self._values is not None
        for gate, values in zip(self.state.gates, self._values, strict=True):
            for check in range(len(gate.checks)):
                seen = values.replicates(check)
                fewest = _REPLICATES_OF_A_KEY * self._replicates if gate.keys else _FEWEST
                if not len(seen) or np.median(seen) < fewest:
                    return False
        return True


@dataclass(frozen=True)
class _Part:
    """A partial sum of each group: in R + 1 versions, by replicate, and what of it is certain."""

    left: Floats
    by_replicate: Floats
    certain: Floats
    seen: npt.NDArray[np.bool_]

    def scaled(self, scaling: Scaling) -> Floats:
        rows = all_but_one(scaling.rows)
        scale = np.full_like(rows, np.nan)
        np.divide(scaling.total, rows, out=scale, where=rows > 0)
        return self.left * scale[:, None]


@dataclass(frozen=True)
class _Sums:
    """Where passed and waiting rows go, and in which versions the waiting ones pass."""

    passed: npt.NDArray[np.int64]
    passed_replicate: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    waiting_replicate: npt.NDArray[np.int64]
    versions: Sequence[npt.NDArray[np.bool_]]
    shape: tuple[int, int]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        found = np.zeros(self.shape[0], np.bool_)
        found[self.passed] = True
        found[self.waiting[self.versions[0]]] = True
        return found

    def of(self, passed: pa.ChunkedArray, waiting: pa.ChunkedArray) -> _Part:
        count, replicates = self.shape
        sure, open_ = numbers(passed), numbers(waiting)
        by_replicate = self._by_replicate(self.passed, self.passed_replicate, sure)
        left = all_but_one(by_replicate)
        values = np.nan_to_num(open_)
        now = self.versions[0]
        for version in range(replicates + 1):
            passes = self.versions[min(version, len(self.versions) - 1)]
            kept = passes & (self.waiting_replicate != version - 1)
            left[version] += np.bincount(self.waiting[kept], values[kept], count)
        more = self._by_replicate(self.waiting[now], self.waiting_replicate[now], open_[now])
        seen = np.zeros(count, np.bool_)
        seen[self.passed[~np.isnan(sure)]] = True
        seen[self.waiting[now & ~np.isnan(open_)]] = True
        return _Part(left, by_replicate + more, by_replicate.sum(axis=1), seen)

    def _by_replicate(
        self, at: npt.NDArray[np.int64], replicate: npt.NDArray[np.int64], values: Floats
    ) -> Floats:
        count, replicates = self.shape
        flat = np.bincount(at * replicates + replicate, np.nan_to_num(values), count * replicates)
        return np.asarray(flat.reshape(count, replicates), np.float64)


def _replicate(table: pa.Table) -> npt.NDArray[np.int64]:
    if REPLICATE not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    return np.asarray(table.column(REPLICATE).to_numpy(), np.int64)


def _versions(
    gates: Sequence[Gate], values: Sequence[Values], rows: pa.Table
) -> Iterator[npt.NDArray[np.bool_]]:
    """Which rows pass, in each version there is of the values."""
    at = [
        places(one.keys, rows.select([ours for ours, _ in gate.keys]))
        for gate, one in zip(gates, values, strict=True)
    ]
    depth = max(len(one.versions(t)) for one in values for t in range(len(one.columns)))
    ours = {t.column: numbers(rows.column(t.column)) for gate in gates for t in gate.checks}
    for version in range(depth):
        passes = np.ones(rows.num_rows, np.bool_)
        for gate, one, place in zip(gates, values, at, strict=True):
            for number, check in enumerate(gate.checks):
                theta = one.versions(number)
                theirs = np.append(theta[min(version, len(theta) - 1)], np.nan)[place]
                passes &= compare(check.comparison, ours[check.column], theirs)
        yield passes
