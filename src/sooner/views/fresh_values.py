"""Percentiles and extremes of a stale view as if it were fresh, from the sampled values themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sooner.engine.percentiles import percentiles
from sooner.engine.view_totals import aligned_values, put_right
from sooner.errors import CannotAnswer
from sooner.sql import render
from sooner.statistics.arrays import Floats, Integers
from sooner.statistics.intervals import Interval
from sooner.statistics.places import places
from sooner.views.cells import floats
from sooner.views.cleaned_sample import BEFORE, CHANGES, WHOLE, CleanedSample
from sooner.views.deltas import SIGN
from sooner.views.estimates import Estimate, Estimates, Estimator
from sooner.views.extremes import extreme_estimate
from sooner.views.pooled import FEWEST_GROUPS, deviations, pooled
from sooner.views.quantile_estimates import are_few, around, quantile_estimate
from sooner.views.question import Measure, Question, carried, carrying
from sooner.views.unit import HASH, Portion

# Values that are held here; of more a smaller share of the hash is taken.
_MOST_VALUES = 2_000_000
# With fewer sampled values in a group, Spark has its percentile in no time.
_MANY = 1_000
# Standard deviations of a sample's rank in which the view's percentile lies, but for clusters.
_SURE = 6.0


@dataclass(frozen=True)
class Found:
    """Estimates of one measure by group; of an extreme, how likely a row is beyond it."""

    estimates: Estimates
    beyond: Floats | None = None


def fresh_values(
    question: Question,
    sample: CleanedSample,
    groups: pa.Table,
    stale: Mapping[str, Floats],
    confidence: float,
    estimator: Estimator,
) -> dict[str, Found]:
    """Of each percentile and extreme, by the keys in ``groups``.

    ``stale`` are the extremes that the view has itself.
    """
    upkeep = sample.upkeep
    expected = (upkeep.table.facts.rows or 0) * sample.ratio
    ratio = sample.ratio * min(1.0, _MOST_VALUES / max(1.0, expected))
    asked = {one.name: one for one in question.measures if one.function is None}
    values = _Values(question, sample, groups, ratio, asked)
    found = {}
    for name, one in asked.items():
        if one.extreme is not None:
            found[name] = _extremes(one, stale[name], values)
        else:
            found[name] = Found(_percentiles(one, values, confidence, estimator))
    return found


class _Values:
    """What sampled rows had before and have after, by group."""

    def __init__(
        self,
        question: Question,
        sample: CleanedSample,
        groups: pa.Table,
        ratio: float,
        asked: Mapping[str, Measure],
    ) -> None:
        self.ratio = ratio
        self._question, self._sample, self._groups, self._asked = question, sample, groups, asked
        key = sample.upkeep.table.key
        self._found = aligned_values(
            sample.spark,
            question.keys,
            {
                "old": carrying(question.rows, BEFORE, (*key, HASH)),
                "changed": carrying(question.rows, CHANGES, (*key, HASH, SIGN)),
            },
            [*(carried(name) for name in key), HASH],
            {f"__v{place}": one.value_sql for place, one in enumerate(asked.values())},
            SIGN,
            sample.frames(ratio),
        )
        for place, one in enumerate(asked.values()):
            for end in ("old", "new"):
                require_no_nan(one, self._found.column(f"__v{place}_{end}"))
        of = places(groups, self._found.select(range(len(question.keys))))
        hashes = np.asarray(self._found.column(HASH).to_numpy(), np.int64)
        drawn = Portion(high=ratio).holds_each(hashes)
        self._places = {
            "all": _by_group(of, np.ones_like(drawn), groups.num_rows),
            # Outliers are not drawn: they have no place among values of which each stands for many.
            "drawn": _by_group(of, drawn, groups.num_rows),
        }
        unit = sample.upkeep.unit
        # Rows that are drawn together are fewer draws than there are rows.
        self.each_alone = unit is not None and set(unit.columns) == set(key)

    @cached_property
    def _shares(self) -> dict[str, float]:
        """The percentiles that are asked for."""
        return {one.name: one.share for one in self._asked.values() if one.share is not None}

    def of(self, name: str, which: str) -> list[tuple[Floats, Floats]]:
        """Of each group the values before and after, not a number where there is no row."""
        place = list(self._asked).index(name)
        old, new = (floats(self._found.column(f"__v{place}_{end}")) for end in ("old", "new"))
        return [(old[one], new[one]) for one in self._places[which]]

    @cached_property
    def stale(self) -> dict[str, Floats]:
        """Of each percentile what the whole stale view has, by group."""
        rows, ends = carrying(self._question.rows, WHOLE, ()), self._bounds
        found = self._percentiles(render(rows), ends)
        for name, (low, high) in ends.items():
            missed = ~np.isnan(low) & ~((low < found[name]) & (found[name] < high))
            if missed.any():  # a sample of clusters, or of values that many rows share
                return self._percentiles(render(rows), {})
        return found

    @cached_property
    def put_right(self) -> dict[str, Floats]:
        """The same once sampled rows in the view have been put right; good for groups with few of them."""
        key = self._sample.upkeep.table.key
        rows = put_right(
            carrying(self._question.rows, WHOLE, key),
            carrying(self._question.rows, CHANGES, (*key, SIGN)),
            [carried(each) for each in key],
            SIGN,
        )
        return self._percentiles(rows, self._bounds)

    @cached_property
    def _bounds(self) -> dict[str, tuple[Floats, Floats]]:
        """Of each percentile the ends between which the view has it, by group; not a number where unknown."""
        bounds = {}
        for name, share in self._shares.items():
            ends = [_ends(share, old) for old, _ in self.of(name, "drawn")]
            low, high = np.array(ends).reshape(-1, 2).T
            bounds[name] = (low, high)
        return bounds

    def _percentiles(
        self, rows: str, bounds: Mapping[str, tuple[Floats, Floats]]
    ) -> dict[str, Floats]:
        keys, shares = self._question.keys, self._shares
        ends = [end for name in bounds for end in bounds[name]]
        unknown = np.isnan(ends).all(axis=0) if ends else np.ones(self._groups.num_rows, bool)
        known = np.flatnonzero(~unknown)
        columns = [pa.array(end[known], from_pandas=True) for end in ends]
        table = percentiles(
            self._sample.spark,
            keys,
            rows,
            [(self._asked[name].value_sql, share) for name, share in shares.items()],
            pa.table(
                [*self._groups.take(pa.array(known, pa.int64())).columns, *columns],
                [str(place) for place in range(len(keys) + len(columns))],
            ),
            self._sample.frames(),
        )
        of = places(self._groups, table.select(range(len(keys))))
        found = {}
        for place, name in enumerate(shares, len(keys)):
            found[name] = np.full(self._groups.num_rows, np.nan)
            found[name][of] = floats(table.column(place))
        return found


def _ends(share: float, sampled: Floats) -> tuple[float, float]:
    """Two values of the view between which, as far as a sample can tell, its percentile is for certain."""
    if len(sampled) < _MANY:
        return np.nan, np.nan
    ordered = np.sort(sampled[~np.isnan(sampled)])
    first, end = around(len(ordered), share, _SURE, 8)
    if first == 0 or end == len(ordered):
        return np.nan, np.nan
    return float(ordered[first]), float(ordered[end])


def _extremes(one: Measure, stale: Floats, values: _Values) -> Found:
    assert one.extreme is not None
    found = [
        extreme_estimate(one.extreme, _known(base), old, new)
        for base, (old, new) in zip(stale, values.of(one.name, "all"), strict=True)
    ]
    nothing = np.full(len(found), np.nan)
    estimated = np.array([_or_nan(each.value) for each in found])
    by = np.ones(len(found), bool)
    beyond = np.array([_or_nan(each.probability) for each in found])
    return Found(Estimates(estimated, nothing, nothing, by), beyond)


def _percentiles(
    one: Measure, values: _Values, confidence: float, estimator: Estimator
) -> Estimates:
    share, stale = one.share, values.stale[one.name]
    assert share is not None
    pairs = values.of(one.name, "drawn")
    small = values.ratio < 1 and any(are_few(share, *pair) for pair in pairs)
    put_right_ = values.put_right[one.name] if small else stale
    found: list[Estimate] = [
        quantile_estimate(
            share, _known(base), old, new, values.ratio, confidence, estimator, put_right=_known(to)
        )
        for base, to, (old, new) in zip(stale, put_right_, pairs, strict=True)
    ]
    value, low, high = (
        np.array([_or_nan(getattr(each, end)) for each in found])
        for end in ("value", "low", "high")
    )
    corrected = np.array([each.by == "corr" for each in found], bool)
    some = np.flatnonzero(corrected & ~np.isnan(low))
    if len(some) >= FEWEST_GROUPS:
        chance = deviations(share, [pairs[place] for place in some], values.ratio)
        value[some] = pooled(stale[some], value[some], chance, Interval(low[some], high[some]))
    if values.ratio < 1 and not values.each_alone:
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    return Estimates(value, low, high, corrected)


def require_no_nan(one: Measure, values: pa.ChunkedArray) -> None:
    """Refuse what is not a number, which here is a row that is not there, and to Spark the largest value."""
    if pc.any(pc.is_nan(values)).as_py():
        raise CannotAnswer(f"{one.sql}, as some values are not a number (NaN)")


def _by_group(of: Integers, wanted: Any, number: int) -> Sequence[Integers]:
    """For each group the places of its wanted rows."""
    some = np.flatnonzero(wanted)
    order = some[np.argsort(of[some], kind="stable")]
    return np.split(order, np.searchsorted(of[order], np.arange(1, number)))[:number]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value
