"""What bringing a view up to date would cost, and what making it again would: bytes that pass by.

Rough, and the same measure for both: what tables and operators give, with more for what is shuffled and most
for what is written. It decides between two ways that give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sooner.algebra import Aggregate, Join, JoinKind, Relation, Scan, walk
from sooner.analysis.cardinality import Sizes
from sooner.analysis.facts import TableFacts, TableInfo

_SHUFFLED = 2.0
_WRITTEN = 6.0
# Less than this is handed to every task: the other side of a join then stays where it is.
BROADCAST_BYTES = 64 << 20
# A step is a Spark job or two, whatever it does.
_STEP_BYTES = 4 << 20


def cost(plans: Sequence[tuple[str, Relation]], tables: Mapping[str, TableInfo]) -> float:
    """The cost of steps of which later ones read earlier ones by name; the last one's rows are written."""
    known = dict(tables)
    total = 0.0
    for name, plan in plans:
        sizes = Sizes(known)
        total += _STEP_BYTES + sum(_passing(node, sizes) for node in walk(plan))
        size = sizes.of(plan)
        if name:
            known[name] = TableInfo(facts=TableFacts(rows=int(size.rows)))
        else:
            total += _WRITTEN * size.bytes
    return total


def _passing(node: Relation, sizes: Sizes) -> float:
    match node:
        case Scan():
            return sizes.of(node).bytes
        case Join():
            left, right = (sizes.of(side).bytes for side in node.children)
            if right < BROADCAST_BYTES or (left < BROADCAST_BYTES and node.kind is JoinKind.INNER):
                return left + right
            return _SHUFFLED * (left + right)
        case Aggregate():
            return _SHUFFLED * sizes.of(node.child).bytes
    return 0.0


def shrunk(facts: TableFacts, rows: int | None) -> TableFacts:
    """The facts of so many rows of a table; unlike values are as many as there are rows at most."""
    if rows is None:
        return TableFacts()
    columns = {
        name: replace(one, distinct=None if one.distinct is None else min(one.distinct, rows))
        for name, one in facts.columns.items()
    }
    return TableFacts(rows, None, columns)
