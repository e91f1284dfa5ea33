"""Tables, synopses of them made without Spark, and the truth from DuckDB."""

from __future__ import annotations

import atexit
from datetime import UTC
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sooner.storage.layout import HASH
from sooner.synopses.axes import Axis
from sooner.synopses.build import filling
from sooner.synopses.definition import Definition, Knobs
from sooner.synopses.layout import lay_out
from sooner.synopses.measures import Measure
from sooner.synopses.parcels import packed, unpacked
from sooner.synopses.summary import Summary
from sooner.synopses.synopsis import Synopsis

TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.decimal128(12, 2): "decimal(12,2)",
    pa.timestamp("us", "UTC"): "timestamp",
}


def type_of(table: pa.Table, name: str) -> str:
    return TYPES[table.schema.field(name).type]


def made(
    table: pa.Table,
    measures: list[str],
    over: list[str],
    keep: list[str] | None = None,
    batches: int = 3,
    **knobs: Any,
) -> Synopsis:
    """A synopsis of a table called t, its rows in several batches that travel as bytes."""
    knobs = {"leaves": 8, "sample": 0.2, **knobs}
    definition = Definition(
        "s",
        "t",
        1,
        tuple(Measure(name, type_of(table, name)) for name in measures),
        tuple(Axis(name, type_of(table, name)) for name in over),
        tuple(Axis(name, type_of(table, name)) for name in keep or []),
        Knobs(**knobs),
    )
    rng = np.random.default_rng(knobs.get("seed", 0))
    hashes = rng.integers(-(2**63), 2**63 - 1, table.num_rows)
    rows = table.append_column(HASH, pa.array(hashes))
    chosen = _smallest(hashes, definition.knobs.optimizer)
    how = filling(definition, lay_out(rows.take(pa.array(chosen)), definition), table.num_rows)
    size = -(-table.num_rows // batches)
    parts = [how.accumulate(rows.slice(start, size)) for start in range(0, table.num_rows, size)]
    summary: Summary = how.finish([unpacked(packed(one), how) for one in parts])
    return Synopsis(lambda: summary, summary.definition, UTC)


def _smallest(hashes: np.ndarray, count: int) -> np.ndarray:
    """Where the smallest hashes are, in their order; sorting all of them takes longer."""
    some = np.argpartition(hashes, count)[:count] if count < len(hashes) else np.arange(len(hashes))
    return some[np.argsort(hashes[some])]


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    atexit.register(_duckdb.cache_clear)  # DuckDB complains of what is open at the end
    return duckdb.connect(config={"threads": 1})


class Truth:
    """DuckDB's answers about the same table."""

    def __init__(self, table: pa.Table) -> None:
        self._connection = _duckdb().cursor()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.register("given", table)
        self._connection.execute("CREATE TEMP TABLE t AS SELECT * FROM given")

    def of(self, text: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(text).fetchall()
