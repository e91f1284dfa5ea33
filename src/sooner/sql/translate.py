"""A qualified sqlglot tree to the algebra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

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
    bare,
    column,
    columns_of,
    conjuncts,
    is_column,
    substitute,
)
from sooner.algebra.schema import Column, Schema
from sooner.sql.functions import require_allowed
from sooner.sql.grouping import Grouping, has_aggregate
from sooner.sql.scope import Block, Frame, Names, Scope, WithQuery
from sooner.sql.subqueries import join_subquery, replace_scalar_subqueries, require_in_order
from sooner.sql.untranslatable import Untranslatable

_SELECT_PARTS = frozenset(
    [
        "with_",
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
    ]
)
_SET_PARTS = frozenset(["with_", "this", "expression", "distinct", "order", "limit", "offset"])
# What SQL calls the parts that sqlglot names otherwise.
_SQL_WORDS = {
    "by_name": "BY NAME",
    "cluster": "CLUSTER BY",
    "db": "a table of another schema",
    "distribute": "DISTRIBUTE BY",
    "hint": "a hint",
    "laterals": "LATERAL VIEW",
    "method": "NATURAL JOIN",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "using": "USING",
    "windows": "WINDOW",
    "with_": "WITH",
}
_SET_OPERATIONS = (exp.Union, exp.Intersect, exp.Except)
_JOIN_KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}


@dataclass(frozen=True)
class Translation:
    """A plan and the label of each of its columns as sqlglot sees it; Spark decides the final names."""

    plan: Relation
    labels: tuple[str, ...]


def translate(
    query: exp.Query, schemas: Mapping[str, Schema], maps: Mapping[str, Map] | None = None
) -> Translation:
    """Translate a qualified query. ``schemas`` and ``maps`` are by lower-cased name.

    ``maps`` are relations that have no SQL (a user's function) under the name the query uses.
    """
    block = Translator(schemas, maps or {}).query(query, {}, None)
    return Translation(block.relation, tuple(label for label, _ in block.outputs))


class Translator:
    """One translation: hands out names and knows the tables."""

    def __init__(self, schemas: Mapping[str, Schema], maps: Mapping[str, Map]) -> None:
        self._schemas = schemas
        self._maps = maps
        self._types: dict[str, str | None] = {}
        self.names = Names()

    def query(
        self, query: exp.Expr, visible: Mapping[str, WithQuery], outer: Scope | None
    ) -> Block:
        """Translate a SELECT, a set operation or a parenthesised query."""
        if isinstance(query, exp.Subquery) and _parts(query) <= {"this", "alias"}:
            return self.query(query.this, visible, outer)
        visible = _with_queries(query, visible)
        if isinstance(query, exp.Select):
            _require_parts(query, _SELECT_PARTS)
            return self._select(query, visible, outer)
        if isinstance(query, _SET_OPERATIONS):
            _require_parts(query, _SET_PARTS)
            return self._set_operation(query, visible)
        raise Untranslatable(f"{query.key.upper()} as a query")

    def _select(
        self, select: exp.Select, visible: Mapping[str, WithQuery], outer: Scope | None
    ) -> Block:
        for part in _scalars_of(select):
            require_allowed(part)
        frame = self.sources(select, visible, outer)
        correlated = self.where(select, frame)
        order = select.args.get("order")
        sort_keys = [key.this for key in order.expressions] if order else []
        grouping = None
        if (
            select.args.get("group")
            or select.args.get("having")
            or has_aggregate(*select.expressions, *sort_keys)
        ):
            if correlated and not select.args.get("group"):
                raise Untranslatable("a correlated subquery with an aggregate in EXISTS or IN")
            grouping = Grouping(self.names, frame, _group_scalars(select))
            correlated = tuple(grouping.add_correlated(part) for part in correlated)
            having = select.args.get("having")
            grouping.build([*select.expressions, *sort_keys, *([having.this] if having else [])])
            if having:
                self._having(having.this, frame, grouping)
        return self._output(select, frame, grouping, correlated)

    def sources(
        self, select: exp.Select, visible: Mapping[str, WithQuery], outer: Scope | None
    ) -> Frame:
        """The FROM clause."""
        clause = select.args.get("from_")
        if clause is None:
            raise Untranslatable("a SELECT without FROM")
        scope = Scope(outer=outer)
        relation = self._source(clause.this, visible, scope)
        for join in select.args.get("joins") or []:
            _require_parts(join, frozenset({"this", "side", "kind", "on"}))
            kind = _JOIN_KINDS.get((join.side or "", join.kind or ""))
            if kind is None:
                raise Untranslatable(f"{join.side} {join.kind} JOIN".strip())
            joined = self._source(join.this, visible, scope)
            condition: Scalar | None = None
            if (on := join.args.get("on")) is not None:
                if on.find(exp.Query):
                    raise Untranslatable("a subquery in a join condition")
                condition = Frame(relation, scope, visible, self._types).named(on)
                if not columns_of(condition) <= relation.name_set | joined.name_set:
                    raise Untranslatable("a join condition that refers to the query around it")
            relation = Join(relation, joined, kind, condition)
            if not kind.keeps_right:
                del scope.sources[join.this.alias_or_name]
        return Frame(relation, scope, visible, self._types)

    def _source(self, source: exp.Expr, visible: Mapping[str, WithQuery], scope: Scope) -> Relation:
        alias = source.alias_or_name
        if alias in scope.sources:
            raise Untranslatable(f"two sources called {alias}")
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            _require_parts(source, frozenset({"this", "alias"}))
            block = self._table(source.name, visible)
        elif isinstance(source, exp.Subquery):
            _require_parts(source, frozenset({"this", "alias", "with_"}))
            block = self.query(source.this, visible, None)
        else:
            raise Untranslatable(f"{source.key.upper()} in FROM")
        labels = [label for label, _ in block.outputs]
        if source.alias_column_names:
            labels = [name.lower() for name in source.alias_column_names]
        twice = [label for label, count in Counter(labels).items() if count > 1]
        if twice:
            raise Untranslatable(f"a subquery with two columns called {twice[0]}")
        scope.sources[alias] = {
            label: name for label, (_, name) in zip(labels, block.outputs, strict=True)
        }
        return block.relation

    def _table(self, name: str, visible: Mapping[str, WithQuery]) -> Block:
        if name in visible:
            entry = visible[name]
            return self.query(entry.query, entry.visible, None)
        if name in self._maps:
            node = self._maps[name]
            fresh = {column.name: self.names.fresh(column.name.lower()) for column in node.columns}
            renamed = Project(node, tuple(Item(new, column(old)) for old, new in fresh.items()))
            return Block(renamed, tuple((old.lower(), new) for old, new in fresh.items()))
        schema = self._schemas[name]
        outputs = tuple((c.name.lower(), self.names.fresh(c.name.lower())) for c in schema)
        columns = tuple(Column(name, c.type) for (_, name), c in zip(outputs, schema, strict=True))
        self._types.update((column.name, column.type) for column in columns)
        return Block(Scan(name, tuple(c.name for c in schema), columns), outputs)

    def where(self, select: exp.Select, frame: Frame) -> tuple[Scalar, ...]:
        """Apply the WHERE clause to the frame; return the conjuncts that refer to the query around."""
        clause = select.args.get("where")
        parts = conjuncts(clause.this) if clause else ()
        require_in_order(parts)
        plain = [frame.named(part) for part in parts if not part.find(exp.Query)]
        own = frame.relation.name_set
        local = all_of(part for part in plain if columns_of(part) <= own)
        correlated = [part for part in plain if not columns_of(part) <= own]
        # Before the subqueries: it makes the input of their joins smaller.
        if local is not None:
            frame.relation = Filter(frame.relation, local)
        for part in parts:
            if not part.find(exp.Query) or join_subquery(self, frame, bare(part)):
                continue
            condition = replace_scalar_subqueries(self, frame, frame.named(part))
            if columns_of(condition) <= frame.relation.name_set:
                frame.relation = Filter(frame.relation, condition)
            else:
                correlated.append(condition)
        return tuple(correlated)

    def _having(self, having: exp.Expr, frame: Frame, grouping: Grouping) -> None:
        for part in conjuncts(having):
            condition = grouping.after(frame.named(part))
            condition = replace_scalar_subqueries(self, frame, condition)
            _require_local(condition, frame.relation)
            frame.relation = Filter(frame.relation, condition)

    def _output(
        self,
        select: exp.Select,
        frame: Frame,
        grouping: Grouping | None,
        correlated: tuple[Scalar, ...],
    ) -> Block:
        def finished(scalar: exp.Expr, outputs: Mapping[str, str] | None = None) -> Scalar:
            named = frame.named(scalar, outputs)
            if grouping is not None:
                named = grouping.after(named)
            return replace_scalar_subqueries(self, frame, named)

        items: list[Item] = []
        labels: list[str] = []
        for projection in select.expressions:
            scalar = finished(projection.unalias())
            _require_local(scalar, frame.relation)
            label = projection.alias_or_name
            used = {item.name for item in items}
            keeps_name = is_column(scalar) and scalar.name not in used
            items.append(Item(scalar.name if keeps_name else self.names.fresh(label), scalar))
            labels.append(label)
        outputs = tuple(zip(labels, (item.name for item in items), strict=True))

        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise Untranslatable("DISTINCT ON")
        if correlated:
            # Only EXISTS and IN get here: they do not care for order or for duplicates.
            if select.args.get("limit") or select.args.get("offset"):
                raise Untranslatable("LIMIT in a correlated subquery")
            needed = frozenset().union(*(columns_of(part) for part in correlated))
            passed = needed & frame.relation.name_set - {item.name for item in items}
            items += [Item(name, column(name)) for name in sorted(passed)]
            return Block(Project(frame.relation, tuple(items)), outputs, correlated)

        order = select.args.get("order")
        sort_keys: list[SortKey] = []
        hidden: list[Item] = []
        for key in order.expressions if order else ():
            scalar = finished(key.this, dict(outputs))
            written = {item.name for item in items}
            if not columns_of(scalar) <= written:
                # Sorted by something that is not shown: carried along, then dropped.
                scalar = _over_inputs(scalar, items)
                _require_local(scalar, frame.relation)
                hidden.append(Item(self.names.fresh("sort_key"), scalar))
                scalar = column(hidden[-1].name)
            sort_keys.append(_sort_key(key, scalar))
        relation: Relation = Project(frame.relation, (*items, *hidden))
        if distinct is not None:
            if hidden:
                raise Untranslatable("SELECT DISTINCT in an order that is not shown")
            relation = Aggregate(relation, relation.names)
        if sort_keys:
            relation = Sort(relation, tuple(sort_keys))
        relation = _limited(relation, select)
        if hidden:
            kept = (item.name for item in items)
            relation = Project(relation, tuple(Item(name, column(name)) for name in kept))
        return Block(relation, outputs)

    def _set_operation(
        self, operation: exp.SetOperation, visible: Mapping[str, WithQuery]
    ) -> Block:
        left = self.query(operation.this, visible, None)
        right = self.query(operation.expression, visible, None)
        distinct = bool(operation.args.get("distinct"))
        relation: Relation
        if isinstance(operation, exp.Union):
            relation = Union(left.relation, right.relation)
            if distinct:
                relation = Aggregate(relation, relation.names)
        elif isinstance(operation, exp.Intersect):
            relation = Intersect(left.relation, right.relation, all=not distinct)
        else:
            relation = Except(left.relation, right.relation, all=not distinct)
        if order := operation.args.get("order"):
            frame = Frame(relation, Scope(), visible, self._types)
            keys = [
                _sort_key(key, frame.named(key.this, dict(left.outputs)))
                for key in order.expressions
            ]
            for key in keys:
                require_allowed(key.scalar)
            relation = Sort(relation, tuple(keys))
        return Block(_limited(relation, operation), left.outputs)


def _with_queries(query: exp.Expr, visible: Mapping[str, WithQuery]) -> Mapping[str, WithQuery]:
    clause = query.args.get("with_")
    if clause is None:
        return visible
    if clause.args.get("recursive"):
        raise Untranslatable("WITH RECURSIVE")
    for entry in clause.expressions:
        visible = {**visible, entry.alias: WithQuery(entry.this, visible)}
    return visible


def _scalars_of(select: exp.Select) -> list[exp.Expr]:
    parts = [projection.unalias() for projection in select.expressions]
    for clause in ("where", "having"):
        if node := select.args.get(clause):
            parts.append(node.this)
    if order := select.args.get("order"):
        parts += [key.this for key in order.expressions]
    parts += _group_scalars(select)
    parts += [on for join in select.args.get("joins") or [] if (on := join.args.get("on"))]
    return parts


def _group_scalars(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    if _parts(group) - {"expressions"}:
        raise Untranslatable("GROUP BY with " + ", ".join(sorted(_parts(group) - {"expressions"})))
    scalars: list[exp.Expr] = group.expressions
    return scalars


def _sort_key(key: exp.Expr, scalar: Scalar) -> SortKey:
    if _parts(key) - {"this", "desc", "nulls_first"}:
        raise Untranslatable("ORDER BY with " + ", ".join(sorted(_parts(key))))
    return SortKey(scalar, bool(key.args.get("desc")), bool(key.args.get("nulls_first")))


def _over_inputs(scalar: Scalar, items: list[Item]) -> Scalar:
    return substitute(scalar, {item.name: item.scalar for item in items})


def _limited(relation: Relation, query: exp.Expr) -> Relation:
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        return relation
    count = None if limit is None else _whole_number(limit)
    return Limit(relation, count, 0 if offset is None else _whole_number(offset))


def _whole_number(clause: exp.Expr) -> int:
    value = clause.args.get("expression")
    if _parts(clause) <= {"expression"} and isinstance(value, exp.Literal) and value.is_int:
        return int(value.this)
    raise Untranslatable("LIMIT or OFFSET that is not a plain number")


def _require_local(scalar: Scalar, relation: Relation) -> None:
    if not columns_of(scalar) <= relation.name_set:
        raise Untranslatable("a column that is neither grouped nor in this query's own tables")


def _require_parts(node: exp.Expr, allowed: frozenset[str]) -> None:
    other = _parts(node) - allowed
    if other:
        raise Untranslatable(", ".join(sorted(_SQL_WORDS.get(p, p.upper()) for p in other)))


def _parts(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}
