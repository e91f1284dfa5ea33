"""Answer: a table whose uncertain cells say how far off they can be, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sooner.display import ROWS_SHOWN, as_text, html_table, is_number, rich_table, rows_text, show
from sooner.errors import InvalidArgument, NotSupported, nearest

if TYPE_CHECKING:
    import pandas as pd

# Shares below this would be shown as none.
_NEGLIGIBLE = 0.005


class Status(Enum):
    """What can be said of a cell."""

    EXACT = "exact"
    ESTIMATE = "estimate"
    UNKNOWN = "unknown"
    # A winner of ORDER BY … LIMIT or MAX over estimates: it may yet be another.
    SELECTED = "selected"
    # Between two ends whatever rows are missing.
    RANGE = "range"


@dataclass(frozen=True)
class Bounds:
    """Low and high of every row of a column; null where nothing can be said."""

    low: pa.ChunkedArray
    high: pa.ChunkedArray


@dataclass(frozen=True)
class Uncertainty:
    """An uncertain column: its interval and the status of each of its cells."""

    bounds: Bounds
    status: tuple[Status, ...]


@dataclass(frozen=True)
class Answer:
    """The answer to a query, exact or on the way there.

    >>> answer = Answer(pa.table({"n": [3]}), method="exact")
    >>> answer.to_pandas(bounds=True).to_dict("records")
    [{'n': 3, 'n__low': 3, 'n__high': 3}]
    >>> answer.final, answer.relative_error
    (True, 0.0)
    """

    table: pa.Table = field(repr=False)
    method: str
    confidence: float = 1.0
    progress: float = 1.0
    final: bool = True
    as_of: Mapping[str, int] = field(default_factory=dict)
    elapsed: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    hard_bounds: Mapping[str, Bounds] = field(default_factory=dict, repr=False)
    uncertain: Mapping[str, Uncertainty] = field(default_factory=dict, repr=False)

    def to_arrow(self, bounds: bool = False) -> pa.Table:
        """The rows as an Arrow table; with ``bounds`` each number's low and high beside it."""
        if not bounds:
            return self.table
        names: list[str] = []
        columns: list[pa.ChunkedArray] = []
        for name, values in zip(self.table.column_names, self.table.columns, strict=True):
            names.append(name)
            columns.append(values)
            if name in self.bounds:
                names += [f"{name}__low", f"{name}__high"]
                columns += [self.bounds[name].low, self.bounds[name].high]
        return pa.Table.from_arrays(columns, names=names)

    def to_pandas(self, bounds: bool = False) -> pd.DataFrame:
        """The rows as a pandas DataFrame; with ``bounds`` each number's low and high beside it."""
        frame: pd.DataFrame = self.to_arrow(bounds).to_pandas()
        return frame

    @property
    def bounds(self) -> Mapping[str, Bounds]:
        """Low and high of every column of numbers, at ``confidence``; equal where it is exact."""
        found = {}
        for place, column in enumerate(self.table.schema):
            if column.name in self.uncertain:
                found[column.name] = self.uncertain[column.name].bounds
            elif is_number(column.type):
                values = self.table.column(place)
                found[column.name] = Bounds(values, values)
        return found

    def status(self, column: str) -> tuple[Status, ...]:
        """The status of every cell of a column."""
        if column not in self.table.column_names:
            known = self.table.column_names
            raise InvalidArgument(f"The answer has no column {column!r}.{nearest(column, known)}")
        if column in self.uncertain:
            return self.uncertain[column].status
        rows: int = self.table.num_rows
        return (Status.EXACT,) * rows

    @property
    def relative_error(self) -> float | None:
        """The widest interval: half its width over its value; ``None`` while a cell is unknown.

        Of a list on its way it is ``None`` as well: its cells are exact, but rows still come.
        """
        estimated = any(Status.ESTIMATE in column.status for column in self.uncertain.values())
        if not (self.final or estimated):
            return None
        widest = 0.0
        for name, column in self.uncertain.items():
            shown = self.table.column(self.table.column_names.index(name))
            if not is_number(shown.type):
                continue
            values = shown.to_pylist()
            lows, highs = column.bounds.low.to_pylist(), column.bounds.high.to_pylist()
            for value, low, high in zip(values, lows, highs, strict=True):
                if value is None or low is None or high is None:
                    return None
                half = (float(high) - float(low)) / 2
                if half:
                    widest = max(widest, half / abs(float(value)) if value else float("inf"))
        return widest

    @property
    def skipped(self) -> float:
        """The share of a synopsis' sampled rows that need not be looked at; 0 for other methods."""
        return float(self.details.get("skipped", 0.0))

    @property
    def caption(self) -> str:
        """One line about the answer: rows, method, how much data, how long."""
        rows = self.table.num_rows
        shown = f"first {ROWS_SHOWN} of " if rows > ROWS_SHOWN else ""
        text = f"{shown}{rows_text(rows)} · {self.method}"
        if not self.final:
            digits = 0 if self.progress >= 0.01 else 2
            text += f" · {self.progress:.{digits}%} of the data · {self.confidence:.0%} intervals"
        return text + f" · {self.elapsed:.2f} s"

    @property
    def remarks(self) -> list[str]:
        """Lines about what the rows do not show: rows to come, groups not seen yet, what may change.

        >>> Answer(pa.table({"n": [3]}), "progressive", details={"unseen_groups": 0.031}).remarks
        ['about 3% of the rows are in groups not seen yet']
        """
        lines = []
        unseen = self.details.get("unseen_groups", 0.0)
        if unseen >= _NEGLIGIBLE:
            lines.append(f"about {unseen:.0%} of the rows are in groups not seen yet")
        expected = self.details.get("rows_expected")
        if expected is not None and expected > self.table.num_rows:
            lines.append(f"about {expected:,} rows expected in the end")
        hidden = self.details.get("groups_not_seen", 0)
        if hidden:
            lines.append(f"up to {hidden:,} more groups may have rows; none is in the sample")
        return [*lines, *self._certain_ranges(), *self.details.get("notes", ())]

    def _certain_ranges(self) -> list[str]:
        """The hard ranges of an answer of one row, in words, where its intervals are not hard already."""
        lines: list[str] = []
        if self.confidence == 1.0:
            return lines
        for name, ends in self.hard_bounds.items():
            if self.table.num_rows != 1 or name not in self.uncertain:
                continue
            low, high = ends.low[0].as_py(), ends.high[0].as_py()
            if low is not None and high is not None:
                lines.append(f"{name} is between {low:,.10g} and {high:,.10g} for certain")
        return lines

    def show(self) -> None:
        """Print the first rows."""
        show(rich_table(self.table, self._margins(), self._below))

    def __str__(self) -> str:
        return as_text(rich_table(self.table, self._margins(), self._below))

    def _repr_html_(self) -> str:
        return html_table(self.table, self._margins(), self._below)

    @property
    def _below(self) -> str:
        return "\n".join([self.caption, *self.remarks])

    def _margins(self) -> dict[str, list[str]]:
        """What stands behind each uncertain value: ± half the interval, or a question mark."""
        margins = {}
        for name, column in self.uncertain.items():
            shown = self.table.column(self.table.column_names.index(name))
            if not is_number(shown.type):
                continue
            lows = column.bounds.low.slice(0, ROWS_SHOWN).to_pylist()
            highs = column.bounds.high.slice(0, ROWS_SHOWN).to_pylist()
            margins[name] = [
                _range(low, high)
                if status is Status.RANGE
                else ""
                if status is Status.EXACT
                else "?"
                if low is None or high is None
                else _margin(low, high)
                for low, high, status in zip(lows, highs, column.status, strict=False)
            ]
        return margins

    def plot(self) -> Any:
        """Bars of the first column of numbers by the first other column, with their intervals."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise NotSupported("Plots need matplotlib: pip install 'sooner[plot]'.") from error
        numbers = [f.name for f in self.table.schema if is_number(f.type)]
        if not numbers:
            raise InvalidArgument("There is no column of numbers to plot.")
        if len(set(self.table.column_names)) < self.table.num_columns:
            raise InvalidArgument(
                "Two columns have one name: give them names of their own to plot them."
            )
        value = next((name for name in numbers if name in self.uncertain), numbers[-1])
        head = self.table.slice(0, ROWS_SHOWN)
        others = [name for name in head.column_names if name != value]
        labels = [str(v) for v in head.column(others[0]).to_pylist()] if others else [value]
        heights = [float(v or 0) for v in head.column(value).to_pylist()]
        bounds = self.bounds[value]
        lows = bounds.low.slice(0, ROWS_SHOWN).to_pylist()
        highs = bounds.high.slice(0, ROWS_SHOWN).to_pylist()
        below = [
            0.0 if b is None else max(0.0, h - float(b)) for h, b in zip(heights, lows, strict=True)
        ]
        above = [
            0.0 if b is None else max(0.0, float(b) - h)
            for h, b in zip(heights, highs, strict=True)
        ]
        figure, axes = pyplot.subplots(layout="constrained")
        if Status.RANGE in self.status(value):
            bottoms = [h - b for h, b in zip(heights, below, strict=True)]
            spans = [b + a for b, a in zip(below, above, strict=True)]
            axes.bar(range(len(heights)), heights, label="known")
            axes.bar(
                range(len(heights)),
                spans,
                0.5,
                bottoms,
                alpha=0.5,
                label="possible with missing rows",
            )
            axes.legend(fontsize="small")
        else:
            axes.bar(range(len(heights)), heights, yerr=[below, above], capsize=3)
        axes.set_xticks(range(len(heights)), labels[: len(heights)], rotation=45, ha="right")
        axes.set_ylabel(value)
        axes.set_title(self.caption, fontsize="small", loc="left")
        return figure


def _range(low: Any, high: Any) -> str:
    return f"[{low:,.10g}, {high:,.10g}]"


def _margin(low: Any, high: Any) -> str:
    half = (float(high) - float(low)) / 2
    return f"± {half:,.3g}" if half else ""
