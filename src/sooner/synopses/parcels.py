"""Parts of a synopsis as bytes, on their way from where rows are read to where they come together."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from sooner.synopses.build import Filling, Part
from sooner.synopses.tables import totals_from, totals_table
from sooner.synopses.totals import merged

# Rows of Spark's batches that are looked at together: fewer and larger steps.
_ROWS = 1 << 16


def fill(filling: Filling, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """What a partition's rows give, as bytes."""
    parts = [filling.accumulate(table) for table in _larger(batches)]
    if parts:
        yield packed(_together(parts))


def _larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _together(parts: Sequence[Part]) -> Part:
    words = {
        name: pa.concat_tables([one.words[name] for one in parts])
        .group_by(["leaf", "word"], use_threads=False)
        .aggregate([])
        for name in parts[0].words
    }
    return Part(
        merged([one.totals for one in parts]),
        pa.concat_tables([one.candidates for one in parts]),
        words,
    )


def packed(part: Part) -> bytes:
    """A part as bytes: tables one after another, each with its length."""
    tables = [totals_table(part.totals), part.candidates, *part.words.values()]
    return b"".join(struct.pack("<q", len(one)) + one for one in map(_bytes, tables))


def unpacked(data: bytes, filling: Filling) -> Part:
    """The part that such bytes stand for."""
    tables, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<q", data, at)
        at += 8
        tables.append(pa.ipc.open_stream(data[at : at + length]).read_all())
        at += length
    definition = filling.definition
    numbered = [one.name for one in definition.over if one.kind != "text"]
    names = [one.name for one in definition.over if one.kind == "text"]
    return Part(
        totals_from(tables[0], numbered, definition.measures),
        tables[1],
        dict(zip(names, tables[2:], strict=True)),
    )


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
