"""Algebra to Spark SQL: one text for a whole plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

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
)
from sooner.algebra.scalar import (
    Item,
    Scalar,
    SortKey,
    all_of,
    column,
    columns_of,
    equality_sides,
    parenthesized,
    to_sql,
)

_JOIN_WORDS = {
    JoinKind.INNER: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
    JoinKind.NULL_AWARE_ANTI: "LEFT ANTI JOIN",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """How Spark is to join, in its own word, and which side it looks up: the right one or the left."""

    word: str
    right: bool


def render(
    plan: Relation,
    leaf: Callable[[Scan | Map], str] | None = None,
    hint: Callable[[Join], Hint | None] | None = None,
) -> str:
    """The plan as Spark SQL. ``leaf`` names the table or view that stands for a Scan or Map.

    The caller gives ``leaf`` where a name is not the registered one: a version, a set of blocks; and
    ``hint`` where it knows better than Spark how large the sides of a join are.
    """
    return _Renderer(leaf or _registered_name, hint or _no_hint).query(plan)


def _no_hint(join: Join) -> Hint | None:
    return None


def _registered_name(node: Scan | Map) -> str:
    if isinstance(node, Map):
        raise AssertionError("a Map has no SQL: the engine names the view that holds its result")
    return quote(node.table)


class _Renderer:
    def __init__(
        self, leaf: Callable[[Scan | Map], str], hint: Callable[[Join], Hint | None]
    ) -> None:
        self._leaf = leaf
        self._hint = hint
        self._aliases = 0

    def query(self, plan: Relation) -> str:
        match plan:
            case Scan():
                columns = ", ".join(
                    _named(quote(source), out.name)
                    for source, out in zip(plan.sources, plan.columns, strict=True)
                )
                # A scan of no column still has rows: count(*) needs them.
                return f"SELECT {columns or '1'} FROM {self._leaf(plan)}"
            case Map():
                return f"SELECT {_names(plan)} FROM {self._leaf(plan)}"
            case Opaque():
                # Its own names may be anything, even equal: ours go by position.
                return f"SELECT * FROM (\n{plan.text}\n) AS `_`({_names(plan)})"
            case Filter():
                return f"{_select(plan)} {self._source(plan.child)} WHERE {to_sql(plan.condition)}"
            case Project():
                return f"SELECT {_items(plan.items) or '1'} FROM {self._source(plan.child)}"
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Union():
                return self._set_operation(plan, "UNION ALL")
            case Intersect():
                return self._set_operation(plan, "INTERSECT ALL" if plan.all else "INTERSECT")
            case Except():
                return self._set_operation(plan, "EXCEPT ALL" if plan.all else "EXCEPT")
            case Sort():
                return f"{_select(plan)} {self._source(plan.child)} ORDER BY {sort_keys(plan.by)}"
            case Limit():
                return self._limit(plan)
        raise AssertionError(f"no SQL for {type(plan).__name__}")

    def _aggregate(self, plan: Aggregate) -> str:
        own = tuple(item for item in plan.aggregates if item.scalar.find(exp.AnonymousAggFunc))
        if own and len(own) < len(plan.aggregates):
            return self.query(_apart(plan, own))
        keys = ", ".join(quote(key) for key in plan.keys)
        aggregates = _items(plan.aggregates)
        selected = ", ".join(part for part in (keys, aggregates) if part)
        group = f" GROUP BY {keys}" if keys else ""
        return f"SELECT {selected} FROM {self._source(plan.child)}{group}"

    def _source(self, plan: Relation) -> str:
        self._aliases += 1
        alias = f"_{self._aliases}"
        return f"({self.query(plan)}) AS {alias}"

    def _join(self, plan: Join) -> str:
        left, right = self._source(plan.left), self._source(plan.right)
        hint = self._hint(plan)
        if hint is not None:
            alias = (right if hint.right else left).rpartition(" ")[2]
            words = f"SELECT /*+ {hint.word}({alias}) */ {_names(plan) or '1'} FROM"
            on = "TRUE" if plan.condition is None else to_sql(plan.condition)
            return f"{words} {left} {_JOIN_WORDS[plan.kind]} {right} ON {on}"
        if plan.kind is JoinKind.NULL_AWARE_ANTI:
            return self._null_aware_anti(plan, left, right)
        if plan.condition is None and plan.kind is JoinKind.INNER:
            return f"{_select(plan)} {left} CROSS JOIN {right}"
        on = "TRUE" if plan.condition is None else to_sql(plan.condition)
        return f"{_select(plan)} {left} {_JOIN_WORDS[plan.kind]} {right} ON {on}"

    def _null_aware_anti(self, plan: Join, left: str, right: str) -> str:
        assert plan.condition is not None
        sides = equality_sides(plan.condition)
        if sides is not None:
            # Spark has a hash join for NOT IN on one column, but only recognises it as NOT IN.
            outer, inner = sides if _reads_only(sides[0], plan.left) else sides[::-1]
            if _reads_only(outer, plan.left) and _reads_only(inner, plan.right):
                return (
                    f"{_select(plan)} {left} WHERE {to_sql(parenthesized(outer))} NOT IN "
                    f"(SELECT {to_sql(inner)} FROM {right})"
                )
        condition = to_sql(plan.condition)
        return (
            f"{_select(plan)} {left} {_JOIN_WORDS[plan.kind]} {right} "
            f"ON ({condition}) OR (({condition}) IS NULL)"
        )

    def _set_operation(self, plan: Union | Intersect | Except, word: str) -> str:
        return f"({self.query(plan.left)}) {word} ({self.query(plan.right)})"

    def _limit(self, plan: Limit) -> str:
        limit = "" if plan.count is None else f" LIMIT {plan.count}"
        offset = f" OFFSET {plan.offset}" if plan.offset else ""
        if isinstance(plan.child, Sort):  # one SELECT, so that Spark plans a top-k
            return self.query(plan.child) + limit + offset
        return f"{_select(plan)} {self._source(plan.child)}{limit}{offset}"


def _apart(plan: Aggregate, own: tuple[Item, ...]) -> Relation:
    """Functions of the user's in an aggregate of their own: Spark runs none beside its own functions."""
    others = tuple(item for item in plan.aggregates if item not in own)
    again = {key: f"{key}__again" for key in plan.keys}
    named = tuple(Item(again[key], column(key)) for key in plan.keys)
    kept = tuple(Item(item.name, column(item.name)) for item in own)
    functions = replace(plan, aggregates=own)
    if not plan.keys:
        # Two totals of one input Spark (4.3) tries to compute together, and fails: so one is grouped.
        every = tuple(Item(name, column(name)) for name in plan.child.names)
        marked = Project(plan.child, (*every, Item("__all", exp.Literal.number(1))))
        functions = Aggregate(marked, ("__all",), own)
    right = Project(functions, (*named, *kept))
    equal = [exp.NullSafeEQ(this=column(key), expression=column(again[key])) for key in plan.keys]
    # Of no rows at all Spark's own functions give a row, and Python's none.
    both = Join(replace(plan, aggregates=others), right, JoinKind.LEFT, all_of(equal))
    return Project(both, tuple(Item(name, column(name)) for name in plan.names))


def quote(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _reads_only(scalar: Scalar, relation: Relation) -> bool:
    return columns_of(scalar) <= relation.name_set


def _names(plan: Relation) -> str:
    return ", ".join(quote(name) for name in plan.names)


def _select(plan: Relation) -> str:
    # Not *: an input of no columns still has an unnamed one, so that its rows can be counted.
    return f"SELECT {_names(plan) or '1'} FROM"


def _named(text: str, name: str) -> str:
    quoted = quote(name)
    return text if text == quoted else f"{text} AS {quoted}"


def _items(items: Iterable[Item]) -> str:
    return ", ".join(_named(to_sql(item.scalar), item.name) for item in items)


def sort_keys(keys: Iterable[SortKey]) -> str:
    """What stands behind ORDER BY."""
    return ", ".join(
        f"{to_sql(key.scalar)} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    )
