"""``sooner view``: create, list, show, refresh, clean, query and drop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sooner.database import connect
from sooner.display import rows_text
from sooner.errors import InvalidArgument
from sooner.serve.options import (
    DEFAULT_HOME,
    CatalogUrl,
    Home,
    Sql,
    SqlFile,
    names,
    reported,
    share,
    sql_text,
)
from sooner.serve.output import OutputFormat, say, show_views, write_answer
from sooner.views.schedule import Schedule, after, every

view = typer.Typer(
    help="Queries whose rows are kept, and asked freshly while stale.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The view.")]


@view.command()
@reported
def create(
    name: Name,
    sql: Sql = None,
    file: SqlFile = None,
    sample: Annotated[
        str, typer.Option(help="The share that is cleaned: 10%; 0 for none.")
    ] = "10%",
    sample_by: Annotated[str, typer.Option(help="Columns to sample by; else its key.")] = "",
    outlier: Annotated[
        list[str] | None, typer.Option(help="Largest values to keep in: price=100 or price='3 sd'.")
    ] = None,
    refresh: Annotated[str | None, typer.Option(help="When to refresh: 1h, or 10000 rows.")] = None,
    clean: Annotated[str | None, typer.Option(help="When to clean: 5min, or 1000 rows.")] = None,
    replace: Annotated[bool, typer.Option(help="Replace a view of this name.")] = False,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Keep the rows of a query."""
    text = sql_text(sql, file)
    part = None if sample.strip() in ("0", "none") else share("--sample", sample, "10%", "0.1")
    with connect(home, catalog=catalog) as database:
        made = database.view(
            name,
            text,
            sample=part,
            sample_by=names(sample_by),
            outliers=_outliers(outlier or []),
            refresh=_schedule(refresh),
            clean=_schedule(clean),
            replace=replace,
        )
        say(f"Created {made.name}: {rows_text(made.history()[-1].inserted or 0)}.")


@view.command("list")
@reported
def list_(home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """List the views."""
    with connect(home, catalog=catalog) as database:
        show_views(database.views())


@view.command()
@reported
def show(name: Name, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """Say how a view is kept, what has changed, and every refresh it had."""
    with connect(home, catalog=catalog) as database:
        opened = database.view(name)
        typer.echo(opened.text)
        typer.echo("")
        typer.echo(opened.explain())
        typer.echo("\nHistory:")
        for one in opened.history():
            at = "" if one.at is None else f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}"
            typer.echo(
                f"  {at}  {one.kind}, {one.seconds:.2f} s, {rows_text(one.inserted or 0)} came, "
                f"{one.deleted or 0:,} went: {one.why}"
            )


@view.command()
@reported
def refresh(
    name: Annotated[str | None, typer.Argument(help="The view; else all that are due.")] = None,
    how: Annotated[str, typer.Option(help="auto, incremental or recompute.")] = "auto",
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Bring a view up to date, exactly; without a name, do all work that is due."""
    with connect(home, catalog=catalog) as database:
        if name is None:
            if how != "auto":
                raise InvalidArgument("--how is for one view: give its name.")
            done = database.work()
            say("\n".join(f"{kind}: {one}" for kind, one in done) or "Nothing is due.")
            return
        if how not in ("auto", "incremental", "recompute"):
            raise InvalidArgument(f"--how takes auto, incremental or recompute, not {how!r}.")
        database.view(name).refresh(how)  # type: ignore[arg-type]


@view.command()
@reported
def clean(name: Name, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """Clean a sample of a view, for questions to come."""
    with connect(home, catalog=catalog) as database:
        found = database.view(name).clean()
        if found is None:
            say(f"{name} is up to date.")
        else:
            say(
                f"Cleaned {100 * found.ratio:.3g}% of {name}: {rows_text(found.inserted)} came, "
                f"{found.deleted:,} went."
            )


@view.command()
@reported
def query(
    name: Name,
    sql: Sql = None,
    file: SqlFile = None,
    estimator: Annotated[str, typer.Option(help="auto, corr, aqp or exact.")] = "auto",
    confidence: Annotated[str, typer.Option(help="How sure the intervals are.")] = "95%",
    format: Annotated[OutputFormat, typer.Option("--format", help="How to write the answer.")] = (
        OutputFormat.TABLE
    ),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    home: Home = DEFAULT_HOME,
    catalog: CatalogUrl = None,
) -> None:
    """Ask a view as if it were up to date."""
    text = sql_text(sql, file)
    sure = share("--confidence", confidence, "95%", "0.95")
    with connect(home, catalog=catalog) as database:
        answer = database.view(name).answer(text, estimator=estimator, confidence=sure)  # type: ignore[arg-type]
        write_answer(answer, format, output)


@view.command()
@reported
def drop(name: Name, home: Home = DEFAULT_HOME, catalog: CatalogUrl = None) -> None:
    """Forget a view; its tables stay."""
    with connect(home, catalog=catalog) as database:
        database.drop_view(name)
    say(f"Dropped {name}. Its rows go at the next vacuum.")


def _outliers(given: list[str]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for text in given:
        column, sign, how = text.partition("=")
        if not sign:
            raise InvalidArgument(f"--outlier takes COLUMN=100 or COLUMN='3 sd', not {text!r}.")
        found[column.strip()] = int(how) if _is_number(how.strip()) else how.strip()
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _schedule(text: str | None) -> Schedule | None:
    if text is None:
        return None
    number, _, unit = text.strip().partition(" ")
    if unit.strip() == "rows" and _is_number(number.replace("_", "")):
        return after(rows=int(number.replace("_", "")))
    return every(text)
