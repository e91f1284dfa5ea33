"""The outlier index: values so large that a sample must not miss them (§6).

The user names a column of a table that is sampled itself, so that the hash of a row says which rows of the
view it goes into. All rows of the view that share a hash with an outlier are taken for certain, in the stale
view and in the fresh one: that is Definition 5, pushed up through every operator at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sooner.algebra.scalar import column, to_sql
from sooner.algebra.schema import Column
from sooner.engine.change_rows import change_rows
from sooner.engine.rows import table_rows
from sooner.engine.view_rows import outlier_hashes, threshold
from sooner.errors import InvalidArgument, NotSupported, UnknownColumn, nearest
from sooner.storage.records import Table
from sooner.views.definition import Definition, Outliers
from sooner.views.deltas import SIGN
from sooner.views.form import Form
from sooner.views.sampling import sampled
from sooner.views.unit import Portion, Unit
from sooner.views.upkeep import Upkeep

_MOST = 10_000
_DEVIATIONS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:sd|σ|standard deviations?)\s*")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def chosen_outliers(
    wanted: Mapping[str, int | str] | None, form: Form, unit: Unit | None, tables: Sequence[Table]
) -> tuple[Outliers, ...]:
    """What a user asked for, each with the table that has the column."""
    found = []
    for name, how in (wanted or {}).items():
        table, spelled = _column(name, tables)
        if unit is None:
            raise NotSupported("Outliers are kept for a sample, and this view has none.")
        if outlier_way(form, unit, table.name.lower()) is None:
            raise NotSupported(
                f"outliers={name!r}: {table.name} is not sampled by {', '.join(unit.columns)}, so that its "
                "rows do not say which rows of the view they go into. Give sample_by=[…] with a column of it."
            )
        found.append(_how(name, how, table.name, spelled))
    return tuple(found)


def _column(name: str, tables: Sequence[Table]) -> tuple[Table, str]:
    known = []
    for table in tables:
        for one in table.columns:
            known.append(one.name)
            if one.name.lower() == name.lower():
                if not _is_number(one):
                    raise InvalidArgument(f"outliers={name!r}: a column of numbers is needed.")
                return table, one.name
    raise UnknownColumn(f"No table of the view has a column {name!r}.{nearest(name, known)}")


def _is_number(one: Column) -> bool:
    return str(one.type).startswith(_NUMBERS)


def _how(name: str, how: int | str, table: str, spelled: str) -> Outliers:
    if isinstance(how, int) and not isinstance(how, bool) and 1 <= how <= _MOST:
        return Outliers(table, spelled, top=how)
    found = _DEVIATIONS.fullmatch(how) if isinstance(how, str) else None
    if found is None:
        raise InvalidArgument(
            f"outliers={{{name!r}: {how!r}}}: give how many of the largest, up to {_MOST:,}, or "
            'a distance from the mean such as "3 sd".'
        )
    return Outliers(table, spelled, deviations=float(found[1]))


def outlier_way(form: Form, unit: Unit | None, table: str) -> str | None:
    """The hash of a view's rows, of the columns of a table; ``None`` if these do not tell it."""
    if unit is None:
        return None
    where = sampled(form.plan, unit.columns, lambda scalars: unit.picks(Portion(), scalars))
    ways = {by for name, by in where.by if name == table}
    if len(ways) != 1:
        return None
    (way,) = ways
    return to_sql(unit.hash([column(name) for name in way]))


def with_outliers(
    spark: Any, definition: Definition, form: Form, tables: Mapping[str, Table]
) -> Definition:
    """The definition with thresholds for the tables as they are, and the hashes of what is beyond them."""
    if not definition.outliers:
        return definition
    known, hashes = [], set[int]()
    for one in definition.outliers:
        table = tables[one.table.lower()]
        if not any(_is_number(own) for own in table.columns if own.name == one.column):
            known.append(replace(one, threshold=None))  # it was registered anew, without the column
            continue
        rows = table_rows(spark, table)
        least = threshold(rows, one.column, one.top, one.deviations)
        known.append(replace(one, threshold=least))
        way = outlier_way(form, definition.unit, one.table.lower())
        if least is not None and way is not None:
            room = _MOST - len(hashes)
            hashes |= set(outlier_hashes(rows, one.column, least, way, max(0, room)))
    return replace(definition, outliers=tuple(known), certain=tuple(sorted(hashes)))


def outliers_now(upkeep: Upkeep) -> tuple[int, ...]:
    """The hashes of outliers: those there were, and those among the rows that have changed since."""
    found = set(upkeep.definition.certain)
    for one in upkeep.definition.outliers:
        name = one.table.lower()
        way = outlier_way(upkeep.form, upkeep.definition.unit, name)
        if one.threshold is None or way is None:
            continue
        rows = change_rows(upkeep.spark, upkeep.before[name], upkeep.now[name], SIGN)
        room = _MOST - len(found)
        with ExitStack() as stack:
            if name in upkeep.below:  # a view that is stale: it would have other rows
                rows = rows.unionByName(stack.enter_context(upkeep.below[name].shown()))
            found |= set(outlier_hashes(rows, one.column, one.threshold, way, max(0, room)))
    return tuple(sorted(found))
