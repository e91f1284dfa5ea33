"""What the analyses claim is true of every plan on every database; SQLite says what is true."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import combinations, count
from zlib import crc32

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_oracle import Row, Table, rows_of
from random_plans import SCRAMBLES, World, plans, worlds

from sooner.algebra import Relation, Scan, walk
from sooner.analysis import (
    How,
    clustering_key,
    derivation,
    lineage_blocks,
    never_null,
    plan_dependencies,
    primary_key,
)
from sooner.analysis.types import hashed_as

laws = settings(
    max_examples=int(os.environ.get("SOONER_FUZZ_EXAMPLES", "20")),
    suppress_health_check=list(HealthCheck),
)


def values(row: Row, plan: Relation, names: Iterable[str]) -> Row:
    return tuple(row[plan.names.index(name)] for name in sorted(names))


def is_unique(rows: list[Row], plan: Relation, names: Iterable[str]) -> bool:
    names = list(names)
    return len({values(row, plan, names) for row in rows}) == len(rows)


@laws
@given(plans(), worlds())
def test_keys_and_dependencies_hold(plan: Relation, world: World) -> None:
    rows = rows_of(plan, world.tables)
    key = primary_key(plan, world.infos)
    if key is not None:
        assert is_unique(rows, plan, key)
    for name in never_null(plan, world.infos):
        assert None not in [values(row, plan, [name])[0] for row in rows]
    known = plan_dependencies(plan, world.infos)
    for size in (0, 1, 2):
        for names in combinations(plan.names, size):
            if known.is_key(names):
                assert is_unique(rows, plan, names)
            determined = known.determined_by(names)
            both = {(values(row, plan, names), values(row, plan, determined)) for row in rows}
            assert len(both) == len({given for given, _ in both})


@laws
@given(plans(), worlds())
def test_copies_hold_values_of_their_sources(plan: Relation, world: World) -> None:
    rows = rows_of(plan, world.tables)
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    for name, found in derivation(plan).items():
        if found.how is not How.COPY:
            continue
        allowed = {None}
        for source in found.sources:
            assert scans[source.scan].table == source.table
            table = world.tables[source.table]
            place = list(table.columns).index(source.column)
            allowed |= {row[place] for row in table.rows}
        assert {values(row, plan, [name])[0] for row in rows} <= allowed


def by_occurrence(plan: Relation, numbers: Iterable[int]) -> Relation:
    """The plan with a table of its own for every scan, from left to right."""
    if isinstance(plan, Scan):
        return Scan(f"{plan.table}_{next(iter(numbers))}", plan.sources, plan.columns)
    return plan.with_children(*(by_occurrence(child, numbers) for child in plan.children))


@laws
@given(plans(limits=False), worlds(), st.data(), st.integers(0, 2**16))
def test_a_clustered_plan_is_exact_for_keys_already_read(
    plan: Relation, world: World, data: st.DataObject, seed: int
) -> None:
    scans = [node for node in walk(plan) if isinstance(node, Scan)]
    streamed = {}
    for place, scan in enumerate(scans):
        chosen = data.draw(st.sampled_from([None, *SCRAMBLES[scan.table]]))
        if chosen is not None:
            streamed[place] = chosen
    keys = clustering_key(plan, world.infos, streamed)
    assert keys <= clustering_key(plan, world.infos)
    if not keys:
        return

    def is_read(hashed: Iterable[object]) -> bool:
        return crc32(repr((seed, *hashed)).encode()) % 3 > 0

    full: dict[str, Table] = {}
    prefix: dict[str, Table] = {}
    for place, scan in enumerate(scans):
        table = world.tables[scan.table]
        kept = table.rows
        if place in streamed:
            names = list(table.columns)
            at = [names.index(name) for name in streamed[place]]
            types = [str(hashed_as(table.columns[names[i]])) for i in at]
            # A row with a null in its key is placed by all of it (design §2).
            kept = [
                row
                for row in table.rows
                if is_read(
                    row
                    if None in (row[i] for i in at)
                    else zip(types, (row[i] for i in at), strict=True)
                )
            ]
        full[f"{scan.table}_{place}"] = table
        prefix[f"{scan.table}_{place}"] = Table(table.columns, kept)
    separate = by_occurrence(plan, count())
    all_rows, read_rows = rows_of(separate, full), rows_of(separate, prefix)
    types_of = {c.name: str(hashed_as(c.type)) for c in plan.schema}
    for key in keys:
        at = [plan.names.index(name) for name in key]

        def hashed(row: Row, at: list[int] = at, key: tuple[str, ...] = key) -> Row | None:
            if None in (row[i] for i in at):
                return None
            return tuple((types_of[name], row[i]) for name, i in zip(key, at, strict=True))

        finished = Counter(r for r in all_rows if (h := hashed(r)) is not None and is_read(h))
        assert Counter(row for row in read_rows if hashed(row) is not None) == finished


@laws
@given(plans())
def test_lineage_blocks_cover_the_plan(plan: Relation) -> None:
    blocks = lineage_blocks(plan)
    assert blocks[-1].root is plan
    assert all(read < block.id for block in blocks for read in block.reads)
    covered = {id(scan) for block in blocks for scan in block.scans}
    assert covered == {id(node) for node in walk(plan) if isinstance(node, Scan)}
    read = {read for block in blocks for read in block.reads}
    assert read == {block.id for block in blocks[:-1]}
