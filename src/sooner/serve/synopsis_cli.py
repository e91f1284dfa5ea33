"""``sooner synopsis``: create, list, show, drop and query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sooner.answer import Answer
from sooner.database import connect
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
from sooner.serve.output import OutputFormat, say, show_synopses, show_synopsis, write_answer

synopsis = typer.Typer(
    help="Summaries of tables that answer in milliseconds.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The synopsis.")]


@synopsis.command()
@reported
def create(
    name: Name,
    table: Annotated[str, typer.Option(help="The table to summarize.")],
    measure: Annotated[str, typer.Option(help="Columns to aggregate, separated by commas.")],
    over: Annotated[str, typer.Option(help="Columns that conditions go by.")],
    keep: Annotated[str, typer.Option(help="More columns, in the samples only.")] = "",
    leaves: Annotated[int | None, typer.Option(help="How many boxes; 64 if not said.")] = None,
    sample: Annotated[str | None, typer.Option(help="The stored share of rows: 0.5%.")] = None,
    effective: Annotated[int | None, typer.Option(help="Rows read for a question.")] = None,
    focus: Annotated[str | None, typer.Option(help="sum, count or avg.")] = None,
    partitioning: Annotated[
        str | None, typer.Option(help="fast, equal, climbing, search or exact.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed takes another sample.")] = None,
    build_within: Annotated[str | None, typer.Option(help="Time to build it, as 30s.")] = None,
    query_within: Annotated[str | None, typer.Option(help="Time for an answer, as 2ms.")] = None,
    size: Annotated[str | None, typer.Option(help="How large it may be, as 10MB.")] = None,
    replace: Annotated[bool, typer.Option(help="Replace a synopsis of this name.")] = False,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Summarize a table: exact totals of boxes, and a sample of each."""
    wanted: dict[str, Any] = {
        "leaves": leaves,
        "sample": None if sample is None else share("--sample", sample, "0.5%", "0.005"),
        "effective": effective,
        "focus": focus,
        "partitioning": partitioning,
        "seed": seed,
        "build_within": None if build_within is None else seconds("--build-within", build_within),
        "query_within": None if query_within is None else seconds("--query-within", query_within),
        "size": size,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    with connect(home, catalog=catalog) as database:
        made = database.synopsis(
            name, table, names(measure), names(over), keep=names(keep), replace=replace, **wanted
        )
        say(
            f"Created {made.name}: {made.leaves} leaves, {made.sampled:,} of {made.rows:,} rows stored."
        )


@synopsis.command("list")
@reported
def list_(home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """List the synopses."""
    with connect(home, catalog=catalog) as database:
        show_synopses(database.synopses())


@synopsis.command()
@reported
def show(
    name: Name,
    plot: Annotated[Path | None, typer.Option(help="Draw the leaves into a picture.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Say what a synopsis holds."""
    with connect(home, catalog=catalog) as database:
        opened = database.synopsis(name)
        show_synopsis(opened)
        if plot is not None:
            opened.plot().savefig(plot)
            say(f"The leaves are drawn in {plot}.")


@synopsis.command()
@reported
def drop(name: Name, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """Forget a synopsis."""
    with connect(home, catalog=catalog) as database:
        database.drop_synopsis(name)
    say(f"Dropped {name}. Its files go at the next vacuum.")


@synopsis.command()
@reported
def query(
    sql: Sql = None,
    file: SqlFile = None,
    synopsis: Annotated[
        str | None, typer.Option(help="Ask this one; else the one that answers most closely.")
    ] = None,
    confidence: Annotated[str, typer.Option(help="How sure the intervals are.")] = "95%",
    format: Annotated[OutputFormat, typer.Option("--format", help="How to write the answer.")] = (
        OutputFormat.TABLE
    ),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Answer from synopses, without Spark and without reading the table."""
    text = sql_text(sql, file)
    sure = share("--confidence", confidence, "95%", "0.95")
    with connect(home, catalog=catalog) as database:
        asked = database.synopsis(synopsis) if synopsis else database.synopses()
        answer: Answer = asked.answer(text, confidence=sure)
        write_answer(answer, format, output)
