"""A synopsis on disk: three Parquet files, and its definition as JSON text for the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sooner.errors import CatalogError, MissingFile
from sooner.synopses.axes import Axis
from sooner.synopses.definition import Definition, Knobs
from sooner.synopses.measures import Measure
from sooner.synopses.samples import Samples
from sooner.synopses.summary import Summary
from sooner.synopses.tables import middles, samples_from, samples_table, totals_from, totals_table
from sooner.synopses.tree import Tree

_FORMAT = 1
_NODES, _MIDDLES, _SAMPLES = "nodes.parquet", "leaves.parquet", "samples.parquet"


def write(summary: Summary, directory: str) -> None:
    """Write all of a summary but its definition."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    nodes = totals_table(summary.tree.totals)
    nodes = nodes.append_column("parent", pa.array(summary.tree.parent))
    nodes = nodes.append_column("leaf", pa.array(summary.tree.leaf))
    pq.write_table(nodes, place / _NODES, compression="zstd")
    pq.write_table(middles(summary.samples), place / _MIDDLES, compression="zstd")
    rows = samples_table(summary.samples)
    # Differences from the middle of a leaf are small numbers, and packed as such.
    packed = {name: "DELTA_BINARY_PACKED" for name in rows.column_names if name != "hash"}
    pq.write_table(
        rows, place / _SAMPLES, compression="zstd", use_dictionary=False, column_encoding=packed
    )


def read(definition: Definition, directory: str) -> Summary:
    """Read a summary back."""
    place = Path(directory)
    try:
        # Not pq.read_table: it loads Arrow's datasets first, which takes longer than the reading.
        nodes, around, rows = (
            pq.ParquetFile(place / name).read(use_threads=False)
            for name in (_NODES, _MIDDLES, _SAMPLES)
        )
    except FileNotFoundError as error:
        raise MissingFile(
            f"A file of the synopsis {definition.name!r} is gone: {error.filename}. Create it again."
        ) from None
    axes = [one.name for one in definition.axes.values()]
    over = [one.name for one in definition.over]
    tree = Tree(
        np.asarray(nodes.column("parent").to_numpy(), np.int64),
        np.asarray(nodes.column("leaf").to_numpy(), np.int64),
        totals_from(nodes, over, definition.measures),
    )
    samples: Samples = samples_from(rows, around, axes, definition.measures)
    return Summary(definition, tree, samples)


def as_text(definition: Definition) -> str:
    """A definition as JSON text."""
    return json.dumps(
        {
            "format": _FORMAT,
            "name": definition.name,
            "table": definition.table,
            "version": definition.version,
            "measures": [[one.name, one.type] for one in definition.measures],
            "over": [[one.name, one.type, list(one.words)] for one in definition.over],
            "keep": [[one.name, one.type, list(one.words)] for one in definition.keep],
            "knobs": definition.knobs.as_dict(),
        }
    )


def from_text(text: str) -> Definition:
    """The definition that such a text stands for."""
    found = json.loads(text)
    if found["format"] > _FORMAT:
        raise CatalogError(
            f"The synopsis {found['name']!r} was written by a newer Sooner. Upgrade, or create it again."
        )
    return Definition(
        found["name"],
        found["table"],
        found["version"],
        tuple(Measure(*one) for one in found["measures"]),
        tuple(Axis(name, type_, tuple(words)) for name, type_, words in found["over"]),
        tuple(Axis(name, type_, tuple(words)) for name, type_, words in found["keep"]),
        Knobs(**found["knobs"]),
    )
