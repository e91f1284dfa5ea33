"""A view's upkeep on Spark: its tables as they were and are, the steps of a plan, and the rows it writes."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from sooner.algebra import Aggregate, Join, JoinKind, Opaque, Relation, Scan, walk
from sooner.algebra.schema import Column, Schema
from sooner.engine.binding import standing_in
from sooner.engine.change_rows import Blocks, readable
from sooner.engine.failures import plain_errors
from sooner.engine.lowering import lower
from sooner.engine.merged_rows import forget, held, held_count
from sooner.engine.paths import literal
from sooner.engine.rows import ddl, scramble_rows, table_rows
from sooner.engine.sources import to_schema
from sooner.engine.statistics import rows_together
from sooner.engine.writing import written_files
from sooner.sql import Hint, quote
from sooner.storage.layout import VERSION
from sooner.storage.records import Change, ChangeKind, DataFile, Table

_KINDS: tuple[ChangeKind, ...] = ("delete", "insert")
_KIND = "__kind"
# Small enough that the rows of a part of the hash's range are found without reading the others.
_ROW_GROUP_BYTES = 16 << 20
_SMALL_BYTES = 64 << 20
_VALUE_BYTES = 12


def plan_types(spark: SparkSession, plan: Relation) -> dict[str, str]:
    """The types of a plan's columns, as Spark decides them."""
    with plain_errors():
        return {one.name: str(one.type) for one in to_schema(lower(spark, plan).schema)}


def rows_at(spark: SparkSession, table: Table, blocks: Blocks | None = None) -> DataFrame:
    """The rows of a table at its version, or of some blocks of a scramble of it."""
    if blocks is None:
        return table_rows(spark, table)
    rows = scramble_rows(spark, table, blocks.scramble).where(blocks.sql)
    return rows.select(*(quote(column.name) for column in table.columns))


@contextmanager
def stepped(
    spark: SparkSession,
    steps: Sequence[tuple[str, Relation]],
    frames: Mapping[str, DataFrame],
    small: Collection[str] = (),
    stand_ins: Mapping[str, DataFrame] | None = None,
) -> Iterator[DataFrame]:
    """The rows of the last of some plans; those of the others are held for it, under their names.

    Frames in ``small`` are handed to every task by Spark, instead of sorting what they are joined with.
    A query that goes to Spark as it is written names registered tables itself: ``stand_ins`` are the frames
    that it reads under these names.
    """
    unique = f"__{uuid.uuid4().hex}"
    names = {name: f"{name}{unique}" for name in [*frames, *(name for name, _ in steps[:-1])]}
    few = {names[name] for name in small}
    kept: list[DataFrame] = []

    def renamed(plan: Relation) -> Relation:
        if isinstance(plan, Scan):
            return Scan(names.get(plan.table, plan.table), plan.sources, plan.columns)
        return plan.with_children(*(renamed(child) for child in plan.children))

    def lowered(plan: Relation) -> DataFrame:
        verbatim = any(isinstance(node, Opaque) for node in walk(plan))
        with standing_in(spark, (stand_ins or {}) if verbatim else {}):
            return lower(spark, renamed(plan), _Hinting(few))

    with plain_errors(), readable(spark, {names[n]: frame for n, frame in frames.items()}):
        try:
            for place, (name, plan) in enumerate(steps[:-1], 1):
                rows = held(lowered(plan), now=False)
                kept.append(rows)
                rows.createOrReplaceTempView(names[name])
                # How many there are matters to joins alone; else they are computed when they are read.
                if any(_joins(later) for _, later in steps[place:]) and is_small(
                    held_count(rows), len(rows.columns)
                ):
                    few.add(names[name])
            yield lowered(steps[-1][1])
        finally:
            for (name, _), rows in zip(steps, kept, strict=False):
                spark.catalog.dropTempView(names[name])
                forget(rows)


def _joins(plan: Relation) -> bool:
    return any(isinstance(node, Join) for node in walk(plan))


def is_small(rows: int, columns: int) -> bool:
    """Whether so much can be held by every task."""
    return rows * columns * _VALUE_BYTES < _SMALL_BYTES


class _Hinting:
    """Which side of a join is small: one that reads small tables alone."""

    def __init__(self, small: set[str]) -> None:
        self._small = small

    def __call__(self, join: Join) -> Hint | None:
        left, right = (self._is_small(side) for side in join.children)
        if right and not left and join.kind.value in ("inner", "left", "semi", "anti"):
            return Hint("BROADCAST", right=True)
        if left and not right and join.kind.value in ("inner", "right"):
            return Hint("BROADCAST", right=False)
        return None

    def _is_small(self, plan: Relation) -> bool:
        match plan:
            case Scan():
                return plan.table in self._small
            case Join(kind=JoinKind.SEMI | JoinKind.ANTI):  # some of its left rows
                return self._is_small(plan.left)
            case Aggregate(child=Join(kind=JoinKind.SEMI) as met) if self._is_small(met.right):
                return True  # groups of what meets few rows
        return bool(plan.children) and all(self._is_small(child) for child in plan.children)


