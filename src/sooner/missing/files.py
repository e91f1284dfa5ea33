"""Constraints as a YAML file, to be reviewed and versioned like code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from sooner.errors import InvalidArgument, MissingFile, nearest
from sooner.missing.constraint import Constraint

_KEYS = [one.name for one in fields(Constraint) if one.init]


def read_constraints(path: str | Path) -> list[Constraint]:
    """The constraints of a file: a list, each with ``where``, ``values``, ``rows`` and perhaps a ``name``."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingFile(f"There is no file {path}.") from None
    return constraints_of(text, str(path))


def constraints_of(text: str, place: str) -> list[Constraint]:
    """The constraints of a text as files have it; ``place`` is where it was found."""
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidArgument(f"{place} is not YAML: {error}") from None
    if not isinstance(given, list):
        raise InvalidArgument(
            f"{place} should be a list of constraints, each with where, values and rows."
        )
    return [_constraint(one, f"{place}, constraint {n}") for n, one in enumerate(given, start=1)]


def _constraint(given: Any, place: str) -> Constraint:
    if not isinstance(given, dict):
        raise InvalidArgument(f"{place} is {given!r}; it should have where, values and rows.")
    for key in given:
        if key not in _KEYS:
            raise InvalidArgument(f"{place} has {key!r}.{nearest(str(key), _KEYS)}")
    try:
        return Constraint(**given)
    except InvalidArgument as error:
        raise InvalidArgument(f"{place}: {error}") from None


def constraints_text(constraints: Iterable[Constraint]) -> str:
    """Constraints as a file has them.

    >>> print(constraints_text([Constraint("branch = 'Chicago'", {"price": (0, 149.99)}, (0, 5))]))
    - where: branch = 'Chicago'
      values:
        price: [0, 149.99]
      rows: [0, 5]
    <BLANKLINE>
    """
    lines = []
    for one in constraints:
        line: dict[str, Any] = {
            "name": one.name,
            "table": one.table,
            "where": one.where,
            "values": {column: _Pair(ends) for column, ends in one.values.items()},
            "rows": _Pair(one.rows),
        }
        lines.append({key: value for key, value in line.items() if value not in (None, {})})
    return yaml.dump(lines, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


class _Pair(list[Any]):
    """Two ends, written in one line."""

    def __init__(self, ends: Iterable[Any]) -> None:
        # A decimal is a number like any other.
        super().__init__(float(one) if type(one).__name__ == "Decimal" else one for one in ends)


class _Dumper(yaml.SafeDumper):
    """Writes pairs in one line."""


_Dumper.add_representer(
    _Pair,
    lambda dumper, pair: dumper.represent_sequence("tag:yaml.org,2002:seq", pair, flow_style=True),
)
