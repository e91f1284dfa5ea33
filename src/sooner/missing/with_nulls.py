"""Rows of which some columns may be null, as constraints: a range of values is one of values there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from sooner.missing.constraint import Constraint, Range
from sooner.sql import quote

# Each column with nulls doubles the kinds of rows; of others beyond these nothing is said.
_MOST = 4


def with_nulls(
    where: Sequence[str],
    values: Mapping[str, Range],
    nulls: Mapping[str, int | None],
    rows: tuple[int, int],
) -> Iterator[Constraint]:
    """So many rows of a place: one constraint for each set of columns that may be null there.

    ``nulls`` are the columns with nulls, and how many at most, ``None`` where nobody knows.

    >>> [one.label for one in with_nulls(["a = 1"], {"b": (0, 9)}, {"b": 3}, (0, 50))]
    ['a = 1 AND `b` IS NOT NULL', 'a = 1 AND `b` IS NULL']
    """
    empty = [name for name, number in nulls.items() if number != 0]
    known = {name: ends for name, ends in values.items() if name not in empty[_MOST:]}
    empty = empty[:_MOST]
    fewest, most = rows
    for chosen in product((False, True), repeat=len(empty)):
        gone = [name for name, is_null in zip(empty, chosen, strict=True) if is_null]
        there = [f"{quote(name)} IS NOT NULL" for name in empty if name not in gone]
        parts = [*where, *there, *(f"{quote(name)} IS NULL" for name in gone)]
        number = min([most, *(n for n in (nulls[name] for name in gone) if n is not None)])
        yield Constraint(
            " AND ".join(parts) or None,
            {name: ends for name, ends in known.items() if name not in gone},
            (0 if empty else fewest, number),
        )
