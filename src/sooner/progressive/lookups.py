"""Late columns of groups: looked up in a static part when they are shown, and remembered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Column, Filter, Join, JoinKind, Relation, Scan
from sooner.algebra.scalar import column
from sooner.engine.streaming import Streaming
from sooner.progressive.decomposed import Late
from sooner.progressive.estimates import Deferred, Rows
from sooner.statistics.places import places

_WANTED = "__wanted"
_LISTED = 500


class Lookup:
    """The late columns of one state, from a static part that never changes."""

    def __init__(self, state: str, late: Late, streaming: Streaming) -> None:
        streaming.open_plan(late.view, late.rows)
        streaming.put_beside(state, late.view, late.key, late.names)
        self._late = late
        self._streaming = streaming
        self._found = pa.table({})
        self._last: tuple[pa.ChunkedArray, pa.Table] | None = None

    def complete(self, rows: Rows) -> Rows:
        """Groups with their late columns, still to be looked up."""
        keys = rows.columns[self._late.key]
        assert isinstance(keys, pa.ChunkedArray)
        late = {name: Deferred(keys, self._column(name)) for name in self._late.columns}
        columns = {**rows.columns, **late}
        return Rows({name: columns[name] for name in self._late.names}, rows.chosen)

    def _column(self, name: str) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
        return lambda keys: self._rows(keys).column(name)

    def _rows(self, keys: pa.ChunkedArray) -> pa.Table:
        """The rows of the static part with these keys, in their order."""
        if self._last is None or not self._last[0].equals(keys):
            self._fetch(keys)
            self._last = (keys, self._found.take(pa.array(self._places(keys))))
        return self._last[1]

    def _fetch(self, keys: pa.ChunkedArray) -> None:
        """Ask Spark for the rows that were not asked for before."""
        missing = pc.unique(keys.filter(pa.array(self._places(keys) < 0)))
        if not len(missing):
            return
        plan, states = self._asked(missing)
        found = self._streaming.finish(plan, states)
        self._found = pa.concat_tables([self._found, found]) if self._found.num_rows else found

    def _asked(self, keys: pa.Array) -> tuple[Relation, dict[str, pa.Table]]:
        """The plan that gives the rows with these keys, and what it reads."""
        late = self._late
        types = {one.name: one.type for one in late.rows.schema}
        names = (late.key, *late.columns)
        rows = Scan(late.view, names, tuple(Column(name, types[name]) for name in names))
        if len(keys) <= _LISTED and pa.types.is_integer(keys.type):
            # Files that lie in the order of their key are then read in a few places.
            listed = [exp.Literal.number(key) for key in keys.to_pylist()]
            return Filter(rows, exp.In(this=column(late.key), expressions=listed)), {}
        wanted = Scan(_WANTED, (_WANTED,), (Column(_WANTED, types[late.key]),))
        same = exp.EQ(this=column(late.key), expression=column(_WANTED))
        plan = Join(rows, wanted, JoinKind.SEMI, same)
        return plan, {_WANTED: pa.table({_WANTED: keys})}

    def _places(self, keys: pa.ChunkedArray) -> npt.NDArray[np.int64]:
        if not self._found.num_rows:
            return np.full(len(keys), -1)
        return places(self._found.select([self._late.key]), pa.table({self._late.key: keys}))
