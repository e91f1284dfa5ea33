"""Inserts, updates and deletes against a plain Python model, in every layout and at every version."""

from __future__ import annotations

import functools
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import sooner
from sooner import ConstraintViolation, Database, InvalidArgument, QueryFailed, SoonerError
from sooner.engine.hashing import block_sql, layout_hash, replicate_sql
from sooner.engine.rows import scramble_rows, table_rows
from sooner.storage import Table, protection
from sooner.storage.layout import BLOCK, REPLICATE

pytestmark = pytest.mark.spark

Row = tuple[int, str | None, int | None, float | None]
Model = dict[tuple[int, str | None], Row]
Step = tuple[str, tuple[Any, ...]]

COLUMNS = ("id", "sub", "grp", "v")
SCHEMA = pa.schema(
    [("id", pa.int32()), ("sub", pa.string()), ("grp", pa.int64()), ("v", pa.float64())]
)
START: tuple[Row, ...] = (
    (0, "a", 7, 0.5),
    (0, None, None, 1.0),
    (1, "a", -7, None),
    (2, "b", 2**40, 2.0),
    (-3, "a", None, -1.0),
)


def model_of(rows: Sequence[Row]) -> Model:
    return {(row[0], row[1]): row for row in rows}


ids = st.integers(-3, 4)
subs = st.sampled_from([None, "a", "b"])
groups = st.sampled_from([None, 7, -7, 2**40, 0])
values = st.sampled_from([None, 0.0, -1.5, 1e300])
rows = st.lists(st.tuples(ids, subs, groups, values), min_size=1, max_size=4).map(tuple)
keys = st.lists(st.tuples(ids, subs), min_size=1, max_size=4).map(tuple)
steps = st.one_of(
    st.tuples(st.just("insert"), rows),
    st.tuples(st.just("update"), rows),
    st.tuples(st.just("delete"), keys),
)


def applied(model: Model, step: Step) -> tuple[Model, int] | None:
    """The model after a step, and how many rows it touched; None where it must be refused."""
    what, given_rows = step
    if what == "delete":
        gone = set(given_rows) & set(model)
        return {key: row for key, row in model.items() if key not in gone}, len(gone)
    new = model_of(given_rows)
    if len(new) < len(given_rows):
        return None
    if what == "insert" and set(new) & set(model):
        return None
    if what == "update" and not set(new) <= set(model):
        return None
    return {**model, **new}, len(new)


def layouts(spark: SparkSession, table: Table) -> DataFrame:
    """The rows of every layout in one frame, so that one Spark job compares them all.

    ``at`` is 0 for the plain layout, else the scramble; ``placed`` says whether the row lies in the
    block and replicate of its own hash.
    """
    found = table_rows(spark, table).selectExpr("0L AS at", *COLUMNS, "true AS placed")
    for scramble in table.scrambles:
        hashed = scramble_rows(spark, table, scramble).selectExpr(
            "*", f"{layout_hash(table, scramble)} AS h"
        )
        placed = (
            f"{BLOCK} = {block_sql('h', scramble.blocks)} "
            f"AND {REPLICATE} = {replicate_sql('h', scramble.replicates)}"
        )
        found = found.unionAll(
            hashed.selectExpr(f"{scramble.id}L AS at", *COLUMNS, f"{placed} AS placed")
        )
    return found


def check(spark: SparkSession, versions: Sequence[tuple[Table, Model]]) -> None:
    """Every layout of every version equals its model."""
    frames = [
        layouts(spark, table).selectExpr(f"{place} AS place", "*")
        for place, (table, _) in enumerate(versions)
    ]
    collected = functools.reduce(DataFrame.unionAll, frames).collect()
    for place, (table, model) in enumerate(versions):
        for layout in (0, *(scramble.id for scramble in table.scrambles)):
            mine = [row for row in collected if (row.place, row["at"]) == (place, layout)]
            got = Counter(tuple(row[name] for name in COLUMNS) for row in mine)
            assert got == Counter(model.values()), f"version {table.version}, layout {layout}"
            assert all(row.placed for row in mine), f"version {table.version}, layout {layout}"


def pending(database: Database) -> set[str]:
    with database._catalog.database.reading() as connection:
        return protection.waiting(connection)


def directories(database: Database) -> set[str]:
    return {str(path) for path in (database._home.path / "data").glob("*/*")}


def footprint(database: Database) -> tuple[set[str], set[str], Any]:
    return pending(database), directories(database), database._catalog.tables()


def make(database: Database, place: Path, name: str = "t") -> Table:
    columns = list(zip(*START, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), place / f"{name}.parquet")
    return database.register(name, place / f"{name}.parquet", key=["id", "sub"])