def without_rows(rows: DataFrame, gone: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows whose key is not among others; without a key there is one row, which any other replaces."""
    same = [f"v.{quote(name)} <=> g.{quote(name)}" for name in key] or ["true"]
    return rows.alias("v").join(gone.alias("g"), expr(" AND ".join(same)), "left_anti")


def hashed(rows: DataFrame, columns: Sequence[str], hash_sql: str | None, name: str) -> DataFrame:
    """Rows of some columns with their hash, in its order within each file."""
    shown = [quote(column) for column in columns]
    if hash_sql is None:
        return rows.select(*shown)
    return rows.selectExpr(*shown, f"{hash_sql} AS {quote(name)}").sortWithinPartitions(quote(name))


def write_rows(rows: DataFrame, directory: str) -> tuple[DataFile, ...]:
    """Write a view's rows anew; returns the files that are not empty."""
    with plain_errors():
        rows.write.option("parquet.block.size", _ROW_GROUP_BYTES).parquet(directory)
    return written_files(directory)


def drawn_together(spark: SparkSession, directory: str, hash_: str) -> tuple[float, float, float]:
    """How many hashes a view's rows have, and Σn and Σn² over the numbers n of rows that share one."""
    schema = ddl((), ((hash_, "bigint"),))
    with plain_errors():
        return rows_together(spark.read.schema(schema).parquet(literal(directory)), hash_)


def view_schema(rows: DataFrame, hidden: int) -> tuple[Schema, Schema]:
    """The columns that queries see, and those they do not, as Spark types them."""
    columns = to_schema(rows.schema)
    return columns[: len(columns) - hidden], columns[len(columns) - hidden :]


def write_changes(
    table: Table, rows: DataFrame, sign: str, hash_sql: str | None, name: str, directory: str
) -> None:
    """Add rows that a view loses and gains to a directory, in one pass over them."""
    own = tuple(column for column in table.stored if column.name != name)
    typed = rows.selectExpr(*(_cast(column) for column in own), quote(sign))
    placed = hashed(typed, [*(column.name for column in own), sign], hash_sql, name)
    kind = f"CASE WHEN {quote(sign)} < 0 THEN 'delete' ELSE 'insert' END AS {_KIND}"
    version = f"{table.version + 1}L AS {VERSION}"
    written = placed.selectExpr("*", version, kind).drop(sign)
    if hash_sql is not None:
        written = written.sortWithinPartitions(_KIND, quote(name))
    with plain_errors():
        written.write.mode("append").partitionBy(_KIND).parquet(directory)


def written_changes(table: Table, directory: str) -> list[Change]:
    """What was written, as changes to the view; a kind without rows is left out."""
    found = []
    for kind in _KINDS:
        place = str(Path(directory) / f"{_KIND}={kind}")
        if files := written_files(place):
            found.append(Change(table.version + 1, kind, None, place, files))
    return found


def _cast(column: Column) -> str:
    return f"CAST({quote(column.name)} AS {column.type}) AS {quote(column.name)}"


def sample_changes(spark: SparkSession, table: Table, directory: str, sign: str) -> DataFrame:
    """What :func:`write_changes` wrote, with all stored columns and the sign."""
    schema = ddl(table.stored, ((_KIND, "string"),))
    rows = spark.read.schema(schema).parquet(literal(directory))
    names = [quote(column.name) for column in table.stored]
    return rows.selectExpr(*names, f"CAST(IF({_KIND} = 'delete', -1, 1) AS INT) AS {quote(sign)}")


def threshold(
    rows: DataFrame, column: str, top: int | None, deviations: float | None
) -> float | None:
    """The value from which on rows are outliers; ``None`` if there are no rows."""
    name = quote(column)
    # What is beyond all numbers is an outlier by any threshold, and none can be made of it.
    finite = rows.where(f"abs(CAST({name} AS DOUBLE)) < double('inf')")
    with plain_errors():
        if top is not None:
            first = finite.selectExpr(f"CAST({name} AS DOUBLE) AS v")
            largest = first.orderBy("v", ascending=False).limit(top)
            (found,) = largest.selectExpr("min(v)").collect()
        else:
            (found,) = finite.selectExpr(
                f"avg({name}) + {deviations}D * stddev_pop({name})"
            ).collect()
    return None if found[0] is None else float(found[0])


def outlier_hashes(
    rows: DataFrame, column: str, least: float, hash_sql: str, most: int
) -> list[int]:
    """The hashes of rows whose value is at least so large, at most so many."""
    far = rows.where(f"CAST({quote(column)} AS DOUBLE) >= {least!r}D")
    with plain_errors():
        found = far.selectExpr(f"{hash_sql} AS h").distinct().limit(most).collect()
    return sorted(int(row[0]) for row in found)
