"""A balanced binary tree over leaves that stand in a row."""

from __future__ import annotations

import numpy as np

from sooner.statistics.arrays import Integers


def binary_tree(leaves: int) -> tuple[Integers, Integers]:
    """The parent of each node (−1 for the root, node 0), and its leaf number (−1 for inner nodes).

    The nodes are those of a heap: all levels but the last are full, and the last is full from the left.

    >>> binary_tree(3)
    (array([-1,  0,  0,  1,  1]), array([-1, -1,  2,  0,  1]))
    """
    if leaves < 1:
        raise ValueError(f"a tree has at least one leaf, not {leaves}")
    nodes = np.arange(2 * leaves - 1)
    deepest = (1 << (len(nodes).bit_length() - 1)) - 1
    # From left to right the leaves of the deepest level come before those one level up.
    leaf = np.full(len(nodes), -1, np.int64)
    leaf[np.concatenate([nodes[deepest:], nodes[leaves - 1 : deepest]])] = np.arange(leaves)
    return (nodes - 1) // 2, leaf
