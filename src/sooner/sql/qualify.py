"""Every column gets its table: sqlglot's qualification, with guards where it could differ from Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.optimizer.qualify import qualify as sqlglot_qualify
from sqlglot.schema import MappingSchema

from sooner.algebra.schema import Schema
from sooner.sql.untranslatable import Untranslatable
from sooner.sql.using import joins_by_name, mark_using, resolve_using


def qualify(query: exp.Query, schemas: Mapping[str, Schema]) -> exp.Query:
    """A copy of the query with stars expanded, names lower-cased and every column qualified.

    ``schemas`` are the columns of each table by lower-cased table name.
    """
    for select in query.find_all(exp.Select):
        _refuse_shadowing(select, schemas)
        _refuse_stars_of_using(select)
    _refuse_fields(query, schemas)
    known: dict[str, object] = {
        table: {column.name.lower(): column.type for column in schema}
        for table, schema in schemas.items()
    }
    query = query.copy()
    by_name = mark_using(query)
    try:
        qualified = sqlglot_qualify(
            query,
            dialect="spark",
            schema=MappingSchema(known, dialect="spark", normalize=False),  # names are no SQL
            validate_qualify_columns=False,
            quote_identifiers=True,
        )
    except (OptimizeError, SchemaError, SqlglotParseError) as error:
        raise Untranslatable(f"names that cannot be resolved ({error})") from error
    if by_name:
        resolve_using(qualified)
    for node in qualified.walk():
        node._meta = None  # places in the text: half of what it takes to copy a scalar
    return qualified


def _refuse_shadowing(select: exp.Select, schemas: Mapping[str, Schema]) -> None:
    """An output name that hides an input column is resolved by other rules in Spark than in sqlglot."""
    aliases = {
        item.alias.lower()
        for item in select.expressions
        if isinstance(item, exp.Alias) and not _is_column_named(item.this, item.alias)
    }
    if not aliases:
        return
    inputs = {column.lower() for column in _input_columns(select, schemas)}
    for clause in ("group", "having", "order"):
        node = select.args.get(clause)
        if node is None:
            continue
        for column in node.find_all(exp.Column):
            name = column.name.lower()
            if not column.table and name in aliases and name in inputs:
                raise Untranslatable(f"the name {name}, which is both a column and an alias")
    _refuse_captured(select, aliases, schemas)


def _refuse_captured(
    select: exp.Select, aliases: Collection[str], schemas: Mapping[str, Schema]
) -> None:
    """In WHERE an alias means nothing to Spark: a name is a column here, or one of a query around."""
    where = select.args.get("where")
    own: set[str] | None = None
    for column in where.find_all(exp.Column) if where else ():
        name = column.name.lower()
        if not column.table and name in aliases and column.parent_select is select:
            own = _certain_columns(select, schemas) if own is None else own
            if name not in own:
                raise Untranslatable(f"the name {name} in WHERE, which is also an alias")


def _refuse_stars_of_using(select: exp.Select) -> None:
    """In ``t.*`` Spark puts the columns that tables are joined by first, which sqlglot does not."""
    if any(joins_by_name(join) for join in select.args.get("joins") or []):
        for item in select.expressions:
            if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                raise Untranslatable(f"{item.sql('spark')} with JOIN … USING or NATURAL JOIN")


def _refuse_fields(query: exp.Query, schemas: Mapping[str, Schema]) -> None:
    """In ``v.a`` Spark takes v for a column with fields before it takes it for a table of a query around."""
    with_fields = {
        table: tuple(column for column in schema if "<" in (column.type or "<"))
        for table, schema in schemas.items()
    }
    for column in query.find_all(exp.Column):
        name = column.table.lower()
        select = column.find_ancestor(exp.Select) if name else None
        while select and name not in {one.alias_or_name.lower() for one in _sources(select)}:
            if name in {one.lower() for one in _input_columns(select, with_fields)}:
                raise Untranslatable(f"the name {name}, which is both a column and a table")
            select = select.find_ancestor(exp.Select)


def _is_column_named(scalar: exp.Expr, name: str) -> bool:
    return isinstance(scalar, exp.Column) and scalar.name.lower() == name.lower()


def _certain_columns(select: exp.Select, schemas: Mapping[str, Schema]) -> set[str]:
    """Names that the sources of a SELECT have without doubt; SEMI and ANTI joins add none."""
    found: set[str] = set()
    for source in _sources(select):
        if isinstance(source.parent, exp.Join) and source.parent.kind in ("SEMI", "ANTI"):
            continue
        alias = source.args.get("alias")
        if alias and alias.columns:
            found |= {identifier.name.lower() for identifier in alias.columns}
        elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
            found |= {item.alias_or_name.lower() for item in source.this.selects}
        elif isinstance(source, exp.Table):
            found |= _columns_of_table(source, schemas)
    return found


def _sources(select: exp.Select) -> list[exp.Expr]:
    clause = select.args.get("from_")
    sources = [clause.this] if clause else []
    return sources + [join.this for join in select.args.get("joins") or []]


def _columns_of_table(table: exp.Table, schemas: Mapping[str, Schema]) -> set[str]:
    """Of a WITH query of this name those that each of that name has."""
    name = table.name.lower()
    called = [one for one in table.root().find_all(exp.CTE) if one.alias.lower() == name]
    found = [{column.name.lower() for column in schemas.get(name, ())}] if name in schemas else []
    for one in called:
        columns = one.args["alias"].columns or one.this.selects
        found.append({item.alias_or_name.lower() for item in columns})
    return set.intersection(*found) if found else set()


def _input_columns(select: exp.Select, schemas: Mapping[str, Schema]) -> set[str]:
    """All names that the sources of a SELECT could offer; more than there are does no harm."""
    found: set[str] = set()
    for source in _sources(select):
        for table in source.find_all(exp.Table):
            found |= {column.name for column in schemas.get(table.name.lower(), ())}
        for inner in source.find_all(exp.Select):
            found |= {item.alias_or_name for item in inner.expressions}
        alias = source.args.get("alias")
        found |= {identifier.name for identifier in (alias.columns if alias else [])}
    # A WITH name could be any of the query's own: take the names of all of them.
    for cte in select.root().find_all(exp.CTE):
        found |= {item.alias_or_name for item in cte.this.selects}
        found |= {identifier.name for identifier in cte.args["alias"].columns}
    return found
