"""What is still known about a table after a part was added or taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.storage.records import Change, total_rows


def widen(facts: TableFacts, added: TableFacts) -> TableFacts:
    """The facts of two sets of rows together; a distinct count does not survive that.

    >>> a = TableFacts(rows=2, bytes=10, columns={"x": ColumnFacts(1, 5, 0)})
    >>> b = TableFacts(rows=1, bytes=10, columns={"x": ColumnFacts(9, 9, 0)})
    >>> widen(a, b).column("x").maximum
    9
    """
    if facts.rows == 0:
        columns = dict(added.columns)
    elif added.rows == 0:
        columns = dict(facts.columns)
    else:
        names = list(facts.columns) + [name for name in added.columns if name not in facts.columns]
        columns = {
            name: _widen_column(facts.column(name), facts.rows, added.column(name), added.rows)
            for name in names
        }
    return TableFacts(
        rows=_sum(facts.rows, added.rows), bytes=_sum(facts.bytes, added.bytes), columns=columns
    )


def after_change(facts: TableFacts, plain: list[Change], inserted: TableFacts | None) -> TableFacts:
    """The facts after a commit, given its plain changes and the facts of its inserted rows.

    Bounds stay true when rows go away, so deletes narrow nothing; counts of nulls and of distinct
    values do not stay true, except that no nulls stay no nulls.
    """
    deleted: int | None = 0
    extra_bytes = 0
    for change in plain:
        size = sum(file.bytes for file in change.files)
        if change.kind == "insert":
            added = inserted or TableFacts()
            facts = widen(facts, TableFacts(total_rows(change.files), size, added.columns))
        else:
            deleted = _sum(deleted, change.rows)
            extra_bytes += size
    if deleted == 0:
        columns = dict(facts.columns)
    else:
        columns = {
            name: ColumnFacts(column.minimum, column.maximum, 0 if column.nulls == 0 else None)
            for name, column in facts.columns.items()
        }
    return TableFacts(
        rows=_sum(facts.rows, None if deleted is None else -deleted),
        bytes=_sum(facts.bytes, extra_bytes),
        columns=columns,
    )


def _widen_column(
    one: ColumnFacts, one_rows: int | None, two: ColumnFacts, two_rows: int | None
) -> ColumnFacts:
    nulls = _sum(one.nulls, two.nulls)
    # A part with nothing but nulls has no bounds of its own and takes none away.
    if one.nulls is not None and one.nulls == one_rows:
        return ColumnFacts(two.minimum, two.maximum, nulls)
    if two.nulls is not None and two.nulls == two_rows:
        return ColumnFacts(one.minimum, one.maximum, nulls)
    return ColumnFacts(
        _bound(min, one.minimum, two.minimum), _bound(max, one.maximum, two.maximum), nulls
    )


def _bound(choose: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    if one is None or two is None:
        return None
    try:
        return choose(one, two)
    except TypeError:  # Files that disagree about the type: nothing can be said.
        return None


def _sum(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two
