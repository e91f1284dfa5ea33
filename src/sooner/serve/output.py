"""How the command line shows what commands computed: tables for people, JSON, CSV or Parquet for programs."""

from __future__ import annotations

import json
import math
import sys
from base64 import b64encode
from collections.abc import Collection, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.table import Table as RichTable

from sooner.answer import Answer
from sooner.display import is_number
from sooner.errors import InvalidArgument, SoonerError
from sooner.storage import Table
from sooner.synopses import Synopsis
from sooner.view import View


class OutputFormat(StrEnum):
    """How to write an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def write_answer(answer: Answer, format: OutputFormat, output: Path | None) -> None:
    """Write an answer to a file or to standard output; one that is not final with its intervals."""
    if format is OutputFormat.TABLE:
        if output is not None:
            output.write_text(str(answer) + "\n")
        else:
            answer.show()
        return
    if format is OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise InvalidArgument("Parquet is not for reading: add --output FILE, or redirect it.")
    table = answer.to_arrow(bounds=not answer.final or bool(answer.uncertain))
    sink: Any = str(output) if output is not None else sys.stdout.buffer
    if format is OutputFormat.JSON:
        text = json_text(table)
        if output is not None:
            output.write_text(text)
        else:
            sys.stdout.write(text)
    elif format is OutputFormat.CSV:
        pyarrow.csv.write_csv(_for_csv(table), sink)
    else:
        pyarrow.parquet.write_table(table, sink)


def json_text(table: pa.Table) -> str:
    """An array of objects, a row a line; decimals as numbers with all their digits."""
    names = [json.dumps(name) for name in table.column_names]
    columns = [column.to_pylist() for column in table.columns]
    rows = [
        "{" + ", ".join(f"{n}: {_json(v)}" for n, v in zip(names, row, strict=True)) + "}"
        for row in zip(*columns, strict=True)
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_json(one) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, bytes):
        return json.dumps(b64encode(value).decode())  # as Spark's to_json
    return json.dumps(value, default=str)


def _for_csv(table: pa.Table) -> pa.Table:
    """Types that the CSV writer does not know, as text."""
    fields = [
        column if _is_plain(column.type) else pa.field(column.name, pa.string())
        for column in table.schema
    ]
    columns = [
        column if _is_plain(field.type) else _as_text(column)
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _is_plain(kind: pa.DataType) -> bool:
    is_decimal = pa.types.is_decimal(kind)
    return (is_number(kind) and not is_decimal) or pa.types.is_string(kind)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.chunked_array(
            [[None if value is None else str(value) for value in column.to_pylist()]], pa.string()
        )


def show_tables(tables: Sequence[Table], views: Collection[str]) -> None:
    """List tables, and say which are views."""
    console = Console(markup=False)
    if not tables:
        console.print("No tables yet. Start with: sooner register NAME FILES")
        return
    shown = RichTable(box=None, header_style="bold")
    for heading in ("table", "rows", "version", "key", "scrambled by"):
        shown.add_column(heading, justify="right" if heading in ("rows", "version") else "left")
    for table in tables:
        scrambles = [f"{', '.join(s.by)} ({s.blocks} blocks)" for s in table.scrambles]
        rows = "?" if table.facts.rows is None else f"{table.facts.rows:,}"
        seen = {column.name for column in table.columns}
        key = ", ".join(name for name in table.key if name in seen) or "–"
        name = f"{table.name} (view)" if table.name in views else table.name
        shown.add_row(name, rows, str(table.version), key, "; ".join(scrambles) or "–")
    console.print(shown)


def show_synopses(synopses: Sequence[Synopsis]) -> None:
    """List synopses."""
    console = Console(markup=False)
    if not synopses:
        console.print("No synopses yet. Start with: sooner synopsis create --help")
        return
    shown = RichTable(box=None, header_style="bold")
    for heading in ("synopsis", "table", "version", "measures", "over", "leaves", "rows stored"):
        right = heading in ("version", "leaves", "rows stored")
        shown.add_column(heading, justify="right" if right else "left")
    for one in synopses:
        about = one.definition
        measures, over = (
            ", ".join(c.name for c in columns) for columns in (about.measures, about.over)
        )
        numbers = (str(one.leaves), f"{one.sampled:,}")
        shown.add_row(one.name, about.table, str(about.version), measures, over, *numbers)
    console.print(shown)


def show_views(views: Sequence[View]) -> None:
    """List views."""
    console = Console(markup=False)
    if not views:
        console.print("No views yet. Start with: sooner view create --help")
        return
    shown = RichTable(box=None, header_style="bold")
    for heading in ("view", "rows", "key", "state", "sampled", "last refresh"):
        shown.add_column(heading, justify="right" if heading == "rows" else "left")
    for one in views:
        last = one.history()[-1]
        at = "–" if last.at is None else f"{last.at.astimezone():%Y-%m-%d %H:%M}, {last.kind}"
        rows = "?" if one.rows is None else f"{one.rows:,}"
        key = ", ".join(one.key) or "–"
        state = _state(one)
        sampled = "–" if one.sample is None else f"{100 * one.sample:.3g}%"
        shown.add_row(one.name, rows, key, state, sampled, at)
    console.print(shown)


def _state(view: View) -> str:
    try:
        return "stale" if view.is_stale else "up to date"
    except SoonerError:  # the others are still worth listing
        return "its tables are gone or changed"


def show_synopsis(synopsis: Synopsis) -> None:
    """What one synopsis holds, and how it was asked for."""
    about = synopsis.definition
    shown = RichTable(box=None, show_header=False)
    lines = {
        "synopsis": about.name,
        "table": f"{about.table}, version {about.version}, {synopsis.rows:,} rows",
        "measures": ", ".join(f"{one.name} ({one.type})" for one in about.measures),
        "over": ", ".join(f"{one.name} ({one.type})" for one in about.over),
        "in the samples only": ", ".join(one.name for one in about.keep) or "–",
        "leaves": str(synopsis.leaves),
        "rows stored": f"{synopsis.sampled:,} ({synopsis.sampled / synopsis.rows:.2%})",
        "focus": f"{about.knobs.focus}, partitioning {about.knobs.partitioning}",
    }
    for name, value in lines.items():
        shown.add_row(name, value)
    Console(markup=False).print(shown)


def say(text: str) -> None:
    """One line for a person, apart from the answer."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
