"""Raised inside the front end when Spark should answer a query as it stands; users never see it."""

from __future__ import annotations

from sqlglot import exp


class Untranslatable(Exception):
    """The algebra cannot express this; the message says which part, in words for ``explain()``.

    ``query`` is what could be read of it all the same: good for telling which tables it is of.
    """

    def __init__(self, reason: str, query: exp.Query | None = None) -> None:
        super().__init__(reason)
        self.query = query
