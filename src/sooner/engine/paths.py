"""Paths as Spark has to be given them, which takes every path for a pattern."""

from __future__ import annotations

import re

from sooner.storage.expand import is_remote

_PATTERN = re.compile(r"([\\{}\[\]*?])")


def literal(path: str) -> str:
    """A path that means one file or directory of ours to Spark, whatever is in its name.

    >>> literal("/data/a?b/[1].parquet"), literal("/data/plain")
    ('/data/a\\\\?b/\\\\[1\\\\].parquet', '/data/plain')
    """
    return path if is_remote(path) else _PATTERN.sub(r"\\\1", path)
