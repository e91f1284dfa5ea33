"""The leaves of a synopsis over its data, for the eye."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from sooner.synopses.axes import NULL, Axis, Codes, floats_of
from sooner.synopses.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 5000


def plot_leaves(summary: Summary) -> Figure:
    """Sampled rows as points and leaves as boxes: over one column, or over the first two."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    definition = summary.definition
    if len(definition.over) == 1:
        _over_one(axes, summary)
    else:
        _over_two(axes, summary)
    leaves = int((summary.tree.leaf >= 0).sum())
    axes.set_title(
        f"{definition.name}: {leaves} leaves over {', '.join(one.name for one in definition.over)} "
        f"of {definition.table}, {summary.samples.count:,} sampled rows"
    )
    return figure


def _over_one(axes: Axes, summary: Summary) -> None:
    axis, measure = summary.definition.over[0], summary.definition.measures[0]
    tree, samples = summary.tree, summary.samples
    at = np.flatnonzero((tree.leaf >= 0) & (tree.totals.rows > 0))
    totals = tree.totals.measures[measure.name].take(at)
    mean = (totals.positive + totals.negative).astype(np.float64) / np.maximum(1, totals.count)
    unit = 10.0**-measure.scale
    some = _some(samples.count)
    shown = samples.values[measure.name][some].astype(np.float64) * unit
    axes.plot(
        _seen(axis, samples.axes[axis.name][some]), shown, ".", ms=1.5, alpha=0.4, color="0.6"
    )
    low, high = (_seen(axis, ends[axis.name][at]) for ends in (tree.totals.low, tree.totals.high))
    for place in range(len(at)):
        axes.axvspan(low[place], high[place], color=f"C{place % 2}", alpha=0.15, lw=0)
        axes.hlines(mean[place] * unit, low[place], high[place], color="C3", lw=1.5)
    axes.set_xlabel(axis.name)
    axes.set_ylabel(f"{measure.name} (points), mean of each leaf (lines)")


def _over_two(axes: Axes, summary: Summary) -> None:
    from matplotlib.patches import Rectangle

    first, second = summary.definition.over[:2]
    tree, samples = summary.tree, summary.samples
    some = _some(samples.count)
    axes.plot(
        _numbers(first, samples.axes[first.name][some]),
        _numbers(second, samples.axes[second.name][some]),
        ".",
        ms=1.5,
        alpha=0.4,
        color="0.6",
    )
    at = np.flatnonzero((tree.leaf >= 0) & (tree.totals.rows > 0))
    ends = [
        (
            _numbers(axis, tree.totals.low[axis.name][at]),
            _numbers(axis, tree.totals.high[axis.name][at]),
        )
        for axis in (first, second)
    ]
    for place in range(len(at)):
        (left, right), (bottom, top) = ((low[place], high[place]) for low, high in ends)
        box = Rectangle((left, bottom), right - left, top - bottom, fill=False, ec="C0", lw=0.8)
        axes.add_patch(box)
    axes.set_xlabel(first.name)
    axes.set_ylabel(second.name)


def _some(count: int) -> Any:
    return slice(None, None, max(1, count // _POINTS))


def _numbers(axis: Axis, codes: Codes) -> Any:
    """Numbers as they are written; nulls are not shown."""
    plain = floats_of(codes) if axis.kind == "floating" else codes / 10.0**axis.scale
    return np.where(codes == NULL, np.nan, plain)


def _seen(axis: Axis, codes: Codes) -> Any:
    """The values of an axis as a plot takes them: dates as dates."""
    if axis.kind not in ("date", "moment"):
        return _numbers(axis, codes)
    unit = timedelta(days=1) if axis.kind == "date" else timedelta(microseconds=1)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return [None if code == NULL else start + int(code) * unit for code in codes]
