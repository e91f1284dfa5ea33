"""How much of the data is in groups that have not been seen yet."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Floats, Integers


def unseen_share(groups: Integers, replicate: Integers, rows: Floats) -> float | None:
    """The share of unread rows that are in groups not seen yet, from the rows of each replicate.

    Leave one replicate out: of its rows some are in groups that no other replicate has. Their share
    over all replicates is right on average for a sample of all replicates but one (Good 1953, by
    replicates for single keys), and a little too high for what has been read.

    >>> unseen_share(np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]), np.array([4.0, 3.0, 2.0, 1.0]))
    0.3
    """
    total = float(rows.sum())
    if not total or len(np.unique(replicate)) < 2:
        return None
    alone = np.bincount(groups, rows > 0) == 1
    return float(rows[alone[groups]].sum()) / total
