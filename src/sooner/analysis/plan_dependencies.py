"""The functional dependencies that hold between the output columns of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count

from sqlglot import exp

from sooner.algebra import (
    Aggregate,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Limit,
    Map,
    Project,
    Relation,
    Scalar,
    Scan,
    Sort,
    Union,
    aggregate_call,
)
from sooner.algebra.scalar import columns_of, conjuncts, is_column
from sooner.analysis.conditions import Constant, constant_of, implied
from sooner.analysis.dependencies import Attribute, Attributes, Dependencies, Rule
from sooner.analysis.deterministic import is_function_of_columns
from sooner.analysis.facts import TableInfo, table_info


def plan_dependencies(plan: Relation, tables: Mapping[str, TableInfo]) -> Dependencies:
    """What fixes what among the output columns of a plan."""
    return _Walk(tables).of(plan)


def dependency_finder(tables: Mapping[str, TableInfo]) -> Callable[[Relation], Dependencies]:
    """``plan_dependencies`` for many nodes of one plan: what was found for a node is kept."""
    return _Walk(tables).of


def column_types(*relations: Relation) -> dict[str, str | None]:
    """The types of all columns of some relations, by name."""
    return {column.name: column.type for relation in relations for column in relation.schema}


class _Walk:
    """One pass over a plan: what it found for each node, and numbers for new attributes."""

    def __init__(self, tables: Mapping[str, TableInfo]) -> None:
        self.tables = tables
        self.numbers = count()
        self.found: dict[int, Dependencies] = {}

    def of(self, plan: Relation) -> Dependencies:
        if id(plan) not in self.found:
            self.found[id(plan)] = self._derive(plan)
        return self.found[id(plan)]

    def fresh(self) -> Attribute:
        return next(self.numbers)

    def _derive(self, plan: Relation) -> Dependencies:
        match plan:
            case Scan():
                return self._scan(plan)
            case Filter():
                facts = implied(plan.condition, column_types(plan.child))
                return self.of(plan.child).assuming(facts)
            case Project():
                return self._project(plan)
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Union():
                return self._union(plan)
            case Intersect():
                return self._intersect(plan)
            case Except():
                left = self._widened(plan, self.of(plan.left))
                return left if plan.all else left.grouped(plan.names, self.fresh())
            case Sort():
                return self.of(plan.child)
            case Limit():
                child = self.of(plan.child)
                if plan.count is None or plan.count > 1:
                    return child
                return child.with_rules(Rule(frozenset(), frozenset({child.row})))
            case Map():
                # A user's function may return any rows at all, with `by` as well as without.
                return self._unrelated(plan.names)
        raise AssertionError(f"no dependencies for {type(plan).__name__}")

    def _unrelated(self, names: Iterable[str]) -> Dependencies:
        row = self.fresh()
        columns = {name: self.fresh() for name in names}
        rule = Rule(frozenset({row}), frozenset(columns.values()))
        return Dependencies(columns, row, (rule,), frozenset({row}))

    def _scan(self, plan: Scan) -> Dependencies:
        info = table_info(self.tables, plan.table)
        key = [source.lower() for source in info.key]
        # Key columns that the scan leaves out are hidden attributes like any dropped column.
        lowered = [source.lower() for source in plan.sources]
        named = self._unrelated(dict.fromkeys([*lowered, *key]))
        if key:
            named = named.with_rules(Rule(named.attributes(key), frozenset({named.row})))
        nulls = {source.lower(): facts.nulls for source, facts in info.facts.columns.items()}
        full = {source.lower() for source in info.never_null}
        full |= {source for source, found in nulls.items() if found == 0}
        return replace(
            named,
            columns={n: named.columns[s] for n, s in zip(plan.names, lowered, strict=True)},
            never_null=named.never_null | named.attributes(full & set(named.columns)),
        )

    def _project(self, plan: Project) -> Dependencies:
        child = self.of(plan.child)
        types = column_types(plan.child)
        columns: dict[str, Attribute] = {}
        rules = list(child.rules)
        never_null = set(child.never_null)
        values: dict[Attribute, frozenset[Constant]] = dict(child.values)
        for item in plan.items:
            copied = _copied(item.scalar, child)
            columns[item.name] = new = self.fresh() if copied is None else copied
            if copied is not None:
                continue
            rules.append(Rule(frozenset({child.row}), frozenset({new})))
            if is_function_of_columns(item.scalar, types):
                rules.append(Rule(child.attributes(columns_of(item.scalar)), frozenset({new})))
            if _is_never_null(item.scalar, child):
                never_null.add(new)
            constant = constant_of(item.scalar)
            if constant is not None:
                values[new] = frozenset({constant})
        return replace(
            child,
            columns=columns,
            rules=tuple(rules),
            never_null=frozenset(never_null),
            values=values,
        )

    def _join(self, plan: Join) -> Dependencies:
        left = self.of(plan.left)
        facts = implied(plan.condition, column_types(plan.left, plan.right))
        if plan.kind is JoinKind.SEMI:  # the condition is true of each left row and some partner
            return left.assuming(facts.within(plan.left.name_set))
        if not plan.kind.keeps_right:
            return left
        right = self.of(plan.right).apart_from(left, self.fresh)
        if plan.kind is JoinKind.INNER:
            return left.beside(right, self.fresh()).assuming(facts)
        if plan.kind is JoinKind.FULL:
            return self._full(plan, left, right)
        kept, added, outer, inner = left, right, plan.left, plan.right
        if plan.kind is JoinKind.RIGHT:
            kept, added, outer, inner = right, left, plan.right, plan.left
        # Whether a row has a partner depends on the columns the condition reads; if it may depend
        # on more than that, only the row itself tells.
        told: Attributes = frozenset()
        if plan.condition is not None:
            told = kept.attributes(columns_of(plan.condition) & outer.name_set)
            if not is_function_of_columns(plan.condition, column_types(outer, inner)):
                told = frozenset({kept.row})
        # Rows of the padded side that appear at all are rows for which the condition is true.
        added = added.assuming(facts.within(inner.name_set)).padded(unless=told)
        both = kept.beside(added, self.fresh())
        for a, b in facts.equal:
            if (a in outer.name_set) != (b in outer.name_set):
                partner = added.attributes([b if a in outer.name_set else a])
                both = both.with_rules(Rule(told, partner))
        return replace(both, columns={name: both.columns[name] for name in plan.names})

    def _full(self, plan: Join, left: Dependencies, right: Dependencies) -> Dependencies:
        both = left.padded(unless=frozenset({right.row})).beside(
            right.padded(unless=frozenset({left.row})), self.fresh()
        )
        # If the condition is nothing but equalities of columns without nulls, the values of
        # coalesce(a, b) say whether the rows with them are pairs, left rows or right rows: a left
        # and a right row with the same values would have been a pair. So SVC's correspondence
        # subtract, a full join on the keys (§5.1, Definition 4), has coalesced keys as its key.
        parts = conjuncts(plan.condition)
        pairs = implied(plan.condition, column_types(plan.left, plan.right)).equal
        ends = [{a, b} for a, b in pairs]
        crossing = all(len(end & plan.left.name_set) == 1 and len(end) == 2 for end in ends)
        never_null = left.never_null | right.never_null
        full = all(both.attributes(end) <= never_null for end in ends)
        if not parts or len(ends) != len(parts) or not crossing or not full:
            return both
        merged = {both.attributes(end): self.fresh() for end in ends}
        rules = [Rule(frozenset(merged.values()), frozenset().union(*merged))]
        rules += [Rule(end, frozenset({one})) for end, one in merged.items()]
        return replace(
            both.with_rules(*rules),
            never_null=both.never_null | frozenset(merged.values()),
            merged={**both.merged, **merged},
        )

    def _aggregate(self, plan: Aggregate) -> Dependencies:
        row = self.fresh()
        groups = self.of(plan.child).grouped(plan.keys, row)
        results = {item.name: self.fresh() for item in plan.aggregates}
        counts = (
            results[item.name]
            for item in plan.aggregates
            if isinstance(aggregate_call(item.scalar), exp.Count)
        )
        rule = Rule(frozenset({row}), frozenset(results.values()))
        return replace(
            groups.with_rules(rule),
            columns={**groups.columns, **results},
            never_null=groups.never_null | frozenset(counts),
        )

    def _widened(self, plan: Union | Intersect | Except, side: Dependencies) -> Dependencies:
        """One side of a set operation under the names of its output.

        Where types differ Spark casts to a wider one. That is a function, but bigints can fall
        together as doubles: the cast column is fixed by the column and does not fix it.
        """
        columns: dict[str, Attribute] = {}
        rules: list[Rule] = []
        for column, attribute in zip(plan.schema, side.columns.values(), strict=True):
            columns[column.name] = attribute
            if column.type is None:
                columns[column.name] = new = self.fresh()
                rules.append(Rule(frozenset({attribute}), frozenset({new})))
        return replace(side.with_rules(*rules), columns=columns)

    def _intersect(self, plan: Intersect) -> Dependencies:
        left = self._widened(plan, self.of(plan.left))
        right = self._widened(plan, self.of(plan.right)).apart_from(left, self.fresh)
        # Every output row is a row of either side: what holds there holds here.
        same = [(left.row, right.row)] if plan.all else []
        if not plan.all:
            left = left.grouped(plan.names, self.fresh())
            right = right.grouped(plan.names, self.fresh())
        same += [(left.columns[name], right.columns[name]) for name in plan.names]
        rules = [Rule(frozenset({a}), frozenset({b})) for a, b in same]
        rules += [Rule(frozenset({b}), frozenset({a})) for a, b in same]
        return left.with_rules(*right.rules, *rules)

    def _union(self, plan: Union) -> Dependencies:
        left, right = self.of(plan.left), self.of(plan.right)
        both = self._unrelated(plan.names)
        values: dict[Attribute, frozenset[Constant]] = {}
        never_null = set(both.never_null)
        fixed: set[Attribute] = set()
        apart: list[str] = []
        for column, a, b in zip(
            plan.schema, left.columns.values(), right.columns.values(), strict=True
        ):
            one, other = left.values.get(a), right.values.get(b)
            if one and other and len({family for family, _ in one | other}) == 1:
                values[both.columns[column.name]] = one | other
                if len(one | other) == 1:
                    fixed.add(both.columns[column.name])
                if not one & other:
                    apart.append(column.name)
            if column.type and a in left.never_null and b in right.never_null:
                never_null.add(both.columns[column.name])
        both = replace(both, values=values, never_null=frozenset(never_null))
        both = both.with_rules(Rule(frozenset(), frozenset(fixed)))
        # Values of one family stay apart in the wider type, as those of one type do.
        intact = {c.name for c in plan.schema if c.type or both.columns[c.name] in values}
        sides = [_renamed_key(side, plan.names, intact) for side in (left, right)]
        if apart and None not in sides:
            columns = frozenset({apart[0]}).union(*(side for side in sides if side is not None))
            key = Rule(both.attributes(columns), frozenset({both.row}))
            both = both.with_rules(key)
        return both


def _copied(scalar: Scalar, child: Dependencies) -> Attribute | None:
    """The attribute that a scalar only copies."""
    if is_column(scalar):
        return child.columns[scalar.name]
    if isinstance(scalar, exp.Coalesce) and len(scalar.expressions) == 1:
        parts = (scalar.this, scalar.expressions[0])
        if all(is_column(part) for part in parts):
            return child.merged.get(child.attributes(part.name for part in parts))
    return None


def _is_never_null(scalar: Scalar, child: Dependencies) -> bool:
    if isinstance(scalar, exp.Coalesce):
        return any(_is_never_null(part, child) for part in (scalar.this, *scalar.expressions))
    if is_column(scalar):
        return child.columns[scalar.name] in child.never_null
    return isinstance(scalar, exp.Literal | exp.Boolean)


def _renamed_key(
    side: Dependencies, names: Iterable[str], intact: set[str]
) -> frozenset[str] | None:
    """A side's key under new names by position; ``None`` if it has none or a cast may merge it."""
    new = dict(zip(side.columns, names, strict=True))
    key = side.key()
    renamed = None if key is None else frozenset(new[name] for name in key)
    return renamed if renamed is not None and renamed <= intact else None
