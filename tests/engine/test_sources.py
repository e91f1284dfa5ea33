"""What can be registered: Parquet, CSV, partitioned directories, Spark views and DataFrames."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import sooner
from sooner import CatalogError, Database, InvalidArgument, MissingFile, SoonerError

pytestmark = pytest.mark.spark


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def rows(database: Database, text: str) -> list[tuple[Any, ...]]:
    found = database.sql(text).exact().to_arrow()
    return sorted(zip(*(c.to_pylist() for c in found.columns), strict=True), key=str)


def schema(database: Database, name: str) -> dict[str, str | None]:
    return {column.name: column.type for column in database._catalog.table(name).columns}


def test_parquet_in_all_spellings(database: Database, tmp_path: Path) -> None:
    a = write(tmp_path / "d" / "a.parquet", id=[1, 2])
    b = write(tmp_path / "d" / "b.parquet", id=[3])
    for source in (f"{tmp_path}/d/*.parquet", tmp_path / "d", [a, str(b)], f"file://{tmp_path}/d"):
        table = database.register("t", source, key="id", replace=True)
        assert table.facts.rows == 3
        assert table.facts.column("id").maximum == 3
        assert rows(database, "SELECT id FROM t") == [(1,), (2,), (3,)]


def test_only_the_files_that_were_there(database: Database, tmp_path: Path) -> None:
    """A file that comes later is not part of the table."""
    write(tmp_path / "d" / "a.parquet", id=[1])
    database.register("t", tmp_path / "d")
    write(tmp_path / "d" / "b.parquet", id=[2])
    assert rows(database, "SELECT id FROM t") == [(1,)]


def test_partitioned_directory(database: Database, tmp_path: Path) -> None:
    for year, values in ((2023, [1]), (2024, [2, 3])):
        write(tmp_path / "d" / f"year={year}" / "kind=x y" / "a.parquet", v=values)
    table = database.register("t", tmp_path / "d")
    assert schema(database, "t") == {"v": "bigint", "year": "int", "kind": "string"}
    assert table.facts.rows == 3
    assert rows(database, "SELECT year, kind, v FROM t") == [
        (2023, "x y", 1),
        (2024, "x y", 2),
        (2024, "x y", 3),
    ]
    assert rows(database, "SELECT sum(v) FROM t WHERE year = 2024") == [(5,)]
    table = database.scramble("t", "v", blocks=2)
    assert database.insert("t", [(9, 2025, "z")]) == 1
    assert rows(database, "SELECT count(*), max(year) FROM t") == [(4, 2025)]


@pytest.mark.parametrize(
    "parts, kind",
    [(["1", "abc"], "string"), (["1", "99999999999"], "bigint"), (["a", "b"], "string")],
)
def test_partitions_get_sparks_type(
    database: Database, tmp_path: Path, parts: list[str], kind: str
) -> None:
    """Of all directories, not of the first alone."""
    for part in parts:
        write(tmp_path / "d" / f"p={part}" / "a.parquet", v=[1])
    database.register("t", tmp_path / "d")
    assert schema(database, "t")["p"] == kind
    assert [str(p) for (p,) in rows(database, "SELECT p FROM t")] == parts


def test_null_partition(database: Database, tmp_path: Path) -> None:
    write(tmp_path / "d" / "p=__HIVE_DEFAULT_PARTITION__" / "a.parquet", v=[1])
    write(tmp_path / "d" / "p=7" / "a.parquet", v=[2])
    database.register("t", tmp_path / "d")
    assert rows(database, "SELECT v, p FROM t") == [(1, None), (2, 7)]


def test_csv(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"a, b"\n2,\n')
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write("id,name\n3,é\n")
    table = database.register("t", [tmp_path / "a.csv", tmp_path / "b.csv.gz"], key="id")
    assert table.facts.rows == 3
    assert schema(database, "t") == {"id": "int", "name": "string"}
    assert rows(database, "SELECT * FROM t") == [(1, "a, b"), (2, None), (3, "é")]
    database.scramble("t", "id", blocks=2)
    database.insert("t", [(4, "d")])
    database.delete("t", [1])
    assert rows(database, "SELECT id FROM t") == [(2,), (3,), (4,)]


def test_csv_with_options_and_schema(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\tx\n2\ty\n")
    database.register(
        "t",
        tmp_path / "a.tsv",
        schema="id bigint, v string",
        options={"sep": "\t", "header": "false"},
    )
    assert schema(database, "t") == {"id": "bigint", "v": "string"}
    assert rows(database, "SELECT * FROM t") == [(1, "x"), (2, "y")]


def test_csv_files_with_other_columns(database: Database, tmp_path: Path) -> None:
    """Spark goes by place: it would put ages among the names without a word."""
    (tmp_path / "a.csv").write_text("id,age\n1,10\n")
    (tmp_path / "b.csv").write_text("age,id\n20,2\n")
    with pytest.raises(SoonerError, match=r"b\.csv.*header|b\.csv.*columns"):
        database.register("t", [tmp_path / "a.csv", tmp_path / "b.csv"])
        database.sql("SELECT id, age FROM t").exact()


@pytest.mark.parametrize("header", [",v", "v,v"])
def test_csv_with_a_header_that_does_not_name_all(
    database: Database, tmp_path: Path, header: str
) -> None:
    """The first is what pandas writes, if it is not told otherwise: its index has no name."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,2\n")
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    database.register("t", both)
    assert rows(database, "SELECT * FROM t") == [(1, 2), (1, 2)]
    (tmp_path / "b.csv").write_text("v,\n1,2\n")
    with pytest.raises(InvalidArgument, match="enforceSchema"):
        database.register("t", both, replace=True)


