"""Rows for people: one text for each cell, and the notebook's HTML."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

ROWS_SHOWN = 20
# Where no terminal ends, no column is left out.
_WIDE = 100_000
_WIDEST_CELL = 40


def cell_text(value: Any) -> str:
    """A value as a person would write it; long texts are cut."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"
    text = str(value)
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def cells(
    table: pa.Table, margins: Mapping[str, Sequence[str]], rows: int = ROWS_SHOWN
) -> list[list[str]]:
    """The first rows as texts; ``margins`` adds the text of its interval behind a column's values."""
    head = table.slice(0, rows)
    columns = []
    for place, name in enumerate(table.column_names):
        values = [cell_text(value) for value in head.column(place).to_pylist()]
        if name in margins:
            values = [f"{v} {m}".rstrip() for v, m in zip(values, margins[name], strict=False)]
        columns.append(values)
    return [list(row) for row in zip(*columns, strict=True)]


def rich_table(table: pa.Table, margins: Mapping[str, Sequence[str]], caption: str) -> Group:
    """The first rows as a table for the terminal, and what is to be said below it."""
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False)
    for field in table.schema:
        shown.add_column(Text(field.name), justify="right" if is_number(field.type) else "left")
    for row in cells(table, margins):
        shown.add_row(*(Text(cell) for cell in row))
    return Group(shown, Text(caption, style="dim"))


def show(shown: Group) -> None:
    """Print rows; into a pipe or a file all columns of them, however many there are."""
    console = Console()
    if not (console.is_terminal or console.is_jupyter):
        console = Console(width=_WIDE)
    console.print(shown)


def as_text(shown: Group) -> str:
    """Rows as text, with all columns."""
    console = Console(file=io.StringIO(), width=_WIDE, record=True)
    console.print(shown)
    return console.export_text().rstrip()


def html_table(table: pa.Table, margins: Mapping[str, Sequence[str]], caption: str) -> str:
    """The first rows as a table for a notebook."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
    right = [is_number(field.type) for field in table.schema]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if number else "left"}">{html.escape(text)}</td>'
            for text, number in zip(row, right, strict=True)
        )
        + "</tr>"
        for row in cells(table, margins)
    )
    rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    lines = "<br>".join(html.escape(line) for line in caption.splitlines())
    return f"{rows}<p>{lines}</p>"


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def rows_text(count: int) -> str:
    """So many rows, in words."""
    return f"{count:,} row{'s' if count != 1 else ''}"
