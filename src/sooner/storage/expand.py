"""From what the user wrote (globs, directories, URIs) to the files it means."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from sooner.errors import MissingFile, NotSupported

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_BRACES = re.compile(r"\{([^{}]*)\}")


def expand(location: str | Sequence[str], suffixes: Sequence[str] = (".parquet",)) -> list[str]:
    """The files, absolute and sorted, that paths, globs, directories and file: URIs name.

    A directory means all files below it with one of the suffixes. Names that start with ``_`` or
    ``.`` are left out, as Spark does. Every pattern must find something.
    """
    patterns = [location] if isinstance(location, str) else list(location)
    if not patterns:
        raise MissingFile("No files named: give at least one path or pattern.")
    found: set[str] = set()
    for pattern in patterns:
        if is_remote(pattern):
            raise NotSupported(
                f"Sooner reads local files (a mounted file system too), not {pattern!r}. "
                "Make a Spark view of it and register that."
            )
        files = set(_files(local_path(pattern), tuple(suffixes)))
        if not files:
            raise MissingFile(f"No files found at {pattern!r}. Check the path or pattern.")
        found |= files
    return sorted(found)


def local_path(path: str) -> str:
    """A plain path, from a path or a ``file:`` URI in any of its spellings.

    >>> local_path("file:///data/a%20b.parquet"), local_path("file:/data"), local_path("data")
    ('/data/a b.parquet', '/data', 'data')
    """
    for prefix in ("file://localhost/", "file:///", "file:/"):
        if path.lower().startswith(prefix):
            return "/" + unquote(path[len(prefix) :])
    return path


def is_remote(path: str) -> bool:
    """Whether a path names another file system, such as ``s3a://bucket/key``."""
    return _REMOTE.match(path) is not None and not path.lower().startswith("file:")


def _files(pattern: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    # What exists under exactly this name is meant, even where the name looks like a pattern.
    names = [pattern] if os.path.exists(pattern) else _matches(pattern)
    for name in names:
        path = os.path.abspath(name)
        if os.path.isdir(path):
            yield from _below(path, suffixes)
        elif os.path.isfile(path):
            yield path


def _matches(pattern: str) -> list[str]:
    names = []
    for alternative in _alternatives(pattern):
        literal = set(alternative.split(os.sep))
        for name in glob.glob(alternative, recursive=True):
            # Only what a wildcard found may be left out: the user wrote the rest.
            if not any(_hidden(part) for part in name.split(os.sep) if part not in literal):
                names.append(name)
    return names


def _alternatives(pattern: str) -> list[str]:
    """Spark's ``{a,b}``, which Python's glob does not know, as one pattern each."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [
        whole
        for choice in braces.group(1).split(",")
        for whole in _alternatives(before + choice + after)
    ]


def _below(directory: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    seen = {os.path.realpath(directory)}
    for parent, directories, files in os.walk(directory, followlinks=True):
        kept = []
        for name in directories:
            real = os.path.realpath(os.path.join(parent, name))
            # Links may lead in a circle.
            if not _hidden(name) and real not in seen:
                seen.add(real)
                kept.append(name)
        directories[:] = kept
        for name in files:
            if name.endswith(suffixes) and not _hidden(name):
                yield os.path.join(parent, name)


def _hidden(name: str) -> bool:
    # "_year=2024" is a partition, not a hidden directory: Spark's rule.
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
