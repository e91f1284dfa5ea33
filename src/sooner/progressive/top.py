"""The top of a plan over estimates, in NumPy: projection, HAVING, a total beside every row, order, limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sooner.algebra import Filter, Join, JoinKind, Limit, Project, Relation, Scan, Sort
from sooner.algebra.scalar import Scalar, SortKey, columns_of, conjuncts, is_column
from sooner.progressive.estimates import Column, Deferred, Extreme, Guess, Rows, Varying, weaker
from sooner.progressive.numbers import numbers
from sooner.statistics import effective_replicates, jackknife_error
from sooner.statistics.arrays import Floats
from sooner.statistics.evaluate import NotNumeric, evaluate
from sooner.statistics.places import places

# A ratio needs more replicates than a total (progressive.md §4).
_FEWEST_FOR_SEVERAL = 12
# iOLAP's variation range, to which the slack is added.
_RANGE = 2.5
_EXACT_WHOLE = 2.0**53
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def over_estimates(top: Relation, states: Mapping[str, Rows], slack: float = 2.0) -> Rows:
    """The rows of the top as they look now. Raises :class:`NotNumeric` for what Spark must do.

    A condition on an estimate is decided if it holds or fails over (2.5 + ``slack``) standard errors;
    a row that passes undecided is marked as chosen.
    """
    match top:
        case Scan():
            if top.table not in states:
                raise NotNumeric(top.table)
            rows = states[top.table]
            named = zip(top.names, top.sources, strict=True)
            columns = {name: rows.columns[source] for name, source in named}
            return Rows(columns, rows.chosen)
        case Project():
            rows = over_estimates(top.child, states, slack)
            columns = {one.name: item(one.scalar, rows) for one in top.items}
            return Rows(columns, rows.chosen)
        case Filter():
            rows = over_estimates(top.child, states, slack)
            return _where(top.condition, rows, slack)
        case Join() if top.kind is JoinKind.INNER and _same_groups(top):
            return _side_by_side(top, states, slack)
        case Join() if top.kind is JoinKind.INNER:
            return _beside(top, states, slack)
        case Sort():
            rows = over_estimates(top.child, states, slack)
            return rows.take(_order(top.by, rows))
        case Limit():
            rows = over_estimates(top.child, states, slack)
            last = rows.count if top.count is None else min(rows.count, top.offset + top.count)
            first = min(top.offset, rows.count)
            cut_off = first > 0 or last < rows.count
            return rows.take(np.arange(first, last)).also_chosen(cut_off)
    raise NotNumeric(type(top).__name__)


def _same_groups(top: Join) -> list[tuple[str, str]]:
    """The columns of both sides that must be alike, if the condition is just that."""
    found = []
    for part in conjuncts(top.condition):
        if not isinstance(part, exp.NullSafeEQ) or not (
            is_column(part.left) and is_column(part.right)
        ):
            return []
        pair = (part.left.name, part.right.name)
        found.append(pair if pair[0] in top.left.name_set else pair[::-1])
    return found


def _side_by_side(top: Join, states: Mapping[str, Rows], slack: float) -> Rows:
    """A join by keys that every row of both sides has just once, such as states of the same groups."""
    left, right = (over_estimates(side, states, slack) for side in (top.left, top.right))
    pairs = _same_groups(top)
    sides = [
        {f"k{place}": side.columns[pair[number]] for place, pair in enumerate(pairs)}
        for number, side in enumerate((left, right))
    ]
    if not all(isinstance(column, pa.ChunkedArray) for side in sides for column in side.values()):
        raise NotNumeric("a join by estimates")
    one, other = (pa.table(side) for side in sides)
    found = places(other, one)
    if left.count != right.count or len(np.unique(found)) < left.count or (found < 0).any():
        raise NotNumeric("a join of unlike groups")
    beside = right.take(found)
    return Rows({**left.columns, **beside.columns}, left.chosen | beside.chosen)


def _beside(top: Join, states: Mapping[str, Rows], slack: float) -> Rows:
    """A join with one row, such as a total: it stands beside every row of the other side."""
    left, right = (over_estimates(side, states, slack) for side in (top.left, top.right))
    if right.count == 1:
        right = right.take(np.zeros(left.count, np.int64))
    elif left.count == 1:
        left = left.take(np.zeros(right.count, np.int64))
    else:
        raise NotNumeric("a join of two sets of estimates")
    both = Rows({**left.columns, **right.columns}, left.chosen | right.chosen)
    return both if top.condition is None else _where(top.condition, both, slack)


def item(scalar: Scalar, rows: Rows) -> Column:
    """The column a scalar makes of rows on the way. Raises :class:`NotNumeric` for what Spark must do."""
    if is_column(scalar):
        return rows.columns[scalar.name]
    used = [_looked_up(rows.columns[name]) for name in sorted(columns_of(scalar))]
    varying = [column for column in used if isinstance(column, Varying)]
    value = evaluate(scalar, _numbers(rows, columns_of(scalar)))
    if not varying:
        return _whole(scalar, value, used, rows.count)
    contributions = varying[0].contributions
    for other in varying[1:]:
        contributions = weaker(contributions, other.contributions)
    if scalar.find(exp.Case, exp.Predicate, exp.Connector, exp.If):
        # A step that no replicate crosses has no spread, and could still be crossed: unknown.
        contributions = np.zeros_like(contributions)
    fewest = _FEWEST_FOR_SEVERAL if len(varying) > 1 else varying[0].fewest
    return Varying(np.broadcast_to(value, (len(value), rows.count)), contributions, fewest=fewest)


def _whole(scalar: Scalar, value: Floats, used: Sequence[Column], count: int) -> pa.ChunkedArray:
    """A value of exact columns: only if it is a whole number that floating numbers hold exactly."""
    whole = all(isinstance(one, pa.ChunkedArray) and pa.types.is_integer(one.type) for one in used)
    small = np.all(np.isnan(value) | (np.abs(value) < _EXACT_WHOLE) & (value == np.rint(value)))
    if not (whole and small) or scalar.find(exp.Div):
        raise NotNumeric(scalar.sql("spark"))
    flat = np.broadcast_to(value, (1, count))[0]
    return pa.chunked_array([pa.array(flat, from_pandas=True).cast(pa.int64())])


def _looked_up(column: Column) -> pa.ChunkedArray | Varying | Extreme | Guess:
    return column.values if isinstance(column, Deferred) else column


def _numbers(rows: Rows, names: frozenset[str]) -> dict[str, Floats]:
    found = {}
    depths = {len(c.theta) for n in names if isinstance(c := rows.columns[n], Varying)}
    for name in names:
        column = _looked_up(rows.columns[name])
        if isinstance(column, Extreme | Guess):
            raise NotNumeric(name)
        if isinstance(column, Varying):
            # Beside estimates without replicates others have none either.
            found[name] = column.theta if len(depths) == 1 else column.theta[:1]
        elif pa.types.is_decimal(column.type) or pa.types.is_primitive(column.type):
            if pa.types.is_temporal(column.type):
                raise NotNumeric(name)
            found[name] = numbers(column)[None, :]
        else:
            raise NotNumeric(name)
    return found


def _where(condition: Scalar, rows: Rows, slack: float) -> Rows:
    """The rows for which a condition is true now, marked where it could still turn out otherwise."""
    columns = _numbers(rows, columns_of(condition))
    truth = np.broadcast_to(evaluate(condition, columns)[0], (rows.count,)) == 1
    undecided = np.zeros(rows.count, np.bool_)
    for part in conjuncts(condition):
        used = [rows.columns[name] for name in columns_of(part)]
        varying = [column for column in used if isinstance(column, Varying)]
        if not varying:
            continue
        for column in varying:  # what rests on no replicate has no error to go by
            undecided |= effective_replicates(column.contributions).non_empty == 0
        distance = _distance(part, columns)
        if distance is None:
            undecided[:] = True
            continue
        error = jackknife_error(distance, 0.0)
        # Not a number, with too few replicates, is undecided too.
        undecided |= ~(np.abs(distance[0]) > (_RANGE + slack) * error)
    return rows.also_chosen(undecided).take(np.flatnonzero(truth))


def _distance(condition: Scalar, columns: Mapping[str, Floats]) -> Floats | None:
    """How far a comparison is from turning, in all versions; ``None`` where that is not known."""
    if not isinstance(condition, _COMPARISONS):
        return None
    sides = exp.Sub(this=condition.left.copy(), expression=condition.right.copy())
    distance = evaluate(sides, columns)
    return distance if len(distance) > 1 else None


def _order(by: Sequence[SortKey], rows: Rows) -> npt.NDArray[np.int64]:
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    keys = []
    for place, key in enumerate(by):
        column = item(key.scalar, rows)
        if isinstance(column, Varying):
            values = pa.array(column.theta[0], from_pandas=True)
        else:
            known = isinstance(column, pa.ChunkedArray)
            values = column if known else column.values
        columns[f"n{place}"] = pc.cast(pc.is_null(values), pa.int8())
        columns[f"v{place}"] = values
        keys.append((f"n{place}", "descending" if key.nulls_first else "ascending"))
        keys.append((f"v{place}", "descending" if key.descending else "ascending"))
    return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=keys), np.int64)
