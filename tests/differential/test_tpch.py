"""The 22 TPC-H queries: through the algebra, as Spark and DuckDB answer them, before and after changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from comparison import assert_same_answer, assert_same_rows, rows_of
from differences import TOLERANCE, WITHOUT_TOTAL_ORDER, for_duckdb, loosely

from sooner.algebra import Opaque, Relation, plan_text
from sooner.tpch.load import QUERIES, TABLES, query, register

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from sooner import Answer, Database

pytestmark = pytest.mark.spark


def assert_as_duckdb(
    answer: Answer, connection: duckdb.DuckDBPyConnection, text: str, ordered: bool
) -> None:
    theirs = connection.execute(for_duckdb(text)).fetchall()
    ours = rows_of(answer.to_arrow())
    assert_same_rows(loosely(ours), loosely(theirs), ordered, TOLERANCE)


@pytest.fixture(scope="module")
def plain(
    spark: SparkSession, tpch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    import sooner

    home = tmp_path_factory.mktemp("plain") / "home"
    with sooner.connect(home, spark=spark, progress=False) as opened:
        register(opened, tpch)
        yield opened


@pytest.fixture(scope="module")
def files(tpch: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 2})
    for table in TABLES:
        connection.execute(f"CREATE TABLE {table} AS FROM '{tpch}/{table}/*.parquet'")
    return connection


@pytest.mark.parametrize("number", QUERIES)
def test_answers_are_those_of_spark_and_duckdb(
    plain: Database, files: duckdb.DuckDBPyConnection, number: int
) -> None:
    from sooner.engine.exact import keeps_contract
    from sooner.engine.lowering import lower

    text = query(number)
    ordered = number not in WITHOUT_TOTAL_ORDER
    frame = plain.sql(text)
    assert not isinstance(frame.prepared.plan, Opaque), plan_text(frame.prepared.plan)
    answer = frame.exact()
    # The tables are bound now, so Spark reads the same files under the same names.
    assert_same_answer(answer.to_arrow(), plain.spark.sql(text).toArrow(), ordered)
    assert_as_duckdb(answer, files, text, ordered)
    assert keeps_contract(lower(plain.spark, frame.prepared.plan), frame.columns)


class Both:
    """The same changes in Sooner and in DuckDB."""

    def __init__(self, database: Database, oracle: duckdb.DuckDBPyConnection) -> None:
        self.database = database
        self.oracle = oracle

    def rows(self, text: str) -> pa.Table:
        return self.oracle.sql(text).to_arrow_table()

    def insert(self, table: str, text: str) -> int:
        given = self.rows(text)
        self.oracle.register("given", given)
        self.oracle.execute(f"INSERT INTO {table} FROM given")
        assert self.database.insert(table, given) == given.num_rows
        return given.num_rows

    def delete(self, table: str, condition: str) -> int:
        keys = self.rows(f"SELECT {', '.join(TABLES[table])} FROM {table} WHERE {condition}")
        self.oracle.execute(f"DELETE FROM {table} WHERE {condition}")
        assert self.database.delete(table, keys) == keys.num_rows
        return keys.num_rows

    def update(self, table: str, replacements: str, condition: str) -> int:
        given = self.rows(f"SELECT * REPLACE ({replacements}) FROM {table} WHERE {condition}")
        self.oracle.execute(f"DELETE FROM {table} WHERE {condition}")
        self.oracle.register("given", given)
        self.oracle.execute(f"INSERT INTO {table} FROM given")
        assert self.database.update(table, given) == given.num_rows
        return given.num_rows


def some(table: str, chosen: int, one_in: int) -> str:
    """A condition that holds for a random part of a table's keys."""
    return f"hash({', '.join(TABLES[table])}, 7) % {one_in} = {chosen}"


