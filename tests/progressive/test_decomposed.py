"""Columns that a group's key decides are looked up when they are shown, and change no answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from comparison import assert_same_answer
from pyspark.sql import SparkSession

import sooner
from sooner.algebra import Aggregate, Column, Filter, Item, Join, JoinKind, Project, Relation, Scan
from sooner.algebra.scalar import column
from sooner.analysis import TableFacts, TableInfo
from sooner.progressive import cut_aggregates
from sooner.progressive.decomposed import decomposed
from sooner.progressive.lookups import Lookup

TABLES = {"sale": TableInfo(facts=TableFacts(rows=100)), "buyer": TableInfo(key=("id",))}
SALE = Scan("sale", ("buyer", "price"), (Column("buyer", "int"), Column("price", "int")))
BUYER = Scan(
    "buyer", ("id", "name", "town"), tuple(Column(name, "int") for name in ("id", "name", "town"))
)


def scalar(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


TOTAL = (Item("total", scalar("sum(price)")),)
STATIC = Scan("__static_0", BUYER.names, BUYER.schema)
JOINED = Join(SALE, STATIC, JoinKind.INNER, scalar("buyer = id"))


def tried(
    plan: Relation, keys: tuple[str, ...], aggregates: tuple[Item, ...] = TOTAL
) -> str | None:
    aggregate = Aggregate(plan, keys, aggregates)
    found = decomposed(aggregate, plan, {"__static_0": BUYER}, TABLES)
    if found is None:
        return None
    assert found.late.names == aggregate.names
    assert set(found.aggregate.keys) | set(found.late.columns) == set(keys)
    assert not set(found.carried.names) & set(found.late.columns)
    return ",".join(found.late.columns)


def test_columns_of_the_key_come_late() -> None:
    assert tried(JOINED, ("id", "name", "town")) == "name,town"
    assert tried(Filter(JOINED, scalar("price > 3")), ("id", "name")) == "name"
    copies = tuple(Item(name, column(name)) for name in ("id", "name", "price"))
    assert tried(Project(JOINED, copies), ("id", "name")) == "name"


@pytest.mark.parametrize(
    ("plan", "keys", "aggregates"),
    [
        (JOINED, ("name",), TOTAL),  # many keys in one group
        (JOINED, ("id",), TOTAL),  # nothing to look up
        (JOINED, ("id", "town"), (Item("n", scalar("max(town)")),)),
        (Filter(JOINED, scalar("town > 3")), ("id", "town"), TOTAL),
        (Join(SALE, STATIC, JoinKind.INNER, scalar("price = town")), ("id", "name"), TOTAL),
        (Join(SALE, STATIC, JoinKind.LEFT, scalar("buyer = id")), ("id", "name"), TOTAL),
    ],
)
def test_what_is_needed_before_comes_at_once(
    plan: Relation, keys: tuple[str, ...], aggregates: tuple[Item, ...]
) -> None:
    assert tried(plan, keys, aggregates) is None


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> sooner.Database:
    """Sales in the order of their number, and buyers, of whom some buy nothing."""
    place = tmp_path_factory.mktemp("shop")
    random = np.random.default_rng(5)
    buyers, sales = 400, 20_000
    buyer = random.zipf(1.3, sales) % (buyers + 50)
    pq.write_table(
        pa.table(
            {"number": np.arange(sales), "buyer": buyer, "price": random.integers(1, 99, sales)}
        ),
        place / "sale.parquet",
    )
    ids = np.arange(buyers)
    names = [None if i % 13 == 0 else f"buyer {i % 90}" for i in ids]
    pq.write_table(pa.table({"id": ids, "name": names, "town": ids % 7}), place / "buyer.parquet")
    database = sooner.connect(place / "home", spark=spark, progress=False)
    database.register("sale", place / "sale.parquet", key="number")
    database.register("buyer", place / "buyer.parquet", key="id")
    database.scramble("sale", "number", blocks=16)
    return database


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name, sum(price) AS paid, town FROM sale JOIN buyer ON buyer = id "
        "GROUP BY id, name, town ORDER BY paid DESC, id LIMIT 5",
        "SELECT name, id, count(*) AS n, sum(price) AS paid FROM sale JOIN buyer ON buyer = id "
        "GROUP BY id, name ORDER BY name NULLS LAST, id",
        "SELECT id, town + 1 AS t, avg(price) AS a FROM sale JOIN buyer ON buyer = id "
        "WHERE price > 5 GROUP BY id, town HAVING sum(price) > 900 ORDER BY id",
        "SELECT upper(name) AS who, paid FROM (SELECT id, name, sum(price) AS paid FROM sale "
        "JOIN buyer ON buyer = id GROUP BY id, name) ORDER BY paid DESC, who LIMIT 7",
    ],
)
def test_answers_are_the_same(
    shop: sooner.Database, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    found = []
    for groups in (0, 10**9):
        monkeypatch.setattr(cut_aggregates, "_MANY_ROWS", groups)
        frame = shop.sql(query)
        found.append(list(frame.progress(batches=4, seed=3)))
        assert_same_answer(found[-1][-1].table, frame.exact().table)
    for late, carried in zip(*found, strict=True):
        assert late.table.equals(carried.table)
        for name in late.table.column_names:
            assert late.status(name) == carried.status(name)


def test_only_what_is_shown_is_looked_up(
    shop: sooner.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_aggregates, "_MANY_ROWS", 0)
    asked = []
    fetch = Lookup._fetch

    def watched(self: Lookup, keys: pa.ChunkedArray) -> None:
        asked.append(len(keys))
        fetch(self, keys)

    monkeypatch.setattr(Lookup, "_fetch", watched)
    query = (
        "SELECT id, name, sum(price) AS paid FROM sale JOIN buyer ON buyer = id "
        "GROUP BY id, name ORDER BY paid DESC LIMIT 5"
    )
    answers = list(shop.sql(query).progress(batches=4))
    assert len(answers) == 4
    assert asked and set(asked) == {5}
