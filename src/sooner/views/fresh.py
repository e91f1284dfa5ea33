"""A question to a stale view, answered as if it were fresh: estimates of a cleaned sample as an Answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sooner.algebra import Filter, Relation
from sooner.algebra.scalar import Scalar, all_of
from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.engine.view_totals import (
    Counted,
    Part,
    view_totals,
)
from sooner.errors import CannotAnswer
from sooner.statistics.arrays import Booleans, Floats, in_type
from sooner.views.cells import Cells, floats
from sooner.views.cleaned_sample import CHANGES, SAMPLE, WHOLE, CleanedSample
from sooner.views.deltas import SIGN
from sooner.views.estimates import (
    FEWEST,
    HEAVIEST,
    Drawn,
    Estimates,
    Estimator,
    Function,
    estimates,
    heavier,
    is_spread,
    lighter_came,
    lighter_changes,
    powers_of,
    require_estimator,
    rows_each,
)
from sooner.views.fresh_values import fresh_values, require_no_nan
from sooner.views.linearized import linearized
from sooner.views.question import Measure, Question, carrying
from sooner.views.unit import HASH, Portion

# An answer of which more than so many rows would be "?" is none.
_MOST = 0.5

_HEAVY = (
    "?: a few values are so much larger than the others that a sample misses them; "
    "outliers={…} keeps them in"
)
_UNEVEN = (
    "?: some values of {} have far more rows than others, and a sample has all rows of one or none; "
    "with its whole key as sample_by they are drawn one by one"
)
_CHOSEN = "?: LIMIT takes the first rows by estimates; in truth others may be the first"
_BENT = (
    "?: a calculation that may be divided by next to nothing, or of which all sampled rows say the same, "
    "tells nothing of how far off it is"
)
_FEW = "?: too few changed rows in the sample to say how far off a value may be"


class Fresh:
    """Answers to questions about one view with one cleaned sample of it."""

    def __init__(self, sample: CleanedSample, confidence: float, estimator: Estimator) -> None:
        require_estimator(estimator)
        self._sample = sample
        self._confidence = confidence
        self._estimator = estimator
        self._details: dict[str, Any] = {"sample": sample.ratio}
        self._heavy = False
        self._bent = False
        self._unseen = 0.0
        self._gone = 0

    def answer(self, question: Question, schema: pa.Schema, *, tells: bool = False) -> Answer:
        """The answer to an aggregate question, in the types of the exact one.

        With ``tells`` it raises :class:`CannotAnswer` where the sample says nothing of most groups.
        """
        smooth = [one for one in question.measures if one.function is not None]
        counted = [Counted("1.0D"), *(one.counted for one in smooth)]
        plain = {
            f"plain{place}": f"CAST({one.sql} AS DOUBLE)"
            for place, one in enumerate(question.measures)
            if one.extreme is not None
        }
        totals = self._totals(question, counted, plain)
        if tells and question.keys:
            self._require_rows(totals)
        cells = Cells(totals.num_rows)
        for place, key in enumerate(question.keys):
            cells.values[key] = totals.column(place).combine_chunks()
        rows = self._estimated(totals, 0, "count")
        self._unseen = self._unseen_groups(totals) if question.keys else 0.0
        for place, one in enumerate(smooth, 1):
            assert one.function is not None
            cells.put(one.name, self._estimated(totals, place, one.function))
        self._put_linearized(question, smooth, totals, cells)
        if len(smooth) < len(question.measures):
            self._put_values(question, totals, cells)
        for calculation in question.calculations:
            if calculation.turns:
                cells.turn(calculation)
        order = (*question.keys, *(one.name for one in question.measures))
        order += tuple(one.name for one in question.calculations)
        cells.values = {name: cells.values[name] for name in order}
        if question.keys:
            left = ~(rows.value < 0.5)
            self._gone = int((~left & _has_rows_unseen(totals)).sum())
            cells.take(np.flatnonzero(left))
        for node in reversed(question.above):
            cells.apply(node)
        return self._finished(cells, schema)

    def _require_rows(self, totals: pa.Table) -> None:
        draws = np.nan_to_num(floats(totals.column("aqp_0_n")))
        enough = (draws >= FEWEST).sum()
        if self._sample.ratio < 1 and enough < max(1.0, (1 - _MOST) * len(draws)):
            raise CannotAnswer(f"most of these groups have fewer than {FEWEST} rows in the sample")

    def _put_linearized(
        self, question: Question, smooth: Sequence[Measure], totals: pa.Table, cells: Cells
    ) -> None:
        found = linearized(
            [one for one in question.calculations if not one.turns],
            {one.name: (place, one) for place, one in enumerate(smooth, 1)},
            totals.select(range(len(question.keys))),
            totals,
            lambda counted, constants: self._totals(question, counted, {}, constants),
            self._estimated,
            self._estimator,
            self._confidence,
        )
        for one in question.calculations:
            if one.name in found:
                cells.put(one.name, found[one.name])
                known = [~np.isnan(cells.ends[name][0]) for name in one.of]
                self._bent |= bool((np.isnan(found[one.name].low) & np.all(known, axis=0)).any())

    def _totals(
        self,
        question: Question,
        counted: Sequence[Counted],
        plain: Mapping[str, str],
        constants: pa.Table | None = None,
    ) -> pa.Table:
        sample = self._sample

        def rows(table: str, where: Scalar | None) -> Relation:
            found = carrying(question.rows, table, (HASH, SIGN))
            return found if where is None else Filter(found, where)

        by_chance = all_of(
            [
                one
                for one in (Portion(high=sample.ratio).stored, sample.is_certain(False))
                if one is not None
            ]
        )
        parts = [
            Part("whole", carrying(question.rows, WHOLE, ()), "whole"),
            Part("corr", rows(CHANGES, by_chance), "drawn"),
            Part("aqp", rows(SAMPLE, by_chance), "drawn"),
        ]
        sure = sample.is_certain(True)
        if sure is not None:
            parts.append(Part("corr_sure", rows(CHANGES, sure), "signed"))
            parts.append(Part("aqp_sure", rows(SAMPLE, sure), "signed"))
        return view_totals(
            sample.spark,
            question.keys,
            parts,
            counted,
            plain,
            powers_of,
            HASH,
            SIGN,
            sample.frames(),
            constants,
        )

    def _estimated(
        self, totals: pa.Table, place: int, function: Function, estimator: Estimator | None = None
    ) -> Estimates:
        spread = is_spread(function)
        letters = Counted("", "", spread).totals

        def numbers(part: str, names: Sequence[str]) -> Floats:
            if f"{part}_{place}_c" not in totals.column_names:
                return np.zeros((len(names), totals.num_rows))
            found = [totals.column(f"{part}_{place}_{n}") for n in names]
            # A part that has no row of a group adds nothing to it; what is not a number stays so.
            return np.array([floats(one.cast(pa.float64()).fill_null(0.0)) for one in found])

        def drawn(part: str) -> Drawn:
            powers = powers_of(spread)
            sums = numbers(part, ["".join(map(str, power)) for power in powers])
            (number,) = numbers(part, ["n"])
            return Drawn(numbers(part, letters), dict(zip(powers, sums, strict=True)), number)

        stale, corr, aqp = numbers("whole", letters), drawn("corr"), drawn("aqp")
        changed, certain = numbers("corr_sure", letters), numbers("aqp_sure", letters)
        missing = heavier(stale, certain, aqp, self._sample.ratio)
        lighter, by_chance = None, stale - (certain - changed)
        if spread:
            lighter = lighter_changes(by_chance, *numbers("corr", "ka"))
        elif function != "count":
            lighter = lighter_came(function, by_chance, corr)
        self._heavy |= bool(((missing > HEAVIEST) & (aqp.number >= FEWEST)).any())
        found = estimates(
            function,
            (stale + changed, corr),
            (certain, aqp),
            self._sample.ratio,
            self._confidence,
            estimator or self._estimator,
            missing,
            lighter,
            rows_each(by_chance[0], aqp.totals[0] - corr.totals[0], self._sample.ratio),
        )
        found = _possible(found, function, certain[0] + aqp.totals[0])
        if not self._sample.is_uneven:
            return found
        nothing = np.full_like(found.value, np.nan)
        return replace(found, low=nothing, high=nothing)

    def _unseen_groups(self, totals: pa.Table) -> float:
        """About how many groups came of which the sample has no row.

        Of a new group of one draw it has one with the sample's share, so that for each it has so there are
        (1−m)/m that it has not.
        """
        new = np.nan_to_num(floats(totals.column("whole_0_c"))) == 0
        once = np.nan_to_num(floats(totals.column("aqp_0_n"))) == 1
        return float((new & once).sum()) * (1 / self._sample.ratio - 1)

    def _put_values(self, question: Question, totals: pa.Table, cells: Cells) -> None:
        stale = {}
        for place, asked in enumerate(question.measures):
            if asked.extreme is not None:
                whole = totals.column(f"whole_plain{place}")
                require_no_nan(asked, whole)
                stale[asked.name] = floats(whole)
        groups = totals.select(range(len(question.keys)))
        found = fresh_values(
            question, self._sample, groups, stale, self._confidence, self._estimator
        )
        for name, one in found.items():
            cells.put(name, one.estimates)
            if one.beyond is not None:
                cells.beyond[name] = one.beyond

    def _finished(self, cells: Cells, schema: pa.Schema) -> Answer:
        arrays, uncertain = [], {}
        whole = self._sample.ratio >= 1
        if cells.chosen and not whole:
            cells.forget_ends()
        for field, (name, values) in zip(schema, cells.values.items(), strict=True):
            if name not in cells.ends:
                arrays.append(pa.chunked_array([pa.array(values).cast(field.type)]))
                if cells.chosen:
                    nothing = pa.chunked_array([pa.nulls(cells.rows, field.type)])
                    chosen = (Status.SELECTED,) * cells.rows
                    uncertain[field.name] = Uncertainty(Bounds(nothing, nothing), chosen)
                continue
            low, high = cells.ends[name]
            arrays.append(pa.chunked_array([in_type(np.asarray(values), field.type)]))
            no_end = Status.SELECTED if cells.chosen else Status.UNKNOWN
            status = tuple(no_end if np.isnan(end) else Status.ESTIMATE for end in low)
            ends = [pa.chunked_array([pa.array(end, from_pandas=True)]) for end in (low, high)]
            uncertain[field.name] = Uncertainty(Bounds(*ends), status)
        by = [bool(one) for each in cells.corrected.values() for one in each]
        shown = dict(zip(cells.values, schema.names, strict=True))
        beyond = {shown[name]: list(all_) for name, all_ in cells.beyond.items()}
        unknown = any(
            Status.UNKNOWN in one.status for name, one in uncertain.items() if name not in beyond
        )
        notes = [self._why_unknown] if unknown and not whole else []
        if cells.chosen and not whole:
            notes.append(_CHOSEN)
        if beyond and not whole:
            self._details["cantelli"] = beyond
            notes += _beyond(beyond)
        if self._unseen >= 1:
            notes.append(
                f"about {self._unseen:,.0f} more groups came, of which the sample has no row"
            )
        if self._gone:
            notes.append(
                f"{self._gone:,} more groups may have rows: all that the sample had of them are gone"
            )
        self._details["notes"] = notes
        return Answer(
            pa.Table.from_arrays(arrays, schema=schema),
            self._sample.method(by),
            confidence=self._confidence,
            progress=self._sample.ratio,
            final=whole,
            as_of=self._sample.as_of,
            details=self._details,
            uncertain={} if whole else uncertain,
        )

    @property
    def _why_unknown(self) -> str:
        unit = self._sample.upkeep.unit
        if self._sample.is_uneven and unit is not None:
            return _UNEVEN.format(", ".join(unit.columns))
        return _HEAVY if self._heavy else _BENT if self._bent else _FEW


def _has_rows_unseen(totals: pa.Table) -> Booleans:
    """By group, whether the stale view has more rows than the sample knows to be gone."""
    parts = {"whole_0_c", "corr_0_c", "corr_sure_0_c"} & set(totals.column_names)
    left = sum(np.nan_to_num(floats(totals.column(part))) for part in parts)
    return np.asarray(left >= 0.5)


def _possible(found: Estimates, function: Function, seen: Floats) -> Estimates:
    """Estimates without what cannot be: fewer rows than were ``seen``, or a spread below nothing."""
    least = seen if function == "count" else np.zeros_like(seen) if is_spread(function) else None
    if least is None:
        return found
    ends = (np.maximum(end, least) for end in (found.value, found.low, found.high))
    value, low, high = ends
    return replace(found, value=value, low=low, high=high)


def _beyond(probabilities: Mapping[str, Sequence[float]]) -> list[str]:
    """In words, for an answer of one row: how likely a row is beyond an extreme (§12.1.1)."""
    return [
        f"{name}: a row of the view picked at random is beyond it with a probability of at most {all_[0]:.2g}"
        for name, all_ in probabilities.items()
        if len(all_) == 1 and not np.isnan(all_[0])
    ]
