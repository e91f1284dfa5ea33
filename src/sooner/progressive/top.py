"""The top of a plan over estimates, in NumPy: projection, HAVING, a total beside every row, order, limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.algebra import Filter, Join, JoinKind, Limit, Project, Relation, Scan, Sort
from sooner.algebra.scalar import Scalar, SortKey, columns_of, is_column
from sooner.progressive.estimates import Column, Extreme, Rows, Varying, weaker
from sooner.progressive.evaluate import NotNumeric, evaluate
from sooner.statistics.arrays import Floats

# A ratio needs more replicates than a total (progressive.md §4).
_FEWEST_FOR_SEVERAL = 12


def over_estimates(top: Relation, states: Mapping[str, Rows]) -> Rows:
    """The rows of the top as they look now. Raises :class:`NotNumeric` for what Spark must do."""
    match top:
        case Scan():
            if top.table not in states:
                raise NotNumeric(top.table)
            rows = states[top.table]
            columns = dict(zip(top.names, rows.columns.values(), strict=True))
            return Rows(columns, rows.count, rows.chosen)
        case Project():
            rows = over_estimates(top.child, states)
            columns = {item.name: _item(item.scalar, rows) for item in top.items}
            return Rows(columns, rows.count, rows.chosen)
        case Filter():
            rows = over_estimates(top.child, states)
            return rows.take(_true(top.condition, rows))
        case Join() if top.kind is JoinKind.INNER:
            return _beside(top, states)
        case Sort():
            rows = over_estimates(top.child, states)
            return rows.take(_order(top.by, rows))
        case Limit():
            rows = over_estimates(top.child, states)
            last = rows.count if top.count is None else top.offset + top.count
            cut_off = rows.count > last
            return rows.take(np.arange(min(top.offset, rows.count), min(last, rows.count)), cut_off)
    raise NotNumeric(type(top).__name__)


def _beside(top: Join, states: Mapping[str, Rows]) -> Rows:
    """A join with one row, such as a total: it stands beside every row of the other side."""
    left, right = over_estimates(top.left, states), over_estimates(top.right, states)
    if right.count == 1:
        right = right.take(np.zeros(left.count, np.int64))
    elif left.count == 1:
        left = left.take(np.zeros(right.count, np.int64))
    else:
        raise NotNumeric("a join of two sets of estimates")
    both = Rows({**left.columns, **right.columns}, left.count, left.chosen or right.chosen)
    return both if top.condition is None else both.take(_true(top.condition, both))


def _item(scalar: Scalar, rows: Rows) -> Column:
    if is_column(scalar):
        return rows.columns[scalar.name]
    used = [rows.columns[name] for name in sorted(columns_of(scalar))]
    varying = [column for column in used if isinstance(column, Varying)]
    value = evaluate(scalar, _numbers(rows, columns_of(scalar)))
    if not varying:
        value = np.broadcast_to(value, (1, rows.count))
        return pa.chunked_array([pa.array(value[0], from_pandas=True)])
    contributions = varying[0].contributions
    for other in varying[1:]:
        contributions = weaker(contributions, other.contributions)
    fewest = _FEWEST_FOR_SEVERAL if len(varying) > 1 else varying[0].fewest
    return Varying(np.broadcast_to(value, varying[0].theta.shape), contributions, fewest=fewest)


def _numbers(rows: Rows, names: frozenset[str]) -> dict[str, Floats]:
    found = {}
    for name in names:
        column = rows.columns[name]
        if isinstance(column, Extreme):
            raise NotNumeric(name)
        if isinstance(column, Varying):
            found[name] = column.theta
        elif pa.types.is_decimal(column.type) or pa.types.is_primitive(column.type):
            if pa.types.is_temporal(column.type):
                raise NotNumeric(name)
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            found[name] = np.asarray(numbers, np.float64)[None, :]
        else:
            raise NotNumeric(name)
    return found


def _true(condition: Scalar, rows: Rows) -> npt.NDArray[np.int64]:
    truth = evaluate(condition, _numbers(rows, columns_of(condition)))
    return np.flatnonzero(np.broadcast_to(truth[0], (rows.count,)) == 1)


def _order(by: Sequence[SortKey], rows: Rows) -> npt.NDArray[np.int64]:
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    keys = []
    for place, key in enumerate(by):
        column = _item(key.scalar, rows)
        values = (
            pa.array(column.theta[0], from_pandas=True) if isinstance(column, Varying) else column
        )
        columns[f"n{place}"] = pc.cast(pc.is_null(values), pa.int8())
        columns[f"v{place}"] = values
        keys.append((f"n{place}", "descending" if key.nulls_first else "ascending"))
        keys.append((f"v{place}", "descending" if key.descending else "ascending"))
    return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=keys), np.int64)
