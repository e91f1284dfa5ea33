"""JanusAQP's search against the exact program."""

from __future__ import annotations

import numpy as np
import pytest
from partition_inputs import FOCI, random_items, rounding

from sooner.synopses.partition import (
    Focus,
    binary_search,
    equal_depth,
    exact_program,
    items_of,
    worst_error,
)


@pytest.mark.parametrize("focus", FOCI)
@pytest.mark.parametrize("rho", [1.1, 2.0])
def test_error_is_within_two_rho_of_the_best(focus: Focus, rho: float) -> None:
    """JanusAQP §3.5.2 with γ = 4; its √2 for SUM is for queries across two leaves."""
    rng = np.random.default_rng(3)
    for _ in range(15):
        items = random_items(rng, 12, distinct=bool(rng.integers(2)))
        leaves, delta = int(rng.integers(1, 6)), float(rng.choice([0.0, 0.1, 0.2, 0.3]))
        best = worst_error(items, exact_program(items, leaves, focus, delta), focus, delta)
        boundaries = binary_search(items, leaves, focus, delta, rho)
        found = worst_error(items, boundaries, focus, delta)
        assert found**2 <= (2 * rho * best) ** 2 + rounding(items, focus, delta)


def test_zero_is_one_of_the_errors() -> None:
    items = items_of(np.arange(12), np.repeat([0.0, 7.0, 0.0, 9.0], [5, 1, 5, 1]))
    boundaries = binary_search(items, 4, "sum", 0.0)
    assert boundaries.tolist() == [4, 5, 10]
    assert worst_error(items, boundaries, "sum", 0.0) == 0.0


@pytest.mark.parametrize("focus", ["sum", "avg"])
def test_a_large_sample(focus: Focus) -> None:
    items = items_of(np.arange(1024), np.random.default_rng(5).lognormal(0, 1, 1024))
    boundaries = binary_search(items, 32, focus, 0.004)
    assert len(boundaries) == 31
    found, equal = (
        worst_error(items, each, focus, 0.004, exact=False)
        for each in (boundaries, equal_depth(items, 32))
    )
    assert found < equal
