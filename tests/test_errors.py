"""What goes wrong has a name, says what to do, and changes nothing: through the public API alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sooner
from sooner import (
    CatalogError,
    Database,
    InvalidArgument,
    MissingFile,
    NotSupported,
    ParseError,
    SchemaChanged,
    SoonerError,
    SourceChanged,
    TableExists,
    UnknownColumn,
    UnknownTable,
)
from sooner.errors import nearest


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def visits(database: Database, tmp_path: Path) -> Database:
    source = write(tmp_path / "visits.parquet", visit_id=[1, 2, 3], page=["a", "b", "a"])
    database.register("visits", source, key="visit_id")
    return database


def state(database: Database) -> Any:
    files = sorted(path for path in Path(database._home.path, "data").rglob("*") if path.is_file())
    return database.tables(), files


@pytest.fixture
def unchanged(visits: Database) -> Any:
    before = state(visits)
    yield
    assert state(visits) == before


@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.sql("SELECT * FROM vists"),
        lambda db: db.sql("SELECT * FROM visits v JOIN vists w ON v.page = w.page"),
        lambda db: db.sql("SELECT (SELECT max(page) FROM vists) FROM visits"),
        lambda db: db.table("vists"),
        lambda db: db.scramble("vists", "page"),
        lambda db: db.insert("vists", [(1, "a")]),
        lambda db: db.update("vists", [(1, "a")]),
        lambda db: db.delete("vists", [1]),
        lambda db: db.drop("vists"),
        lambda db: db.analyze("vists"),
        lambda db: db.history("vists"),
    ],
)
def test_unknown_table(visits: Database, unchanged: None, use: Any) -> None:
    with pytest.raises(UnknownTable, match=r"no table 'vists'.*Did you mean 'visits'\?"):
        use(visits)


@pytest.mark.parametrize(
    "use",
    [
        lambda db: db.sql("SELECT pgae FROM visits"),
        lambda db: db.sql("SELECT v.pgae FROM visits v"),
        lambda db: db.sql("SELECT page FROM visits WHERE pgae = 'a'"),
        lambda db: db.table("visits").filter("pgae = 'a'"),
        lambda db: db.table("visits").select("pgae"),
        lambda db: db.table("visits").agg("count(*) AS n", by="pgae"),
        lambda db: db.table("visits").sort("pgae"),
        lambda db: db.scramble("visits", "pgae"),
        lambda db: db.register("again", db._catalog.table("visits").files[0].path, key="pgae"),
    ],
)
def test_unknown_column(visits: Database, unchanged: None, use: Any) -> None:
    with pytest.raises(UnknownColumn, match=r"no column '(v\.)?pgae'.*Did you mean 'page'\?"):
        use(visits)


def test_malformed_sql(visits: Database, unchanged: None) -> None:
    with pytest.raises(ParseError, match="line 2, column 13") as caught:
        visits.sql("SELECT page\nFROM visits,, x")
    assert (caught.value.line, caught.value.column) == (2, 13)
    assert "FROM visits,, x" in str(caught.value)


def test_second_table_of_a_name(visits: Database, unchanged: None, tmp_path: Path) -> None:
    other = write(tmp_path / "other.parquet", x=[1])
    for name in ("visits", "VISITS"):
        with pytest.raises(TableExists, match="replace=True"):
            visits.register(name, other)
    assert visits.sql("SELECT count(*) AS n FROM visits").exact().to_pandas().n[0] == 3


def test_replaced_on_demand(visits: Database, tmp_path: Path) -> None:
    visits.register("visits", write(tmp_path / "other.parquet", x=[1]), replace=True)
    assert visits.table("visits").exact().to_arrow().to_pylist() == [{"x": 1}]


def test_missing_file(visits: Database, unchanged: None, tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"nosuch\.parquet"):
        visits.register("other", tmp_path / "nosuch.parquet")


def uses(database: Database) -> list[Any]:
    query = database.sql("SELECT count(*) AS n FROM visits")
    return [
        query.exact,
        lambda: database.sql("SELECT * FROM visits"),
        lambda: database.table("visits").exact(),
        lambda: database.scramble("visits", "page", blocks=2),
        lambda: database.insert("visits", [(9, "z")]),
        lambda: database.delete("visits", [1]),
        lambda: database.analyze("visits"),
    ]


def refused(database: Database, spoil: Any, kind: type[SoonerError], says: str) -> None:
    calls = uses(database)
    before = state(database)
    spoil()
    for call in calls:
        with pytest.raises(kind, match=says) as caught:
            call()
        assert type(caught.value) is kind
    assert state(database) == before


def test_file_that_is_gone(visits: Database, tmp_path: Path) -> None:
    spoil = (tmp_path / "visits.parquet").unlink
    refused(visits, spoil, MissingFile, r"visits\.parquet is gone.*replace=True")


def test_file_with_other_columns(visits: Database, tmp_path: Path) -> None:
    def spoil() -> None:
        write(tmp_path / "visits.parquet", visit_id=["1"], more=[2.0])

    says = r"'visit_id' was int64 and is string.*'page' is gone.*'more'.*replace=True"
    refused(visits, spoil, SchemaChanged, says)


def test_file_with_other_rows(visits: Database, tmp_path: Path) -> None:
    def spoil() -> None:
        write(tmp_path / "visits.parquet", visit_id=[1, 2, 3], page=["a", "b", "changed"])

    refused(visits, spoil, SourceChanged, r"visits\.parquet.*replace=True")


def test_file_touched_but_of_the_same_size(visits: Database, tmp_path: Path) -> None:
    refused(visits, lambda: os.utime(tmp_path / "visits.parquet"), SourceChanged, "Changed since")


def test_file_that_is_broken(visits: Database, tmp_path: Path) -> None:
    def spoil() -> None:
        (tmp_path / "visits.parquet").write_bytes(b"half of it")

    refused(visits, spoil, SourceChanged, "Changed since")


def test_registered_again_after_a_change(visits: Database, tmp_path: Path) -> None:
    old = visits.sql("SELECT visit_id FROM visits")
    source = write(tmp_path / "visits.parquet", page=["x"], number=[1])
    visits.register("visits", source, replace=True)
    assert visits.table("visits").exact().to_arrow().num_rows == 1
    with pytest.raises(SoonerError, match=r"visit_id|changed|again"):
        old.exact()


def test_a_frame_keeps_its_types(visits: Database, tmp_path: Path) -> None:
    """A table replaced by one with a column of another type is not answered as if it were the same."""
    old = visits.sql("SELECT visit_id FROM visits")
    visits.register(
        "visits", write(tmp_path / "new.parquet", visit_id=["x"], page=["y"]), replace=True
    )
    with pytest.raises(SoonerError):
        old.exact()


@pytest.mark.parametrize("keys", [[1], [(1, "a")], [{"visit_id": 1}], []])
def test_deletes_without_a_key(database: Database, tmp_path: Path, keys: Any) -> None:
    database.register("log", write(tmp_path / "log.parquet", visit_id=[1], page=["a"]))
    before = state(database)
    with pytest.raises(NotSupported, match=r"without one.*key="):
        database.delete("log", keys)
    with pytest.raises(NotSupported, match=r"without one.*key="):
        database.update("log", [(1, "b")])
    assert state(database) == before


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO visits VALUES (9, 'z')",
        "DELETE FROM visits",
        "DROP TABLE visits",
        "CREATE TABLE x AS SELECT * FROM visits",
        "UPDATE visits SET page = 'z'",
        "TRUNCATE TABLE visits",
    ],
)
def test_writes_in_a_query(visits: Database, unchanged: None, text: str) -> None:
    with pytest.raises(NotSupported, match=r"only read.*db\.insert"):
        visits.sql(text)
    assert visits.sql("SELECT count(*) AS n FROM visits").exact().to_pandas().n[0] == 3


def test_bad_arguments(visits: Database, unchanged: None) -> None:
    frame = visits.table("visits")
    for call in (
        lambda: visits.sql(7),  # type: ignore[arg-type]
        lambda: frame.limit(-1),
        lambda: frame.limit("3"),  # type: ignore[arg-type]
        lambda: frame.limit(True),
        frame.select,
        lambda: frame.sort(""),
        lambda: frame.agg([]),
        lambda: frame.join(frame),
        lambda: frame.join(frame, on="1 = 1", how="sideways"),  # type: ignore[arg-type]
        lambda: frame.join(frame, on="1 = 1", how="cross"),
        lambda: frame.join("visits", on="1 = 1"),  # type: ignore[arg-type]
        lambda: frame.union("visits"),  # type: ignore[arg-type]
        lambda: frame.join(frame, on="1 = 1", how=["inner"]),  # type: ignore[arg-type]
        lambda: frame.map(len, 7),  # type: ignore[arg-type]
        lambda: frame.map(len, "n int", by=[7]),  # type: ignore[list-item]
        lambda: frame.progress(stream=[7]),  # type: ignore[list-item]
        lambda: frame.exact().status(7),  # type: ignore[arg-type]
        lambda: visits.register(7, visits.spark.range(1)),  # type: ignore[arg-type]
        lambda: visits.register("t", visits.spark.range(1), key=[7]),  # type: ignore[list-item]
        lambda: visits.aggregate("a", len, 7),  # type: ignore[arg-type]
        lambda: visits.synopsis(7),  # type: ignore[arg-type]
        lambda: visits.drop_synopsis(7),  # type: ignore[arg-type]
        lambda: visits.synopsis("s", "visits", "id", "id", sample="all"),
        lambda: visits.synopses().answer(7),  # type: ignore[arg-type]
        lambda: sooner.connect(7),  # type: ignore[arg-type]
        lambda: sooner.connect(visits._home.path, catalog=7),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument):
            call()


def test_a_home_that_cannot_be(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="home"):
        sooner.connect(tmp_path / "file" / "home", spark=spark)


def test_a_catalog_that_is_none(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "catalog.sqlite").write_text("not a database, but long enough to be read")
    with pytest.raises(CatalogError, match=r"catalog\.sqlite"):
        sooner.connect(tmp_path / "home", spark=spark)


def test_every_error_has_one_parent() -> None:
    errors = [getattr(sooner, name) for name in sooner.__all__]
    kinds = [e for e in errors if isinstance(e, type) and issubclass(e, Exception)]
    assert len(kinds) > 10
    assert all(issubclass(kind, SoonerError) for kind in kinds)


@pytest.mark.parametrize(
    "name, known, says",
    [
        ("visist", ["visits", "orders"], " Did you mean 'visits'?"),
        ("VISITS", ["visits"], " Did you mean 'visits'?"),
        ("zzz", ["b", "a"], " Known: a, b."),
        ("zzz", [], ""),
        (
            "zzz",
            [f"t{i:02}" for i in range(12)],
            " Known: t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, ….",
        ),
    ],
)
def test_nearest(name: str, known: list[str], says: str) -> None:
    assert nearest(name, known) == says