@pytest.fixture(scope="module")
def changed(
    spark: SparkSession, tpch: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    import sooner

    oracle = duckdb.connect(config={"threads": 2})
    for table in TABLES:
        oracle.execute(f"CREATE TABLE {table} AS FROM '{tpch}/{table}/*.parquet'")
    home = tmp_path_factory.mktemp("changed") / "home"
    with sooner.connect(home, spark=spark, progress=False) as database:
        register(database, tpch)
        database.scramble("lineitem", ["l_orderkey"], blocks=8)
        database.scramble("orders", ["o_orderkey"], like="lineitem")
        both = Both(database, oracle)
        change(both)
        yield both


def change(both: Both) -> None:
    """A few hundred rows come, go and change, some of them more than once."""
    new = "SELECT * REPLACE ({0} + 10000000 AS {0}) FROM {1} WHERE {2}"
    assert (
        both.insert("customer", new.format("c_custkey", "customer", some("customer", 1, 70))) > 99
    )
    assert both.insert("orders", new.format("o_orderkey", "orders", some("orders", 1, 700))) > 99
    parts = "l_orderkey IN (SELECT o_orderkey - 10000000 FROM orders WHERE o_orderkey > 10000000)"
    assert both.insert("lineitem", new.format("l_orderkey", "lineitem", parts)) > 99
    assert both.delete("lineitem", some("lineitem", 2, 2000)) > 99
    assert both.delete("orders", some("orders", 2, 700)) > 99
    assert both.delete("customer", some("customer", 2, 70)) > 99
    lineitem = "l_quantity + 5 AS l_quantity, l_discount + 0.01 AS l_discount, 'R' AS l_returnflag"
    assert both.update("lineitem", lineitem, some("lineitem", 3, 2000)) > 99
    assert both.update("orders", "'F' AS o_orderstatus", some("orders", 3, 700)) > 99
    assert both.update("customer", "c_acctbal + 1000 AS c_acctbal", some("customer", 3, 70)) > 99
    # Some rows that came or changed above, once more; then a key that went comes back.
    assert both.delete("lineitem", f"l_orderkey > 10000000 AND {some('lineitem', 1, 3)}") > 99
    assert both.update("lineitem", "l_tax + 0.01 AS l_tax", some("lineitem", 3, 4000)) > 20
    both.oracle.execute("CREATE TABLE gone AS SELECT * FROM orders WHERE o_orderkey = 1")
    assert both.delete("orders", "o_orderkey = 1") == 1
    assert both.insert("orders", "FROM gone") == 1


def assert_table_holds(oracle: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """The same rows, compared inside DuckDB: Python takes a minute to sort as many."""
    oracle.register("ours", rows)
    theirs = f"SELECT {', '.join(rows.column_names)} FROM {table}"
    for one, other in (("FROM ours", theirs), (theirs, "FROM ours")):
        assert not oracle.execute(f"({one}) EXCEPT ALL ({other}) LIMIT 3").fetchall()


@pytest.mark.parametrize("table", ["lineitem", "orders", "customer"])
def test_changed_tables_hold_what_they_should(changed: Both, table: str) -> None:
    rows = changed.database.table(table).exact().to_arrow()
    assert_table_holds(changed.oracle, table, rows)


@pytest.mark.parametrize("table", ["lineitem", "orders"])
def test_scrambles_hold_what_the_changed_tables_hold(changed: Both, table: str) -> None:
    from sooner.engine.rows import scramble_rows

    database = changed.database
    (record,) = (known for known in database.tables() if known.name == table)
    (scramble,) = record.scrambles
    names = [column.name for column in record.columns]
    stored = scramble_rows(database.spark, record, scramble).select(*names).toArrow()
    assert_table_holds(changed.oracle, table, stored)


@pytest.mark.parametrize("number", QUERIES)
def test_answers_after_changes_are_those_of_duckdb(changed: Both, number: int) -> None:
    text = query(number)
    frame = changed.database.sql(text)
    assert isinstance(frame.prepared.plan, Relation)
    ordered = number not in WITHOUT_TOTAL_ORDER
    assert_as_duckdb(frame.exact(), changed.oracle, text, ordered)
