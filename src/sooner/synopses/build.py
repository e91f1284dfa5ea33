"""Filling the leaves: accumulate batches of rows, merge what they give, finish a summary.

None of it knows Spark: a batch is an Arrow table with the columns of the synopsis and a hash of each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sooner.errors import InvalidArgument
from sooner.storage.layout import HASH
from sooner.synopses.axes import NULL, Axis
from sooner.synopses.definition import Definition
from sooner.synopses.layout import Layout
from sooner.synopses.partition import allocate
from sooner.synopses.samples import sorted_samples
from sooner.synopses.summary import Summary
from sooner.synopses.totals import Ints, Totals, merged, totals_of
from sooner.synopses.tree import grown

_LEAF = "__leaf"
# So much more than its part is kept of a leaf at first, whose rows are only estimated.
_SPARE = 1.3
_SPARE_ROWS = 50


@dataclass(frozen=True)
class Part:
    """What some rows give: totals by leaf, rows that may be sampled, and which words each leaf has."""

    totals: Totals
    candidates: pa.Table
    words: dict[str, pa.Table]


@dataclass(frozen=True)
class Filling:
    """How leaves are filled: the definition, the layout, and how many rows of each leaf to keep.

    ``chances`` are those of a row of each leaf to be a candidate.
    """

    definition: Definition
    layout: Layout
    chances: npt.NDArray[np.float64]

    def accumulate(self, batch: pa.Table) -> Part:
        """What one batch gives."""
        layout, definition = self.layout, self.definition
        codes = layout.codes(batch)
        leaf = layout.assign(codes)
        totals = totals_of(
            leaf,
            layout.leaves,
            {n.name: codes[:, at] for at, n in enumerate(definition.over) if n.kind != "text"},
            {one.name: one.values(batch.column(one.name)) for one in definition.measures},
        )
        hashes = batch.column(HASH).to_numpy()
        # The hash as a number from 0 to 1.
        chosen = np.flatnonzero(hashes / 2.0**64 + 0.5 < self.chances[leaf])
        candidates = batch.take(pa.array(chosen)).append_column(_LEAF, pa.array(leaf[chosen]))
        words = {
            one.name: _words(batch.column(one.name), leaf)
            for one in definition.over
            if one.kind == "text"
        }
        return Part(totals, candidates, words)

    def finish(self, parts: Sequence[Part]) -> Summary:
        """The summary of all rows."""
        definition, layout = self.definition, self.layout
        totals = merged([one.totals for one in parts])
        rows = int(totals.rows.sum())
        if rows == 0:
            raise InvalidArgument(f"{definition.table!r} has no rows to summarize.")
        words = {
            name: pa.concat_tables([one.words[name] for one in parts]) for name in parts[0].words
        }
        candidates = pa.concat_tables([one.candidates for one in parts])
        over = tuple(
            one.with_words(_set(words[one.name])) if one.kind == "text" else one
            for one in definition.over
        )
        keep = tuple(
            one.with_words(
                {w for w in candidates.column(one.name).unique().to_pylist() if w is not None}
            )
            if one.kind == "text"
            else one
            for one in definition.keep
        )
        ends = {
            one.name: _word_ends(one, words[one.name], layout.leaves)
            for one in over
            if one.kind == "text"
        }
        totals = replace(
            totals,
            low={**totals.low, **{name: low for name, (low, _) in ends.items()}},
            high={**totals.high, **{name: high for name, (_, high) in ends.items()}},
        )
        finished = replace(definition, over=over, keep=keep)
        counts = allocate(
            definition.knobs.stored(rows),
            totals.rows,
            _spreads(totals),
            definition.knobs.allocation,
        )
        values = {one.name: one.values(candidates.column(one.name)) for one in finished.measures}
        samples = sorted_samples(
            candidates.column(_LEAF).to_numpy(),
            candidates.column(HASH).to_numpy(),
            {one.name: one.codes(candidates.column(one.name)) for one in (*over, *keep)},
            {name: numbers for name, (numbers, _) in values.items()},
            {name: there for name, (_, there) in values.items()},
            counts,
        )
        return Summary(finished, grown(layout.parent, layout.leaf, totals), samples)


def filling(definition: Definition, layout: Layout, rows: int) -> Filling:
    """How to fill the leaves of a table of about so many rows."""
    expected = np.maximum(1, layout.shares * rows / max(1, layout.shares.sum()))
    whole = np.ceil(expected).astype(np.int64)
    counts = allocate(
        definition.knobs.stored(rows), whole, np.ones(len(whole)), definition.knobs.allocation
    )
    chances = np.minimum(1.0, (_SPARE * counts + _SPARE_ROWS) / expected)
    return Filling(definition, layout, chances)


def _words(column: pa.ChunkedArray, leaf: Ints) -> pa.Table:
    """Which words each leaf has, once each."""
    table = pa.table({"leaf": leaf, "word": column.cast(pa.string())})
    return table.group_by(["leaf", "word"], use_threads=False).aggregate([])


def _set(words: pa.Table) -> set[str]:
    return {word for word in pc.unique(words.column("word")).to_pylist() if word is not None}


def _word_ends(axis: Axis, words: pa.Table, leaves: int) -> tuple[Ints, Ints]:
    codes = axis.codes(words.column("word"))
    low = np.full(leaves, np.iinfo(np.int64).max)
    high = np.full(leaves, NULL)
    leaf = words.column("leaf").to_numpy()
    np.minimum.at(low, leaf, codes)
    np.maximum.at(high, leaf, codes)
    return low, high


def _spreads(totals: Totals) -> npt.NDArray[Any]:
    """The standard deviation of the first measure in each leaf."""
    first = next(iter(totals.measures.values()))
    count = np.maximum(1, first.count)
    mean = (first.positive + first.negative).astype(np.float64) / count
    return np.sqrt(np.maximum(0.0, first.squares / count - np.square(mean)))
