"""Late columns of groups: looked up in a static part when they are shown, and remembered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Column, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import column
from sooner.engine.streaming import Streaming
from sooner.progressive.decomposed import Late
from sooner.progressive.estimates import Deferred, Rows
from sooner.progressive.places import places

_WANTED = "__wanted"


class Lookup:
    """The late columns of one state, from a static part that never changes."""

    def __init__(self, late: Late, static: Relation, streaming: Streaming) -> None:
        self._late = late
        self._streaming = streaming
        types = {one.name: one.type for one in static.schema}
        names = (late.key, *late.columns)
        known = Scan(late.static, names, tuple(Column(name, types[name]) for name in names))
        wanted = Scan(_WANTED, (_WANTED,), (Column(_WANTED, types[late.key]),))
        same = exp.EQ(this=column(late.key), expression=column(_WANTED))
        both = Join(known, wanted, JoinKind.INNER, same)
        self._plan = Project(both, tuple(Item(name, column(name)) for name in names))
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
        if len(missing):
            found = self._streaming.finish(self._plan, {_WANTED: pa.table({_WANTED: missing})})
            self._found = pa.concat_tables([self._found, found]) if self._found.num_rows else found

    def _places(self, keys: pa.ChunkedArray) -> npt.NDArray[np.int64]:
        if not self._found.num_rows:
            return np.full(len(keys), -1)
        return places(self._found.select([self._late.key]), pa.table({self._late.key: keys}))
