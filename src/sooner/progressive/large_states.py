"""States of more groups than the driver should hold: partial results that stay in Spark.

On the way their groups have values and no intervals, as all states of many groups. What the query makes
of them is computed by Spark, and only that comes to the driver.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from sooner.algebra import Aggregate, Limit, Relation, walk
from sooner.engine.streaming import HeldRows, Streaming
from sooner.progressive.partials import Accumulator
from sooner.progressive.parts import State
from sooner.progressive.states import Kept
from sooner.sql import quote

# So many are merged on the driver in about a second for each batch.
_MOST_ON_DRIVER = 2_000_000


class LargeState:
    """A state whose partial results are merged in Spark."""

    def __init__(self, kept: Kept, streaming: Streaming) -> None:
        assert kept.state.aggregate is not None
        self.state: State = kept.state
        self.schema: pa.Schema = kept.schema
        self.batch: Relation = kept.batch
        self._keys = kept.state.aggregate.keys
        self._accumulators = kept.accumulators
        self._streaming = streaming
        merges = {n: merge for n, merge in kept.merges.items() if n in kept.table.column_names}
        streaming.merge(self.state.name, streaming.put_there(kept.table), self._keys, merges)

    def add(self, batch: pa.Table | HeldRows) -> None:
        """Fold a batch in: rows that Spark holds, or those of a batch that was asked for before."""
        streaming = self._streaming
        held = streaming.put_there(batch) if isinstance(batch, pa.Table) else batch
        streaming.merge(self.state.name, held, self._keys, {})

    def provide(self, scale: float | None = None) -> None:
        """Make the state's value readable: as it looks now, or exactly if there is no ``scale``."""
        values = {key: quote(key) for key in self._keys}
        for one in self._accumulators:
            values[one.name] = _value(one, self.schema.field(one.name).type, scale)
        self._streaming.provide_merged(self.state.name, values, self.schema)

    @property
    def bytes(self) -> int:
        """How much of it is on the driver."""
        return 0


def outgrows(kept: Kept, top: Relation) -> bool:
    """Whether a state is too large for the driver, and Spark can have it.

    Where all groups are shown in the end, they come to the driver in any case.
    """
    return (
        kept.state.aggregate is not None
        and not kept.is_replicated
        and kept.table.num_rows > _MOST_ON_DRIVER
        and _shows_few(top)
        and all(_has_value(one, kept.schema) for one in kept.accumulators)
    )


def _shows_few(top: Relation) -> bool:
    return any(
        isinstance(node, Aggregate) or (isinstance(node, Limit) and node.count is not None)
        for node in walk(top)
    )


def _has_value(one: Accumulator, schema: pa.Schema) -> bool:
    """Whether Spark gets its value from its parts; an average of decimals it would round otherwise."""
    single = one.merge_together is None and len(one.partials) == 1
    return single or (types.is_floating(schema.field(one.name).type) and len(one.merge) == 2)


def _value(one: Accumulator, type_: pa.DataType, scale: float | None) -> str:
    parts = [quote(part.name) for part in one.partials]
    if len(parts) == 2:
        return f"CASE WHEN {parts[1]} > 0 THEN {parts[0]} / {parts[1]} END"
    if one.is_extreme:
        return parts[0]
    value = f"coalesce({parts[0]}, 0)" if one.is_count else parts[0]
    if scale is None:
        return value
    scaled = f"{value} * {scale!r}D"
    return f"round({scaled})" if types.is_integer(type_) else scaled
