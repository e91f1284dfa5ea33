"""Where benchmarks put their figures: a JSON file each, and a line each in docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"


def record(name: str, figure: str, required: str, measured: str, details: dict[str, Any]) -> None:
    """Write bench/results/NAME.json, and replace or add the line of this figure on the page."""
    results = ROOT / "bench" / "results"
    results.mkdir(exist_ok=True)
    facts = {"figure": figure, "required": required, "measured": measured, "machine": _machine()}
    (results / f"{name}.json").write_text(json.dumps({**facts, **details}, indent=2) + "\n")
    script = f"`bench/{name.partition('-')[0]}.py`"
    line = f"| {figure} | {required} | {measured} | {date.today()} | {script} |"
    lines = PAGE.read_text().splitlines()
    places = [i for i, old in enumerate(lines) if old.startswith(f"| {figure} |")]
    if places:
        lines[places[0]] = line
    else:
        first = next(i for i, old in enumerate(lines) if old.startswith("|"))
        end = next(i for i, old in enumerate(lines[first:], first) if not old.startswith("|"))
        lines.insert(end, line)
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"{figure}: {measured} (required: {required})")


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
