"""Did constraints hold in the past? Which rows break them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from sooner.display import as_text, html_table, rich_table, show
from sooner.missing.bounds import require_constraints
from sooner.missing.constraint import Constraint, Range
from sooner.missing.space import condition_of, literal
from sooner.sql import quote

if TYPE_CHECKING:
    from sooner.frame import Frame

# Constraints that one query looks at: each is a few aggregates.
_AT_ONCE = 200


@dataclass(frozen=True)
class Checked:
    """What rows say about constraints: a line for each, and those that break one as a Frame.

    ``uncovered`` rows fulfil the condition of none: under the closed world there would be none.
    """

    table: pa.Table = field(repr=False)
    uncovered: int
    broken: Frame = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether every constraint held; rows that none speaks of are no matter of this."""
        return all(self.table.column("holds").to_pylist())

    def __str__(self) -> str:
        return as_text(rich_table(self.table, {}, self._caption))

    def show(self) -> None:
        """Print a line for each constraint."""
        show(rich_table(self.table, {}, self._caption))

    def _repr_html_(self) -> str:
        return html_table(self.table, {}, self._caption)

    @property
    def _caption(self) -> str:
        held = sum(self.table.column("holds").to_pylist())
        text = f"{held:,} of {self.table.num_rows:,} constraints hold"
        if self.uncovered:
            text += f" · {self.uncovered:,} rows are in none of them"
        return text


def check(constraints: Sequence[Constraint], rows: Frame) -> Checked:
    """Compare constraints with rows, such as those of last year: their number and their values.

    ``sooner.check(constraints, db.table("sales_2023")).broken.exact()`` are rows with other values.
    """
    require_constraints(constraints)
    found = []
    for start in range(0, len(constraints), _AT_ONCE):
        found += _counted(constraints[start : start + _AT_ONCE], rows)
    counts, breaking = zip(*found, strict=True)
    within = [
        one.rows[0] <= count <= (count if one.rows[1] is None else one.rows[1])
        for one, count in zip(constraints, counts, strict=True)
    ]
    lines = {
        "constraint": [one.label for one in constraints],
        "rows": counts,
        "fewest": [one.rows[0] for one in constraints],
        "most": pa.array([one.rows[1] for one in constraints], pa.int64()),
        "rows with other values": breaking,
        "holds": [not bad and ok for bad, ok in zip(breaking, within, strict=True)],
    }
    anywhere = " OR ".join(f"({_condition(one)})" for one in constraints)
    outside = rows.filter(f"NOT coalesce({anywhere}, FALSE)").agg(["count(*) AS n"])
    uncovered = outside.exact().to_arrow().column("n")[0].as_py()
    broken = " OR ".join(f"({_breaks(one)})" for one in constraints)
    return Checked(pa.table(lines), uncovered, rows.filter(broken))


def _counted(constraints: Sequence[Constraint], rows: Frame) -> list[tuple[int, int]]:
    """Of each constraint the rows that it is about, and those with other values."""
    items = []
    for n, one in enumerate(constraints):
        items.append(f"count_if({_condition(one)}) AS r{n}")
        items.append(f"count_if({_breaks(one)}) AS b{n}")
    found = rows.agg(items).exact().to_arrow().to_pylist()[0]
    return [(found[f"r{n}"], found[f"b{n}"]) for n in range(len(constraints))]


def _condition(one: Constraint) -> str:
    return "TRUE" if one.where is None else condition_of(one.where).sql("spark")


def _breaks(one: Constraint) -> str:
    """Rows that a constraint is about and whose values it rules out; null is ruled out too."""
    fits = " AND ".join(_fits(column, ends) for column, ends in one.values.items()) or "TRUE"
    return f"({_condition(one)}) AND NOT coalesce({fits}, FALSE)"


def _fits(column: str, ends: Range) -> str:
    low, high = ends
    parts = [f"{quote(column)} IS NOT NULL"]
    parts += [f"{quote(column)} >= {literal(low).sql('spark')}"] if low is not None else []
    parts += [f"{quote(column)} <= {literal(high).sql('spark')}"] if high is not None else []
    return " AND ".join(parts)
