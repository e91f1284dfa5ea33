"""A query rewritten only above another that it was made from, which stays as its own rewrites left it.

``daily.filter("day > …")`` alone is best with the filter below the groups. Beside ``daily`` it is nothing
but some of its groups.
"""

from __future__ import annotations

from collections.abc import Collection

from sooner.algebra import Item, Project, Relation, Scan, walk
from sooner.algebra.scalar import column
from sooner.algebra.traversal import transform_up
from sooner.prepare import Prepared
from sooner.rewrites import rewrite

_BELOW = "__below"


def above(query: Prepared, below: Prepared, without: Collection[str] = ()) -> Relation | None:
    """The plan of a query over the plan of another; ``None`` if it was not made from it.

    ``without`` are the rewrites that are switched off.
    """
    if not any(node == below.written for node in walk(query.written)):
        return None
    written = below.written
    hole = Scan(_BELOW, written.names, written.schema)
    rest = transform_up(query.written, lambda node: hole if node == written else node)
    plan = rewrite(rest, without).plan
    return transform_up(plan, lambda node: _filled(node, below.plan))


def _filled(node: Relation, plan: Relation) -> Relation:
    if not isinstance(node, Scan) or node.table != _BELOW:
        return node
    if node.names == plan.names:
        return plan
    pairs = zip(node.names, node.sources, strict=True)
    return Project(plan, tuple(Item(name, column(source)) for name, source in pairs))
