"""Gates once their values are exact: which waiting rows pass, judged here where that is as exact as in Spark.

Spark would have to be handed the waiting rows and every group first. Of a million of each that takes longer
than reading the last blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Project, Relation, Scan
from sooner.algebra.scalar import is_column
from sooner.progressive.gates import Gate
from sooner.statistics.places import places

_COMPARED: dict[type[exp.Expr], Callable[..., pa.ChunkedArray]] = {
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_MOST_DIGITS = 38


def passing_here(
    waiting: pa.Table, gates: Sequence[Gate], tables: Mapping[str, pa.Table]
) -> npt.NDArray[np.bool_] | None:
    """For each row whether it passes all gates; ``None`` where that is for Spark to say.

    It is not where whole numbers and decimals are compared with values of exact states as they are. What is
    computed of these, and floating numbers, which Spark orders by rules of its own, are left to Spark.
    """
    passes = np.ones(waiting.num_rows, np.bool_)
    for gate in gates:
        top = _rows_of(gate.top, tables)
        if top is None or not all(is_column(check.value) for check in gate.checks):
            return None
        ours = waiting.select([name for name, _ in gate.keys])
        theirs = top.select([key for _, key in gate.keys])
        if ours.schema.types != theirs.schema.types or any(
            map(pa.types.is_floating, ours.schema.types)
        ):
            return None
        at = places(theirs, ours)
        # No partner, or a key that is null and so is equal to nothing. A total without keys is one row.
        alone = (at < 0) | (at >= top.num_rows)
        for column in ours.columns:
            alone |= column.is_null().to_numpy()
        passes &= ~alone
        partners = pa.array(at, mask=alone)
        for check in gate.checks:
            value = top.column(check.value.name).take(partners)
            both = _alike(waiting.column(check.column), value)
            if both is None:
                return None
            found = _COMPARED[check.comparison](*both)
            passes &= found.fill_null(False).to_numpy().astype(np.bool_)
    return passes


def _rows_of(top: Relation, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """The rows of a plan that only names columns of a state."""
    if isinstance(top, Scan) and top.table in tables:
        return tables[top.table].select(list(top.sources)).rename_columns(list(top.names))
    if isinstance(top, Project) and all(is_column(item.scalar) for item in top.items):
        below = _rows_of(top.child, tables)
        if below is not None:
            columns = [below.column(item.scalar.name) for item in top.items]
            return pa.Table.from_arrays(columns, names=list(top.names))
    return None


def _alike(
    ours: pa.ChunkedArray, theirs: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Both in the type that holds each of their values; ``None`` without one."""
    if ours.type == theirs.type and ours.type in _DIGITS:
        return ours, theirs
    whole = scale = 0
    for kind in (ours.type, theirs.type):
        if pa.types.is_decimal(kind):
            whole, scale = max(whole, kind.precision - kind.scale), max(scale, kind.scale)
        elif kind in _DIGITS:
            whole = max(whole, _DIGITS[kind])
        else:
            return None
    if whole + scale > _MOST_DIGITS:
        return None
    common = pa.decimal128(whole + scale, scale)
    return ours.cast(common), theirs.cast(common)
