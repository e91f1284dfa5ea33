"""The command line: ``sooner --help``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sooner.database import Database, connect
from sooner.display import rows_text
from sooner.errors import InvalidArgument
from sooner.missing.files import read_constraints
from sooner.serve.live import Watched, watch
from sooner.serve.missing_cli import bounds, constraints
from sooner.serve.options import (
    DEFAULT_HOME,
    CatalogUrl,
    Home,
    Sql,
    SqlFile,
    names,
    reported,
    seconds,
    share,
    sql_text,
)
from sooner.serve.output import OutputFormat, say, show_tables, write_answer
from sooner.serve.synopsis_cli import synopsis
from sooner.serve.view_cli import view
from sooner.tpch import generate

_CENTURY = 60.0 * 24 * 365 * 100  # in minutes; Python's spans of time end somewhere beyond

app = typer.Typer(
    help="Analytical SQL on Spark, answered sooner.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(synopsis, name="synopsis")
app.add_typer(view, name="view")
app.add_typer(constraints, name="constraints")
app.command()(bounds)


@app.command()
@reported
def tpch(
    directory: Annotated[Path, typer.Argument(help="Where to put the files.")],
    scale: Annotated[float, typer.Option(help="1 is about 6 million line items.")] = 1.0,
) -> None:
    """Generate TPC-H data as Parquet files."""
    made = generate(directory, scale)
    say(f"TPC-H at scale {scale:g} is in {made}.")


@app.command()
@reported
def register(
    name: Annotated[str, typer.Argument(help="The table's name in queries.")],
    files: Annotated[list[str], typer.Argument(help="Parquet or CSV files, globs or folders.")],
    key: Annotated[str, typer.Option(help="Primary key, columns separated by commas.")] = "",
    format: Annotated[str | None, typer.Option(help="parquet or csv; else by the name.")] = None,
    schema: Annotated[str | None, typer.Option(help="Columns, as 'a INT, b STRING'.")] = None,
    replace: Annotated[bool, typer.Option(help="Replace a table of this name.")] = False,
    missing: Annotated[
        Path | None, typer.Option(help="A YAML file of constraints: rows that may be missing.")
    ] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Make files known as a table. Nothing is copied."""
    with _open(home, catalog) as database:
        table = database.register(
            name,
            files,
            key=names(key),
            format=format,
            schema=schema,
            replace=replace,
            missing=None if missing is None else read_constraints(missing),
        )
    rows = "" if table.facts.rows is None else f", {rows_text(table.facts.rows)}"
    say(f"Registered {table.name}: {len(table.columns)} columns{rows}.")


@app.command()
@reported
def scramble(
    name: Annotated[str, typer.Argument(help="The table.")],
    by: Annotated[str, typer.Option(help="Key columns, separated by commas.")],
    blocks: Annotated[int, typer.Option(help="How many blocks.")] = 128,
    salt: Annotated[int, typer.Option(help="Another salt is an independent order.")] = 0,
    like: Annotated[str | None, typer.Option(help="A table to fit block by block.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Store a table once more in hash order, for fast honest samples."""
    with _open(home, catalog) as database:
        table = database.scramble(name, names(by), blocks=blocks, salt=salt, like=like)
    say(f"Scrambled {table.name} by {by} into {table.scrambles[-1].blocks} blocks.")


@app.command()
@reported
def tables(home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """List the tables."""
    with _open(home, catalog) as database:
        show_tables(database.tables(), {view.name for view in database.views()})


@app.command()
@reported
def drop(
    name: Annotated[str, typer.Argument(help="The table.")],
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Forget a table. Your own files stay."""
    with _open(home, catalog) as database:
        database.drop(name)
    say(f"Dropped {name}. Its scrambles go at the next vacuum.")


@app.command()
@reported
def query(
    sql: Sql = None,
    file: SqlFile = None,
    format: Annotated[OutputFormat, typer.Option("--format", help="How to write the answer.")] = (
        OutputFormat.TABLE
    ),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Show answers as they refine; Ctrl-C keeps the last.")
    ] = False,
    error: Annotated[
        str | None, typer.Option(help="Stop when every value is this close: 1% or 0.01.")
    ] = None,
    within: Annotated[
        str | None, typer.Option(help="Stop at the first answer after 5s, 500ms or 2m.")
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="How sure the intervals are: 95% or 0.95.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed reads in another order.")] = None,
    stream: Annotated[
        str | None, typer.Option(help="Tables to read in steps, separated by commas.")
    ] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Answer a query; with --progress or an option that needs it, in answers that refine."""
    text = sql_text(sql, file)
    wanted: dict[str, Any] = {
        "error": None if error is None else share("--error", error, "1%", "0.01"),
        "within": None if within is None else seconds("--within", within),
        "confidence": None
        if confidence is None
        else share("--confidence", confidence, "95%", "0.95"),
        "seed": seed,
        "stream": None if stream is None else names(stream),
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if not progress and not wanted:
        with _open(home, catalog) as database:
            write_answer(database.sql(text).exact(), format, output)
        return
    # Standard output may carry data for a program; then what is for people goes beside it.
    aside = format is not OutputFormat.TABLE or output is not None
    with connect(home, catalog=catalog, progress=False) as database:
        watched = watch(database.sql(text).progress(**wanted), Console(stderr=aside))
        write_answer(watched.last, format, output)
    _say_how_it_ended(watched)


@app.command()
@reported
def explain(
    sql: Sql = None, file: SqlFile = None, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None
) -> None:
    """Say what a query will do and why, without running it."""
    text = sql_text(sql, file)
    with _open(home, catalog) as database:
        typer.echo(database.sql(text).explain())


@app.command()
@reported
def vacuum(
    minutes: Annotated[
        float, typer.Option(help="Spare what somebody may have been writing since then.")
    ] = 60.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Remove files of Sooner's own that nothing refers to any more."""
    if not 0 <= minutes <= _CENTURY:
        raise InvalidArgument(f"--minutes must not be negative, nor many years, as {minutes:g} is.")
    with _open(home, catalog) as database:
        report = database.vacuum(timedelta(minutes=minutes), dry_run)
    verb = "Would remove" if dry_run else "Removed"
    say(
        f"{verb} {report.files:,} files in {len(report.directories):,} folders, {report.bytes:,} bytes."
    )


def _open(home: Path, catalog: str | None) -> Database:
    return connect(home, catalog=catalog)


def _say_how_it_ended(watched: Watched) -> None:
    if watched.last.final and len(watched.glances) == 1:
        say("Answered exactly in one step, not in answers that refine: see sooner explain.")
    elif watched.interrupted:
        say("Stopped: this is the last answer there was, and it is not final.")
    elif not watched.last.final:
        say("Stopped early as asked: this answer is not final.")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
