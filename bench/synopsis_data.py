"""Real data for the benchmarks of synopses, questions about it, and synopses of it made without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from report import ROOT

from sooner.storage.layout import HASH
from sooner.synopses.axes import Axis
from sooner.synopses.build import filling
from sooner.synopses.definition import Definition, Knobs
from sooner.synopses.layout import lay_out
from sooner.synopses.measures import Measure
from sooner.synopses.summary import Summary

SHARED = ROOT.parent / "shared" / "data"
SPARK_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "bool": "boolean",
    "date32[day]": "date",
}


@dataclass(frozen=True)
class Dataset:
    """A table with a measure and the columns that questions go by."""

    name: str
    file: Path
    measure: str
    over: tuple[str, ...]

    def read(self) -> pa.Table:
        """Its rows: only the columns that are needed."""
        names = list(dict.fromkeys([*self.over, self.measure]))
        return pq.read_table(self.file, columns=names)


def one_column() -> list[Dataset]:
    """The 1-D experiments of PASS §2.5 on the data that is here."""
    found = [
        Dataset("Intel", SHARED / "intel_lab.parquet", "light", ("ts",)),
        Dataset(
            "Instacart", SHARED / "instacart_order_products.parquet", "reordered", ("product_id",)
        ),
        Dataset("Flights", SHARED / "flights_3m.parquet", "distance", ("date",)),
    ]
    return [one for one in found if one.file.exists()]


def many_columns() -> Dataset | None:
    """The 1-D to 5-D templates of §2.5.4."""
    over = ("date", "close", "open", "high", "low")
    found = Dataset("ETF", SHARED / "etf_prices.parquet", "volume", over)
    return found if found.file.exists() else None


def spark_type(type_: pa.DataType) -> str:
    """Spark's spelling of a type."""
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return SPARK_TYPES[str(type_)]


def summary_of(
    rows: pa.Table, measure: str, over: tuple[str, ...], keep: tuple[str, ...] = (), **knobs: Any
) -> Summary:
    """A summary made in this process."""
    types = {field.name: spark_type(field.type) for field in rows.schema}
    definition = Definition(
        "s",
        "t",
        1,
        (Measure(measure, types[measure]),),
        tuple(Axis(name, types[name]) for name in over),
        tuple(Axis(name, types[name]) for name in keep),
        Knobs(**knobs),
    )
    rng = np.random.default_rng(knobs.get("seed", 0))
    hashes = rng.integers(-(2**63), 2**63 - 1, rows.num_rows)
    hashed = rows.append_column(HASH, pa.array(hashes))
    chosen = np.argpartition(hashes, definition.knobs.optimizer)[: definition.knobs.optimizer]
    how = filling(definition, lay_out(hashed.take(pa.array(chosen)), definition), rows.num_rows)
    size = 1 << 18
    parts = [how.accumulate(hashed.slice(at, size)) for at in range(0, rows.num_rows, size)]
    return how.finish(parts)
