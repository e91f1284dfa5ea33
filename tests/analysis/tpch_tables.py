"""Some of TPC-H at scale 1, as analysis is told about it, and scans of its tables."""

from __future__ import annotations

from datetime import date

from sooner.algebra import Column, Scan
from sooner.analysis import ColumnFacts, TableFacts, TableInfo

TYPES = {
    "lineitem": {
        "l_orderkey": "bigint",
        "l_linenumber": "int",
        "l_partkey": "bigint",
        "l_suppkey": "bigint",
        "l_quantity": "decimal(15,2)",
        "l_extendedprice": "decimal(15,2)",
        "l_shipdate": "date",
        "l_returnflag": "string",
        "l_linestatus": "string",
    },
    "orders": {
        "o_orderkey": "bigint",
        "o_custkey": "bigint",
        "o_orderdate": "date",
        "o_orderpriority": "string",
    },
    "customer": {"c_custkey": "bigint", "c_mktsegment": "string", "c_nationkey": "bigint"},
    "part": {"p_partkey": "bigint", "p_brand": "string"},
}

TABLES = {
    "lineitem": TableInfo(
        key=("l_orderkey", "l_linenumber"),
        scrambles=(("l_orderkey",), ("l_partkey",)),
        facts=TableFacts(
            rows=6_000_000,
            columns={
                "l_orderkey": ColumnFacts(1, 6_000_000, 0, 1_500_000),
                "l_linenumber": ColumnFacts(1, 7, 0, 7),
                "l_partkey": ColumnFacts(1, 200_000, 0, 200_000),
                "l_quantity": ColumnFacts(1, 50, 0, 50),
                "l_shipdate": ColumnFacts(date(1992, 1, 1), date(1998, 12, 31), 0, 2_500),
                "l_returnflag": ColumnFacts("A", "R", 0, 3),
                "l_linestatus": ColumnFacts("F", "O", 0, 2),
            },
        ),
    ),
    "orders": TableInfo(
        key=("o_orderkey",),
        scrambles=(("o_orderkey",), ("o_custkey",)),
        facts=TableFacts(
            rows=1_500_000,
            columns={
                "o_orderkey": ColumnFacts(1, 6_000_000, 0, None),
                "o_custkey": ColumnFacts(1, 150_000, 0, 100_000),
                "o_orderdate": ColumnFacts(date(1992, 1, 1), date(1998, 8, 2), 0, 2_406),
                "o_orderpriority": ColumnFacts("1-URGENT", "5-LOW", 0, 5),
            },
        ),
    ),
    "customer": TableInfo(
        key=("c_custkey",),
        scrambles=(("c_custkey",),),
        facts=TableFacts(
            rows=150_000,
            columns={
                "c_mktsegment": ColumnFacts("AUTOMOBILE", "MACHINERY", 0, 5),
                "c_nationkey": ColumnFacts(0, 24, 0, 25),
            },
        ),
    ),
    "part": TableInfo(key=("p_partkey",), scrambles=(("p_partkey",),), facts=TableFacts(200_000)),
}


def scan(table: str, prefix: str = "") -> Scan:
    """A scan of all columns, with a prefix to their names for a second occurrence."""
    columns = tuple(Column(prefix + name, type_) for name, type_ in TYPES[table].items())
    return Scan(table, tuple(TYPES[table]), columns)
