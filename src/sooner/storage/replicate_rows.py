"""How many rows of each replicate a block of a scramble holds: one byte of every row tells."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sooner.errors import MissingFile
from sooner.storage.expand import local_path
from sooner.storage.layout import BLOCK, REPLICATE
from sooner.storage.records import Scramble, Table


def replicate_rows(
    table: Table, scramble: Scramble, blocks: Collection[int]
) -> npt.NDArray[np.float64]:
    """The rows of the table's version in these blocks, by replicate."""
    wanted = set(blocks)
    total = np.zeros(scramble.replicates)
    for file in scramble.files:
        if file.block in wanted:
            total += _in_file(file.path, scramble.replicates)
    for change in table.changes_of(scramble.id):
        sign = 1 if change.kind == "insert" else -1
        for file in change.files:
            by_block = _in_changes(file.path, scramble.blocks, scramble.replicates)
            total += sign * by_block[sorted(wanted)].sum(axis=0)
    return total


# Files of a scramble never change, so what was counted once holds.
@lru_cache(maxsize=16_384)
def _in_file(path: str, replicates: int) -> npt.NDArray[np.float64]:
    column = _read(path, REPLICATE).column(0)
    return np.bincount(column.to_numpy(), minlength=replicates).astype(np.float64)


@lru_cache(maxsize=4_096)
def _in_changes(path: str, blocks: int, replicates: int) -> npt.NDArray[np.float64]:
    found = _read(path, BLOCK, REPLICATE)
    places = pc.add(
        pc.multiply(found.column(BLOCK).cast("int64"), replicates), found.column(REPLICATE)
    )
    counts = np.bincount(places.to_numpy(), minlength=blocks * replicates)
    return counts.reshape(blocks, replicates).astype(np.float64)


def _read(path: str, *columns: str) -> pa.Table:
    try:
        return pq.read_table(local_path(path), columns=list(columns), use_threads=False)
    except FileNotFoundError as error:
        raise MissingFile(
            f"The file {path} of a scramble is gone. Drop the table and register it again."
        ) from error
