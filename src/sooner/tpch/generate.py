"""TPC-H data as Parquet files, made once and kept."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from sooner.errors import InvalidArgument, NotSupported, SoonerError
from sooner.tpch.load import TABLES

# Some files even at small scale, so that Spark reads them with all cores.
_FILES_PER_SCALE = 4
_LEAST_FILES = 2
_ONE_FILE = ("nation", "region")


def generate(directory: str | Path, scale: float = 1.0, progress: bool | None = None) -> Path:
    """Make the eight tables below ``directory``, one folder each, unless they are there already.

    A table appears under its name only when it is whole.
    """
    if not scale > 0:
        raise InvalidArgument(f"The scale must be above 0, not {scale}: 1 is about 1 GB of text.")
    target = Path(directory)
    made = target / "scale"
    if made.exists() and (there := float(made.read_text())) != scale:
        raise InvalidArgument(
            f"{target} holds TPC-H data of scale {there:g}, not {scale:g}. Choose another directory."
        )
    target.mkdir(parents=True, exist_ok=True)
    missing = [table for table in TABLES if not (target / table).exists()]
    made.write_text(f"{scale}\n")
    with _bar(len(missing), progress) as advance:
        for table in missing:
            advance(f"Generating {table}")
            _generate_table(target, table, scale)
    return target


def _generate_table(target: Path, table: str, scale: float) -> None:
    scratch = target / f".{table}-{uuid.uuid4().hex}"
    files = 1 if table in _ONE_FILE else max(_LEAST_FILES, math.ceil(scale * _FILES_PER_SCALE))
    command = [_generator(), "parquet", "--scale-factor", str(scale), "--tables", table]
    command += ["--parts", str(files), "--output-dir", str(scratch)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SoonerError(f"tpchgen-cli failed: {done.stderr.strip() or done.stdout.strip()}")
        (scratch / table).rename(target / table)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _generator() -> str:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise NotSupported("TPC-H data needs tpchgen-cli: pip install 'sooner[tpch]'.")
    return found


@contextmanager
def _bar(steps: int, progress: bool | None) -> Iterator:  # type: ignore[type-arg]
    console = Console(stderr=True)
    if not steps or progress is False or (progress is None and not console.is_terminal):
        yield lambda _: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Generating", total=steps)
        started = [0]

        def advance(description: str) -> None:
            bar.update(task, description=description, completed=started[0])
            started[0] += 1

        yield advance
