"""Calculations with several sums, counts and averages of a stale view, with their intervals.

Near its value a calculation is a sum: of each row, what it brings to every aggregate times the slope along
it. So a second look at the samples, with slopes by group, has it judged as any other sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from sooner.engine.view_totals import Counted
from sooner.statistics.arrays import Booleans, Floats
from sooner.statistics.places import places
from sooner.views.calculation import Calculation
from sooner.views.cells import floats
from sooner.views.estimates import ROUNDING, Estimates, Estimator, Function, nearest
from sooner.views.question import Measure

# Totals of some values, which may refer to constants by group.
Totals: TypeAlias = Callable[[Sequence[Counted], pa.Table], pa.Table]
# A function of the totals in a place.
Estimated: TypeAlias = Callable[[pa.Table, int, Function, Estimator], Estimates]
_ESTIMATORS: tuple[Estimator, ...] = ("auto", "corr", "aqp")


def linearized(
    calculations: Sequence[Calculation],
    measures: Mapping[str, tuple[int, Measure]],
    groups: pa.Table,
    totals: pa.Table,
    totals_of: Totals,
    estimated: Estimated,
    estimator: Estimator,
    confidence: float,
) -> dict[str, Estimates]:
    """Each calculation by name, for each of the groups; ``measures`` come with their places in the totals."""
    if not calculations:
        return {}
    needed = {name: measures[name] for one in calculations for name in one.of}
    by = {
        how: {
            name: estimated(totals, place, _function(one), how)
            for name, (place, one) in needed.items()
        }
        for how in _ESTIMATORS
    }
    values = _values(by["auto"])
    rows = {
        name: estimated(totals, place, "count", "auto").value
        for name, (place, one) in needed.items()
        if one.function == "avg"
    }
    constants, counted = groups, []
    for number, one in enumerate(calculations):
        slopes = one.slopes(values)
        terms = []
        for name in one.of:
            term = _Term(needed[name][1], f"{number}_{needed[name][0]}")
            for column, numbers in term.constants(slopes[name], values[name], rows.get(name)):
                constants = constants.append_column(column, pa.array(numbers))
            terms.append(term)
        along, sizes = (
            " + ".join(getattr(term, what) for term in terms) for what in ("along", "size")
        )
        counted += [Counted("1.0D", f"({text})") for text in (along, sizes)]
    brought = totals_of(counted, constants)
    order = places(brought.select(range(groups.num_columns)), groups)
    brought = brought.take(pa.array(order))
    return {
        one.name: _judged(one, 2 * number, brought, by, estimated, estimator, confidence)
        for number, one in enumerate(calculations)
    }


@dataclass(frozen=True)
class _Term:
    """What a row brings to one aggregate, times the slope along it, in SQL that refers to constants."""

    measure: Measure
    mark: str

    def constants(
        self, slope: Floats, value: Floats, rows: Floats | None
    ) -> list[tuple[str, Floats]]:
        """The slope by group, and of an average, of so many rows, the mean that rows are compared with."""
        mean = np.zeros_like(slope)
        if rows is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope, mean = slope / rows, value
        # Where there is none, nothing comes of the calculation either.
        both = (np.where(np.isfinite(one), one, 0.0) for one in (slope, mean))
        return list(zip(self._names, both, strict=True))

    @property
    def along(self) -> str:
        """What it brings."""
        slope, mean = self._names
        return f"{slope} * {self._passes} * ({self._value} - {mean})"

    @property
    def size(self) -> str:
        """The size of what it is the difference of."""
        slope, mean = self._names
        return f"abs({slope}) * {self._passes} * (abs({self._value}) + abs({mean}))"

    @property
    def _names(self) -> tuple[str, str]:
        return f"__slope_{self.mark}", f"__mean_{self.mark}"

    @property
    def _passes(self) -> str:
        return self.measure.counted.passes

    @property
    def _value(self) -> str:
        return "1.0D" if self.measure.function == "count" else self.measure.counted.value


def _judged(
    one: Calculation,
    place: int,
    brought: pa.Table,
    by: Mapping[Estimator, Mapping[str, Estimates]],
    estimated: Estimated,
    estimator: Estimator,
    confidence: float,
) -> Estimates:
    found = estimated(brought, place, "sum", estimator)
    corrected, alone = one.value(_values(by["corr"])), one.value(_values(by["aqp"]))
    middle = np.where(found.corrected, corrected, alone)
    agree = np.where(found.corrected, _agree(brought, "corr", place), _agree(brought, "aqp", place))
    # About how many standard errors an interval reaches; of few draws it is more.
    reach = ndtri(0.5 + confidence / 2)
    errors = {name: (each.high - each.low) / 2 / reach for name, each in by["auto"].items()}
    none = agree | one.bends(_values(by["auto"]), errors)
    half = np.where(none, np.nan, (found.high - found.low) / 2)
    judged = Estimates(middle, middle - half, middle + half, found.corrected)
    if estimator == "auto":
        unsaid = np.isnan(estimated(brought, place, "sum", "corr").low)
        judged = nearest(judged, corrected, unsaid & ~found.corrected)
    value, low, high = (one.rounded(each) for each in (judged.value, judged.low, judged.high))
    return Estimates(value, low, high, found.corrected)


def _agree(brought: pa.Table, part: str, place: int) -> Booleans:
    """Whether all sampled rows agree with the value, so that what they bring is rounding alone."""
    along, sizes = (
        np.nan_to_num(floats(brought.column(f"{part}_{at}_020"))) for at in (place, place + 1)
    )
    return np.asarray(along <= ROUNDING * sizes)


def _values(found: Mapping[str, Estimates]) -> dict[str, Floats]:
    return {name: one.value for name, one in found.items()}


def _function(measure: Measure) -> Function:
    assert measure.function is not None
    return measure.function
