"""A view's rows made of its tables as they are: when it is new, or where that is less work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from sooner.algebra.schema import Column
from sooner.engine import binding
from sooner.engine.lowering import lower
from sooner.engine.view_rows import drawn_together, hashed, view_schema, write_rows
from sooner.engine.writing import reservation
from sooner.errors import SchemaChanged
from sooner.storage.catalog import Catalog
from sooner.storage.footers import facts_of
from sooner.storage.records import Source, Table
from sooner.storage.views import Refreshed, add_view, reflecting
from sooner.views.choose_unit import Together
from sooner.views.definition import Definition, as_text
from sooner.views.form import Form
from sooner.views.outliers import with_outliers
from sooner.views.unit import HASH, Unit


class Made:
    """A view's rows, written to a directory."""

    def __init__(self, rows: Any, form: Form, unit: Unit | None, directory: str) -> None:
        self._form = form
        sql = None if unit is None else unit.sql
        # In an order if the query has one: then as it comes.
        placed = hashed(rows, form.plan.names, sql, HASH)
        hidden = len(form.hidden) + (unit is not None)
        self.columns, self.hidden = view_schema(placed, hidden)
        self.directory = directory
        self.files = write_rows(placed, directory)

    @property
    def rows(self) -> int:
        return sum(file.rows or 0 for file in self.files)

    def commit(
        self, catalog: Catalog, name: str, reserved: Any, also: Any, replaced: bool
    ) -> Table:
        columns = _typed(self.columns)
        facts = replace(facts_of([file.path for file in self.files]), rows=self.rows)
        return catalog.create_table(
            name,
            columns,
            self._form.key or (),
            Source("parquet", (self.directory,)),
            self.files,
            facts=facts,
            replace=replaced,
            reserved=reserved.directories,
            hidden=self.hidden,
            also=also,
        )


def _typed(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    for one in columns:
        if one.type == "void":
            raise SchemaChanged(
                f"The column {one.name!r} of the view has no type: cast it, as in CAST(NULL AS INT)."
            )
    return columns


def create(
    spark: Any,
    catalog: Catalog,
    name: str,
    definition: Definition,
    form: Form,
    now: Sequence[Table],
    replaced: bool = False,
) -> Table:
    """Make a view's rows of its tables as they are, and say that they are a view."""
    start = perf_counter()
    with binding.lock:
        for table in now:
            binding.bind(spark, catalog, table)
        rows = lower(spark, form.plan)
    with reservation(catalog, None) as reserved:
        made = Made(rows, form, definition.unit, reserved.directory("view"))
        known = {table.name.lower(): table for table in now}
        if definition.unit is not None and set(definition.unit.columns) != set(form.key or ()):
            shared = Together(*drawn_together(spark, made.directory, HASH))
            definition = replace(definition, uneven=not shared.are_even)
        text = as_text(with_outliers(spark, definition, form, known))

        def also(connection: Any, table: Table) -> None:
            done = Refreshed("created", "new", perf_counter() - start, made.rows, 0)
            add_view(connection, table, text, reflecting(list(now)), done)

        return made.commit(catalog, name, reserved, also, replaced)
