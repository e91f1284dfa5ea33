"""Primary keys of every expression (Stale View Cleaning §4.3, Definition 2), as small as we can.

The definition's keys are the start: a join has both keys, an aggregate its grouping columns. Most
are larger than need be (grouping by a table's key *and* its other columns has the table's key), and
one is too small: nulls of an outer join can make two keys agree. Both are settled by the functional
dependencies in ``plan_dependencies``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sooner.algebra import Relation, Union
from sooner.analysis.facts import TableInfo
from sooner.analysis.plan_dependencies import plan_dependencies


def primary_key(plan: Relation, tables: Mapping[str, TableInfo]) -> frozenset[str] | None:
    """Output columns on which no two rows agree, a null agreeing with a null; ``None`` if unknown.

    No column can be left out of them. An empty key means that there is at most one row.

    >>> from sooner.algebra import Column, Scan
    >>> video = Scan("Video", ("videoId", "ownerId"), (Column("videoid"), Column("ownerid")))
    >>> primary_key(video, {"video": TableInfo(key=("videoId",))})
    frozenset({'videoid'})
    """
    return plan_dependencies(plan, tables).key()


def never_null(plan: Relation, tables: Mapping[str, TableInfo]) -> frozenset[str]:
    """Output columns that cannot hold a null."""
    known = plan_dependencies(plan, tables)
    return frozenset(name for name, at in known.columns.items() if at in known.never_null)


@dataclass(frozen=True, slots=True)
class UnionKey:
    """What a UNION ALL needs to have a key: the number of the branch a row came from.

    Add a column ``tag`` with the value i to the i-th of ``branches`` (from 0); then ``tag`` and
    ``columns`` (names of the union's output) are a key together.
    """

    branches: tuple[Relation, ...]
    tag: str
    columns: frozenset[str]


def union_key(plan: Union, tables: Mapping[str, TableInfo]) -> UnionKey | None:
    """How to give a union a key; ``None`` if a branch has none, or its key is cast to a wider type.

    Definition 2 takes the union of both keys, which supposes that the sides share no row. They may,
    and UNION ALL keeps both copies, so the side must be part of the key. Where the sides provably
    differ (``'web' AS channel`` and ``'store' AS channel``) ``primary_key`` finds that by itself.
    """
    branches = _branches(plan)
    columns: set[str] = set()
    for branch in branches:
        key = primary_key(branch, tables)
        if key is None:
            return None
        for output, name in zip(plan.schema, branch.names, strict=True):
            if name in key and output.type is None:
                return None
            if name in key:
                columns.add(output.name)
    tag = "branch"
    while tag in plan.name_set:
        tag = "_" + tag
    return UnionKey(branches, tag, frozenset(columns))


def _branches(plan: Relation) -> tuple[Relation, ...]:
    if isinstance(plan, Union):
        return _branches(plan.left) + _branches(plan.right)
    return (plan,)
