"""From SQL text to something that can run: checked, bound, typed by Spark, planned and rewritten."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from sqlglot import exp

from sooner.algebra.relation import Aggregate, Map, Opaque, Relation
from sooner.algebra.schema import Column, Schema
from sooner.algebra.traversal import tables as plan_tables
from sooner.algebra.traversal import walk
from sooner.engine import binding
from sooner.engine.exact import contract
from sooner.engine.read_otherwise import read_otherwise
from sooner.engine.scalar_functions import scalar_functions
from sooner.engine.statements import require_query
from sooner.errors import SoonerError
from sooner.rewrites import Step, rewrite
from sooner.sql import (
    Untranslatable,
    parse,
    plan_tree,
    statement_text,
    table_names,
    unknown_functions,
    with_aggregates,
)
from sooner.storage import Table


@dataclass(frozen=True)
class Prepared:
    """A query that is ready to run.

    ``columns`` is the contract: every answer has these names and types. ``tables`` are the registered
    tables it reads, ``written`` its plan before and ``plan`` after the rewrites.
    """

    text: str
    maps: Mapping[str, Map]
    columns: Schema
    tables: tuple[str, ...]
    written: Relation
    plan: Relation
    steps: tuple[Step, ...]

    def as_written(self, reason: str) -> Prepared:
        """The same for Spark as the text stands."""
        return replace(self, plan=opaque(self.text, self.columns, reason, self.tables, self.maps))


def prepare(
    spark: SparkSession,
    registered: Callable[[], Iterable[str]],
    bind: Callable[[str], Table],
    text: str,
    maps: Mapping[str, Map],
    without: Collection[str],
    aggregates: Collection[str] = (),
) -> Prepared:
    """Prepare a query. ``registered`` lists the tables, ``bind`` makes one visible to Spark.

    ``aggregates`` are the names, in lower case, of aggregates that are functions of the user's.
    """
    text = statement_text(text)
    obstacle = ""
    tree: exp.Query | None = None
    readable: exp.Query | None = None
    try:
        readable = tree = with_aggregates(parse(text), aggregates)
    except Untranslatable as error:
        obstacle, readable = str(error), error.query
    require_query(spark, text)
    known = {name.lower() for name in registered()}
    if tree is not None:
        obstacle = read_otherwise(spark, text, tree) or ""
    read = None if readable is None else table_names(readable)
    names = sorted(known) if read is None else [name for name in read if name not in maps]
    for name in names:
        if name not in known:
            obstacle = f"the table {name}, which is not registered"
            names += [one for one in binding.read_by(spark, name) if one not in names]
    with binding.lock:
        tables = _bound(bind, [name for name in names if name in known], must=read is not None)
        columns = contract(spark, text, known, maps)
    plan: Relation | None = None
    if tree is not None and not obstacle:
        try:
            schemas = {name: table.columns for name, table in tables.items()}
            functions = scalar_functions(spark, unknown_functions(tree))
            plan = plan_tree(tree, schemas, maps, functions)
        except Untranslatable as error:
            obstacle = str(error)
    if plan is not None and any(isinstance(node, Aggregate) for node in walk(plan)):
        called = [column.name for column in columns]
        if twice := [name for name in called if called.count(name) > 1]:
            # Intervals go by name: one would be shown beside the value of the other.
            plan, obstacle = None, f"two columns that are called {twice[0]!r}"
    if plan is None:
        if read is None:
            tables = {name: table for name, table in tables.items() if _is_named(name, text)}
        plan = opaque(text, columns, obstacle, tuple(tables), maps)
    rewritten = rewrite(plan, without)
    return Prepared(text, maps, columns, plan_tables(plan), plan, rewritten.plan, rewritten.steps)


def _is_named(table: str, text: str) -> bool:
    """Whether a text has a table's name in it, be it as something else."""
    return re.search(rf"(?<!\w){re.escape(table)}(?!\w)", text.lower()) is not None


def _bound(bind: Callable[[str], Table], names: Iterable[str], must: bool) -> dict[str, Table]:
    """Tables made visible; where nobody can tell which a query reads, those that cannot be are left out."""
    tables = {}
    for name in names:
        try:
            tables[name] = bind(name)
        except SoonerError:
            if must:
                raise
    return tables


def opaque(
    text: str, columns: Schema, reason: str, reads: tuple[str, ...], maps: Mapping[str, Map]
) -> Opaque:
    """A query for Spark as it stands; its columns get names of their own, as its names may be equal."""
    named = tuple(Column(f"c{place}", column.type) for place, column in enumerate(columns, 1))
    return Opaque(text, named, reason, reads, tuple(maps.items()))
