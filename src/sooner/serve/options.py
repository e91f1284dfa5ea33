"""What commands have in common: where Sooner keeps its things, queries as text, shares and times."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sooner.errors import InvalidArgument, SoonerError
from sooner.serve.output import say

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


def reported(command: Command) -> Command:
    """Say errors in one line instead of a trace."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SoonerError as error:
            say(f"Error: {_as_options(str(error))}")
            raise typer.Exit(1) from error
        except BrokenPipeError:
            raise  # whoever read the output has seen enough: nothing to say
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            say(f"Error: {error.strerror or error}{where}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            say("Stopped.")
            raise typer.Exit(130) from error

    return run  # type: ignore[return-value]


# What errors tell a program to write, in the words of the command line.
_OPTIONS = {
    "replace=True": "--replace",
    "key=[…]": "--key …",
    "sample_by=[…]": "--sample-by …",
    "sample=None": "--sample 0",
    "outliers=": "--outlier ",
    "Use refresh()": "Use sooner view refresh",
}


def _as_options(message: str) -> str:
    for words, option in _OPTIONS.items():
        message = message.replace(words, option)
    return message


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def share(option: str, text: str, *examples: str) -> float:
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


def seconds(option: str, text: str) -> float:
    """A time: ``5s``, ``500ms``, ``2m``, or plain seconds."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS or not float(found[1]) > 0:
        raise InvalidArgument(
            f"{option} takes a time above 0 such as 5s, 500ms or 2m, not {text!r}."
        )
    return float(found[1]) * _UNITS[found[2]]


def sql_text(sql: str | None, file: Path | None) -> str:
    """The query: as given, from a file, or from standard input."""
    if file is not None:
        if sql is not None:
            raise InvalidArgument("Give the query as text or with --file, not both.")
        try:
            return file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InvalidArgument(f"Cannot read {file}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"Cannot read {file}: it is not text in UTF-8.") from error
    if sql is None or sql == "-":
        if sql is None and sys.stdin.isatty():
            raise InvalidArgument('Give a query: sooner query "SELECT …", or --file q.sql.')
        return sys.stdin.read()
    return sql
