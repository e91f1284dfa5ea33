"""Where benchmarks put their figures: a JSON file each, and a line each in docs/benchmarks.md.

What takes more than a line is a table in a page of its own.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
_SECTIONS = {
    "Exact answers and scrambles": ("exact", "scramble"),
    "Progressive answers": ("progressive", "break_even", "ablations", "coverage", "stops"),
    "Synopses": ("synopses",),
    "Views": ("views",),
    "Missing rows": ("missing", "missing_joins"),
}


def record(name: str, figure: str, required: str, measured: str, details: dict[str, Any]) -> None:
    """Write bench/results/NAME.json, and replace or add the line of this figure on the page."""
    RESULTS.mkdir(exist_ok=True)
    facts = {"figure": figure, "required": required, "measured": measured, "machine": _machine()}
    (RESULTS / f"{name}.json").write_text(json.dumps({**facts, **details}, indent=2) + "\n")
    script = name.partition("-")[0]
    line = f"| {figure} | {required} | {measured} | {date.today()} | `bench/{script}.py` |"
    lines = PAGE.read_text().splitlines()
    places = [i for i, old in enumerate(lines) if old.startswith(f"| {figure} |")]
    if places:
        lines[places[0]] = line
    else:
        section = next(title for title, scripts in _SECTIONS.items() if script in scripts)
        start = lines.index(f"## {section}")
        first = next(i for i, old in enumerate(lines[start:], start) if old.startswith("|"))
        end = next(i for i, old in enumerate(lines[first:], first) if not old.startswith("|"))
        lines.insert(end, line)
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"{figure}: {measured} (required: {required})")


def write_tables(page: str, name: str, lines: Sequence[str]) -> None:
    """Put tables between the marks ``<!-- NAME -->`` and ``<!-- end -->`` of docs/PAGE."""
    path = ROOT / "docs" / page
    before, mark, after = path.read_text().partition(f"<!-- {name} -->\n")
    assert mark, f"{page} has no place for {name}"
    rest = after[after.index("<!-- end -->") :]
    path.write_text(before + mark + "\n".join(lines) + "\n" + rest)


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
