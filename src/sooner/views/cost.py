"""What bringing a view up to date would cost, and what making it again would: bytes that pass by.

Rough, and the same measure for both: what tables and operators give, with more for what is shuffled and most
for what is written. It decides between two ways that give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sooner.algebra import Aggregate, Join, JoinKind, Relation, Scan, Union, walk
from sooner.analysis.cardinality import Sizes
from sooner.analysis.facts import TableFacts, TableInfo

_SHUFFLED = 2.0
_WRITTEN = 6.0
# Less than this is handed to every task: the other side of a join then stays where it is.
BROADCAST_BYTES = 64 << 20
# A step is a Spark job or two, whatever it does.
_STEP_BYTES = 4 << 20


def cost(
    plans: Sequence[tuple[str, Relation]],
    tables: Mapping[str, TableInfo],
    shares: Mapping[str, float],
    written: int | None = None,
) -> float:
    """The cost of steps of which later ones read earlier ones by name; the last one's rows are written.

    ``shares`` are tables that hold a part of what is known of them: what changed. What is made of a part is
    that part of what is made of all; how many rows of another table it meets nobody would know otherwise.
    ``written`` says how many rows the last step gives, where that is known: how many groups there are is
    little more than a guess.
    """
    known = dict(tables)
    total = 0.0
    for name, plan in plans:
        sizes = _Shares(Sizes(known), shares)
        total += _STEP_BYTES + sum(_passing(node, sizes) for node in walk(plan))
        if name:
            known[name] = TableInfo(facts=TableFacts(rows=int(sizes.rows(plan))))
        else:
            rows = sizes.rows(plan) if written is None else written
            total += _WRITTEN * rows * sizes.row_bytes(plan)
    return total


class _Shares:
    """Sizes of what is made of parts of tables."""

    def __init__(self, sizes: Sizes, shares: Mapping[str, float]) -> None:
        self._sizes = sizes
        self._shares = shares

    def bytes(self, plan: Relation) -> float:
        return self.rows(plan) * self.row_bytes(plan)

    def row_bytes(self, plan: Relation) -> float:
        return self._sizes.of(plan).row_bytes

    def rows(self, plan: Relation) -> float:
        return self._sizes.of(plan).rows * self._share(plan)

    def _share(self, plan: Relation) -> float:
        match plan:
            case Scan():
                return self._shares.get(plan.table, 1.0)
            case Union():
                whole = self._sizes.of(plan).rows
                return sum(self.rows(side) for side in plan.children) / max(1.0, whole)
            case Join() if plan.kind.keeps_right or plan.kind is JoinKind.SEMI:
                left, right = (self._share(side) for side in plan.children)
                return left * right
        return min(1.0, self._share(plan.children[0])) if plan.children else 1.0


def _passing(node: Relation, sizes: _Shares) -> float:
    match node:
        case Scan():
            return sizes.bytes(node)
        case Join():
            left, right = (sizes.bytes(side) for side in node.children)
            if right < BROADCAST_BYTES or (left < BROADCAST_BYTES and node.kind is JoinKind.INNER):
                return left + right
            return _SHUFFLED * (left + right)
        case Aggregate():
            return _SHUFFLED * sizes.bytes(node.child)
    return 0.0
