"""``sooner bounds`` and ``sooner constraints``: ranges over missing rows, and where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sooner.database import connect
from sooner.missing.check import check as compare
from sooner.missing.files import constraints_text, read_constraints
from sooner.missing.suggest import suggest as propose
from sooner.serve.options import (
    DEFAULT_HOME,
    CatalogUrl,
    Home,
    Sql,
    SqlFile,
    names,
    reported,
    sql_text,
)
from sooner.serve.output import OutputFormat, say, write_answer

constraints = typer.Typer(help="What may be missing, as a YAML file.", no_args_is_help=True)

File = Annotated[Path, typer.Option("--constraints", "-c", help="A YAML file of constraints.")]


@reported
def bounds(
    file: File,
    sql: Sql = None,
    query_file: SqlFile = None,
    open_world: Annotated[
        bool, typer.Option("--open", help="Rows may be missing where no constraint says anything.")
    ] = False,
    format: Annotated[OutputFormat, typer.Option(help="How to print it.")] = OutputFormat.TABLE,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Answer a query with the range it can have whatever rows are missing."""
    text = sql_text(sql, query_file)
    given = read_constraints(file)
    with connect(home, catalog=catalog) as database:
        found = database.sql(text).bounds(given, closed=not open_world)
        write_answer(found, format, output)


@constraints.command()
@reported
def check(
    table: Annotated[str, typer.Argument(help="A table with rows of the past.")],
    file: File,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Compare constraints with rows: did they hold? Ends with 1 if one did not."""
    given = read_constraints(file)
    with connect(home, catalog=catalog) as database:
        found = compare(given, database.table(table))
        found.show()
    if not found.holds:
        raise typer.Exit(1)


@constraints.command()
@reported
def suggest(
    table: Annotated[str, typer.Argument(help="A table with rows like those that are missing.")],
    measure: Annotated[str, typer.Option(help="The column that will be aggregated.")],
    over: Annotated[str, typer.Option(help="Columns that conditions go by, by commas.")] = "",
    count: Annotated[int, typer.Option(help="How many constraints.")] = 200,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Take constraints from history, as YAML."""
    with connect(home, catalog=catalog) as database:
        found = propose(database.table(table), measure, names(over) or None, count)
    if output is None:
        typer.echo(constraints_text(found), nl=False)
    else:
        output.write_text(constraints_text(found), encoding="utf-8")
        say(f"Wrote {len(found)} constraints to {output}.")
