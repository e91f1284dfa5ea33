"""Spark's exceptions in Sooner's words: a user never sees a Java stack trace alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    PythonException,
)

from sooner.errors import (
    InvalidQuery,
    MissingFile,
    ParseError,
    QueryCancelled,
    QueryFailed,
    SoonerError,
    UnknownColumn,
    UnknownTable,
    nearest,
)

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_CANCELLED = re.compile(r"Job \d+ cancell?ed|part of cancelled job group")
_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+")


@contextmanager
def plain_errors(text: str = "", tables: Iterable[str] = ()) -> Iterator[None]:
    """Turn what Spark raises inside into Sooner's errors.

    ``text`` is the query, for positions; ``tables`` are the names to suggest for an unknown one.
    """
    try:
        yield
    except SoonerError:
        raise
    except (PySparkException, Py4JError) as error:
        raise explained(error, text, tables) from error


def explained(error: Exception, text: str = "", tables: Iterable[str] = ()) -> SoonerError:
    """The Sooner error that says what a Spark exception means."""
    if isinstance(error, ParseException):
        return _parse_error(error, text)
    if isinstance(error, PythonException):
        raised = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
        return QueryFailed(f"The function given to map() failed: {raised[-1].strip()}")
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    message = _message(error)
    if isinstance(error, AnalysisException):
        parameters = error.getMessageParameters() or {}
        if condition.startswith("UNRESOLVED_COLUMN"):
            name = parameters.get("objectName", "?").replace("`", "")
            known = [part.strip(" `") for part in parameters.get("proposal", "").split(",")]
            bare = [part.replace("`", "").split(".")[-1] for part in known if part]
            return UnknownColumn(
                f"There is no column {name!r} here.{nearest(name.split('.')[-1], bare)}"
            )
        if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
            name = parameters.get("relationName", "?").replace("`", "")
            advice = nearest(name, tables) or " Register it with db.register()."
            return UnknownTable(f"There is no table {name!r}.{advice}")
        return InvalidQuery(message)
    if _CANCELLED.search(str(error)):
        return QueryCancelled("The query was cancelled.")
    if "FILE_NOT_EXIST" in condition or "FileNotFoundException" in message:
        return MissingFile(f"A data file vanished while it was being read: {message}")
    return QueryFailed(f"Spark could not finish: {message}")


def _parse_error(error: ParseException, text: str) -> ParseError:
    full = str(error)
    found = _POSITION.search(full)
    message = _POSITION.sub("", _message(error)).strip().rstrip(".")
    if found is None:
        return ParseError(message + ".")
    line, column = int(found[1]), int(found[2]) + 1
    shown = ""
    lines = text.splitlines()
    if line <= len(lines):
        shown = f"\n  {lines[line - 1]}\n  {' ' * (column - 1)}^"
    return ParseError(f"{message}, at line {line}, column {column}.{shown}", line, column)


def _message(error: Exception) -> str:
    """The first sentence or two of an error, without codes and traces."""
    java = getattr(error, "java_exception", None)
    full = str(java.getMessage()) if java is not None else str(error)
    # The cause inside a failed Spark job says more than "Job aborted due to stage failure".
    inner = re.search(r"(?:Exception|Error): (\[[A-Z0-9_.]+\] [^\n]+)", full)
    if inner:
        full = inner[1]
    lines = [line.strip() for line in full.splitlines() if line.strip()]
    first = _STATE.sub("", _CLASS.sub("", lines[0] if lines else type(error).__name__))
    return first.strip()
