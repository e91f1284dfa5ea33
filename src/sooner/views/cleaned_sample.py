"""A cleaned sample of a stale view, as Spark reads it: the view, what the sample had, and what it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sooner.algebra.scalar import Scalar, column, to_sql
from sooner.engine.rows import stored_rows
from sooner.views.deltas import SIGN
from sooner.views.unit import HASH, Portion, is_one_of
from sooner.views.upkeep import Upkeep

# Tables that a question can be put to: the whole stale view, what a sample of it loses and gains, the sample
# as it was, and both of these together, which is the sample as it is.
WHOLE, CHANGES, BEFORE, SAMPLE = "__view_whole", "__view_changes", "__view_before", "__view_sample"


@dataclass(frozen=True)
class CleanedSample:
    """Of a view: where the changes of its sample are, the sample's share, and what is in it for certain."""

    spark: Any
    upkeep: Upkeep
    directory: str
    ratio: float
    certain: tuple[int, ...] = ()

    def frames(self, ratio: float | None = None) -> dict[str, Any]:
        """The tables by name; of a smaller share of the view than the sample's if it is given."""
        whole = stored_rows(self.spark, self.upkeep.table)
        before, changes = whole, self.upkeep.changes_in(self.directory)
        where = self.is_in(self.ratio if ratio is None else ratio)
        if where is not None:
            before, changes = (rows.where(to_sql(where)) for rows in (before, changes))
        both = before.selectExpr("*", f"1 AS {SIGN}").unionByName(changes)
        return {WHOLE: whole, CHANGES: changes, BEFORE: before, SAMPLE: both}

    def is_certain(self, yes: bool) -> Scalar | None:
        """Whether a row is in the sample for certain, or is not, as a condition; none if no row is."""
        if not self.certain:
            return None
        inside = is_one_of(column(HASH), self.certain)
        return inside if yes else exp.Not(this=inside)

    def is_in(self, ratio: float) -> Scalar | None:
        """Whether a row is in a sample of this share, as a condition; none if every row is."""
        chance, sure = Portion(high=ratio).stored, self.is_certain(True)
        if chance is None or sure is None:
            return chance
        return exp.Or(this=exp.Paren(this=chance), expression=sure)

    @property
    def is_uneven(self) -> bool:
        """Whether it is drawn by values of which some have far more rows than others."""
        return self.upkeep.definition.uneven and self.ratio < 1

    @property
    def as_of(self) -> Mapping[str, int]:
        """The versions of tables that it is of."""
        return {name: one.version for name, one in self.upkeep.reflects.items()}

    def method(self, corrected: Sequence[bool]) -> str:
        """How an answer came about, in words; ``corrected`` are the values by SVC+CORR."""
        share = f"a cleaned sample of {self.ratio:.2%}".replace(".00%", "%")
        if corrected and all(corrected):
            return f"the stale view, corrected by {share}"
        if corrected and not any(corrected):
            return share
        return f"the stale view, corrected by {share}, or that sample alone"
