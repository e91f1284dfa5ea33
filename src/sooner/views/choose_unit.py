"""By which columns to sample a view: its key, or a part of it by which sampling goes deeper (§12.6).

Rows that share a value are in a sample together. That is as fair as sampling rows one by one, but the rows of
a sample are then fewer draws: with μ rows a value on average and a variance of σ² between values, the size of
a sample varies by m(1−m)μ² + (1−m)σ² for each expected value. So a part of the key is taken only where it has
few rows a value and more of the tables can be sampled by it. Nor where some values have far more rows than
others: a sample has these or not, and if it has none, nothing in it tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sooner.storage.records import Table
from sooner.views.form import Form
from sooner.views.sampling import Sampled, sampled
from sooner.views.unit import Portion, Unit, unit_of

_MOST_ROWS = 16.0
# How many times as large the mean of squares of these numbers may be as the square of their mean: 1.25 with
# numbers from 1 to 7, as of the lines of an order, and 2 with those of an exponential law.
_MOST_UNEVEN = 3.0


@dataclass(frozen=True)
class Together:
    """How rows share values: so many values, and Σn and Σn² over them, of n rows each.

    >>> Together(2, 6, 18).are_even, Together(300, 2_091, 482_673).are_even
    (True, False)
    """

    values: float
    rows: float
    squares: float

    @property
    def are_even(self) -> bool:
        """Whether values have about as many rows each."""
        return self.values * self.squares <= _MOST_UNEVEN * self.rows**2

    @property
    def are_few(self) -> bool:
        """Whether they have few rows each, too."""
        return self.are_even and self.rows <= _MOST_ROWS * self.values


# How the rows of a table share a column's values.
Sharing: TypeAlias = Callable[[Table, str], Together]


def choose_unit(
    form: Form,
    types: Mapping[str, str],
    tables: Sequence[Table],
    sharing: Sharing,
    wanted: Sequence[str] = (),
) -> Unit | None:
    """What to sample a view by; ``None`` if no column of its key can be hashed.

    ``wanted`` are columns that the user chose. The salt is that of a scramble by the same column, where
    there is one: a sample of that table is then its first blocks.
    """
    if wanted:
        found = unit_of(wanted, types)
        return found and _salted(form, found, tables)
    key = form.key or ()
    whole = unit_of(key, types)
    known = {table.name.lower(): table for table in tables}
    best, most = whole, -1.0 if whole is None else _reached(form, whole, known)
    for name in key if len(key) > 1 else ():
        unit = unit_of((name,), types)
        if unit is None:
            continue
        reached = _reached(form, unit, known)
        if reached > most and _are_few(form, unit, known, sharing):
            best, most = unit, reached
    return best and _salted(form, best, tables)


def _reached(form: Form, unit: Unit, tables: Mapping[str, Table]) -> float:
    """The rows of tables that need not all be read."""
    where = _sampled(form, unit)
    return sum(float(tables[name].facts.rows or 1) for name in where.tables)


def _are_few(form: Form, unit: Unit, tables: Mapping[str, Table], sharing: Sharing) -> bool:
    """Whether rows of each table that share a value are few; those of the view are about as many."""
    return all(sharing(tables[name], column).are_few for name, (column,) in _sampled(form, unit).by)


def _sampled(form: Form, unit: Unit) -> Sampled:
    return sampled(form.plan, unit.columns, partial(unit.picks, Portion()))


def _salted(form: Form, unit: Unit, tables: Sequence[Table]) -> Unit:
    where = _sampled(form, unit)
    for table in tables:
        ways = {by for name, by in where.by if name == table.name.lower()}
        for way in ways:
            scramble = table.scramble_by(way)
            if scramble is not None:
                return Unit(unit.columns, unit.types, scramble.salt)
    return unit


def sample_size_variance(ratio: float, mean: float, variance: float) -> float:
    """How much the rows of a sample vary for each value that is expected in it (§12.6).

    >>> sample_size_variance(0.1, 1.0, 0.0)
    0.09000000000000001
    """
    return ratio * (1 - ratio) * mean**2 + (1 - ratio) * variance
