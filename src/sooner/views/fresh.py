"""A question to a stale view, answered as if it were fresh: estimates of a cleaned sample as an Answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sooner.algebra import Filter, Relation
from sooner.algebra.scalar import Scalar, all_of, column, to_sql
from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.engine.rows import stored_rows
from sooner.engine.view_totals import (
    Counted,
    Part,
    aligned_values,
    selected_rows,
    view_totals,
)
from sooner.errors import CannotAnswer
from sooner.statistics.arrays import Floats
from sooner.views.cells import Cells, typed
from sooner.views.deltas import SIGN
from sooner.views.estimates import (
    FEWEST,
    HEAVIEST,
    POWERS,
    Drawn,
    Estimate,
    Estimates,
    Estimator,
    estimates,
    heavier,
    require_estimator,
    rows_each,
)
from sooner.views.extremes import extreme_estimate
from sooner.views.quantile_estimates import quantile_estimate
from sooner.views.question import Measure, Question, carried, carrying
from sooner.views.unit import HASH, Portion, is_one_of
from sooner.views.upkeep import Upkeep

_WHOLE, _CHANGES, _SAMPLE = "__view_whole", "__view_changes", "__view_sample"
# Values that are held here for percentiles and extremes; of more a smaller share of the hash is taken.
_MOST_VALUES = 400_000
# An answer of which more than so many rows would be "?" is none.
_MOST = 0.5

_HEAVY = (
    "?: a few values are so much larger than the others that a sample misses them; "
    "outliers={…} keeps them in"
)
_FEW = "?: too few changed rows in the sample to say how far off a value may be"


@dataclass(frozen=True)
class Sample:
    """A cleaned sample: where its changes are, its share of the view, and what is in it for certain."""

    directory: str
    ratio: float
    certain: tuple[int, ...] = ()


class Fresh:
    """Answers to questions about one view with one cleaned sample of it."""

    def __init__(
        self, spark: Any, upkeep: Upkeep, sample: Sample, confidence: float, estimator: Estimator
    ) -> None:
        require_estimator(estimator)
        self._spark = spark
        self._upkeep = upkeep
        self._sample = sample
        self._confidence = confidence
        self._estimator = estimator
        self._details: dict[str, Any] = {"sample": sample.ratio}
        self._heavy = False

    def answer(self, question: Question, schema: pa.Schema, *, tells: bool = False) -> Answer:
        """The answer to an aggregate question, in the types of the exact one.

        With ``tells`` it raises :class:`CannotAnswer` where the sample says nothing of most groups.
        """
        smooth = [one for one in question.measures if one.function is not None]
        counted = [Counted("1.0D", "0.0D"), *(one.counted for one in smooth)]
        plain = {
            f"plain{place}": f"CAST({one.sql} AS DOUBLE)"
            for place, one in enumerate(question.measures)
            if one.function is None
        }
        totals = self._totals(question, counted, plain)
        if tells and question.keys:
            self._require_rows(totals)
        cells = Cells(totals.num_rows)
        for place, key in enumerate(question.keys):
            cells.values[key] = totals.column(place).combine_chunks()
        rows = self._estimated(totals, 0, "count")
        for place, one in enumerate(smooth, 1):
            assert one.function is not None
            cells.put(one.name, self._estimated(totals, place, one.function))
        if plain:
            self._values(question, totals, cells)
        order = (*question.keys, *(one.name for one in question.measures))
        cells.values = {name: cells.values[name] for name in order}
        if question.keys:
            cells.take(np.flatnonzero(~(rows.value < 0.5)))
        for node in reversed(question.above):
            cells.apply(node)
        return self._finished(cells, schema)

    def selection(self, question: Question, schema: pa.Schema) -> Answer:
        """The rows that a condition picks, corrected as far as the sample goes (§12.1.2)."""
        key = self._upkeep.table.key
        frames = self._frames()
        found = selected_rows(
            self._spark,
            carrying(question.rows, _WHOLE, key),
            carrying(question.rows, _CHANGES, (*key, HASH, SIGN)),
            question.rows.names,
            [carried(name) for name in key],
            HASH,
            SIGN,
            frames,
        )
        ratio = self._sample.ratio
        counts = {}
        for name, sums in found.counts.items():
            number, total, squares, fourth = sums
            powers = np.zeros((len(POWERS), 1))
            powers[0], powers[3] = squares, fourth
            drawn = Drawn(np.array([[total], [0.0], [0.0]]), powers, np.array([number]))
            nothing = np.zeros((3, 1)), drawn
            one = estimates("count", nothing, nothing, ratio, self._confidence, "aqp")
            counts[name] = tuple(
                None if np.isnan(v[0]) else max(0.0, float(v[0]))
                for v in (one.value, one.low, one.high)
            )
        notes = [_told(name, *counts[name]) for name in ("updated", "added", "deleted")]
        arrays = [
            values.cast(field.type)
            for values, field in zip(found.rows.columns, schema, strict=True)
        ]
        return Answer(
            pa.Table.from_arrays(arrays, schema=schema),
            _method(ratio, [True]),
            confidence=self._confidence,
            progress=ratio,
            final=ratio >= 1,
            as_of={name: one.version for name, one in self._upkeep.reflects.items()},
            details={**self._details, "counts": counts, "notes": [] if ratio >= 1 else notes},
        )

    def _require_rows(self, totals: pa.Table) -> None:
        sampled = np.nan_to_num(_floats(totals.column("aqp_0_c")))
        if self._sample.ratio < 1 and np.mean(sampled < FEWEST) > _MOST:
            raise CannotAnswer(f"most of these groups have fewer than {FEWEST} rows in the sample")

    def _frames(self, high: float | None = None) -> dict[str, Any]:
        """The view, a sample of it as it was, and what that loses and gains."""
        upkeep, ratio = self._upkeep, self._sample.ratio if high is None else high
        whole = stored_rows(self._spark, upkeep.table)
        where = _in_sample(ratio, self._sample.certain)
        sample = whole if where is None else whole.where(to_sql(where))
        changes = upkeep.changes_in(self._sample.directory)
        if where is not None:
            changes = changes.where(to_sql(where))
        both = sample.selectExpr("*", f"1 AS {SIGN}").unionByName(changes)
        return {_WHOLE: whole, _CHANGES: changes, _SAMPLE: both}

    def _totals(
        self, question: Question, counted: Sequence[Counted], plain: Mapping[str, str]
    ) -> pa.Table:
        certain = self._sample.certain
        ratio = self._sample.ratio

        def rows(table: str, where: Scalar | None) -> Relation:
            found = carrying(question.rows, table, (HASH, SIGN))
            return found if where is None else Filter(found, where)

        by_chance = all_of(
            [
                one
                for one in (Portion(high=ratio).stored, _is_certain(certain, False))
                if one is not None
            ]
        )
        parts = [
            Part("whole", carrying(question.rows, _WHOLE, ()), "whole"),
            Part("corr", rows(_CHANGES, by_chance), "drawn"),
            Part("aqp", rows(_SAMPLE, by_chance), "drawn"),
        ]
        if certain:
            sure = _is_certain(certain, True)
            parts.append(Part("corr_sure", rows(_CHANGES, sure), "signed"))
            parts.append(Part("aqp_sure", rows(_SAMPLE, sure), "signed"))
        return view_totals(
            self._spark,
            question.keys,
            parts,
            counted,
            plain,
            POWERS,
            HASH,
            SIGN,
            self._frames(),
        )

    def _estimated(self, totals: pa.Table, place: int, function: Any) -> Estimates:
        def numbers(part: str, names: Sequence[str]) -> Floats:
            if f"{part}_{place}_c" not in totals.column_names:
                return np.zeros((len(names), totals.num_rows))
            found = [_floats(totals.column(f"{part}_{place}_{n}")) for n in names]
            return np.nan_to_num(np.array(found))

        def drawn(part: str) -> Drawn:
            powers = numbers(part, [f"{a}{b}" for a, b in POWERS])
            return Drawn(numbers(part, "csq"), powers, numbers(part, ["n"])[0])

        stale = numbers("whole", "csq")
        corr, aqp = drawn("corr"), drawn("aqp")
        missing = heavier(stale[2], numbers("aqp_sure", "q")[0], aqp, self._sample.ratio)
        self._heavy |= bool((missing > HEAVIEST).any())
        return estimates(
            function,
            (stale + numbers("corr_sure", "csq"), corr),
            (numbers("aqp_sure", "csq"), aqp),
            self._sample.ratio,
            self._confidence,
            self._estimator,
            missing,
            rows_each(stale[0], aqp.totals[0] - corr.totals[0]),
        )

    def _values(self, question: Question, totals: pa.Table, cells: Cells) -> None:
        """Percentiles and extremes, which need the sampled values themselves."""
        upkeep = self._upkeep
        expected = (upkeep.table.facts.rows or 0) * self._sample.ratio
        share = min(1.0, _MOST_VALUES / max(1.0, expected))
        ratio = self._sample.ratio * share
        key = upkeep.table.key
        asked = {
            f"v{place}": one for place, one in enumerate(question.measures) if one.function is None
        }
        frames = self._frames(ratio)
        kept = stored_rows(self._spark, upkeep.table)
        where = _in_sample(ratio, self._sample.certain)
        frames["__view_old"] = kept if where is None else kept.where(to_sql(where))
        found = aligned_values(
            self._spark,
            question.keys,
            {
                "old": carrying(question.rows, "__view_old", (*key, HASH)),
                "changed": carrying(question.rows, _CHANGES, (*key, HASH, SIGN)),
            },
            [*(carried(name) for name in key), HASH],
            {name: one.value_sql for name, one in asked.items()},
            SIGN,
            frames,
        )
        parts = _by_group(totals, found, question.keys)
        # Outliers are not drawn: they have no place among values of which each stands for many.
        hashes = np.asarray(found.column(HASH).to_numpy(), np.int64)
        drawn = Portion(high=ratio).holds_each(hashes)
        alone = upkeep.unit is not None and set(upkeep.unit.columns) == set(key)
        for name, one in asked.items():
            stale = _floats(totals.column(f"whole_plain{name[1:]}"))
            old, new = (_floats(found.column(f"{name}_{end}")) for end in ("old", "new"))
            results = []
            self._probabilities: list[float] = []
            for group, places in enumerate(parts):
                some = places if one.extreme is not None else places[drawn[places]]
                results.append(
                    self._of_values(one, stale[group], old[some], new[some], ratio, alone)
                )
            value, low, high = (
                np.array([_or_nan(getattr(r, end)) for r in results])
                for end in ("value", "low", "high")
            )
            by = np.array([r.by == "corr" for r in results])
            cells.put(one.name, Estimates(value, low, high, by))
            if one.extreme is not None:
                cells.beyond[one.name] = np.array(self._probabilities)

    def _of_values(
        self, one: Measure, stale: float, old: Floats, new: Floats, ratio: float, alone: bool
    ) -> Estimate:
        known = None if np.isnan(stale) else float(stale)
        if one.extreme is not None:
            found = extreme_estimate(one.extreme, known, old, new)
            self._probabilities.append(_or_nan(found.probability))
            return Estimate(found.value, None, None, "corr")
        assert one.share is not None
        result = quantile_estimate(
            one.share, known, old, new, ratio, self._confidence, self._estimator
        )
        # Rows that are drawn together are fewer draws than the bootstrap takes them for.
        return result if alone or ratio >= 1 else Estimate(result.value, None, None, result.by)

    def _finished(self, cells: Cells, schema: pa.Schema) -> Answer:
        arrays, uncertain = [], {}
        whole = self._sample.ratio >= 1
        for field, (name, values) in zip(schema, cells.values.items(), strict=True):
            if name not in cells.ends:
                arrays.append(pa.chunked_array([pa.array(values).cast(field.type)]))
                continue
            low, high = cells.ends[name]
            arrays.append(pa.chunked_array([typed(np.asarray(values), field.type)]))
            status = tuple(
                Status.UNKNOWN if np.isnan(end) else Status.EXACT if whole else Status.ESTIMATE
                for end in low
            )
            ends = [pa.chunked_array([pa.array(end, from_pandas=True)]) for end in (low, high)]
            uncertain[field.name] = Uncertainty(Bounds(*ends), status)
        by = [bool(one) for each in cells.corrected.values() for one in each]
        unknown = any(
            Status.UNKNOWN in one.status
            for name, one in uncertain.items()
            if name not in cells.beyond
        )
        notes = [_HEAVY if self._heavy else _FEW] if unknown and not whole else []
        if cells.beyond and not whole:
            self._details["cantelli"] = {name: list(all_) for name, all_ in cells.beyond.items()}
            notes += _beyond(cells)
        self._details["notes"] = notes
        return Answer(
            pa.Table.from_arrays(arrays, schema=schema),
            _method(self._sample.ratio, by),
            confidence=self._confidence,
            progress=self._sample.ratio,
            final=whole,
            as_of={name: one.version for name, one in self._upkeep.reflects.items()},
            details=self._details,
            uncertain={} if whole else uncertain,
        )


def _method(ratio: float, corrected: Sequence[bool]) -> str:
    share = f"a cleaned sample of {ratio:.2%}".replace(".00%", "%")
    if corrected and all(corrected):
        return f"the stale view, corrected by {share}"
    if corrected and not any(corrected):
        return share
    return f"the stale view, corrected by {share}, or that sample alone"


def _beyond(cells: Cells) -> list[str]:
    """In words, for an answer of one row: how likely a row is beyond an extreme (§12.1.1)."""
    if cells.rows != 1:
        return []
    return [
        f"{name}: a row of the view picked at random is beyond it with a probability of at most {all_[0]:.2g}"
        for name, all_ in cells.beyond.items()
        if not np.isnan(all_[0])
    ]


def _told(name: str, value: float | None, low: float | None, high: float | None) -> str:
    told = {
        "updated": "rows have other values by now",
        "added": "rows have come that are picked",
        "deleted": "rows are no longer picked",
    }[name]
    if low is None or high is None:
        return f"about {value or 0:,.0f} {told}, those of the sample already put right"
    return f"{low:,.0f} to {high:,.0f} {told}, those of the sample already put right"


def _in_sample(ratio: float, certain: Sequence[int]) -> Scalar | None:
    chance = Portion(high=ratio).stored
    if chance is None or not certain:
        return chance
    sure = _is_certain(certain, True)
    assert sure is not None
    return exp.Or(this=exp.Paren(this=chance), expression=sure)


def _is_certain(certain: Sequence[int], yes: bool) -> Scalar | None:
    if not certain:
        return None
    inside = is_one_of(column(HASH), certain)
    return inside if yes else exp.Not(this=inside)


def _floats(values: pa.ChunkedArray) -> Floats:
    return np.asarray(values.cast(pa.float64()).to_numpy(), np.float64)


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _by_group(totals: pa.Table, found: pa.Table, keys: Sequence[str]) -> list[Any]:
    """For each row of the totals, the places of its values."""
    if not keys:
        return [np.arange(found.num_rows)]
    groups: dict[tuple[Any, ...], list[int]] = {}
    columns = [found.column(place).to_pylist() for place in range(len(keys))]
    for place, key in enumerate(zip(*columns, strict=True)):
        groups.setdefault(key, []).append(place)
    wanted = zip(*(totals.column(place).to_pylist() for place in range(len(keys))), strict=True)
    return [np.array(groups.get(key, []), np.int64) for key in wanted]
