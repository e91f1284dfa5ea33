"""By which columns to sample a view: its key, or a part of it by which sampling goes deeper (§12.6).

Rows that share a value are in a sample together. That is as fair as sampling rows one by one, but the rows of
a sample are then fewer draws: with μ rows a value on average and a variance of σ² between values, the size of
a sample varies by m(1−m)μ² + (1−m)σ² for each expected value. So a part of the key is taken only where it has
few rows a value and more of the tables can be sampled by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from sooner.storage.records import Table
from sooner.views.form import Form
from sooner.views.sampling import Sampled, sampled
from sooner.views.unit import Portion, Unit, unit_of

_MOST_ROWS = 16.0


# How many unlike values a column of a table has, about.
Distinct: TypeAlias = Callable[[Table, str], float]


def choose_unit(
    form: Form,
    types: Mapping[str, str],
    tables: Sequence[Table],
    distinct: Distinct,
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
        if reached > most and _rows_each(form, unit, known, distinct) <= _MOST_ROWS:
            best, most = unit, reached
    return best and _salted(form, best, tables)


def _reached(form: Form, unit: Unit, tables: Mapping[str, Table]) -> float:
    """The rows of tables that need not all be read."""
    where = _sampled(form, unit)
    return sum(float(tables[name].facts.rows or 1) for name in where.tables)


def _rows_each(form: Form, unit: Unit, tables: Mapping[str, Table], distinct: Distinct) -> float:
    """Rows for each value, in the table that has most: those of the view are about as many."""
    found = 0.0
    for name, (column,) in _sampled(form, unit).by:
        rows = float(tables[name].facts.rows or 0)
        found = max(found, rows / max(1.0, distinct(tables[name], column)))
    return found


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
