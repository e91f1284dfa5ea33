"""``JOIN … USING`` as Spark means it: sqlglot shows the first value that is not null, whatever the join.

In Spark the column of ``LEFT JOIN … USING (k)`` is the left table's, that of a RIGHT JOIN the right
table's, and only that of a FULL JOIN is both: they differ where the two have unlike types (a 1 and
a 1.00) or values that are equal and not the same (0.0 and -0.0).
"""

from __future__ import annotations

from sqlglot import exp

from sooner.algebra.scalar import Scalar, all_of, conjuncts

_WRITTEN = "written by the user"
_USING = "joins by name"


def joins_by_name(join: exp.Join) -> bool:
    """Whether a join, not yet qualified, is ``USING`` or ``NATURAL``."""
    return bool(join.args.get("using")) or join.method == "NATURAL"


def mark_using(query: exp.Query) -> bool:
    """Mark what the user wrote, to tell it from what qualification makes; False if no join is by name."""
    found = False
    for join in query.find_all(exp.Join):
        if joins_by_name(join):
            join.meta[_USING] = found = True
    if found:
        for node in query.find_all(exp.Coalesce, exp.Column):
            if isinstance(node, exp.Coalesce) or node.text("table"):
                node.meta[_WRITTEN] = True
    return found


def resolve_using(qualified: exp.Query) -> None:
    """Put Spark's column in place of each that qualification made of a name in ``USING``."""
    named = {
        id(select): _NamedJoins(select)
        for select in qualified.find_all(exp.Select)
        if any(join.meta.get(_USING) for join in select.args.get("joins") or [])
    }
    for node in list(qualified.find_all(exp.Coalesce, exp.Column)):
        if node.meta.get(_WRITTEN):
            continue
        first = node.this if isinstance(node, exp.Coalesce) else node
        inner = node.find_ancestor(exp.Select)
        around = _select_of(first, inner)
        joins = named.get(id(around))
        if joins is None or not joins.has(first.name):
            continue
        if isinstance(node, exp.Coalesce) or around is not inner:
            node.replace(joins.value(first.name, joins.seen_from(node)))
    for joins in named.values():
        joins.set_conditions()


class _NamedJoins:
    """The joins of one SELECT, and by which columns those with a name join."""

    def __init__(self, select: exp.Select) -> None:
        self._joins: list[exp.Join] = select.args["joins"]
        self._sides = [self._equal_columns(join) for join in self._joins]

    @staticmethod
    def _equal_columns(join: exp.Join) -> dict[str, tuple[exp.Column, exp.Column]]:
        if not join.meta.get(_USING):
            return {}
        found = {}
        for equal in conjuncts(join.args.get("on")):
            left = next(iter(equal.this.find_all(exp.Column)))  # of several the first table's
            found[equal.expression.name] = (left.copy(), equal.expression.copy())
        return found

    def has(self, name: str) -> bool:
        return any(name in sides for sides in self._sides)

    def value(self, name: str, end: int) -> Scalar:
        """What the name means after so many joins."""
        current: exp.Expr | None = None
        for join, sides in zip(self._joins[:end], self._sides[:end], strict=True):
            if name not in sides:
                continue
            left, right = sides[name]
            current = current or left
            if join.side == "RIGHT":
                current = right
            elif join.side == "FULL":
                current = exp.Coalesce(this=current.copy(), expressions=[right.copy()])
        if current is None:
            current = next(sides[name][0] for sides in self._sides if name in sides)
        return current.copy()

    def seen_from(self, node: exp.Expr) -> int:
        """How many joins are made where the node stands: in a join's condition those before it."""
        join = node.find_ancestor(exp.Join, exp.Query)
        for position, own in enumerate(self._joins):
            if own is join:
                return position
        return len(self._joins)

    def set_conditions(self) -> None:
        for position, (join, sides) in enumerate(zip(self._joins, self._sides, strict=True)):
            if sides:
                join.set(
                    "on",
                    all_of(
                        exp.EQ(this=self.value(name, position), expression=right.copy())
                        for name, (_, right) in sides.items()
                    ),
                )


def _select_of(column: exp.Expr, select: exp.Expr | None) -> exp.Expr | None:
    """The innermost SELECT around a column that has a source of its table's name."""
    while isinstance(select, exp.Select):
        sources = [clause.this] if (clause := select.args.get("from_")) else []
        sources += [join.this for join in select.args.get("joins") or []]
        if any(source.alias_or_name == column.text("table") for source in sources):
            return select
        select = select.find_ancestor(exp.Select)
    return None
