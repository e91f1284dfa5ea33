"""Small samples of many kinds: skewed, mostly zero, negative, with codes that rows share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sooner.synopses.partition import Focus, Items, items_of, smallest_query

FOCI: tuple[Focus, ...] = ("sum", "count", "avg")

whole = st.integers(-5, 5).map(float)
rows = st.lists(st.tuples(st.integers(0, 8), whole), min_size=1, max_size=10)


def items_from(pairs: list[tuple[int, float]]) -> Items:
    return items_of(*(np.array(column) for column in zip(*pairs, strict=True)))


def random_items(rng: np.random.Generator, largest: int = 16, distinct: bool = False) -> Items:
    m = int(rng.integers(1, largest + 1))
    codes = np.arange(m) if distinct else rng.integers(0, rng.choice([3, m, 4 * m]) + 1, m)
    values = [
        lambda: rng.normal(0, 1, m),
        lambda: rng.lognormal(0, 2, m),
        lambda: rng.choice([0.0, 0.0, 0.0, 5.0, 100.0], m),
        lambda: rng.choice([-1.0, 1.0], m) * rng.choice([1.0, 1.0, 3.0], m),
        lambda: np.sort(rng.normal(0, 5, m)),
        lambda: np.where(codes < m / 2, 0.0, rng.normal(0, 1, m)),
        lambda: np.full(m, 2.0),
    ]
    return items_of(codes, values[int(rng.integers(len(values)))]())


def variance(items: Items, focus: Focus, leaf: tuple[int, int], query: tuple[int, int]) -> float:
    """V of PASS §2.4.2, term by term; a leaf and a query are their first and their last item."""
    n, sums, squares = (
        [float(total[end + 1] - total[first]) for first, end in (leaf, query)]
        for total in items.totals(focus)
    )
    found = (n[0] * squares[1] - sums[1] ** 2) / n[0]
    return found / n[1] ** 2 if focus == "avg" else found


def largest_variance(items: Items, focus: Focus, smallest: int, leaf: tuple[int, int]) -> float:
    """M of PASS §2.4.3, query by query."""
    return max(
        (
            variance(items, focus, leaf, (first, last))
            for first in range(leaf[0], leaf[1] + 1)
            for last in range(first, leaf[1] + 1)
            if items.counts[last + 1] - items.counts[first] >= smallest
        ),
        default=0.0,
    )


def rounding(items: Items, focus: Focus, delta: float) -> float:
    """Variances this small are nothing."""
    smallest = smallest_query(items.rows, delta)
    return 1e-12 * items.totals(focus)[2, -1] / (smallest**2 if focus == "avg" else 1)
