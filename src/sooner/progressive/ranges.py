"""Variation ranges: where the value of an open aggregate will stay until the end (iOLAP §5.1).

What is certain comes first: a count only grows, a MIN only falls. Else û ± (2.5 + slack)·se, narrowed
from answer to answer. Decisions rest on a range; if a later value leaves it, they are taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import stdtr, stdtrit
from sqlglot import exp

from sooner.progressive.estimates import Column, Extreme, Rows, Varying
from sooner.progressive.gates import Gate, range_columns
from sooner.progressive.numbers import numbers
from sooner.progressive.top import item, over_estimates
from sooner.statistics import Effective, effective_replicates, jackknife_error
from sooner.statistics.arrays import Floats
from sooner.statistics.places import places

# iOLAP's range, to which the slack is added.
_ERRORS = 2.5
# 200,000 ranges were left hundreds of times in a batch: with many keys only what is certain counts.
_MOST_KEYS = 1_000
_MOST_CERTAIN_KEYS = 50_000
# Of a key with five rows all may be alike by chance, of a whole table hardly. A few row groups of a file
# without a scramble are enough to decide by before a quarter of it is read.
_FEWEST_REPLICATES, _FEWEST_OF_A_KEY = 6, 12
# All keys together may leave their ranges so many times as often as one alone.
_OFTENER = 10.0
# Decimals are compared as floating numbers, which may be off by the last digit.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Values:
    """What the checks of a gate compare with, as it looks now, for each key."""

    keys: pa.Table
    count: int
    columns: tuple[Column, ...]

    def versions(self, check: int) -> Floats:
        """The R + 1 versions of a check's value; one alone where there are no replicates."""
        column = self.columns[check]
        if isinstance(column, Varying):
            return column.theta
        values = column.values if not isinstance(column, pa.ChunkedArray) else column
        return numbers(values)[None, :]

    def replicates(self, check: int) -> Effective:
        """In how many replicates the value of each key was seen, and the degrees of freedom left."""
        column = self.columns[check]
        if isinstance(column, Varying) and len(column.theta) > 2:
            return effective_replicates(column.contributions)
        return effective_replicates(np.zeros((self.count, 1)))


