"""A plan as indented text, for people."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sooner.algebra.relation import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    Limit,
    Map,
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
)
from sooner.algebra.scalar import Item, Scalar, SortKey


def plan_text(plan: Relation, note: Callable[[Relation], str] = lambda _: "") -> str:
    """The plan as one line per node, inputs indented; ``note`` may add to a line."""
    return "\n".join(_lines(plan, note, 0))


def _lines(plan: Relation, note: Callable[[Relation], str], depth: int) -> list[str]:
    extra = note(plan)
    lines = ["  " * depth + describe(plan) + (f"  — {extra}" if extra else "")]
    for child in plan.children:
        lines += _lines(child, note, depth + 1)
    return lines


def describe(plan: Relation) -> str:
    """One node in one line."""
    match plan:
        case Scan():
            shown = (
                column.name if column.name == source.lower() else f"{source} AS {column.name}"
                for column, source in zip(plan.columns, plan.sources, strict=True)
            )
            return f"Scan {plan.table} [{', '.join(shown)}]"
        case Filter():
            return f"Filter {scalar_text(plan.condition)}"
        case Project():
            return f"Project [{_items(plan.items)}]"
        case Join():
            on = "" if plan.condition is None else f" on {scalar_text(plan.condition)}"
            return f"Join {plan.kind.value}{on}"
        case Aggregate():
            if not plan.aggregates:
                return f"Distinct [{', '.join(plan.keys)}]"
            by = f" by [{', '.join(plan.keys)}]" if plan.keys else ""
            return f"Aggregate [{_items(plan.aggregates)}]{by}"
        case Union():
            return "Union all"
        case Intersect() | Except():
            return type(plan).__name__ + (" all" if plan.all else "")
        case Sort():
            return f"Sort [{', '.join(_sort_key(key) for key in plan.by)}]"
        case Limit():
            skip = f" after skipping {plan.offset}" if plan.offset else ""
            return f"Limit {'all' if plan.count is None else plan.count}{skip}"
        case Map():
            by = f" by [{', '.join(plan.by)}]" if plan.by else ""
            function = getattr(plan.function, "__name__", "function")
            return f"Map {function}{by} -> [{', '.join(plan.names)}]"
        case Opaque():
            return f"Spark, as it is written, because of {plan.reason}"
    raise AssertionError(f"no text for {type(plan).__name__}")


def _items(items: tuple[Item, ...]) -> str:
    return ", ".join(
        item.name
        if isinstance(item.scalar, exp.Column) and item.scalar.name == item.name
        else f"{scalar_text(item.scalar)} AS {item.name}"
        for item in items
    )


def _sort_key(key: SortKey) -> str:
    text = scalar_text(key.scalar) + (" DESC" if key.descending else "")
    if key.nulls_first == key.descending:  # not Spark's default for this direction
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text


def scalar_text(scalar: Scalar) -> str:
    """A scalar in Spark's SQL without the quotes around plain names."""
    plain = scalar.copy()
    for identifier in plain.find_all(exp.Identifier):
        if identifier.name.isidentifier():
            identifier.set("quoted", False)
    return plain.sql("spark")
