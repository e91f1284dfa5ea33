"""Which blocks to read next: in random order, few at first and more later."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

_GROWTH = 2.0
_LARGEST_SHARE = 0.15
# So little is read about as fast as nothing, as most of the time goes into starting: two blocks at least,
_FIRST = 2
_FIRST_BYTES = 11e6
# several times as much where an estimate waits for static tables anyway: at scale 10 three times the
# data of Q5 made it wait for 2.0 s instead of 1.5 and halved its error,
_OF_STATIC_BYTES = 2.5
_MOST_FIRST_BYTES = 125e6
# and more of small blocks, but not so many that there is nothing left to refine.
_FIRST_SHARE = 0.125
# What is smaller takes Spark about as long to start as to read.
_WORTH_ITS_JOBS = 150e6
# So many rows may come to the driver at once.
_ROWS_AT_ONCE = 1_000_000


def batches(
    blocks: int,
    seed: int,
    count: int | None = None,
    block_bytes: float = float("inf"),
    static_bytes: float = 0.0,
) -> list[tuple[int, ...]]:
    """The blocks of each batch. Without a ``count`` the first is two blocks and the largest about a seventh.

    A small first batch brings the first answer early; larger ones later keep the whole near the time
    of an exact answer. Where blocks are small (``block_bytes``) batches have more of them, and the first
    one where much else is read before an estimate (``static_bytes``).

    >>> [len(batch) for batch in batches(128, seed=7)]
    [2, 4, 8, 16, 19, 19, 19, 19, 19, 3]
    >>> [len(batch) for batch in batches(128, seed=7, block_bytes=3e6)]
    [4, 7, 15, 29, 50, 23]
    >>> [len(batch) for batch in batches(128, seed=7, block_bytes=3e6, static_bytes=15e6)]
    [12, 25, 50, 41]
    >>> [len(batch) for batch in batches(8, seed=7, count=3)]
    [3, 2, 3]
    """
    order = [int(block) for block in random_order(blocks, seed)]
    if count is not None:
        # The larger ones evenly among the smaller: a step has a cost of its own, so that small last
        # batches would look like rows that take longer.
        ends = np.linspace(0, blocks, min(count, blocks) + 1).round().astype(int).tolist()
        return [tuple(order[start:end]) for start, end in pairwise(ends)]
    largest = max(1, round(blocks * _LARGEST_SHARE), round(_WORTH_ITS_JOBS / max(1.0, block_bytes)))
    first = min(_MOST_FIRST_BYTES, max(_FIRST_BYTES, static_bytes * _OF_STATIC_BYTES))
    cheap = min(blocks * _FIRST_SHARE, first / max(1.0, block_bytes))
    found, size, start = [], max(float(_FIRST), cheap), 0
    while start < blocks:
        step = min(largest, max(1, round(size)))
        found.append(tuple(order[start : start + step]))
        start += step
        size *= _GROWTH
    return found


def random_order(blocks: int, seed: int) -> npt.NDArray[np.int64]:
    """The blocks in the order in which they are read.

    >>> random_order(5, seed=7).tolist()
    [2, 0, 4, 1, 3]
    """
    return np.random.default_rng(seed).permutation(blocks)


def blocks_at_once(rows: float, blocks: int) -> int:
    """How many blocks to read at once where all ``rows`` of the ``blocks`` come to the driver; one at least.

    >>> blocks_at_once(600_000, 16), blocks_at_once(6e9, 128)
    (16, 1)
    """
    return max(1, min(blocks, int(_ROWS_AT_ONCE * blocks // max(1.0, rows))))