def run(database: Database, place: Path, sequence: Sequence[Step]) -> None:
    spark = database.spark
    name = f"t_{uuid.uuid4().hex[:8]}"
    history = [(make(database, place, name), model_of(START))]
    database.scramble(name, "grp", blocks=4, salt=1)
    reader = table_rows(spark, history[0][0])
    for number, step in enumerate(sequence):
        if number == 2:  # one that begins in the middle of the table's life
            database.scramble(name, ["id"], blocks=3)
        before, model = database._catalog.table(name), history[-1][1]
        was = footprint(database)
        what, given_rows = step
        after = applied(model, step)
        change = getattr(database, what)
        if after is None:
            with pytest.raises(ConstraintViolation, match="Nothing was changed"):
                change(name, list(given_rows))
            assert footprint(database) == was
            continue
        assert change(name, list(given_rows)) == after[1]
        table = database._catalog.table(name)
        assert table.version == before.version + (after[1] > 0)
        assert table.facts.rows == len(after[0])
        assert not pending(database)
        if not after[1]:
            assert footprint(database) == was
        history.append((table, after[0]))
        check(spark, [history[-1]])
    entries = database.history(name)
    assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
    latest = {table.version: model for table, model in history}
    database.vacuum(older_than=timedelta(0))
    check(spark, [(database._catalog.table(name, v), model) for v, model in latest.items()])
    assert Counter(tuple(row) for row in reader.collect()) == Counter(START)


