"""A state behind gates: what has passed for good, what still waits, and the way back (iOLAP §5, §6).

Rows decided by the ranges are folded in or dropped. The others wait with only what the gates need of
them, and are judged anew for every answer, in each of the R + 1 versions. When a value leaves a range
on which rows were decided, the state goes back to before that range and reads on from there.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sooner.algebra import Relation, Scan
from sooner.algebra.schema import Column
from sooner.progressive.estimates import Rows, Varying, certain_rows
from sooner.progressive.exact_gates import passing_here
from sooner.progressive.gates import (
    UNDECIDED,
    CannotGate,
    decided,
    passing,
    range_name,
)
from sooner.progressive.partials import Scaling
from sooner.progressive.parts import State
from sooner.progressive.presummed import presummed, shared_fate
from sooner.progressive.ranges import Values, narrowed, no_ranges, values_of
from sooner.progressive.states import Kept, TooManyRows, nullable
from sooner.progressive.versions import Sums, replicate_of, versions_of
from sooner.statistics.places import places
from sooner.storage.layout import REPLICATE

_MOST_WAITING = 2_000_000
# Merging that leaves more than this share of more than so many waiting rows is put off.
_FEW_ALIKE, _MANY_WAITING = 0.9, 100_000
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
        self._next_merge = 0
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
    def rows(self) -> Relation:
        """The rows that meet the gates."""
        assert self.state.carried is not None
        return self.state.carried

    @property
    def batch(self) -> Relation:
        """What to ask of every batch of blocks."""
        state = self.state
        rows = decided(self.rows, state.gates, state.name)
        if state.aggregate is None:
            return rows
        partials = [part for one in self._passed.accumulators for part in one.partials]
        return presummed(rows, state.aggregate.keys, state.gates, partials)

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
            waiting = pa.concat_tables([self._waiting, waiting])
            if waiting.num_rows > min(self._next_merge, _MOST_WAITING):
                waiting = self._alike(waiting)
        if waiting.num_rows > _MOST_WAITING:
            raise TooManyRows(f"{waiting.num_rows:,} rows wait for a value that is still open")
        self._waiting = waiting

    def _alike(self, waiting: pa.Table) -> pa.Table:
        """Waiting rows with equal lineage as one, where only their sums are asked for."""
        aggregate = self.state.aggregate
        if aggregate is None:
            return waiting
        by = shared_fate(aggregate.keys, self.state.gates)
        found = self._passed.merged(waiting, by).select(waiting.column_names)
        # Where hardly two of many are alike, looking for them after every batch would be most of the time.
        rare = found.num_rows > max(_MANY_WAITING, _FEW_ALIKE * waiting.num_rows)
        self._next_merge = 2 * found.num_rows if rare else 0
        return found

    def _pass(self, rows: pa.Table) -> None:
        self._passed.add(self._shown(rows))

    def _shown(self, rows: pa.Table) -> pa.Table:
        """Rows without what is only there for the gates."""
        hidden = {*self._hidden, *([REPLICATE] if self.state.aggregate is None else ())}
        return rows.select([name for name in rows.column_names if name not in hidden])

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
        assert self._waiting is not None
        passes = passing_here(self._waiting, self.state.gates, tables)
        whole = copy.copy(self._passed)
        if passes is None:
            whole.add(self._passing(tables, reader))
        else:
            whole.add(self._shown(self._waiting.filter(pa.array(passes))))
        return whole.exact()

    def guessed(self, scaling: Scaling, tables: Mapping[str, pa.Table], reader: Reader) -> Rows:
        """The state's value by Spark's reading of the other states as they look now."""
        whole = copy.copy(self._passed)
        whole.add(self._passing(tables, reader))
        return whole.estimated(scaling).also_chosen(self.state.aggregate is None)

    def _passing(self, tables: Mapping[str, pa.Table], reader: Reader) -> pa.Table:
        assert self._waiting is not None
        names = self._waiting.column_names
        scan = Scan(f"__waiting{self.state.name}", tuple(names), tuple(Column(n) for n in names))
        plan = passing(scan, self.state.gates, self._shown(self._waiting).column_names)
        return reader.finish(plan, {**tables, scan.table: self._waiting})

    def estimated(self, scaling: Scaling) -> Rows:
        """The state's value as it looks now, by the values of the last :meth:`settle`."""
        assert self._waiting is not None and self._values is not None
        versions = versions_of(self.state.gates, self._values, self._waiting)
        if self.state.aggregate is None:
            return self._list(next(versions))
        return self._groups(scaling, list(versions))

    def _list(self, passes: npt.NDArray[np.bool_]) -> Rows:
        assert self._waiting is not None
        passed = self._passed.table
        now = self._waiting.filter(pa.array(passes)).select(passed.column_names)
        both = pa.concat_tables([passed, now.cast(passed.schema)])
        columns = dict(zip(both.column_names, both.columns, strict=True))
        return Rows(columns, np.arange(both.num_rows) >= passed.num_rows)

    def _groups(self, scaling: Scaling, versions: Sequence[npt.NDArray[np.bool_]]) -> Rows:
        assert self._waiting is not None and self.state.aggregate is not None
        keys = list(self.state.aggregate.keys)
        passed = self._passed.table
        names = [name for name in passed.column_names if name != REPLICATE]
        # Rows that pass in no version add to no group: where few pass, most groups need not be found.
        some = np.logical_or.reduce(versions)
        rows, versions = self._waiting.filter(pa.array(some)), [one[some] for one in versions]
        waiting = rows.select(passed.column_names if REPLICATE in passed.column_names else names)
        both = pa.concat_tables([passed, waiting.cast(passed.schema)])
        groups = both.select(keys).group_by(keys, use_threads=False).aggregate([]) if keys else None
        count = groups.num_rows if groups is not None else 1
        at = [
            places(groups, table.select(keys))
            if groups is not None
            else np.zeros(table.num_rows, np.int64)
            for table in (passed, waiting)
        ]
        replicate = [replicate_of(table) for table in (passed, rows)]
        replicates, is_replicated = self._replicates, self._passed.keeps_replicates(count)
        if not is_replicated:
            replicates, replicate = 1, [np.zeros_like(one) for one in replicate]
            scaling, versions = scaling.together, versions[:1]
        sums = Sums(at[0], replicate[0], at[1], replicate[1], versions, (count, replicates))
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
                theta if is_replicated else theta[:1],
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
                seen = values.replicates(check).non_empty
                fewest = _REPLICATES_OF_A_KEY * self._replicates if gate.keys else _FEWEST
                if not len(seen) or np.median(seen) < fewest:
                    return False
        return True
