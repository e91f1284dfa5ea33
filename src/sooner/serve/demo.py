"""The demo: TPC-H data, registered and scrambled, a query that refines, and what Spark takes for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.syntax import Syntax

from sooner import tpch
from sooner.answer import Answer
from sooner.database import Database, connect
from sooner.errors import SoonerError
from sooner.serve.live import Watched, percent, watch

QUERY = 5
CLOSE = 0.01


def demo(
    scale: Annotated[float, typer.Option(help="1 is about 6 million line items.")] = 1.0,
    directory: Annotated[Path, typer.Option(help="What is made is kept here.")] = Path(".demo"),
) -> None:
    """Generate TPC-H data, register and scramble it, answer a query sooner, and compare with Spark."""
    console = Console()
    place = directory / f"scale-{scale:g}"
    try:
        _step(console, f"TPC-H data at scale {scale:g} in {place}")
        data = tpch.generate(place / "tpch", scale)
        with connect(place / "home") as database:
            _prepare(console, database, data)
        # A bar of Spark's work would run across the live table.
        with connect(place / "home", progress=False) as database:
            text = tpch.query(QUERY)
            _step(console, "Warming Spark up, so that neither side is timed cold")
            with closing(_answers(database, text)) as answers:
                next(answers)
            _step(console, f"TPC-H query {QUERY}")
            console.print(Syntax(text.strip(), "sql", background_color="default"))
            watched = answer_live(console, database, text)
            _step(console, "The same query in plain Spark, over the same files")
            spark_seconds = time_plain_spark(database, data, text)
        console.print(comparison(watched, spark_seconds), markup=False, highlight=False)
    except SoonerError as error:
        console.print(f"Error: {error}", markup=False, highlight=False)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        console.print("Stopped.")
        raise typer.Exit(130) from error
    _step(console, "Try your own: ")
    console.print(
        f'  .venv/bin/sooner query --home {place / "home"} "SELECT count(*) FROM lineitem"',
        markup=False,
        highlight=False,
    )


def answer_live(console: Console, database: Database, text: str) -> Watched:
    """Answer a query where a person is watching."""
    watched = watch(_answers(database, text), console)
    watched.last.show()
    if watched.interrupted:
        console.print("Stopped: this is the last answer there was, and it is not final.")
    return watched


def time_plain_spark(database: Database, data: Path, text: str) -> float:
    """Seconds that Spark takes alone, without Sooner's tables or plans."""
    session = database.spark.newSession()
    for table in tpch.TABLES:
        session.read.parquet(str(data.resolve() / table)).createOrReplaceTempView(table)
    start = perf_counter()
    session.sql(text).toArrow()
    return perf_counter() - start


def comparison(watched: Watched, spark_seconds: float) -> str:
    """How much sooner than Spark's exact answer the estimates came, in a sentence."""
    last = watched.glances[-1].seconds
    ends = f"exact in {last:.1f} s here, {spark_seconds:.1f} s in plain Spark."
    if len(watched.glances) == 1 and watched.last.final:
        return f"The data is small, so there was nothing to estimate first: {ends} Try a larger SF."
    if not watched.last.final:
        ends = f"stopped after {last:.1f} s; exact in {spark_seconds:.1f} s in plain Spark."
    estimates = watched.glances[:-1] if watched.last.final else watched.glances
    first = estimates[0]
    off = "some rows or cells unknown" if first.error is None else percent(first.error)
    begins = (
        f"First estimate {_against(first.seconds, spark_seconds)} Spark's exact answer "
        f"({first.seconds:.1f} s, {off})"
    )
    close = next((g for g in estimates if g.error is not None and g.error <= CLOSE), None)
    if close is None:
        middle = f"no estimate came within {CLOSE:.0%}"
    else:
        middle = (
            f"within {CLOSE:.0%} {_against(close.seconds, spark_seconds)} it "
            f"({close.seconds:.1f} s)"
        )
    return f"{begins}; {middle}; {ends}"


def _against(seconds: float, spark_seconds: float) -> str:
    ratio = spark_seconds / seconds
    if ratio >= 1.05:
        return f"{ratio:.0f}× sooner than" if ratio >= 10 else f"{ratio:.1f}× sooner than"
    return "about as soon as" if ratio > 0.95 else "later than"


def _answers(database: Database, text: str) -> Generator[Answer, None, None]:
    """Reading the text counts too: Spark's time has it as well."""
    yield from database.sql(text).progress()


def _prepare(console: Console, database: Database, data: Path) -> None:
    start = perf_counter()
    known = {table.name for table in database.tables()}
    if not set(tpch.TABLES) <= known:
        _step(console, "Registering 8 tables (nothing is copied)")
        tpch.register(database, data, replace=True)
    for table, key in tpch.SCRAMBLES:
        if not any(t.name == table and t.scrambles for t in database.tables()):
            _step(console, f"Scrambling {table} by {key}: the same rows, in hash order")
            database.scramble(table, key)
    console.print(f"  ready in {perf_counter() - start:.1f} s", style="dim")


def _step(console: Console, text: str) -> None:
    console.print(f"● {text}", style="bold", markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(demo)
