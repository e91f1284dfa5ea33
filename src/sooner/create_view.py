"""Making a new view of a query: what it may hold, what it is sampled by, and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sooner.engine.jobs import job_group
from sooner.engine.rows import table_rows
from sooner.engine.session import zone_name
from sooner.engine.statements import is_deterministic
from sooner.engine.statistics import rows_together
from sooner.engine.view_rows import plan_types
from sooner.errors import (
    InvalidArgument,
    NotSupported,
    TableExists,
    UnknownColumn,
    UnknownTable,
)
from sooner.sql import Untranslatable, parse, table_names
from sooner.storage import Table
from sooner.storage.checks import check_columns, check_name
from sooner.storage.views import find_view, read_through
from sooner.view import view_form
from sooner.views.changing import changing_functions
from sooner.views.choose_unit import Together, choose_unit
from sooner.views.definition import Definition
from sooner.views.form import Form
from sooner.views.made import create
from sooner.views.outliers import chosen_outliers
from sooner.views.schedule import Schedule

if TYPE_CHECKING:
    from sooner.database import Database


def create_view(
    database: Database,
    name: str,
    text: str,
    sample: float | None,
    sample_by: Sequence[str],
    outliers: Mapping[str, int | str] | None,
    refresh: Schedule | None,
    clean: Schedule | None,
    replaced: bool,
) -> None:
    """Make a view of a query."""
    _require_types(name, text, sample, outliers, refresh, clean)
    changing = changing_functions(text)
    if changing:
        raise NotSupported(
            f"A view cannot hold {', '.join(changing)}: its value changes although no row does. Leave it out "
            "of the view, and use it in queries of the view."
        )
    check_name(name)
    _require_free(database, name, replaced)
    prepared = database._prepare(text, {})
    check_columns(prepared.columns)
    for column in prepared.columns:
        if column.name.startswith("__"):
            raise InvalidArgument(
                f"Columns of a view whose names begin with __ are Sooner's own: rename {column.name!r}."
            )
    _require_registered(database, prepared.text)
    if not is_deterministic(database.spark, prepared.text):
        raise NotSupported(
            "A view cannot hold what may be another value each time, as a function that is declared so, or "
            "'now' as a time. Leave it out of the view, and use it in queries of the view."
        )
    now = [database._fresh(one) for one in prepared.tables]
    for one in now:
        for column in one.columns:
            if column.name.startswith("__"):
                raise NotSupported(
                    f"A view cannot be made from {one.name!r}, which has a column {column.name!r}: names "
                    "that begin with __ are Sooner's own there. Register it with the column renamed."
                )
    if name.lower() in read_through(database._catalog, prepared.tables):
        raise InvalidArgument(f"A view cannot be made from itself: {name!r}.")
    if not now:
        raise InvalidArgument("A view is made from registered tables, and this query reads none.")
    form = view_form(database, prepared, now)
    zone = zone_name(database.spark)
    definition = Definition(prepared.text, sample, refresh=refresh, clean=clean, zone=zone)
    definition = _sampled(database, definition, form, now, sample_by)
    chosen = chosen_outliers(outliers, form, definition.unit, now)
    definition = replace(definition, outliers=chosen)
    with job_group(database.spark, f"Making {name}", database._progress):
        create(database.spark, database._catalog, name, definition, form, now, replaced)


def _require_registered(database: Database, text: str) -> None:
    """Refuse a query that reads what nobody tells when it changes: views and tables of Spark's own."""
    try:
        query: exp.Query | None = parse(text)
    except Untranslatable as error:
        query = error.query
    known = {name.lower() for name in database._catalog.names()}
    for name in table_names(query) or () if query is not None else ():
        if name not in known:
            raise UnknownTable(
                f"A view is made from registered tables, and {name!r} is none: whether it has changed nobody "
                "could tell. Register it with db.register()."
            )


def _require_types(
    name: object, text: object, sample: object, outliers: object, refresh: object, clean: object
) -> None:
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidArgument("A view takes its name and its query as text.")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int | float)):
        raise InvalidArgument(f"sample={sample!r}: give the share of rows as a number, or None.")
    if outliers is not None and not (
        isinstance(outliers, Mapping) and all(isinstance(one, str) for one in outliers)
    ):
        raise InvalidArgument(
            f'outliers={outliers!r}: give columns with how many, {{"price": 100}}.'
        )
    for what, when in (("refresh", refresh), ("clean", clean)):
        if when is not None and not isinstance(when, Schedule):
            raise InvalidArgument(
                f'{what}={when!r}: give sooner.every("1h") or sooner.after(rows=10_000).'
            )


def _require_free(database: Database, name: str, replaced: bool) -> None:
    taken = name.lower() in {known.lower() for known in database._catalog.names()}
    if not taken:
        return
    is_view = find_view(database._catalog, name) is not None
    if not (replaced and is_view):
        what = "view" if is_view else "table"
        more = (
            "Use replace=True to replace it, or another name." if is_view else "Use another name."
        )
        raise TableExists(f"There is a {what} {name!r} already. {more}")


def _sampled(
    database: Database,
    definition: Definition,
    form: Form,
    now: Sequence[Table],
    wanted: Sequence[str],
) -> Definition:
    """The definition with what the view is sampled by, or why it is not."""
    if definition.sample is None:
        return replace(definition, why_not="no sample was asked for")
    if form.why_whole is not None:
        return replace(
            definition, sample=None, why_not=f"it is made again, because {form.why_whole}"
        )
    if form.key is None:
        raise NotSupported(
            "Nothing tells the rows of this view apart, so that no sample of it can be kept. Register its "
            "tables with key=[…], or give sample=None: it is then made again at each refresh."
        )
    types = plan_types(database.spark, form.plan)
    spelled = {one.lower(): one for one in types}
    columns = [spelled.get(one.lower(), one) for one in wanted]
    for one in columns:
        if one not in types:
            raise UnknownColumn(f"The view has no column {one!r} to sample by.")
        groups = form.grouped
        if groups and one not in {groups.stored[key] for key in groups.aggregate.keys}:
            raise InvalidArgument(
                f"sample_by={one!r}: the view is grouped, and this is no column that it is grouped by."
            )

    def sharing(table: Table, column: str) -> Together:
        return Together(*rows_together(table_rows(database.spark, table), column))

    unit = choose_unit(form, types, now, sharing, columns)
    if unit is None:
        which = ", ".join(columns or form.key) or "a single row"
        return replace(definition, sample=None, why_not=f"{which} cannot be hashed")
    return replace(definition, unit=unit)
