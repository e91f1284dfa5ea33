"""Where the values of each output column come from: which columns of which tables, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sooner.algebra import (
    Aggregate,
    Except,
    Intersect,
    Join,
    Map,
    Project,
    Relation,
    Scalar,
    Scan,
    Union,
    walk,
)
from sooner.algebra.scalar import columns_of, is_column


class How(IntEnum):
    """How a column comes about; the later ones outweigh the earlier."""

    COPY = 0
    COMPUTED = 1
    AGGREGATED = 2


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A column of a table in one of its occurrences: the place of its scan from left to right."""

    scan: int
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """The base columns a column's values are made of, and how.

    A COPY holds values of its sources as they are (through renames, grouping and joins, where an
    outer join may add nulls); it has several sources only above a union. AGGREGATED values depend
    on other rows too: they are what iOLAP §4.1 marks as uncertain while rows are still unread.
    """

    sources: frozenset[Source]
    how: How

    @property
    def copy_of(self) -> Source | None:
        """The one base column this is a copy of; ``None`` if it is not."""
        if self.how is How.COPY and len(self.sources) == 1:
            return next(iter(self.sources))
        return None


def derivation(plan: Relation) -> Mapping[str, Derivation]:
    """The derivation of every output column, in the order of the output."""
    return _derive(plan, 0, {})


_Found = dict[tuple[int, int], dict[str, Derivation]]


def _derive(plan: Relation, first: int, found: _Found) -> dict[str, Derivation]:
    """``first`` is the place of the plan's first scan; a shared node has several places."""
    if (id(plan), first) not in found:
        found[id(plan), first] = _of(plan, first, found)
    return found[id(plan), first]


def _of(plan: Relation, first: int, found: _Found) -> dict[str, Derivation]:
    if isinstance(plan, Scan):
        return {
            column.name: Derivation(frozenset({Source(first, plan.table, source)}), How.COPY)
            for column, source in zip(plan.columns, plan.sources, strict=True)
        }
    inputs: list[dict[str, Derivation]] = []
    for child in plan.children:
        inputs.append(_derive(child, first, found))
        first += sum(isinstance(node, Scan) for node in walk(child))
    child_columns = inputs[0]
    match plan:
        case Project():
            return {item.name: _scalar(item.scalar, child_columns) for item in plan.items}
        case Aggregate():
            keys = {key: child_columns[key] for key in plan.keys}
            return keys | {
                item.name: _combined(
                    (child_columns[name] for name in columns_of(item.scalar)), How.AGGREGATED
                )
                for item in plan.aggregates
            }
        case Join() if plan.kind.keeps_right:
            return inputs[0] | inputs[1]
        case Union():
            pairs = zip(inputs[0].values(), inputs[1].values(), strict=True)
            return {
                column.name: _combined(pair, How.COPY if column.type else How.COMPUTED)
                for column, pair in zip(plan.schema, pairs, strict=True)
            }
        case Intersect() | Except():
            # The rows are rows of the left; a column whose type is not the same may be cast.
            return {
                column.name: _combined([one], How.COPY if column.type else How.COMPUTED)
                for column, one in zip(plan.schema, inputs[0].values(), strict=True)
            }
        case Map():
            everything = _combined(child_columns.values(), How.COMPUTED)
            return dict.fromkeys(plan.names, everything)
    return child_columns


def _scalar(scalar: Scalar, columns: Mapping[str, Derivation]) -> Derivation:
    if is_column(scalar):
        return columns[scalar.name]
    return _combined((columns[name] for name in columns_of(scalar)), How.COMPUTED)


def _combined(parts: Iterable[Derivation], least: How) -> Derivation:
    known = list(parts)
    sources = frozenset[Source]().union(*(part.sources for part in known))
    return Derivation(sources, max([least, *(part.how for part in known)]))
