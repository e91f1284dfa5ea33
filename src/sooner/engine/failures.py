"""Spark's exceptions in Sooner's words: a user never sees a Java stack trace alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    PythonException,
)

from sooner.errors import (
    InvalidArgument,
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

# Begins the message of an error that a query of ours raises: what was handed over, in plain words.
NOT_EXACT = "Not exact: "

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_CANCELLED = re.compile(r"Job \d+ cancell?ed|part of cancelled job group")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_NEAR = re.compile(r"at or near '([^']+)'")
_WHERE = re.compile(r";\s*line \d+,? pos \d+;?$")
_AGGREGATE = re.compile(r"RuntimeError: aggregate (\w+): (.*)")
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
    full = _deepest(error)
    found = _CONDITION.match(full)
    condition = found[1] if found else ""
    message = _plain(full)
    if isinstance(error, ParseException):
        return _parse_error(full, message, text)
    if isinstance(error, PythonException):
        raised = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
        last = raised[-1].strip()
        if named := _AGGREGATE.match(last):
            return QueryFailed(f"The function of the aggregate {named[1]}() failed: {named[2]}")
        return QueryFailed(f"The function given to map() failed: {last}")
    if isinstance(error, AnalysisException):
        return _analysis_error(error, condition, message, tables)
    if condition == "USER_RAISED_EXCEPTION" and message.startswith(NOT_EXACT):
        return InvalidArgument(f"{message.removeprefix(NOT_EXACT)} Nothing was changed.")
    if _CANCELLED.search(full):
        return QueryCancelled("The query was cancelled.")
    if condition == "FAILED_READ_FILE.FILE_NOT_EXIST":
        return MissingFile(f"A data file vanished while it was being read: {message}")
    return QueryFailed(f"Spark could not finish: {message}")


def _analysis_error(
    error: AnalysisException, condition: str, message: str, tables: Iterable[str]
) -> SoonerError:
    parameters = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "?").replace("`", "")
        proposed = parameters.get("proposal", "").replace("`", "").split(",")
        known = [part.strip().split(".")[-1] for part in proposed if part.strip()]
        return UnknownColumn(
            f"There is no column {name!r} here.{nearest(name.split('.')[-1], known)}"
        )
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = parameters.get("relationName", "?").replace("`", "")
        advice = nearest(name, tables) or " Register it with db.register()."
        return UnknownTable(f"There is no table {name!r}.{advice}")
    if condition == "PARQUET_TYPE_ILLEGAL":
        return InvalidQuery(
            f"{message} Spark cannot read a column of this type: write the file with another. Of pandas and "
            'Arrow, times of nanoseconds: frame.to_parquet(path, coerce_timestamps="us").'
        )
    return InvalidQuery(message)


def _parse_error(full: str, message: str, text: str) -> ParseError:
    message = _POSITION.sub("", message).strip().rstrip(".")
    place = _position(full, text)
    if place is None:
        return ParseError(message + ".")
    line, column = place
    lines = text.splitlines()
    shown = f"\n  {lines[line - 1]}\n  {' ' * (column - 1)}^" if line <= len(lines) else ""
    return ParseError(f"{message}, at line {line}, column {column}.{shown}", line, column)


def _position(full: str, text: str) -> tuple[int, int] | None:
    """Line and column, from 1; where Spark does not say, those of the last such word."""
    if found := _POSITION.search(full):
        return int(found[1]), int(found[2]) + 1
    near = _NEAR.search(full)
    start = text.rfind(near[1]) if near else -1
    if start < 0:
        return None
    before = text[:start]
    return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1


def _deepest(error: Exception) -> str:
    """The message of the cause that says most: the last one with an error condition of Spark's."""
    cause: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    best = last = ""
    while cause is not None:
        last = str(cause.getMessage() or cause.getClass().getSimpleName()).strip()
        if not best or _CONDITION.match(last) or not _CONDITION.match(best):
            best = last
        cause = cause.getCause()
    if best.startswith("[FAILED_READ_FILE") and last != best:
        return f"{best.splitlines()[0]} {last.splitlines()[0]}"
    # A failed job repeats its cause inside the message, behind the names of Java classes.
    inner = re.search(r"(?:Exception|Error): (\[[A-Z0-9_.]+\] [^\n]+)", best)
    return inner[1] if inner and not _CONDITION.match(best) else best or str(error)


def _plain(full: str) -> str:
    """The first line, without Spark's codes."""
    lines = [line.strip() for line in full.splitlines() if line.strip()]
    message = _CONDITION.sub("", lines[0] if lines else "unknown error")
    return _WHERE.sub("", _STATE.sub("", message)).strip()
