"""Hill climbing: never worse than where it starts, and not the best either."""

from __future__ import annotations

import numpy as np
import pytest
from partition_inputs import FOCI, random_items

from sooner.synopses.partition import Focus, equal_depth, hill_climbing, items_of, worst_error


@pytest.mark.parametrize("focus", FOCI)
def test_never_worse_than_equal_depth(focus: Focus) -> None:
    """By the variance it looks at, that of the fast oracle."""
    rng = np.random.default_rng(6)
    for _ in range(25):
        items = random_items(rng, 30)
        leaves, delta = int(rng.integers(1, 8)), float(rng.choice([0.0, 0.1]))
        start, end = (
            worst_error(items, each, focus, delta, exact=False)
            for each in (equal_depth(items, leaves), hill_climbing(items, leaves, focus, delta))
        )
        assert end <= start


def test_it_climbs() -> None:
    items = items_of(np.arange(100), np.where(np.arange(100) < 60, 0.0, 5.0))
    equal = worst_error(items, equal_depth(items, 2), "sum", 0.0)
    assert worst_error(items, hill_climbing(items, 2, "sum", 0.0), "sum", 0.0) < 0.95 * equal


def test_rounds_are_bounded() -> None:
    items = items_of(np.arange(100), np.where(np.arange(100) < 60, 0.0, 5.0))
    assert hill_climbing(items, 2, "sum", 0.0, rounds=0).tolist() == equal_depth(items, 2).tolist()
