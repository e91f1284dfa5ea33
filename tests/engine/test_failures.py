"""Each way in which Spark fails has a name of Sooner's, and a message without traces and codes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from sooner import (
    Database,
    InvalidArgument,
    InvalidQuery,
    MissingFile,
    ParseError,
    QueryFailed,
    SoonerError,
    UnknownColumn,
    UnknownTable,
)
from sooner.engine.failures import explained, plain_errors


@pytest.fixture
def t(database: Database, tmp_path: Path) -> Database:
    table = pa.table({"id": [1, 2], "word": ["a", "b"]})
    pq.write_table(table, tmp_path / "t.parquet")
    database.register("t", tmp_path / "t.parquet", key="id")
    return database


CASES: list[tuple[str, type[SoonerError], str]] = [
    ("SELECT nosuch FROM t", UnknownColumn, "nosuch"),
    ("SELECT t.wrod FROM t", UnknownColumn, "Did you mean 'word'"),
    ("SELECT id FROM t GROUP BY word", InvalidQuery, "GROUP BY|aggregat"),
    ("SELECT sum(id) FROM t WHERE sum(id) > 1", InvalidQuery, "."),
    ("SELECT nosuchfunction(id) FROM t", InvalidQuery, "nosuchfunction"),
    ("SELECT id + array(1) FROM t", InvalidQuery, "ARRAY|type"),
    ("SELECT id FROM t UNION SELECT 1, 2", InvalidQuery, "columns"),
    ("SELECT id FROM t LIMIT 'a'", InvalidQuery, "integer"),
    ("SELECT a.id FROM t a JOIN t a ON a.id = a.id", InvalidQuery, "mbiguous"),
    ("SELECT :x", InvalidQuery, "parameter"),
    ("SELECT 1 / 0", QueryFailed, "ivision by zero"),
    ("SELECT 1 / (id - id) FROM t", QueryFailed, "ivision by zero"),
    ("SELECT CAST(word AS INT) FROM t", QueryFailed, "cannot be cast"),
    ("SELECT raise_error(concat('boom ', word)) FROM t", QueryFailed, "boom [ab]"),
    ("SELECT element_at(array(1), 5)", QueryFailed, "index|out of bounds"),
    ("SELECT id FROM t WHERE id = (SELECT id FROM t)", QueryFailed, "ore than one row"),
    ("SELECT 9223372036854775807 + id FROM t", QueryFailed, "overflow"),
    # What a value says is no reason to believe that the query was stopped, or a file missing.
    ("SELECT CAST('cancelled' AS INT)", QueryFailed, "cannot be cast"),
    ("SELECT raise_error('FileNotFoundException')", QueryFailed, "FileNotFoundException"),
]


@pytest.mark.parametrize("text, kind, says", CASES, ids=[case[0] for case in CASES])
def test_queries_fail_by_name(t: Database, text: str, kind: type[SoonerError], says: str) -> None:
    with pytest.raises(SoonerError, match=says) as caught:
        t.sql(text).exact()
    assert type(caught.value) is kind
    message = str(caught.value)
    assert "SQLSTATE" not in message
    assert "\tat " not in message and "JVM stacktrace" not in message
    assert message.count("\n") <= 3
    if not isinstance(caught.value, UnknownTable | UnknownColumn):
        assert isinstance(caught.value.__cause__, PySparkException | Py4JError)


PARSE_CASES = [
    ("SELECT 1 +", 1, 11),
    ("SELEC 1", 1, 1),
    ("SELECT id\nFROM t\nWHERE id = = 1", 3, 12),
    ("SELECT (1", 1, 10),
    ("SELECT * FROM t JOIN", 1, 21),
    ("SELECT 'never closed", 1, 8),
    ("SELECT id FROM t GROUP BY id HAVING", 1, None),
]


@pytest.mark.parametrize("text, line, column", PARSE_CASES)
def test_parse_errors_say_where(t: Database, text: str, line: int, column: int | None) -> None:
    with pytest.raises(ParseError) as caught:
        t.sql(text)
    assert caught.value.line == line
    assert column is None or caught.value.column == column
    pointed = str(caught.value).splitlines()
    assert pointed[-2].strip() == text.splitlines()[line - 1].strip()
    assert pointed[-1].strip() == "^"
    assert pointed[-1].index("^") == 2 + (caught.value.column or 0) - 1


def test_times_of_nanoseconds(database: Database, tmp_path: Path) -> None:
    """As pandas writes them, if it is not told otherwise."""
    times = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    pq.write_table(times, tmp_path / "ns.parquet")
    with pytest.raises(InvalidQuery, match="coerce_timestamps"):
        database.register("ns", tmp_path / "ns.parquet")


def test_a_file_that_vanishes_while_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    frame = spark.read.parquet(str(tmp_path / "a.parquet"))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(MissingFile, match="vanished") as caught, plain_errors():
        frame.collect()
    assert "a.parquet" in str(caught.value)


def test_a_function_that_fails(t: Database) -> None:
    def careless(rows: object) -> object:
        raise KeyError("no such thing")

    with pytest.raises(QueryFailed, match=r"map\(\) failed: KeyError: 'no such thing'"):
        t.table("t").map(careless, "id bigint").exact()


def test_a_function_that_gives_something_else(t: Database) -> None:
    with pytest.raises(QueryFailed, match="id"):
        t.table("t").map(lambda rows: rows[["word"]], "id bigint").exact()
    with pytest.raises(QueryFailed, match=r"int64|parse"):
        t.table("t").map(lambda rows: rows.assign(id=rows.word), "id bigint").exact()
    with pytest.raises(QueryFailed, match="failed"):
        t.table("t").map(lambda rows: None, "id bigint").exact()


def test_a_java_error_without_a_spark_name(spark: SparkSession) -> None:
    with pytest.raises(QueryFailed, match="Spark could not finish") as caught, plain_errors():
        spark._jvm.java.lang.Integer.parseInt("x")  # type: ignore[union-attr]
    assert "\tat " not in str(caught.value)


def test_sooners_own_errors_pass_unchanged() -> None:
    error = InvalidArgument("as it is")
    with pytest.raises(InvalidArgument) as caught, plain_errors():
        raise error
    assert caught.value is error


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), plain_errors():
        1 / 0  # noqa: B018


def test_unknown_tables_of_spark(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT * FROM no_such_table")
    error = explained(caught.value)
    assert isinstance(error, UnknownTable)
    assert "no_such_table" in str(error)
    assert "db.register" in str(error)
