"""How a view changes when its tables do: a plan of the rows that come and go (the change-table method).

Selections, projections, inner joins and unions pass changes on. All other operators are local: what they
give for some values of some columns (the keys of an aggregate, the equal columns of an outer join) goes
back to rows with these values alone. So the values that changed are found, and what the operator gives for
them is taken away as it was and added as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Item,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
)
from sooner.algebra.scalar import Scalar, all_of, column, conjuncts
from sooner.algebra.schema import Column
from sooner.analysis.equal_columns import equal_columns

SIGN = "__sign"

# What a table is called as it was, as it is, and what came (+1) or went (-1) between.
OLD, NEW, CHANGED = "__old_", "__new_", "__changed_"


@dataclass(frozen=True)
class Known:
    """What is known of changes: the tables that rows only came to, and how many rows tables have."""

    only_came: frozenset[str] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)


NOTHING = Known()


class CannotMaintain(Exception):
    """Changes do not tell how the view changes: it has to be made again. Says why."""


def as_it_was(plan: Relation) -> Relation:
    """A plan over the tables before they changed."""
    return _renamed(plan, OLD)


def as_it_is(plan: Relation) -> Relation:
    """A plan over the tables after they changed."""
    return _renamed(plan, NEW)


def _renamed(plan: Relation, prefix: str) -> Relation:
    if isinstance(plan, Scan):
        return replace(plan, table=f"{prefix}{plan.table}")
    return plan.with_children(*(_renamed(child, prefix) for child in plan.children))


def delta(plan: Relation, known: Known = NOTHING) -> Relation:
    """The rows that come and go, with a last column that is 1 or -1; a row may do both.

    Raises :class:`CannotMaintain`.
    """
    return _Deriving(known).delta(plan)


class _Deriving:
    def __init__(self, known: Known) -> None:
        self._known = known
        self._fresh = (f"__d{number}" for number in count())  # names that no column has

    def delta(self, plan: Relation) -> Relation:
        match plan:
            case Scan():
                return Scan(
                    f"{CHANGED}{plan.table}",
                    (*plan.sources, SIGN),
                    (*plan.columns, Column(SIGN, "int")),
                )
            case Filter():
                return replace(plan, child=self.delta(plan.child))
            case Project():
                items = (*plan.items, Item(SIGN, column(SIGN)))
                return replace(plan, child=self.delta(plan.child), items=items)
            case Sort():  # rows of a view have no order
                return self.delta(plan.child)
            case Union():
                return Union(self.delta(plan.left), self.delta(plan.right))
            case Join(kind=JoinKind.INNER):
                return self._inner(plan)
            case Join():
                pairs = _local_columns(plan)
                return self._local(plan, [[one for one, _ in pairs], [other for _, other in pairs]])
            case Aggregate():
                return self._local(plan, [list(plan.keys)])
            case Intersect() | Except():
                _require_same_types(plan)
                return self._local(plan, [list(plan.left.names), list(plan.right.names)])
        raise CannotMaintain(f"of {_described(plan)}")

    def _inner(self, plan: Join) -> Relation:
        """Changes of one side meet the other as it is, and those of the other meet the one as it was."""
        left, right = self.delta(plan.left), self.delta(plan.right)
        if self._meets_little(plan.left, plan.right):
            left = self._meeting(plan, left, as_it_was(plan.right), mirrored=True)
            first = replace(plan, left=left, right=as_it_was(plan.right))
            second = replace(plan, left=as_it_is(plan.left), right=right)
        else:
            if self._meets_little(plan.right, plan.left):
                right = self._meeting(plan, right, as_it_was(plan.left))
            first = replace(plan, left=left, right=as_it_is(plan.right))
            second = replace(plan, left=as_it_was(plan.left), right=right)
        names = (*plan.names, SIGN)
        return Union(*(_only(one, names) for one in (first, second)))

    def _meets_little(self, side: Relation, other: Relation) -> bool:
        """Whether the changes of a table most likely meet no row that a larger table had: all are new."""
        table, larger = _table_of(side), _table_of(other)
        if table not in self._known.only_came or larger is None:
            return False
        rows = self._known.rows
        return rows.get(table, 0) < rows.get(larger, 0)

    def _meeting(
        self, plan: Join, changes: Relation, rows: Relation, mirrored: bool = False
    ) -> Relation:
        """Changes that meet a row at all: only the columns that they meet by are read to find out."""
        pairs = [pair[::-1] if mirrored else pair for pair in equal_columns(plan)]
        if not pairs:
            return changes
        theirs, own = zip(*pairs, strict=True)
        met, sought = list(islice(self._fresh, len(pairs))), list(islice(self._fresh, len(pairs)))
        # Nulls are left out where they meet nothing: Spark has a faster table for plain numbers.
        nulls_meet = any(isinstance(one, exp.NullSafeEQ) for one in conjuncts(plan.condition))
        same = partial(_same, equal=exp.NullSafeEQ if nulls_meet else exp.EQ)
        values, few = Project(rows, _items(met, theirs)), Project(changes, _items(sought, own))
        found = Aggregate(Join(values, few, JoinKind.SEMI, same(met, sought)), tuple(met))
        return Join(changes, found, JoinKind.SEMI, same(own, met))

    def _local(self, plan: Relation, by: Sequence[list[str]]) -> Relation:
        """What an operator gave and gives for the values of some columns of its inputs that changed."""
        signs = []
        for state, sign in ((as_it_is, 1), (as_it_was, -1)):
            touched = plan.with_children(
                *(
                    self._touched(state(child), names, plan.children, by)
                    for child, names in zip(plan.children, by, strict=True)
                )
            )
            signed = Item(SIGN, exp.convert(sign))
            signs.append(Project(touched, (*_items(plan.names, plan.names), signed)))
        return Union(*signs)

    def _touched(
        self,
        rows: Relation,
        names: Sequence[str],
        children: Sequence[Relation],
        by: Sequence[Sequence[str]],
    ) -> Relation:
        """The rows whose values have changed in one of the inputs; all rows if there are no columns."""
        if not names:
            return rows
        own = list(islice(self._fresh, len(names)))
        values: Relation | None = None
        for child, theirs in zip(children, by, strict=True):
            changed = Project(self.delta(child), _items(own, theirs))
            values = changed if values is None else Union(values, changed)
        assert values is not None
        distinct = Aggregate(values, tuple(own))
        return Join(rows, distinct, JoinKind.SEMI, _same(names, own))


def _only(rows: Relation, names: Sequence[str]) -> Relation:
    return Project(rows, _items(names, names))


def _items(names: Sequence[str], columns: Sequence[str]) -> tuple[Item, ...]:
    """Columns under other names."""
    return tuple(Item(name, column(one)) for name, one in zip(names, columns, strict=True))


def _same(
    names: Sequence[str], others: Sequence[str], equal: type[exp.Binary] = exp.NullSafeEQ
) -> Scalar | None:
    """That columns are equal, or both null."""
    pairs = zip(names, others, strict=True)
    return all_of([equal(this=column(one), expression=column(two)) for one, two in pairs])


def _table_of(plan: Relation) -> str | None:
    """The table that a plan reads some rows and columns of; ``None`` if it does more."""
    while isinstance(plan, Filter | Project):
        plan = plan.child
    return plan.table if isinstance(plan, Scan) else None


def _local_columns(plan: Join) -> list[tuple[str, str]]:
    """Columns whose values alone decide which rows meet."""
    if plan.kind is JoinKind.NULL_AWARE_ANTI:
        raise CannotMaintain("of NOT IN: one null on its right side changes every row")
    found = equal_columns(plan)
    if not found:
        raise CannotMaintain(f"of a {plan.kind.value} join without equal columns of one type")
    return found


def _require_same_types(plan: Intersect | Except) -> None:
    if any(one.type is None for one in plan.schema):
        raise CannotMaintain("of a set operation on columns whose types are not known to be one")


def _described(plan: Relation) -> str:
    names: dict[str, str] = {"Limit": "LIMIT", "Map": "a function of yours"}
    return names.get(type(plan).__name__, "a query that only Spark understands")


def consolidated(changes: Relation, mixed: Sequence[str] = ()) -> Relation:
    """Each row once, with how often it comes (above 0) or goes (below 0).

    ``mixed`` are columns in which unlike values group together: 0.0 and -0.0, or "a" and "A" to a collation.
    Their texts tell these apart, and one of the values stands for those that are the same.
    """
    names = tuple(name for name in changes.names if name != SIGN)
    texts = {name: f"__text{place}" for place, name in enumerate(mixed)}
    kept = {name: f"__kept{place}" for place, name in enumerate(mixed)}
    if mixed:
        string = exp.DataType.build("string")
        told = (Item(at, exp.Cast(this=column(n), to=string.copy())) for n, at in texts.items())
        changes = Project(changes, (*_items(changes.names, changes.names), *told))
    values = (Item(at, exp.AnyValue(this=column(name))) for name, at in kept.items())
    total = Item(SIGN, exp.Sum(this=column(SIGN)))
    summed = Aggregate(changes, (*names, *texts.values()), (*values, total))
    left = Filter(summed, exp.NEQ(this=column(SIGN), expression=exp.convert(0)))
    columns = [kept.get(name, name) for name in names]
    return Project(left, _items((*names, SIGN), (*columns, SIGN))) if mixed else left
