"""The leaves of a synopsis over its data, for the eye."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sooner.errors import NotSupported
from sooner.statistics.arrays import Floats
from sooner.synopses.axes import NULL, Axis, Codes, floats_of
from sooner.synopses.summary import Summary
from sooner.synopses.totals import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 5000
_MICROSECONDS_A_DAY = 86_400e6
_MOST_WORDS = 30
# A few values so far out would leave the others on a line.
_LOPSIDED = 50


def plot_leaves(summary: Summary) -> Figure:
    """Sampled rows as points and leaves as boxes: over one column, or over the first two."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NotSupported("Plots need matplotlib: pip install 'sooner[plot]'.") from error
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
    samples, at = summary.samples, _leaves(summary)
    totals = summary.tree.totals.measures[measure.name].take(at)
    mean = (totals.positive + totals.negative).astype(np.float64) / np.maximum(1, totals.count)
    unit = 10.0**-measure.scale
    some = _some(samples.count)
    shown = samples.values[measure.name][some].astype(np.float64) * unit
    axes.plot(
        _numbers(axis, samples.axes[axis.name][some]), shown, ".", ms=1.5, alpha=0.4, color="0.6"
    )
    low, high = _ends(summary, axis, at)
    for place, leaf in enumerate(np.argsort(low)):
        axes.axvspan(low[leaf], high[leaf], color=f"C{place % 2}", alpha=0.15, lw=0)
        axes.hlines(mean[leaf] * unit, low[leaf], high[leaf], color="C3", lw=1.5)
    _label(axes, axis, horizontal=True)
    axes.set_ylabel(f"{measure.name} (points), mean of each leaf (lines)")


def _over_two(axes: Axes, summary: Summary) -> None:
    from matplotlib.patches import Rectangle

    samples, at = summary.samples, _leaves(summary)
    some = _some(samples.count)
    pair = summary.definition.over[:2]
    points = [_numbers(axis, samples.axes[axis.name][some]) for axis in pair]
    axes.plot(*points, ".", ms=1.5, alpha=0.4, color="0.6")
    (left, right), (bottom, top) = (_ends(summary, axis, at) for axis in pair)
    for place in range(len(at)):
        width, height = right[place] - left[place], top[place] - bottom[place]
        box = Rectangle((left[place], bottom[place]), width, height, fill=False, ec="C0", lw=0.8)
        axes.add_patch(box)
    axes.set_xlim(*_limits(points[0]))
    axes.set_ylim(*_limits(points[1]))
    for axis, shown, horizontal in zip(pair, points, (True, False), strict=True):
        if np.nanmin(shown) > 0 and np.nanmax(shown) > _LOPSIDED * np.nanmedian(shown):
            (axes.set_xscale if horizontal else axes.set_yscale)("log")
        _label(axes, axis, horizontal)


def _limits(shown: Floats) -> tuple[float, float]:
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    return (low, high) if low < high else (low - 1, high + 1)


def _leaves(summary: Summary) -> Ints:
    return np.flatnonzero((summary.tree.leaf >= 0) & (summary.tree.totals.rows > 0))


def _ends(summary: Summary, axis: Axis, at: Ints) -> tuple[Floats, Floats]:
    totals = summary.tree.totals
    return _numbers(axis, totals.low[axis.name][at]), _numbers(axis, totals.high[axis.name][at])


def _some(count: int) -> Any:
    return slice(None, None, max(1, count // _POINTS))


def _numbers(axis: Axis, codes: Codes) -> Floats:
    """Numbers as they are written, moments in days, words by their place; nulls are not shown."""
    if axis.kind == "floating":
        plain = floats_of(codes)
    elif axis.kind == "moment":
        plain = codes / _MICROSECONDS_A_DAY
    else:
        plain = codes / 10.0**axis.scale
    return np.where(codes == NULL, np.nan, plain)


def _label(axes: Axes, axis: Axis, horizontal: bool) -> None:
    own = axes.xaxis if horizontal else axes.yaxis
    own.set_label_text(axis.name)
    if axis.kind in ("date", "moment"):
        own.axis_date()  # days since 1970
    elif axis.kind == "text" and len(axis.words) <= _MOST_WORDS:
        own.set_ticks(range(len(axis.words)), axis.words)
