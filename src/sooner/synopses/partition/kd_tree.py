"""Boxes of several dimensions: a tree in which the worst leaf is split next (PASS §2.4.4 and §2.5.4)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sooner.statistics.arrays import Floats, Integers
from sooner.synopses.partition.items import Focus, finite, items_of, smallest_query
from sooner.synopses.partition.max_variance import fast_max_variance

# No code lies above it: an attribute that is not split.
_UNSPLIT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class KdTree:
    """A tree over all points there can be: every one has a leaf, seen in the sample or not.

    Node 0 is the root. A point goes from a node to child ``first`` plus ``steps`` for each attribute in
    which it lies above ``splits``; from a leaf it goes nowhere. ``parent`` is −1 for the root, ``leaf``
    the number of a leaf and −1 for inner nodes, ``depth`` how far below the root a node is.
    """

    splits: Integers
    steps: Integers
    first: Integers
    parent: Integers
    leaf: Integers
    depth: Integers

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.leaf.max()) + 1

    def assign(self, codes: Integers) -> Integers:
        """The leaf number of each point, one row of codes for each."""
        node = np.zeros(len(codes), np.int64)
        for _ in range(int(self.depth.max())):
            below = self.first[node]
            for attribute in range(codes.shape[1]):
                above = codes[:, attribute] > self.splits[node, attribute]
                below += above * self.steps[node, attribute]
            node = below
        return self.leaf[node]


def kd_tree(codes: Integers, values: Floats, leaves: int, focus: Focus, delta: float) -> KdTree:
    """A tree of at most so many leaves, from sampled points (one row of codes for each) and their values.

    The leaf with the largest variance is split next, at the median of each attribute at once. No leaf
    lies more than two levels below another that could still be split. Variances are those of the fast
    oracle along one attribute after the other: of queries that bound several no more is known.

    >>> points = np.array([[x, y] for x in range(8) for y in range(8)])
    >>> tree = kd_tree(points, np.where(points[:, 0] < 4, 0.0, points[:, 1]), 7, "sum", 0.01)
    >>> np.bincount(tree.assign(points))
    array([16, 16, 16,  4,  4,  4,  4])
    """
    smallest = smallest_query(len(codes), delta)
    known = finite(values)
    lowest = float(known.min(initial=np.inf))

    def variance(rows: Integers) -> float:
        found = 0.0
        for attribute in range(codes.shape[1]):
            items = items_of(codes[rows, attribute], known[rows], lowest)
            inside = fast_max_variance(items, focus, smallest)
            found = max(found, float(inside(np.array([0]), np.array([len(items) - 1]))[0]))
        return found

    return _grow(codes, leaves, variance, ahead=1)


def balanced_kd_tree(codes: Integers, leaves: int, seed: int = 0) -> KdTree:
    """The same with no regard to values: one of the shallowest leaves is split next, whichever chance takes.

    This is the baseline KD-US of PASS §2.5.4.

    >>> points = np.array([[x, y] for x in range(8) for y in range(8)])
    >>> np.bincount(balanced_kd_tree(points, 16).assign(points))
    array([4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4])
    """
    chance = np.random.default_rng(seed)
    return _grow(codes, leaves, lambda _: chance.random(), ahead=0)


@dataclass(eq=False)
class _Node:
    """A leaf while the tree grows, with its rows of the sample; an inner node has splits and children."""

    parent: int
    depth: int
    rows: Integers
    first: int
    splits: list[tuple[int, int]] = field(default_factory=list)


def _grow(codes: Integers, leaves: int, worth: Callable[[Integers], float], ahead: int) -> KdTree:
    """Split leaf after leaf: of the shallowest, and those ``ahead`` levels deeper, that of most worth."""
    nodes: list[_Node] = []
    waiting: dict[int, list[tuple[float, int]]] = {}

    def add(parent: int, depth: int, rows: Integers) -> None:
        nodes.append(_Node(parent, depth, rows, len(nodes)))
        # Rows that are all the same point cannot be parted, nor can none.
        if (codes[rows] != codes[rows[:1]]).any():
            entry = (-worth(rows), len(nodes) - 1)
            heapq.heappush(waiting.setdefault(depth, []), entry)

    add(-1, 0, np.arange(len(codes)))
    count = 1
    while count < leaves and (number := _next(waiting, ahead)) is not None:
        node = nodes[number]
        # Where splitting all attributes would make too many leaves, the first ones are split.
        node.splits = _medians(codes[node.rows])[: (leaves - count + 1).bit_length() - 1]
        node.first = len(nodes)
        child = np.zeros(len(node.rows), np.int64)
        for rank, (attribute, median) in enumerate(node.splits):
            child += (codes[node.rows, attribute] > median).astype(np.int64) << rank
        for each in range(1 << len(node.splits)):
            add(number, node.depth + 1, node.rows[child == each])
        count += (1 << len(node.splits)) - 1
    return _tree(nodes, codes.shape[1])


def _next(waiting: dict[int, list[tuple[float, int]]], ahead: int) -> int | None:
    depths = sorted(depth for depth, heap in waiting.items() if heap)
    allowed = [waiting[depth] for depth in depths if depth <= depths[0] + ahead]
    if not allowed:
        return None
    return heapq.heappop(min(allowed, key=lambda heap: heap[0]))[1]


def _medians(points: Integers) -> list[tuple[int, int]]:
    """Attributes of more than one value, and the codes up to which about half of the rows lie."""
    found = []
    for attribute, column in enumerate(np.sort(points, axis=0).T):
        if column[0] == column[-1]:
            continue
        below, upto = (
            int(np.searchsorted(column, column[len(column) // 2], side))
            for side in ("left", "right")
        )
        cut = below if upto == len(column) or (below > 0 and len(column) - below < upto) else upto
        found.append((attribute, int(column[cut - 1])))
    return found


def _tree(nodes: list[_Node], attributes: int) -> KdTree:
    splits = np.full((len(nodes), attributes), _UNSPLIT, np.int64)
    steps = np.zeros((len(nodes), attributes), np.int64)
    for number, node in enumerate(nodes):
        for rank, (attribute, median) in enumerate(node.splits):
            splits[number, attribute] = median
            steps[number, attribute] = 1 << rank
    is_leaf = np.array([not node.splits for node in nodes])
    return KdTree(
        splits,
        steps,
        np.array([node.first for node in nodes], np.int64),
        np.array([node.parent for node in nodes], np.int64),
        np.where(is_leaf, np.cumsum(is_leaf) - 1, -1),
        np.array([node.depth for node in nodes], np.int64),
    )
