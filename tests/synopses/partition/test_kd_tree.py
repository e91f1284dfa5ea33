"""Trees of boxes: every point has one leaf, and the worst leaf is split next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_inputs import FOCI

from sooner.synopses.partition import Focus, KdTree, balanced_kd_tree, kd_tree

ENDS = np.iinfo(np.int64)


def boxes(tree: KdTree) -> np.ndarray:
    """The lower (excluded) and upper ends of each node's box, attribute by attribute, from the root down."""
    attributes = tree.splits.shape[1]
    ends = np.zeros((len(tree.parent), attributes, 2))
    ends[0] = -np.inf, np.inf
    for node in range(1, len(ends)):
        parent = tree.parent[node]
        ends[node] = ends[parent]
        for attribute in np.flatnonzero(tree.steps[parent]):
            above = (node - tree.first[parent]) & tree.steps[parent, attribute]
            ends[node, attribute, 0 if above else 1] = tree.splits[parent, attribute]
    return ends


def check_shape(tree: KdTree, leaves: int) -> None:
    nodes = len(tree.parent)
    assert tree.parent[0] == -1
    assert (tree.parent[1:] < np.arange(1, nodes)).all()
    assert 1 <= tree.leaves <= leaves
    inner = np.unique(tree.parent[1:])
    assert (tree.leaf[inner] == -1).all()
    assert sorted(tree.leaf[tree.leaf >= 0].tolist()) == list(range(tree.leaves))
    assert len(inner) + tree.leaves == nodes
    assert (tree.depth[1:] == tree.depth[tree.parent[1:]] + 1).all()


points = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.tuples(*[st.integers(0, 6)] * d), min_size=1, max_size=30)
)


@given(points, st.integers(1, 20), st.sampled_from(FOCI), st.booleans())
def test_every_point_is_in_the_box_of_one_leaf(
    sample, leaves: int, focus: Focus, balanced: bool
) -> None:
    codes = np.array(sample, np.int64)
    values = np.arange(len(codes)) % 5 - 2.0
    tree = (
        balanced_kd_tree(codes, leaves) if balanced else kd_tree(codes, values, leaves, focus, 0.1)
    )
    check_shape(tree, leaves)
    rng = np.random.default_rng(len(codes))
    # Also points that the sample did not show, as far out as codes go.
    new = rng.integers(-3, 10, (50, codes.shape[1]))
    new[:10] = rng.choice([ENDS.min, ENDS.max], (10, codes.shape[1]))
    every = np.concatenate([codes, new])
    ends = boxes(tree)[tree.leaf >= 0]
    inside = (ends[None, :, :, 0] < every[:, None]) & (every[:, None] <= ends[None, :, :, 1])
    # Floats round the largest code up and the smallest lies on the open end: both are inside.
    inside |= (every == ENDS.min)[:, None] & (ends[None, :, :, 0] == -np.inf)
    member = inside.all(axis=2)
    assert (member.sum(axis=1) == 1).all()
    assert (tree.assign(every) == member.argmax(axis=1)).all()


def test_as_many_leaves_as_asked_for_if_points_differ() -> None:
    rng = np.random.default_rng(0)
    for d, leaves in ((1, 7), (2, 64), (2, 30), (3, 20), (5, 8)):
        codes = rng.integers(0, 10**6, (500, d))
        for tree in (
            kd_tree(codes, rng.normal(0, 1, 500), leaves, "sum", 0.0),
            balanced_kd_tree(codes, leaves),
        ):
            assert tree.leaves == leaves


def test_all_attributes_are_split_at_once() -> None:
    codes = np.random.default_rng(0).integers(0, 10**6, (500, 3))
    tree = kd_tree(codes, np.ones(500), 50, "sum", 0.0)
    fan_out = np.bincount(tree.parent[1:])
    assert set(fan_out[fan_out > 0].tolist()) == {8}
    # The children of the root have equally many rows on both sides of every split.
    above = (codes > tree.splits[0]).sum(axis=0)
    assert (np.abs(above - 250) <= 1).all()