FAST = settings(
    max_examples=2,
    database=None,
    derandomize=True,
    # An example takes seconds: a failure is better read than made smaller for an hour.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@FAST
@given(sequence=st.lists(steps, min_size=4, max_size=4))
def test_random_changes(database: Database, tmp_path: Path, sequence: list[Step]) -> None:
    run(database, tmp_path, sequence)


@pytest.mark.slow
@settings(FAST, max_examples=30)
@given(sequence=st.lists(steps, min_size=4, max_size=10))
def test_many_random_changes(database: Database, tmp_path: Path, sequence: list[Step]) -> None:
    run(database, tmp_path, sequence)


def test_a_life_of_a_table(database: Database, tmp_path: Path) -> None:
    """Every kind of change once, with a row that leaves and comes back, and one that moves blocks."""
    run(
        database,
        tmp_path,
        [
            ("insert", ((5, None, 7, 1.0), (5, "a", None, None))),
            ("delete", ((0, "a"), (0, None), (9, "z"))),
            ("insert", ((0, "a", None, 9.0),)),
            ("update", ((0, "a", 7, 9.5), (5, None, -7, 1.0))),
            ("update", ((6, "a", 7, 9.5),)),
        ],
    )


def test_readers_keep_their_version(database: Database, tmp_path: Path) -> None:
    """A DataFrame that was made at a version gives that version, whatever is committed meanwhile."""
    make(database, tmp_path)
    first = database.sql("SELECT count(*) AS n, sum(v) AS s FROM t")
    bound, versions = database._lowered(first.prepared)
    database.insert("t", [(9, "z", 1, 100.0)])
    database.delete("t", [(1, "a")])
    database.vacuum(older_than=timedelta(0))
    assert versions == {"t": 1}
    assert tuple(bound.collect()[0]) == (5, 2.5)
    answer = first.exact()
    assert answer.as_of == {"t": 3}
    assert answer.to_arrow().to_pylist() == [{"n": 5, "s": 102.5}]


def test_a_version_is_one_for_the_whole_query(database: Database, tmp_path: Path) -> None:
    make(database, tmp_path)
    database.insert("t", [(9, "z", 1, 100.0)])
    answer = database.sql("SELECT (SELECT count(*) FROM t) AS a, count(*) AS b FROM t").exact()
    assert answer.to_arrow().to_pylist() == [{"a": 6, "b": 6}]


BAD: list[tuple[str, Any, type[SoonerError]]] = [
    ("insert", [(0, "a", 1, 1.0)], ConstraintViolation),
    ("insert", [(0, None, 1, 1.0)], ConstraintViolation),
    ("insert", [(8, "a", 1, 1.0), (8, "a", 2, 2.0)], ConstraintViolation),
    ("insert", [(8, "a", 1, 1.0), (0, "a", 2, 2.0)], ConstraintViolation),
    ("update", [(8, "a", 1, 1.0)], ConstraintViolation),
    ("update", [(0, "a", 1, 1.0), (8, "a", 1, 1.0)], ConstraintViolation),
    ("update", [(0, "a", 1, 1.0), (0, "a", 2, 1.0)], ConstraintViolation),
    ("insert", [(8, "a", 1)], InvalidArgument),
    ("insert", [{"id": 8, "sub": "a", "grp": 1}], InvalidArgument),
    ("insert", [{"id": 8, "sub": "a", "grp": 1, "v": 1.0, "more": 2}], InvalidArgument),
    ("update", [{"id": 0, "sub": "a"}], InvalidArgument),
    ("delete", [{"id": 0}], InvalidArgument),
    ("delete", [0], InvalidArgument),
    ("delete", [{"id": 0, "sub": "a", "more": 1}], InvalidArgument),
    ("insert", 7, InvalidArgument),
    ("insert", "rows", InvalidArgument),
    ("insert", [("x", "a", 1, 1.0)], QueryFailed),
    ("insert", [(8, "a", 1, "much")], QueryFailed),
    ("insert", [(2**31, "a", 1, 1.0)], QueryFailed),
    ("update", [(0, "a", "seven", 1.0)], QueryFailed),
]


def test_refused_changes_change_nothing(database: Database, tmp_path: Path) -> None:
    make(database, tmp_path)
    database.scramble("t", "grp", blocks=2)
    before = footprint(database)
    wrong = []
    for what, given_rows, kind in BAD:
        label = f"{what} {given_rows}"
        try:
            getattr(database, what)("t", given_rows)
        except kind as error:
            if len(str(error)) < 20:
                wrong.append(f"{label}: {error}")
        except Exception as error:
            wrong.append(f"{label}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{label}: passed")
        if footprint(database) != before:
            wrong.append(f"{label}: left something behind")
            before = footprint(database)
    assert not wrong, "\n".join(wrong)


def test_a_failing_function_leaves_nothing(database: Database, tmp_path: Path) -> None:
    """Rows that fail while they are written: some files are there already."""
    make(database, tmp_path)
    before = footprint(database)
    bad = database.sql(
        "SELECT CAST(id + 100 AS INT) AS id, CAST(id AS STRING) AS sub, id AS grp, "
        "1.0D / IF(id < 90, 1, 0) AS v FROM range(100)"
    )
    with pytest.raises(QueryFailed, match="zero"):
        database.insert("t", bad)
    assert footprint(database) == before


def test_an_error_after_the_commit_loses_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, or a lost connection, right after the catalog committed."""
    make(database, tmp_path)
    catalog = database._catalog
    committed = catalog.commit_change

    def interrupted(*arguments: Any, **more: Any) -> Table:
        committed(*arguments, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "commit_change", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.insert("t", [(9, "z", 1, 1.0)])
    check(database.spark, [(catalog.table("t"), model_of([*START, (9, "z", 1, 1.0)]))])
    assert not pending(database)


def test_a_conflict_is_tried_again(database: Database, tmp_path: Path) -> None:
    """Somebody else commits while the rows are being written: both changes are there."""
    make(database, tmp_path)
    catalog = database._catalog
    committed = catalog.commit_change
    beside = sooner.connect(database._home.path, spark=database.spark, progress=False)
    seen: list[int] = []

    def overtaken(table: Table, *arguments: Any, **more: Any) -> Table:
        seen.append(table.version)
        if len(seen) == 1:
            beside.insert("t", [(8, "y", 1, 1.0)])
        return committed(table, *arguments, **more)

    catalog.commit_change = overtaken  # type: ignore[method-assign]
    with beside:
        assert database.insert("t", [(9, "z", 1, 1.0)]) == 1
    assert seen == [1, 2]
    wanted = model_of([*START, (8, "y", 1, 1.0), (9, "z", 1, 1.0)])
    check(database.spark, [(catalog.table("t"), wanted)])
    assert not pending(database)
    assert len(directories(database)) == 2


def test_tables_without_a_key_take_inserts(database: Database, tmp_path: Path) -> None:
    """Equal rows are kept as often as they come."""
    pq.write_table(pa.table({"a": [1, 1]}), tmp_path / "bag.parquet")
    database.register("bag", tmp_path / "bag.parquet")
    database.scramble("bag", "a", blocks=2)
    assert database.insert("bag", [(1,), (1,), (None,)]) == 3
    table = database._catalog.table("bag")
    spark = database.spark
    for frame in (table_rows(spark, table), scramble_rows(spark, table, table.scrambles[0])):
        assert Counter(row.a for row in frame.collect()) == Counter({1: 4, None: 1})
    assert database.insert("bag", []) == 0
    assert database._catalog.table("bag").version == 2
