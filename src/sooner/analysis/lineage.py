"""Lineage blocks (iOLAP §6.1): the parts of a plan between which only aggregates are passed on.

A block is a maximal subtree of selections, projections and joins followed by one aggregate. Between
blocks travel the aggregate's results and their grouping keys, the block's lineage key; the rows
behind them stay inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sooner.algebra import (
    Aggregate,
    Except,
    Intersect,
    Limit,
    Map,
    Relation,
    Scan,
)


@dataclass(frozen=True, slots=True)
class LineageBlock:
    """One block: ``root`` is its topmost node, ``reads`` the ids of the blocks right below it.

    ``key`` are the grouping columns of its aggregate (empty for a total), ``None`` for a block
    without one: the top of the plan, or a node that needs all of its input at once. ``scans`` are
    the base scans inside the block, left to right.
    """

    id: int
    root: Relation
    key: tuple[str, ...] | None
    reads: tuple[int, ...]
    scans: tuple[Scan, ...]


def lineage_blocks(plan: Relation) -> tuple[LineageBlock, ...]:
    """The blocks of a plan, each after the blocks it reads; the last one has the plan as its root.

    A node used in several places is one block: it is computed once.
    """
    blocks: list[LineageBlock] = []
    ids: dict[int, int] = {}

    def close(root: Relation) -> int:
        if id(root) not in ids:
            reads: dict[int, None] = {}
            scans: list[Scan] = []
            for child in root.children or (root,):
                descend(child, reads, scans)
            key = root.keys if isinstance(root, Aggregate) else None
            ids[id(root)] = len(blocks) + 1
            blocks.append(LineageBlock(ids[id(root)], root, key, tuple(reads), tuple(scans)))
        return ids[id(root)]

    def descend(node: Relation, reads: dict[int, None], scans: list[Scan]) -> None:
        if _ends_block(node):
            reads[close(node)] = None
            return
        if isinstance(node, Scan):
            scans.append(node)
        for child in node.children:
            descend(child, reads, scans)

    close(plan)
    return tuple(blocks)


def lineage_text(blocks: Sequence[LineageBlock]) -> str:
    """One line per block, for ``explain()``."""
    return "\n".join(_line(block, block is blocks[-1]) for block in blocks)


def _ends_block(node: Relation) -> bool:
    # UNION ALL and ORDER BY pass their rows on as they are (iOLAP §4.2: no state), so they stay
    # inside. The others, like an aggregate, need all of their input to say anything for certain.
    return isinstance(node, Aggregate | Limit | Intersect | Except | Map)


def _line(block: LineageBlock, last: bool) -> str:
    # Tables once each: that a block reads one twice is seen in the plan.
    tables = dict.fromkeys(scan.table for scan in block.scans)
    sources = [*tables, *(f"block {read}" for read in block.reads)]
    text = f"Block {block.id}{' (the answer)' if last else ''}: {_what(block)}"
    return f"{text} from {_enumerated(sources)}" if sources else text


def _what(block: LineageBlock) -> str:
    if block.key is None:
        names = {Limit: "the first rows", Intersect: "common rows", Except: "remaining rows"}
        fallback = "rows of a function" if isinstance(block.root, Map) else "rows"
        return names.get(type(block.root), fallback)
    if not block.key:
        return "one row"
    columns = ", ".join(block.key)
    summed = isinstance(block.root, Aggregate) and block.root.aggregates
    return f"one row per {columns}" if summed else f"distinct {columns}"


def _enumerated(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
