"""By which columns to sample a view: its key, or a part of it by which sampling goes deeper (§12.6).

Rows that share a value are in a sample together. That is as fair as sampling rows one by one, but the rows of
a sample are then fewer draws: with μ rows a value on average and a variance of σ² between values, the size of
a sample varies by m(1−m)μ² + (1−m)σ² for each expected value. So a part of the key is taken only where it has
few rows a value and more of the tables can be sampled by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sooner.algebra import Aggregate
from sooner.analysis.cardinality import estimate
from sooner.analysis.facts import TableInfo, table_info
from sooner.storage.records import Table
from sooner.views.form import Form
from sooner.views.sampling import sampled
from sooner.views.unit import Unit, unit_of

_MOST_ROWS = 16.0


@dataclass(frozen=True)
class _Candidate:
    unit: Unit
    reached: float
    rows_each: float


def choose_unit(
    form: Form,
    types: Mapping[str, str],
    tables: Sequence[Table],
    infos: Mapping[str, TableInfo],
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
    parts = [(name,) for name in key] if len(key) > 1 else []
    candidates = []
    for names in (key, *parts):
        unit = unit_of(names, types)
        if unit is not None:
            candidates.append(_candidate(form, unit, infos))
    usable = [one for one in candidates if one.rows_each <= _MOST_ROWS] or candidates[:1]
    if not usable:
        return None
    # The first of equals is the key itself, whose rows are draws of their own.
    best = max(usable, key=lambda one: one.reached)
    return _salted(form, best.unit, tables)


def _candidate(form: Form, unit: Unit, infos: Mapping[str, TableInfo]) -> _Candidate:
    where = sampled(form.plan, unit.columns, partial(unit.between, 0.0, 0.5))
    reached = sum(table_info(infos, name).facts.rows or 1.0 for name in where.tables)
    values = estimate(Aggregate(form.plan, unit.columns), infos).rows
    return _Candidate(unit, reached, estimate(form.plan, infos).rows / max(1.0, values))


def _salted(form: Form, unit: Unit, tables: Sequence[Table]) -> Unit:
    where = sampled(form.plan, unit.columns, partial(unit.between, 0.0, 0.5))
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
