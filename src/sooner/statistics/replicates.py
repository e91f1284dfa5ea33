"""The delete-a-group jackknife: how an estimate moves when one replicate is left out.

Keys are spread over R replicates by bits of their hash, and partial sums are kept by (group,
replicate). All rows of a key are in one replicate, so rows of a key may be as alike as they want.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sooner.statistics.arrays import Floats, Integers


class Effective(NamedTuple):
    """How many replicates a cell rests on: an array each, with a value for every cell."""

    non_empty: Integers
    effective: Floats
    freedom: Floats


def leave_one_out(partials: Floats, rows: Floats, total_rows: float) -> Floats:
    """N·y/n from all replicates (row 0) and from all but the r-th (row r + 1), for each group.

    ``partials`` has a row for each group and a column for each replicate; an empty replicate is a
    zero. ``rows`` are the rows read of the table that is counted, by replicate (or by group and
    replicate). Scaling by rows, not by R/(R − 1), is what leaves a count(*) without an error.

    >>> partials, rows = np.array([[1.0, 2.0, 3.0]]), np.array([10.0, 10.0, 20.0])
    >>> leave_one_out(partials, rows, 400.0).ravel().round(1).tolist()
    [60.0, 66.7, 53.3, 60.0]
    """
    left = all_but_one(np.asarray(partials, dtype=np.float64))
    scale = scale_up(rows, total_rows)
    return left * (scale[:, None] if scale.ndim == 1 else scale)


def scale_up(rows: Floats, total_rows: float) -> Floats:
    """What a sum of the rows read is multiplied by, all replicates read (first) and without each.

    >>> scale_up(np.array([10.0, 10.0, 20.0]), 400.0).round(1).tolist()
    [10.0, 13.3, 13.3, 20.0]
    """
    left = all_but_one(np.asarray(rows, dtype=np.float64))
    scale = np.full_like(left, np.nan)
    np.divide(total_rows, left, out=scale, where=left > 0)
    return scale


def all_but_one(parts: Floats) -> Floats:
    """Sums over all replicates, the last axis, and over all but each; these come as the first axis.

    >>> all_but_one(np.array([1.0, 2.0, 3.0])).tolist()
    [6.0, 5.0, 4.0, 3.0]
    """
    whole = parts.sum(axis=-1)[..., None]
    return np.moveaxis(np.concatenate([whole, whole - parts], axis=-1), -1, 0)


def jackknife_error(theta: Floats, progress: float | Floats) -> Floats:
    """The standard error of each cell from its R leave-one-out values.

    se² = (1 − t)·(R − 1)/R·Σ(θ_(r) − mean)²; 1 − t is the finite-population correction. A cell with
    a value that is not a number has an error that is not one.

    >>> theta = np.array([[2.0], [1.0], [2.0], [3.0]])
    >>> jackknife_error(theta, 0.0).round(4).tolist()
    [1.1547]
    """
    without = theta[1:]
    replicates = len(without)
    squares = np.square(without - without.mean(axis=0)).sum(axis=0)
    left = np.maximum(0.0, 1.0 - np.asarray(progress, dtype=np.float64))
    return np.asarray(np.sqrt(left * (replicates - 1) / replicates * squares))


def effective_replicates(contributions: Floats) -> Effective:
    """Replicates that are not empty, their effective number, and the degrees of freedom left.

    ``contributions`` are magnitudes, a row for each cell and a column for each replicate. The
    effective number (Σx)²/Σx² falls when few replicates carry most of a cell; the degrees of freedom
    are the smaller of both numbers less one. With them groups of 3 keys are covered, with R − 1 not.

    >>> effective_replicates(np.array([[1.0, 1.0, 0.0, 0.0], [8.0, 1.0, 1.0, 0.0]])).freedom.round(2)
    array([1.  , 0.52])
    """
    sizes = np.abs(np.asarray(contributions, dtype=np.float64))
    non_empty = np.count_nonzero(sizes, axis=-1).astype(np.int64)
    largest = sizes.max(axis=-1, keepdims=True)
    # As shares of the largest, because squares of large sums overflow.
    shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    squares = np.square(shares).sum(axis=-1)
    effective = np.zeros_like(squares)
    np.divide(np.square(shares.sum(axis=-1)), squares, out=effective, where=squares > 0)
    return Effective(non_empty, effective, np.minimum(non_empty, effective) - 1.0)
