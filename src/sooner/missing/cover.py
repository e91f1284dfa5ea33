"""How many rows a join can have at most: the fractional edge cover of its columns (§4.5.2)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

# In the program a table without limit is this large; if the cover needs it, there is no bound.
_ENDLESS = 1e6


def cover_bound(
    tables: Sequence[Collection[str]], sizes: Sequence[float], whole: int | None = None
) -> float:
    """The most rows of a natural join of tables with these columns and so many rows.

    No two rows of a table may agree on all of its columns. With ``whole`` the size of that table is a sum of
    values instead of a number of rows, and so is the bound.

    >>> round(cover_bound([{"a", "b"}, {"b", "c"}, {"c", "a"}], [100, 100, 100]))
    1000
    >>> round(cover_bound([{"a", "b"}, {"b", "c"}], [100, 5], whole=0))
    500
    """
    from scipy.optimize import linprog  # only joins of missing rows need to wait for it

    if any(size <= 0 for size in sizes):
        return 0.0
    columns = sorted({column for table in tables for column in table})
    covers = np.array([[column in table for table in tables] for column in columns], np.float64)
    # A sum of values below 1 still counts once: only numbers of rows are at least 1.
    logs = [
        0.0 if n == whole else _ENDLESS if math.isinf(s) else math.log(max(s, 1.0))
        for n, s in enumerate(sizes)
    ]
    limits = [(1.0, 1.0) if n == whole else (0.0, None) for n in range(len(tables))]
    found = linprog(logs, A_ub=-covers, b_ub=-np.ones(len(columns)), bounds=limits)
    assert found.x is not None, "to take every table once is a cover"
    used = found.x > 1e-9
    if any(used[n] and math.isinf(size) for n, size in enumerate(sizes)):
        return math.inf
    # Rounded up: the cover is that of a solver.
    parts = [
        (1.0 if n == whole else power) * math.log(max(size, 1.0) if n != whole else size)
        for n, (power, size) in enumerate(zip(found.x, sizes, strict=True))
        if used[n]
    ]
    return math.exp(math.fsum(parts)) * (1 + 1e-9)
