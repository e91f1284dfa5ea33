"""The demo: TPC-H data, registered and scrambled, and a query answered in the terminal."""

from __future__ import annotations

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

QUERY = 5


def demo(
    scale: Annotated[float, typer.Option(help="1 is about 6 million line items.")] = 1.0,
    directory: Annotated[Path, typer.Option(help="What is made is kept here.")] = Path(".demo"),
) -> None:
    """Generate TPC-H data, register and scramble it, and answer a query."""
    console = Console()
    place = directory / f"scale-{scale:g}"
    try:
        _step(console, f"TPC-H data at scale {scale:g} in {place}")
        data = tpch.generate(place / "tpch", scale)
        with connect(place / "home") as database:
            _prepare(console, database, data)
            text = tpch.query(QUERY)
            _step(console, f"TPC-H query {QUERY}")
            console.print(Syntax(text.strip(), "sql", background_color="default"))
            answer_live(console, database, text)
    except SoonerError as error:
        console.print(f"Error: {error}", markup=False, highlight=False)
        raise typer.Exit(1) from error
    _step(console, "Try your own: ")
    console.print(
        f'  .venv/bin/sooner query --home {place / "home"} "SELECT count(*) FROM lineitem"',
        markup=False,
        highlight=False,
    )


def answer_live(console: Console, database: Database, text: str) -> Answer:
    """Answer a query where a person is watching."""
    answer = database.sql(text).exact()
    answer.show()
    return answer


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
