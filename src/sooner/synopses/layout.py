"""Where the leaves are: chosen from a sample of the rows, before any leaf is filled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sooner.synopses.axes import Axis
from sooner.synopses.definition import Definition
from sooner.synopses.partition import (
    KdTree,
    balanced_kd_tree,
    binary_search,
    binary_tree,
    equal_depth,
    exact_program,
    fast_program,
    hill_climbing,
    items_of,
    kd_tree,
)
from sooner.synopses.totals import Ints

_ALGORITHMS = {
    "fast": fast_program,
    "exact": exact_program,
    "climbing": hill_climbing,
    "search": binary_search,
}


@dataclass(frozen=True)
class Layout:
    """The nodes of a tree and the way from a row to its leaf.

    ``over`` are the axes as the sample showed them: words that it did not show go by their neighbours.
    ``shares`` are the leaves' shares of the sample.
    """

    over: tuple[Axis, ...]
    parent: Ints
    leaf: Ints
    boundaries: Ints | None
    tree: KdTree | None
    shares: Ints

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.leaf.max()) + 1

    def codes(self, rows: pa.Table) -> Ints:
        """The point of every row, as far as the sample's words tell."""
        return np.column_stack([one.codes(rows.column(one.name)) for one in self.over])

    def assign(self, codes: Ints) -> Ints:
        """The leaf of every point."""
        if self.boundaries is not None:
            return np.searchsorted(self.boundaries, codes[:, 0]).astype(np.int64)
        assert self.tree is not None
        return self.tree.assign(codes)


def lay_out(sample: pa.Table, definition: Definition) -> Layout:
    """Choose the leaves for a table of which this is a sample."""
    knobs = definition.knobs
    over = tuple(_with_words(one, sample) for one in definition.over)
    codes = np.column_stack([one.codes(sample.column(one.name)) for one in over])
    focused = definition.measures[0]
    values = focused.values(sample.column(focused.name))[0].astype(np.float64)
    if len(over) == 1:
        items = items_of(codes[:, 0], values)
        if knobs.partitioning == "equal" or knobs.focus == "count":
            boundaries = equal_depth(items, knobs.leaves)
        else:
            choose = _ALGORITHMS[knobs.partitioning]
            boundaries = choose(items, knobs.leaves, knobs.focus, knobs.delta)
        parent, leaf = binary_tree(len(boundaries) + 1)
        laid = Layout(over, parent, leaf, boundaries, None, np.zeros(0, np.int64))
    else:
        if knobs.partitioning == "equal":
            tree = balanced_kd_tree(codes, knobs.leaves, knobs.seed)
        else:
            tree = kd_tree(codes, values, knobs.leaves, knobs.focus, knobs.delta)
        laid = Layout(over, tree.parent, tree.leaf, None, tree, np.zeros(0, np.int64))
    return replace(laid, shares=np.bincount(laid.assign(codes), minlength=laid.leaves))


def _with_words(axis: Axis, sample: pa.Table) -> Axis:
    if axis.kind != "text":
        return axis
    found = sample.column(axis.name).unique().to_pylist()
    return axis.with_words({word for word in found if word is not None})
