"""Raised inside the front end when Spark should answer a query as it stands; users never see it."""

from __future__ import annotations


class Untranslatable(Exception):
    """The algebra cannot express this; the message says which part, in words for ``explain()``."""