@dataclass(frozen=True)
class Ranges:
    """A low and a high end for each check (a row) and key (a column); infinite where nothing is known.

    Keys of which nothing is known are left out.
    """

    keys: pa.Table
    low: Floats
    high: Floats

    def hold(self, values: Values) -> bool:
        """Whether all versions of all values are where these ranges say."""
        at = (
            places(values.keys, self.keys)
            if self.keys.num_columns
            else np.arange(self.low.shape[1])
        )
        for check, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            found = values.versions(check)[:, at]
            # A version that is not a number says nothing, but a value that became NaN is outside.
            said = np.isfinite(low) | np.isfinite(high)
            if (np.isnan(found[0]) & said).any():
                return False
            if ((found < low - _slip(low)) | (found > high + _slip(high))).any():
                return False
        return True

    def table(self, gate: Gate) -> pa.Table:
        """The ranges as a batch reads them."""
        columns = list(self.keys.columns)
        for low, high in zip(self.low, self.high, strict=True):
            columns += [_ends(low - _slip(low)), _ends(high + _slip(high))]
        return pa.Table.from_arrays(columns, names=list(range_columns(gate)))

    def decisions(
        self, gate: Gate, rows: pa.Table
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Of rows with the gate's columns: those that pass whatever the value, and those that fail."""
        at = places(self.keys, rows.select([ours for ours, _ in gate.keys]))
        passes, fails = np.ones(rows.num_rows, np.bool_), np.zeros(rows.num_rows, np.bool_)
        for number, check in enumerate(gate.checks):
            ours = numbers(rows.column(check.column))
            low, high = (
                np.append(ends, unknown)[at]
                for ends, unknown in ((self.low[number], -np.inf), (self.high[number], np.inf))
            )
            below, above = ours < low - _slip(low), ours > high + _slip(high)
            yes, no = _decided(check.comparison, below, above)
            passes &= yes
            # A comparison with null is never true; NaN, to Spark the largest number, waits for Spark.
            fails |= no | rows.column(check.column).is_null().to_numpy()
        return passes, fails


def no_ranges(gate: Gate, key_types: Mapping[str, pa.DataType]) -> Ranges:
    """Before anything is known."""
    keys = pa.table({key: pa.array([], key_types[key]) for _, key in gate.keys})
    count = 0 if gate.keys else 1
    return Ranges(
        keys,
        np.full((len(gate.checks), count), -np.inf),
        np.full((len(gate.checks), count), np.inf),
    )


def values_of(gate: Gate, states: Mapping[str, Rows], slack: float) -> Values:
    """The values of a gate by the estimates there are. Raises ``NotNumeric`` for what Spark must do."""
    rows = over_estimates(gate.top, states, slack)
    keys = pa.table({key: rows.columns[key] for _, key in gate.keys})
    return Values(keys, rows.count, tuple(item(check.value, rows) for check in gate.checks))


def narrowed(old: Ranges, values: Values, progress: float, slack: float) -> Ranges:
    """The ranges of the values as they look now, within the old ones."""
    low = np.full((len(values.columns), values.count), -np.inf)
    high = np.full((len(values.columns), values.count), np.inf)
    fewest = _FEWEST_OF_A_KEY if values.keys.num_columns else _FEWEST_REPLICATES
    for check, column in enumerate(values.columns):
        if isinstance(column, Extreme):
            (high if column.least else low)[check] = _finite(
                values.versions(check)[0], np.inf if column.least else -np.inf
            )
        elif isinstance(column, Varying):
            if column.certain_low is not None and values.count <= _MOST_CERTAIN_KEYS:
                low[check] = column.certain_low
            if len(column.theta) > 2 and values.count <= _MOST_KEYS:
                seen = values.replicates(check)
                error = jackknife_error(column.theta, progress)
                enough = (seen.non_empty >= fewest) & np.isfinite(error)
                reach = error * _steps(_ERRORS + slack, seen.freedom, len(column.theta) - 1, enough)
                known = enough & np.isfinite(reach)
                low[check] = np.where(
                    known, np.fmax(low[check], column.theta[0] - reach), low[check]
                )
                high[check] = np.where(known, column.theta[0] + reach, high[check])
    at = places(values.keys, old.keys) if old.keys.num_columns else np.arange(old.low.shape[1])
    low[:, at] = np.fmax(low[:, at], old.low)
    high[:, at] = np.fmin(high[:, at], old.high)
    if not values.keys.num_columns:
        return Ranges(values.keys, low, high)
    # Of a million keys often nothing can be said: then nobody need look for them.
    said = np.flatnonzero((np.isfinite(low) | np.isfinite(high)).any(axis=0))
    return Ranges(values.keys.take(pa.array(said)), low[:, said], high[:, said])


def _steps(
    errors: float, freedom: Floats, replicates: int, counted: npt.NDArray[np.bool_]
) -> Floats:
    """How many errors a range reaches: ``errors``, and more where there are many keys or few replicates.

    An error from few replicates may be too small itself, and among hundreds of keys one is: without this
    Q17 over unscrambled files went back up to twice.

    >>> _steps(4.5, np.array([31.0]), 32, np.array([True])).round(1).tolist()
    [4.5]
    >>> _steps(4.5, np.full(200, 15.0), 32, np.full(200, True))[:1].round(1).tolist()
    [7.0]
    """
    together = _OFTENER * stdtr(replicates - 1.0, -errors)
    each = together / max(1, np.count_nonzero(counted))
    return np.asarray(np.maximum(errors, -stdtrit(np.maximum(freedom, 1.0), each)))


def compare(comparison: type[exp.Expr], ours: Floats, theirs: Floats) -> npt.NDArray[np.bool_]:
    """A check as it looks now; with a null it is not true."""
    both = ~(np.isnan(ours) | np.isnan(theirs))
    return np.asarray(both & _COMPARED[comparison](ours, theirs))


_COMPARED: dict[type[exp.Expr], np.ufunc] = {
    exp.LT: np.less,
    exp.LTE: np.less_equal,
    exp.GT: np.greater,
    exp.GTE: np.greater_equal,
    exp.EQ: np.equal,
    exp.NEQ: np.not_equal,
}


def _decided(
    comparison: type[exp.Expr], below: npt.NDArray[np.bool_], above: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    if comparison in (exp.LT, exp.LTE):
        return below, above
    if comparison in (exp.GT, exp.GTE):
        return above, below
    outside = below | above
    never = np.zeros_like(outside)
    return (never, outside) if comparison is exp.EQ else (outside, never)


def _slip(ends: Floats) -> Floats:
    return np.where(np.isfinite(ends), _ROUNDING * np.abs(ends), 0.0)


def _finite(values: Floats, otherwise: float) -> Floats:
    return np.where(np.isnan(values), otherwise, values)


def _ends(ends: Floats) -> pa.Array:
    return pa.array(np.where(np.isfinite(ends), ends, np.nan), pa.float64(), from_pandas=True)