def test_csv_with_a_schema_of_other_names(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,age\n1,10\n")
    with pytest.raises(InvalidArgument, match="enforceSchema"):
        database.register("t", tmp_path / "a.csv", schema="age INT, id INT")
    by_place = {"enforceSchema": "true"}
    database.register("t", tmp_path / "a.csv", schema="n INT, years INT", options=by_place)
    assert rows(database, "SELECT n, years FROM t") == [(1, 10)]


def test_files_of_unlike_schemas(database: Database, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=[1], v=["x"])
    for other in ({"id": [1]}, {"id": ["1"], "v": ["x"]}, {"id": [1], "v": ["x"], "w": [1]}):
        write(tmp_path / "b.parquet", **other)
        with pytest.raises(
            InvalidArgument, match=r"b\.parquet has other columns than .*a\.parquet"
        ):
            database.register("t", f"{tmp_path}/*.parquet")
    assert database.tables() == ()


@pytest.mark.parametrize("source", ["nosuch.parquet", "nosuch/*.parquet", "nosuch.csv", "nosuch"])
def test_missing_files(database: Database, tmp_path: Path, source: str) -> None:
    with pytest.raises(MissingFile, match="nosuch"):
        database.register("t", str(tmp_path / source))
    assert database.tables() == ()


def test_what_is_no_source(database: Database, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "empty.csv").write_text("")
    for source, more in (
        ([], {}),
        (tmp_path / "broken.parquet", {}),
        (tmp_path / "empty.csv", {}),
        (write(tmp_path / "fine.parquet", id=[1]), {"format": "avro"}),
        (tmp_path / "fine.parquet", {"key": "nosuch"}),
        (tmp_path / "fine.parquet", {"key": ["id", "ID"]}),
        (tmp_path / "fine.parquet", {"schema": "id nosuchtype"}),
        (7, {}),
        (pd.DataFrame({"id": [1]}), {}),
    ):
        with pytest.raises(SoonerError) as caught:
            database.register("t", source, **more)  # type: ignore[arg-type]
        assert len(str(caught.value)) > 20
    assert database.tables() == ()


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b", "a-b", "x" * 200])
def test_names_that_sql_cannot_say(database: Database, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match="table name"):
        database.register(name, write(tmp_path / "a.parquet", id=[1]))


@pytest.mark.parametrize("column", ["__version", "__block", "__replicate"])
def test_columns_that_sooner_needs_itself(database: Database, tmp_path: Path, column: str) -> None:
    """Either refused at once or of no harm later."""
    source = write(tmp_path / "a.parquet", **{"id": [1], column: [5]})
    try:
        database.register("t", source, key="id")
    except InvalidArgument as error:
        assert column in str(error)
        return
    database.scramble("t", "id", blocks=2)
    database.insert("t", [(2, 6)])
    assert rows(database, "SELECT * FROM t") == [(1, 5), (2, 6)]


def test_a_view_of_spark(database: Database) -> None:
    spark = database.spark
    spark.sql("SELECT 1 AS id, 'a' AS v").createOrReplaceTempView("their_view")
    try:
        database.register("t", "their_view", key="id")
        assert schema(database, "t") == {"id": "int", "v": "string"}
        database.scramble("t", "id", blocks=2)
        database.insert("t", [(2, "b")])
        assert rows(database, "SELECT * FROM t") == [(1, "a"), (2, "b")]
        assert spark.table("their_view").count() == 1
    finally:
        spark.catalog.dropTempView("their_view")
    with pytest.raises(MissingFile, match="their_view"):
        database.insert("t", [(3, "c")])


def test_a_view_under_its_own_name(database: Database) -> None:
    spark = database.spark
    spark.sql("SELECT 1 AS id").createOrReplaceTempView("own_name")
    try:
        database.register("own_name", "own_name", key="id")
        database.insert("own_name", [(2,)])
        assert rows(database, "SELECT * FROM own_name") == [(1,), (2,)]
        database.delete("own_name", [1])
        assert rows(database, "SELECT * FROM own_name") == [(2,)]
    finally:
        database.drop("own_name")


def test_a_dataframe(database: Database) -> None:
    database.register("t", database.spark.range(3), key="id")
    database.insert("t", [(7,)])
    assert rows(database, "SELECT * FROM t") == [(0,), (1,), (2,), (7,)]


def test_a_refused_dataframe_changes_nothing(database: Database) -> None:
    spark = database.spark
    database.register("t", spark.range(1), key="id")
    with pytest.raises(CatalogError):
        database.register("t", spark.range(5, 9), key="id")
    database.insert("t", [(3,)])
    assert rows(database, "SELECT * FROM t") == [(0,), (3,)]


def test_two_databases_on_one_spark(database: Database, tmp_path: Path) -> None:
    """Tables of one name in two homes do not mix, even in turn."""
    spark = database.spark
    with sooner.connect(tmp_path / "other", spark=spark, progress=False) as other:
        for name, make in (("frame", spark.range), ("file", None)):
            for place, db in enumerate((database, other)):
                source = (
                    make(place, place + 1)
                    if make
                    else write(tmp_path / f"{place}.parquet", id=[place])
                )
                db.register(name, source, key="id")
            for _ in range(2):
                assert rows(database, f"SELECT * FROM {name}") == [(0,)]
                assert rows(other, f"SELECT * FROM {name}") == [(1,)]
            database.insert(name, [(10,)])
            assert rows(other, f"SELECT * FROM {name}") == [(1,)]
            assert rows(database, f"SELECT * FROM {name}") == [(0,), (10,)]
            other.drop(name)
            assert rows(database, f"SELECT * FROM {name}") == [(0,), (10,)]


def test_a_view_of_the_users_own_is_not_replaced(database: Database, tmp_path: Path) -> None:
    spark = database.spark
    database.register("mine", write(tmp_path / "a.parquet", id=[1]))
    spark.range(3).createOrReplaceTempView("mine")
    try:
        with pytest.raises(CatalogError, match="mine"):
            database.sql("SELECT * FROM mine")
        assert spark.table("mine").count() == 3
    finally:
        spark.catalog.dropTempView("mine")
    assert rows(database, "SELECT * FROM mine") == [(1,)]


def test_a_view_of_the_users_own_is_not_read_instead(database: Database, tmp_path: Path) -> None:
    """Nor does one that is made, or dropped, after the table was read."""
    spark = database.spark
    database.register("later", write(tmp_path / "a.parquet", id=[1]))
    frame = database.sql("SELECT * FROM later")
    assert frame.exact().to_arrow().num_rows == 1
    spark.range(3).createOrReplaceTempView("later")
    try:
        with pytest.raises(CatalogError, match="later"):
            frame.exact()
        with pytest.raises(CatalogError, match="later"):
            database.sql("SELECT * FROM later")
        database.drop("later")
        assert spark.table("later").count() == 3
        database.register("later", "later", key="id")
        assert rows(database, "SELECT * FROM later") == [(0,), (1,), (2,)]
    finally:
        spark.catalog.dropTempView("later")
    assert rows(database, "SELECT * FROM later") == [(0,), (1,), (2,)]


def test_a_home_that_is_made_again(spark: SparkSession, tmp_path: Path) -> None:
    """Its catalog counts tables and versions from 1 again."""
    for ids in ([1], [2, 3]):
        file = write(tmp_path / f"{len(ids)}.parquet", id=ids)
        with sooner.connect(tmp_path / "home", spark=spark, progress=False) as database:
            database.register("again", file)
            assert rows(database, "SELECT * FROM again") == [(one,) for one in ids]
        shutil.rmtree(tmp_path / "home")


def test_a_table_that_is_not_registered(database: Database) -> None:
    """Spark's own tables can be read too, exactly."""
    database.spark.range(3).createOrReplaceTempView("theirs")
    try:
        frame = database.sql("SELECT count(*) AS n FROM theirs")
        assert frame.exact().to_arrow().to_pylist() == [{"n": 3}]
        assert "not registered" in frame.explain()
    finally:
        database.spark.catalog.dropTempView("theirs")


def test_a_view_of_the_users_own_over_a_table_shows_its_changes(
    database: Database, tmp_path: Path
) -> None:
    database.register("t", write(tmp_path / "a.parquet", id=[1]), key="id")
    assert rows(database, "SELECT * FROM t") == [(1,)]
    for name, below in (("theirs", "t"), ("above", "theirs")):
        database.spark.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT id FROM {below}")
    try:
        frame = database.sql("SELECT id FROM above")
        assert frame.exact().as_of == {"t": 1}
        database.insert("t", [(2,)])
        for one in (frame, database.sql("SELECT id FROM above")):
            answer = one.exact()
            assert answer.to_arrow().num_rows == 2
            assert answer.as_of == {"t": 2}
    finally:
        for name in ("theirs", "above"):
            database.spark.catalog.dropTempView(name)
