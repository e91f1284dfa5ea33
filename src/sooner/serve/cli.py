"""The command line: ``sooner --help``."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from sooner.database import Database, connect
from sooner.errors import InvalidArgument, SoonerError
from sooner.serve.live import Watched, watch
from sooner.serve.output import OutputFormat, say, show_tables, write_answer
from sooner.tpch import generate

app = typer.Typer(
    help="Analytical SQL on Spark, answered sooner.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Home = Annotated[
    Path, typer.Option("--home", envvar="SOONER_HOME", help="Where Sooner keeps its things.")
]
CatalogUrl = Annotated[
    str | None,
    typer.Option("--catalog", envvar="SOONER_CATALOG", help="A PostgreSQL URL, for a team."),
]
Sql = Annotated[str | None, typer.Argument(help="The query; - or nothing reads standard input.")]
SqlFile = Annotated[Path | None, typer.Option("--file", "-f", help="Read the query from a file.")]
DEFAULT_HOME = Path(".sooner")

Command = TypeVar("Command", bound=Callable[..., Any])


def _reported(command: Command) -> Command:
    """Say errors in one line instead of a trace."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SoonerError as error:
            say(f"Error: {error}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            say("Stopped.")
            raise typer.Exit(130) from error

    return run  # type: ignore[return-value]


@app.command()
@_reported
def tpch(
    directory: Annotated[Path, typer.Argument(help="Where to put the files.")],
    scale: Annotated[float, typer.Option(help="1 is about 6 million line items.")] = 1.0,
) -> None:
    """Generate TPC-H data as Parquet files."""
    made = generate(directory, scale)
    say(f"TPC-H at scale {scale:g} is in {made}.")


@app.command()
@_reported
def register(
    name: Annotated[str, typer.Argument(help="The table's name in queries.")],
    files: Annotated[list[str], typer.Argument(help="Parquet or CSV files, globs or folders.")],
    key: Annotated[str, typer.Option(help="Primary key, columns separated by commas.")] = "",
    format: Annotated[str | None, typer.Option(help="parquet or csv; else by the name.")] = None,
    schema: Annotated[str | None, typer.Option(help="Columns, as 'a INT, b STRING'.")] = None,
    replace: Annotated[bool, typer.Option(help="Replace a table of this name.")] = False,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Make files known as a table. Nothing is copied."""
    with _open(home, catalog) as database:
        table = database.register(
            name, files, key=_names(key), format=format, schema=schema, replace=replace
        )
    rows = "" if table.facts.rows is None else f", {table.facts.rows:,} rows"
    say(f"Registered {table.name}: {len(table.columns)} columns{rows}.")


@app.command()
@_reported
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
        table = database.scramble(name, _names(by), blocks=blocks, salt=salt, like=like)
    say(f"Scrambled {table.name} by {by} into {table.scrambles[-1].blocks} blocks.")


@app.command()
@_reported
def tables(home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """List the tables."""
    with _open(home, catalog) as database:
        show_tables(database.tables())


@app.command()
@_reported
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
@_reported
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
    text = _sql_text(sql, file)
    wanted: dict[str, Any] = {
        "error": None if error is None else _share("--error", error, "1%", "0.01"),
        "within": None if within is None else _seconds("--within", within),
        "confidence": None
        if confidence is None
        else _share("--confidence", confidence, "95%", "0.95"),
        "seed": seed,
        "stream": None if stream is None else _names(stream),
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
@_reported
def explain(
    sql: Sql = None, file: SqlFile = None, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None
) -> None:
    """Say what a query will do and why, without running it."""
    text = _sql_text(sql, file)
    with _open(home, catalog) as database:
        typer.echo(database.sql(text).explain())


@app.command()
@_reported
def vacuum(
    minutes: Annotated[
        float, typer.Option(help="Spare what somebody may have been writing since then.")
    ] = 60.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Remove files of Sooner's own that nothing refers to any more."""
    if minutes < 0:
        raise InvalidArgument(f"--minutes must not be negative, and {minutes:g} is.")
    with _open(home, catalog) as database:
        report = database.vacuum(timedelta(minutes=minutes), dry_run)
    verb = "Would remove" if dry_run else "Removed"
    say(
        f"{verb} {report.files:,} files in {len(report.directories):,} folders, {report.bytes:,} bytes."
    )


def _open(home: Path, catalog: str | None) -> Database:
    return connect(home, catalog=catalog)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _share(option: str, text: str, *examples: str) -> float:
    """A part of the whole: ``1%`` or ``0.01``."""
    use = f"{option} takes a share such as {' or '.join(examples)}"
    number = text.strip()
    is_percent = number.endswith("%")
    try:
        share = float(number.removesuffix("%")) / (100 if is_percent else 1)
    except ValueError as error:
        raise InvalidArgument(f"{use}, not {text!r}.") from error
    if not 0 < share < math.inf:
        raise InvalidArgument(f"{use}, above 0, not {text!r}.")
    if share >= 1 and not is_percent:
        raise InvalidArgument(f"{use}; {text} alone would be {share:.0%}. Say {text}%?")
    return share


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def _seconds(option: str, text: str) -> float:
    """A time: ``5s``, ``500ms``, ``2m``, or plain seconds."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS or not float(found[1]) > 0:
        raise InvalidArgument(
            f"{option} takes a time above 0 such as 5s, 500ms or 2m, not {text!r}."
        )
    return float(found[1]) * _UNITS[found[2]]


def _say_how_it_ended(watched: Watched) -> None:
    if watched.last.final and len(watched.glances) == 1:
        say("Answered exactly in one step, not in answers that refine: see sooner explain.")
    elif watched.interrupted:
        say("Stopped: this is the last answer there was, and it is not final.")
    elif not watched.last.final:
        say("Stopped early as asked: this answer is not final.")


def _sql_text(sql: str | None, file: Path | None) -> str:
    if file is not None:
        if sql is not None:
            raise InvalidArgument("Give the query as text or with --file, not both.")
        try:
            return file.read_text()
        except OSError as error:
            raise InvalidArgument(f"Cannot read {file}: {error.strerror}.") from error
    if sql is None or sql == "-":
        if sql is None and sys.stdin.isatty():
            raise InvalidArgument('Give a query: sooner query "SELECT …", or --file q.sql.')
        return sys.stdin.read()
    return sql


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
