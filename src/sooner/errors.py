"""What can go wrong, by name. Every message says what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SoonerError(Exception):
    """The parent of every error that Sooner raises on purpose."""


class ParseError(SoonerError):
    """The SQL text cannot be read; ``line`` and ``column`` (from 1) say where, when known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class UnknownTable(SoonerError):
    """No table of this name is registered."""


class UnknownColumn(SoonerError):
    """No column of this name is in scope."""


class InvalidArgument(SoonerError):
    """A value given by the caller cannot be used."""


class InvalidQuery(SoonerError):
    """The SQL text reads well but means nothing: Spark's analysis refuses it."""


class NotSupported(SoonerError):
    """Sooner does not do this, and says what to do instead."""


class CannotAnswer(NotSupported):
    """A synopsis cannot answer this question; the message says why."""


class ConstraintViolation(SoonerError):
    """Rows break something that was declared, such as a key."""


class CatalogError(SoonerError):
    """The catalog cannot do what was asked."""


class TableExists(CatalogError):
    """A table of this name is registered already."""


class UnknownSynopsis(CatalogError):
    """No synopsis of this name was created."""


class SynopsisExists(CatalogError):
    """A synopsis of this name exists already."""


class UnknownView(CatalogError):
    """No view of this name was created."""


class MissingFile(CatalogError):
    """A file that the catalog names, or that the caller named, is not there."""


class SourceChanged(CatalogError):
    """Registered files are no longer what they were when they were registered."""


class SchemaChanged(SourceChanged):
    """Registered files have other columns or types than when they were registered."""


class WriteConflict(CatalogError):
    """Somebody else changed the table while this change was being written."""


class QueryFailed(SoonerError):
    """Spark could not finish the query."""


class QueryCancelled(QueryFailed):
    """The query was stopped before it finished."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """A sentence that suggests the closest of the candidates, or lists them, or is empty.

    >>> nearest("lineitm", ["lineitem", "orders"])
    " Did you mean 'lineitem'?"
    """
    known = sorted(set(candidates))
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {lowered[close[0]]!r}?"
    if known:
        shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        return f" Known: {shown}."
    return ""