def test_balanced_leaves_are_equally_deep_and_full() -> None:
    codes = np.random.default_rng(1).permutation(1024)[:, None]
    tree = balanced_kd_tree(codes, 64)
    assert set(tree.depth[tree.leaf >= 0].tolist()) == {6}
    assert (np.bincount(tree.assign(codes)) == 16).all()


def test_leaves_are_where_values_differ() -> None:
    codes = np.random.default_rng(2).integers(0, 1000, (2000, 2))
    wild = (codes > 700).all(axis=1)
    values = np.where(wild, np.random.default_rng(3).normal(0, 10, 2000), 0.0)
    tree, balanced = kd_tree(codes, values, 64, "sum", 0.001), balanced_kd_tree(codes, 64)
    assert len(np.unique(tree.assign(codes[wild]))) > 2 * len(
        np.unique(balanced.assign(codes[wild]))
    )


@pytest.mark.parametrize("leaves", [10, 40, 100])
def test_depths_differ_by_two_at_most(leaves: int) -> None:
    """All the variance is in one corner; all leaves could be split on."""
    codes = np.array([[x, y] for x in range(32) for y in range(32)])
    values = np.where((codes < 4).all(axis=1), codes[:, 0] * 100.0, 0.0)
    depths = (tree := kd_tree(codes, values, leaves, "sum", 0.0)).depth[tree.leaf >= 0]
    assert np.ptp(depths) == 2


def test_leaves_without_rows_do_not_hold_others_back() -> None:
    """On a diagonal two of four children stay empty from the first split on."""
    codes = np.arange(512)[:, None] * np.ones((1, 2), np.int64)
    tree = kd_tree(codes, np.random.default_rng(4).normal(0, 1, 512), 200, "sum", 0.0)
    assert tree.leaves >= 197
    assert len(np.unique(tree.assign(codes))) > 60
    assert 0 <= tree.assign(np.array([[0, 511]]))[0] < tree.leaves


def test_an_attribute_of_one_value_is_not_split() -> None:
    codes = np.column_stack([np.full(64, 3), np.arange(64)])
    tree = kd_tree(codes, np.ones(64), 16, "sum", 0.0)
    assert (tree.steps[:, 0] == 0).all()
    assert tree.leaves == 16
    assert (np.bincount(tree.assign(codes)) == 4).all()


def test_frequent_codes() -> None:
    codes = np.repeat([[1], [5], [9]], [2, 90, 8], axis=0)
    tree = kd_tree(codes, np.random.default_rng(0).normal(0, 1, 100), 8, "sum", 0.0)
    assert sorted(np.bincount(tree.assign(codes)).tolist()) == [2, 8, 90]


def test_points_all_the_same_or_none() -> None:
    for codes in (
        np.full((20, 2), 7),
        np.zeros((0, 2), np.int64),
        np.array([[ENDS.max, ENDS.min]]),
    ):
        for tree in (
            kd_tree(codes, np.zeros(len(codes)), 8, "avg", 0.1),
            balanced_kd_tree(codes, 8),
        ):
            assert tree.leaves == 1
            assert (tree.assign(np.array([[0, 0], [9, 9]])) == 0).all()


def test_the_same_again() -> None:
    rng = np.random.default_rng(5)
    codes, values = rng.integers(0, 50, (300, 2)), rng.normal(0, 1, 300)
    for make in (
        lambda: kd_tree(codes, values, 30, "avg", 0.01),
        lambda: balanced_kd_tree(codes, 30, seed=7),
    ):
        one, other = make(), make()
        assert (one.splits == other.splits).all()
        assert (one.assign(codes) == other.assign(codes)).all()
    chances = {balanced_kd_tree(codes, 30, seed=seed).splits.tobytes() for seed in range(5)}
    assert len(chances) > 1
