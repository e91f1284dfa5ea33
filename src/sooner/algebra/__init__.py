"""What a query means: frozen relational nodes over sqlglot scalars."""

from sooner.algebra.relation import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Limit,
    Map,
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
    aggregate_call,
)
from sooner.algebra.scalar import Item, Scalar, SortKey
from sooner.algebra.schema import Column, Schema
from sooner.algebra.text import plan_text
from sooner.algebra.traversal import tables, transform_up, walk

__all__ = [
    "Aggregate",
    "Column",
    "Except",
    "Filter",
    "Intersect",
    "Item",
    "Join",
    "JoinKind",
    "Limit",
    "Map",
    "Opaque",
    "Project",
    "Relation",
    "Scalar",
    "Scan",
    "Schema",
    "Sort",
    "SortKey",
    "Union",
    "aggregate_call",
    "plan_text",
    "tables",
    "transform_up",
    "walk",
]
