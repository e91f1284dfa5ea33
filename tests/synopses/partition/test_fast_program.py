"""The fast program against the exact one, and on data that equal depth does badly on."""

from __future__ import annotations

import time

import numpy as np
import pytest
from partition_inputs import FOCI, random_items, rounding

from sooner.synopses.partition import (
    Focus,
    equal_depth,
    exact_program,
    fast_program,
    items_of,
    worst_error,
)

# PASS §2.4.3. Its √2 for SUM and COUNT is for queries across two leaves; of errors inside one leaf, which
# these are, it promises 2 for all.
FACTOR = 2.0


@pytest.mark.parametrize("focus", FOCI)
@pytest.mark.parametrize("distinct", [True, False])
def test_error_is_within_the_factor_of_the_best(focus: Focus, distinct: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(25):
        items = random_items(rng, 12, distinct)
        leaves, delta = int(rng.integers(1, 6)), float(rng.choice([0.0, 0.1, 0.2, 0.3]))
        best = worst_error(items, exact_program(items, leaves, focus, delta), focus, delta)
        found = worst_error(items, fast_program(items, leaves, focus, delta), focus, delta)
        assert found**2 <= FACTOR**2 * best**2 + rounding(items, focus, delta)


@pytest.mark.parametrize("focus", FOCI)
def test_error_is_within_the_factor_on_some_larger_inputs(focus: Focus) -> None:
    rng = np.random.default_rng(7)
    for values in (rng.lognormal(0, 2, 40), np.where(np.arange(40) < 30, 0, rng.normal(0, 1, 40))):
        items = items_of(np.arange(40), values)
        best = worst_error(items, exact_program(items, 6, focus, 0.05), focus, 0.05)
        found = worst_error(items, fast_program(items, 6, focus, 0.05), focus, 0.05)
        assert best <= found <= FACTOR * best


@pytest.mark.parametrize("focus", ["sum", "avg"])
def test_mostly_zeros(focus: Focus) -> None:
    """PASS, Figure 2.6: the first 87.5% are zero, and equal depth spends as much of the leaves on them."""
    m = 1024
    values = np.random.default_rng(4).normal(10, 3, m)
    values[: m * 7 // 8] = 0.0
    items = items_of(np.arange(m), values)
    delta = 1 / 256
    equal = worst_error(items, equal_depth(items, 32), focus, delta)
    boundaries = fast_program(items, 32, focus, delta)
    assert worst_error(items, boundaries, focus, delta) < 0.75 * equal
    assert (boundaries >= m * 7 // 8).mean() > 0.75, "leaves are where the values differ"


def test_leaves_to_spare_are_not_wasted_on_zeros() -> None:
    """With δ as large as leaves, few leaves have no variance left; the others halve the worst ones."""
    m = 1024
    values = np.random.default_rng(4).normal(10, 3, m)
    values[: m * 7 // 8] = 0.0
    items = items_of(np.arange(m), values)
    boundaries = fast_program(items, 64, "sum", 0.02)
    assert len(boundaries) == 63
    assert worst_error(items, boundaries, "sum", 0.02) == 0.0
    equal = worst_error(items, equal_depth(items, 64), "sum", 0.0)
    assert worst_error(items, boundaries, "sum", 0.0) < 0.5 * equal


@pytest.mark.parametrize("focus", ["sum", "avg"])
def test_it_is_quick(focus: Focus) -> None:
    """Some tenths of a second on a quiet machine; the limit is for one that is not."""
    items = items_of(np.arange(4096), np.random.default_rng(5).lognormal(0, 1, 4096))
    start = time.perf_counter()
    boundaries = fast_program(items, 128, focus, 0.001)
    assert time.perf_counter() - start < 3
    assert len(boundaries) == 127
    fast, equal = (
        worst_error(items, each, focus, 0.001) for each in (boundaries, equal_depth(items, 128))
    )
    assert fast < equal
