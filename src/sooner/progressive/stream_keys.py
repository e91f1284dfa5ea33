"""The stream key beside the replicate, in the rows of a delta that carries the replicate."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Intersect,
    Item,
    Project,
    Relation,
    Scan,
    Union,
)
from sooner.algebra.scalar import column
from sooner.storage.layout import REPLICATE


def key_names(carried: Relation) -> tuple[str, ...]:
    """The names of the stream key's columns in a plan that carries it."""
    return tuple(name for name in carried.names if name.startswith("__key_"))


def with_stream_key(carried: Relation, keys: Mapping[str, tuple[str, ...]]) -> Relation:
    """A plan that carries the replicate, carrying the stream key too.

    ``keys`` gives the key's columns of every streamed scan by its name. Groups inside a delta lie in
    one key, so that one more key does not part them.
    """
    match carried:
        case Scan():
            sources = keys[carried.table]
            columns = tuple(Column(f"__key_{place}", None) for place in range(len(sources)))
            return Scan(carried.table, (*carried.sources, *sources), (*carried.columns, *columns))
        case Project():
            child = with_stream_key(carried.child, keys)
            copies = tuple(Item(name, column(name)) for name in key_names(child))
            return Project(child, (*carried.items, *copies))
        case Aggregate():
            child = with_stream_key(carried.child, keys)
            return Aggregate(child, (*carried.keys, *key_names(child)), carried.aggregates)
        case Union() | Intersect() | Except():
            # Both sides by position, and keys that are hashed alike may be of unlike types.
            sides = (_as_text(with_stream_key(side, keys)) for side in carried.children)
            return carried.with_children(*sides)
    return carried.with_children(
        *(
            with_stream_key(child, keys) if REPLICATE in child.name_set else child
            for child in carried.children
        )
    )


def _as_text(carried: Relation) -> Relation:
    names = key_names(carried)
    return Project(
        carried,
        tuple(
            Item(
                name,
                exp.cast(column(name), "string", dialect="spark")
                if name in names
                else column(name),
            )
            for name in carried.names
        ),
    )
