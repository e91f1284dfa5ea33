"""What is asked of a view: aggregates of its rows by group, or the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Filter,
    Item,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    Sort,
    SortKey,
    walk,
)
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar, all_of, column, is_column, substitute, to_sql
from sooner.algebra.schema import Column
from sooner.engine.view_totals import Counted
from sooner.errors import CannotAnswer
from sooner.views.calculation import Calculation, calculation_of
from sooner.views.deltas import SIGN
from sooner.views.estimates import Function, is_spread
from sooner.views.unit import HASH

Extreme: TypeAlias = Literal["min", "max"]
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NESTED = ("array", "map", "struct", "variant")


@dataclass(frozen=True)
class Measure:
    """One aggregate: its name, what it is of, and which rows count.

    ``function`` is one of totals, ``extreme`` a minimum or maximum, ``share`` a percentile: one of the three.
    """

    name: str
    call: Scalar
    argument: Scalar | None
    condition: Scalar | None
    function: Function | None = None
    extreme: Extreme | None = None
    share: float | None = None

    @property
    def counted(self) -> Counted:
        """Whether a row counts, and its value if it does, in SQL."""
        condition = [] if self.condition is None else [self.condition.copy()]
        if self.argument is not None:
            is_null = exp.Is(this=exp.Paren(this=self.argument.copy()), expression=exp.Null())
            condition.append(exp.Not(this=is_null))
        passing = all_of([exp.Paren(this=part) for part in condition])
        passes = "1.0D"
        if passing is not None:
            passes = f"CASE WHEN {to_sql(passing)} THEN 1.0D ELSE 0.0D END"
        if self.function == "count" or self.argument is None:
            return Counted(passes)
        # Of a row that does not count the value may be no number, which nothing makes 0 again.
        return Counted(passes, f"COALESCE({self.value_sql}, 0.0D)", is_spread(self.function))

    @property
    def sql(self) -> str:
        """The aggregate itself in SQL."""
        call = self.call.copy()
        if self.condition is None:
            return to_sql(call)
        return to_sql(exp.Filter(this=call, expression=exp.Where(this=self.condition.copy())))

    @property
    def value_sql(self) -> str:
        """The value of a row in SQL, NULL if the row does not count."""
        if self.condition is None:
            return self._number
        return f"CASE WHEN {to_sql(self.condition)} THEN {self._number} END"

    @property
    def _number(self) -> str:
        assert self.argument is not None
        return f"CAST({to_sql(self.argument)} AS DOUBLE)"


@dataclass(frozen=True)
class Question:
    """Aggregates of rows of a view by some of their columns, and what is calculated of these.

    What is done with them is ``above``: columns chosen, rows ordered and left out. Without measures the rows
    themselves are asked for, in an ``order``. ``plan`` is what gives either.
    """

    rows: Relation
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    above: tuple[Relation, ...]
    plan: Relation
    order: tuple[SortKey, ...] = ()
    calculations: tuple[Calculation, ...] = ()

    def require_numbers(self, types: Mapping[str, str]) -> None:
        """Refuse aggregates that are no numbers, and groups that nothing here can tell apart."""
        for one in self.measures:
            if types[one.name].partition("(")[0] not in _NUMBERS:
                kind = "smallest or largest" if one.extreme else "aggregate"
                raise CannotAnswer(f"the {kind} of values that are no numbers ({types[one.name]})")
        for key in self.keys if self.measures else ():
            if types[key].startswith(_NESTED):
                raise CannotAnswer(f"groups by {key}, which is no single value ({types[key]})")

    def require_shared(self, unit: Sequence[str]) -> None:
        """Refuse groups that are in a sample whole or not at all: it says nothing of the others."""
        if self.measures and set(unit) <= set(_columns(self.rows, self.keys)):
            by = ", ".join(unit)
            raise CannotAnswer(
                f"groups by {by}, of which a sample has some whole and others not at all"
            )


def _columns(rows: Relation, names: Sequence[str]) -> list[str]:
    """The columns of the table that names of its rows are."""
    while isinstance(rows, Project | Filter | Sort):
        if isinstance(rows, Project):
            items = {item.name: item.scalar for item in rows.items}
            names = [items[name].name for name in names if is_column(items[name])]
        rows = rows.child
    assert isinstance(rows, Scan), "a question is of rows of one view"
    sources = dict(zip(rows.names, rows.sources, strict=True))
    return [sources[name] for name in names]


def question_of(plan: Relation, view: str) -> Question:
    """What a plan asks of a view. Raises :class:`CannotAnswer` if a sample cannot tell."""
    above: list[Relation] = []
    below = plan
    while isinstance(below, Project | Sort | Limit):
        if isinstance(below, Sort) and not all(is_column(key.scalar) for key in below.by):
            raise CannotAnswer("an order by what is calculated")
        above.append(below)
        below = below.child
    if not isinstance(below, Aggregate):
        if any(isinstance(node, Limit) for node in above):
            raise CannotAnswer(
                "LIMIT of rows: a row that is not in the sample may be among the first"
            )
        _require_rows(plan, view)
        rows, order = (plan.child, plan.by) if isinstance(plan, Sort) else (plan, ())
        if any(isinstance(node, Sort) for node in walk(rows)):
            raise CannotAnswer("rows in an order of what they do not show")
        return Question(rows, (), (), (), plan, order)
    _require_rows(below.child, view)
    if not below.aggregates:
        raise CannotAnswer("DISTINCT: values that are not in the sample may be missing")
    measures = tuple(_measure(item) for item in below.aggregates)
    items, picking = _apart(above, below)
    linear = [one.name for one in measures if one.function in ("sum", "count", "avg")]
    others = [one.name for one in measures if one.name not in linear]
    made = tuple(calculation_of(item, linear, others) for item in items)
    return Question(below.child, below.keys, measures, picking, below, calculations=made)


def _apart(
    above: Sequence[Relation], below: Aggregate
) -> tuple[tuple[Item, ...], tuple[Relation, ...]]:
    """What is calculated of an aggregate's columns, and what is done above it with that as columns.

    Both go from the last thing that is done to the first, as ``above``.
    """
    meaning: dict[str, Scalar] = {name: column(name) for name in below.names}
    found: list[Item] = []
    chosen: list[tuple[Item, ...]] = []
    for node in reversed(above):
        if isinstance(node, Project):
            meaning = {item.name: substitute(item.scalar, meaning) for item in node.items}
            items = []
            for item in node.items:
                if is_column(item.scalar):
                    items.append(item)
                    continue
                found.append(Item(f"__calculated{len(found)}", meaning[item.name]))
                items.append(Item(item.name, column(found[-1].name)))
            chosen.append(tuple(items))
    if not found:
        return (), tuple(above)
    every = [Item(name, column(name)) for name in below.names]
    rows: Relation = Project(below, (*every, *found))
    passed = tuple(Item(item.name, column(item.name)) for item in found)
    picking = []
    for node in reversed(above):
        if isinstance(node, Project):
            # The last one shows what is asked for.
            more = passed if len(chosen) > 1 else ()
            rows = Project(rows, (*chosen.pop(0), *more))
        else:
            rows = node.with_children(rows)
        picking.append(rows)
    return tuple(found), tuple(reversed(picking))


def _require_rows(plan: Relation, view: str) -> None:
    """Rows of the view alone, one for each of its own at most."""
    while isinstance(plan, Project | Filter | Sort):
        plan = plan.child
    match plan:
        case Scan() if plan.table.lower() == view.lower():
            return
        case Aggregate():
            raise CannotAnswer("a condition on aggregates (HAVING), or aggregates of aggregates")
        case Opaque():
            raise CannotAnswer("a query that only Spark understands")
    raise CannotAnswer("more than rows of this view alone")


def _measure(item: Item) -> Measure:
    call = aggregate_call(item.scalar)
    assert call is not None
    condition = None
    if isinstance(item.scalar, exp.Filter):
        condition = item.scalar.expression.this.copy()
    inner = call.this
    if isinstance(inner, exp.Distinct):
        raise CannotAnswer("a count of unlike values, of which a sample says little")
    argument = inner.copy() if isinstance(inner, exp.Expr) else None
    if isinstance(inner, exp.Star):
        argument = None
    of = Measure(item.name, call.copy(), argument, condition)
    match call:
        case exp.Count() if not call.expressions:
            return replace(of, function="count")
        case exp.Sum():
            return replace(of, function="sum")
        case exp.Avg():
            return replace(of, function="avg")
        case exp.Variance():
            return replace(of, function="variance")
        case exp.Stddev() | exp.StddevSamp():
            return replace(of, function="deviation")
        case exp.VariancePop():
            return replace(of, function="variance of all")
        case exp.StddevPop():
            return replace(of, function="deviation of all")
        case exp.Min():
            return replace(of, extreme="min")
        case exp.Max():
            return replace(of, extreme="max")
        case exp.Median():
            return replace(of, share=0.5)
        case exp.Quantile() if isinstance(call.args.get("quantile"), exp.Literal):
            return replace(of, share=float(call.args["quantile"].this))
    raise CannotAnswer(f"{call.sql('spark')}, for which there is no estimator")


def carrying(plan: Relation, table: str, names: tuple[str, ...]) -> Relation:
    """The rows with more columns of the table they are of, which is read under another name."""
    match plan:
        case Scan():
            have = {
                source: one.name for source, one in zip(plan.sources, plan.columns, strict=True)
            }
            more = [name for name in names if name not in have]
            columns = (*plan.columns, *(Column(carried(name)) for name in more))
            scan = Scan(table, (*plan.sources, *more), columns)
            again = [Item(carried(name), column(have[name])) for name in names if name in have]
            if not again:
                return scan
            every = [Item(name, column(name)) for name in scan.names]
            return Project(scan, (*every, *again))
        case Filter() | Sort():
            return plan.with_children(carrying(plan.children[0], table, names))
        case Project():
            child = carrying(plan.child, table, names)
            passed = (Item(carried(name), column(carried(name))) for name in names)
            return Project(child, (*plan.items, *passed))
    raise AssertionError("a question is of rows of one view")


def carried(name: str) -> str:
    """What :func:`carrying` calls a column of the table."""
    return name if name in (HASH, SIGN) else f"__carried_{name}"
