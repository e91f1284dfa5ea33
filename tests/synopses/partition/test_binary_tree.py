"""The tree over leaves in a row."""

from __future__ import annotations

import numpy as np
import pytest

from sooner.synopses.partition import binary_tree


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100])
def test_every_inner_node_has_two_children_and_neighbouring_leaves(leaves: int) -> None:
    parent, leaf = binary_tree(leaves)
    nodes = len(parent)
    assert parent[0] == -1
    assert (parent[1:] < np.arange(1, nodes)).all(), "parents come first"
    assert sorted(leaf[leaf >= 0].tolist()) == list(range(leaves))
    children = np.bincount(parent[1:], minlength=nodes)
    assert (children == np.where(leaf >= 0, 0, 2)).all()

    below: list[set[int]] = [{number} if number >= 0 else set() for number in leaf.tolist()]
    depth = np.zeros(nodes, int)
    for node in range(nodes - 1, 0, -1):
        below[parent[node]] |= below[node]
    for node in range(1, nodes):
        depth[node] = depth[parent[node]] + 1
    assert all(max(each) - min(each) + 1 == len(each) for each in below), (
        "leaves of a node are a run"
    )
    assert np.ptp(depth[leaf >= 0]) <= 1


def test_a_tree_needs_a_leaf() -> None:
    with pytest.raises(ValueError, match="at least one leaf"):
        binary_tree(0)
