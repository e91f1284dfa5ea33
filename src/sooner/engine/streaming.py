"""A progressive query's part in Spark: its scrambles opened once, its static parts kept, its batches run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from types import TracebackType
from typing import TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sooner.algebra.relation import Join, Map, Relation, Scan
from sooner.algebra.traversal import walk
from sooner.engine.exact import arrow_schema
from sooner.engine.failures import plain_errors
from sooner.engine.frames import from_own_arrow
from sooner.engine.jobs import Pools, cancel, in_pool, within
from sooner.engine.lowering import lower, mapped
from sooner.engine.merged_rows import MergedRows, forget, held
from sooner.engine.opened_scrambles import opened_scramble
from sooner.engine.row_groups import RowGroups, shifts_days
from sooner.engine.type_text import type_text
from sooner.sql import Hint, quote, render
from sooner.storage.layout import BLOCK
from sooner.storage.records import Scramble, Table
from sooner.storage.row_groups import RowGroup

HeldRows: TypeAlias = DataFrame
_POOLS = Pools("progress")


class Streaming:
    """What a progressive query holds in Spark; leaving it gives everything back and stops its jobs."""

    def __init__(self, spark: SparkSession) -> None:
        self._users = spark
        self._prefix = f"__sooner_{uuid.uuid4().hex[:12]}"
        self.group = f"{self._prefix}_progress"
        self.pool = _POOLS.take()
        self._views: dict[str, str] = {}
        self._streams: set[str] = set()
        self._row_groups: dict[str, RowGroups] = {}
        self._kept: list[DataFrame] = []
        self._parts: dict[int, HeldRows] = {}
        self._merged: dict[str, MergedRows] = {}
        self._defined: dict[str, Relation] = {}
        self._held: dict[tuple[str, tuple[int, ...]], DataFrame] = {}
        self._beside: dict[str, tuple[str, str, Sequence[str]]] = {}
        self._closed = False

    def __enter__(self) -> Streaming:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def _spark(self) -> SparkSession:
        """A session of its own with the user's views and functions, made for small jobs.

        Adaptive execution runs every shuffle as a job; the few rows of a batch need few partitions.
        """
        own = SparkSession(self._users.sparkContext, self._users._jsparkSession.cloneSession())
        cores = self._users.sparkContext.defaultParallelism
        own.conf.set("spark.sql.adaptive.enabled", "false")
        own.conf.set("spark.sql.shuffle.partitions", str(cores))
        return own

    def open_scramble(self, name: str, table: Table, scramble: Scramble) -> None:
        """Make a scramble readable by block under a name."""
        self._streams.add(name)
        self._view(name, opened_scramble(self._users, self._spark, table, scramble))

    def open_row_groups(
        self, name: str, table: Table, groups: Sequence[RowGroup], replicate: Sequence[int]
    ) -> None:
        """Make row groups readable under a name: a block is the place of one, with its replicate."""
        self._row_groups[name] = RowGroups(self._spark, table, groups, replicate)

    def shifts_days(self, table: Table) -> bool:
        """Whether Spark is set to read this table's dates otherwise than they are stored."""
        return shifts_days(self._spark, table)

    def keep(self, name: str, plan: Relation) -> None:
        """Make the rows of a plan readable under a name; they are computed once, when first needed."""
        with plain_errors():
            rows = lower(self._spark, plan)
            # Every batch reads them: as many pieces as cores, not as many as there were files.
            rows = rows.coalesce(self._spark.sparkContext.defaultParallelism)
            frame = self._persisted(rows)
        self._kept.append(frame)
        self._view(name, frame)

    def _persisted(self, rows: DataFrame) -> DataFrame:
        # Spark keeps equal plans once, for whoever asks: another query's end would take ours away,
        # and what ours then builds would never be given back. This makes the plan our own.
        own = rows.where(f"'{self._prefix}' IS NOT NULL")
        return own.persist(StorageLevel.MEMORY_AND_DISK)

    def define(self, name: str, plan: Relation) -> None:
        """Make the rows a plan gives from blocks readable under a name, by other plans over these blocks."""
        self._defined[name] = plan

    def hold(self, blocks: Sequence[int], hint: Callable[[Join], Hint | None]) -> None:
        """Keep the defined rows of some blocks once they are read, until they are released."""
        for name, plan in self._defined.items():
            place = (name, tuple(blocks))
            with plain_errors():
                self._held[place] = self._persisted(self._frame(plan, blocks, hint))
            self._view(_held_name(*place), self._held[place])

    def release(self, blocks: Sequence[int]) -> None:
        """Let go of what is held of some blocks."""
        for name in self._defined:
            place = (name, tuple(blocks))
            self._held.pop(place).unpersist()
            self._spark.catalog.dropTempView(self._views.pop(_held_name(*place)))

    def open_plan(self, name: str, plan: Relation) -> None:
        """Make the rows of a plan readable under a name; they are computed whenever they are needed."""
        with plain_errors():
            self._view(name, lower(self._spark, plan))

    def schema(self, plan: Relation) -> pa.Schema:
        """The columns a plan gives, as Spark decides; nothing runs."""
        with plain_errors():
            return arrow_schema(self._spark, self._frame(plan, ()).schema)

    def run(
        self,
        plan: Relation,
        blocks: Collection[int],
        hint: Callable[[Join], Hint | None] | None = None,
    ) -> pa.Table:
        """The rows a plan gives from some blocks of what it streams. For any thread."""
        with self._running(blocks):
            return self._frame(plan, blocks, hint).toArrow()

    @contextmanager
    def _running(self, blocks: Collection[int]) -> Iterator[None]:
        with ExitStack() as around:
            around.enter_context(plain_errors())
            around.enter_context(within(self._spark, self.group, "progressive answer"))
            # Within a pool jobs run in the order they came, while pools share fairly: of two batches the
            # first is done first, and not both at the end.
            around.enter_context(in_pool(self._spark, self.pool))
            for groups in self._row_groups.values():
                around.enter_context(groups.reading(blocks))
            yield

    def provide(self, name: str, table: pa.Table) -> None:
        """Make a small local table readable under a name, in place of the one before."""
        self._provide(name, from_own_arrow(self._spark, table))

    def run_there(
        self,
        plan: Relation,
        blocks: Collection[int],
        hint: Callable[[Join], Hint | None] | None = None,
    ) -> HeldRows:
        """As :meth:`run`, but the rows stay in Spark until they are merged. For any thread."""
        with self._running(blocks):
            return self._keep_part(self._frame(plan, blocks, hint))

    def put_there(self, table: pa.Table) -> HeldRows:
        """Rows of the driver, given to Spark until they are merged."""
        with self._running(()):
            return self._keep_part(from_own_arrow(self._spark, table))

    def _keep_part(self, rows: DataFrame) -> HeldRows:
        kept = held(rows)
        self._parts[id(kept)] = kept
        return kept

    def merge(
        self, name: str, rows: HeldRows, keys: Sequence[str], merges: Mapping[str, str]
    ) -> None:
        """Merge rows into those that have the name, or begin with them; see :class:`MergedRows`."""
        with self._running(()):
            if name in self._merged:
                self._merged[name].add(rows)
            else:
                self._merged[name] = MergedRows(rows, keys, merges)
        del self._parts[id(rows)]

    def provide_merged(self, name: str, values: Mapping[str, str], schema: pa.Schema) -> None:
        """Make columns computed from merged rows readable under their name, cast to these types."""
        types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        columns = [
            f"CAST({values[field.name]} AS {type_text(field.dataType)}) AS {quote(field.name)}"
            for field in types
        ]
        with plain_errors():
            self._provide(name, self._merged[name].rows.selectExpr(*columns))

    def _provide(self, name: str, rows: DataFrame) -> None:
        if name in self._beside:
            other, key, names = self._beside[name]
            local = f"{name}__alone"
            self._view(local, rows)
            columns = ", ".join(quote(one) for one in names)
            both = (
                f"{quote(self._views[local])} JOIN {quote(self._views[other])} USING ({quote(key)})"
            )
            rows = self._spark.sql(f"SELECT {columns} FROM {both}")
        self._view(name, rows)

    def put_beside(self, name: str, other: str, key: str, columns: Sequence[str]) -> None:
        """From now on rows provided under the name have columns of another beside them, by its key."""
        self._beside[name] = (other, key, columns)

    def finish(self, plan: Relation, states: Mapping[str, pa.Table]) -> pa.Table:
        """The rows a plan gives over local tables that stand for its states."""
        read = {node.table for node in walk(plan) if isinstance(node, Scan)}
        read |= {other for name, (other, _, _) in self._beside.items() if name in read}
        for name, table in states.items():
            if name in read:  # others may have millions of rows
                self.provide(name, table)
        return self.run(plan, ())

    def cancel(self) -> None:
        """Stop the jobs that are running."""
        cancel(self._users, self.group)

    def close(self) -> None:
        """Stop all jobs, forget kept rows and views."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        for frame in (*self._kept, *self._held.values()):
            frame.unpersist()
        for rows in (*self._parts.values(), *(merged.rows for merged in self._merged.values())):
            forget(rows)
        for view in set(self._views.values()):
            self._spark.catalog.dropTempView(view)
        _POOLS.give_back(self.pool)

    def _view(self, name: str, frame: DataFrame) -> None:
        view = f"{self._prefix}{name}"
        frame.createOrReplaceTempView(view)
        self._views[name] = view

    def _frame(
        self,
        plan: Relation,
        blocks: Collection[int],
        hint: Callable[[Join], Hint | None] | None = None,
    ) -> DataFrame:
        # Only the list of blocks differs between batches: Spark compiles the same code once.
        chosen = ", ".join(str(block) for block in sorted(blocks)) or "-1"
        made = []

        def leaf(node: Scan | Map) -> str:
            if isinstance(node, Map):
                made.append(f"{self._prefix}__map_{uuid.uuid4().hex}")
                rows = self._frame(node.child, blocks)
                mapped(self._spark, node, rows).createOrReplaceTempView(made[-1])
                return made[-1]
            if node.table in self._row_groups:
                # A name for this batch alone: another thread may be at the next one.
                made.append(f"{self._prefix}{node.table}_{uuid.uuid4().hex[:12]}")
                rows = self._row_groups[node.table].rows(node.sources, blocks)
                rows.createOrReplaceTempView(made[-1])
                return quote(made[-1])
            if node.table in self._defined:
                if (node.table, tuple(blocks)) in self._held:
                    return quote(self._views[_held_name(node.table, tuple(blocks))])
                return f"({render(self._defined[node.table], leaf, hint)})"
            view = quote(self._views[node.table])
            if node.table in self._streams:
                return f"(SELECT * FROM {view} WHERE {BLOCK} IN ({chosen}))"
            return view

        try:
            return self._spark.sql(render(plan, leaf, hint))
        finally:
            for view in made:
                self._spark.catalog.dropTempView(view)


def _held_name(name: str, blocks: tuple[int, ...]) -> str:
    """No two batches that are held have a block in common."""
    return f"{name}_from_{blocks[0]}"
