"""Queries that every rewrite rule is tried on."""

from __future__ import annotations

import sys
from pathlib import Path

import sqlglot

from sooner.algebra import Relation, Scalar
from sooner.algebra.schema import Column, Schema
from sooner.sql import plan_query

sys.path.append(str(Path(__file__).parents[1] / "sql"))

from plan_cases import CASES, SCHEMAS, plan

__all__ = ["QUERIES", "SCHEMAS", "TPCH", "plan", "planned", "sql"]

_TPCH_COLUMNS = {
    "customer": "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment",
    "lineitem": "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount"
    " l_tax l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct"
    " l_shipmode l_comment",
    "nation": "n_nationkey n_name n_regionkey n_comment",
    "orders": "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk"
    " o_shippriority o_comment",
    "part": "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment",
    "partsupp": "ps_partkey ps_suppkey ps_availqty ps_supplycost ps_comment",
    "region": "r_regionkey r_name r_comment",
    "supplier": "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment",
}
# One type will do: rules ask only whether two columns have the same.
TPCH: dict[str, Schema] = {
    table: tuple(Column(name, "bigint") for name in columns.split())
    for table, columns in _TPCH_COLUMNS.items()
}

_MORE = {
    "a crossed input that stays crossed": "SELECT t.b FROM t, u, v WHERE t.a = u.a",
    "a chain that is written out of order": (
        "SELECT t.b FROM t, u, v WHERE t.a = v.c AND v.k = u.c AND t.b > 1"
    ),
    "a disjunction with a shared part": (
        "SELECT t.b FROM t, u WHERE (t.a = u.a AND t.b = 1) OR (t.a = u.a AND u.c = 2)"
    ),
    "an outer join under a filter": (
        "SELECT t.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.c > 1 AND t.b < 3"
    ),
    "groups of which few are asked for": (
        "SELECT t.b FROM t JOIN (SELECT a, avg(c) AS m FROM u GROUP BY a) AS g ON t.a = g.a"
        " WHERE t.s = 'x' AND t.b IN (1, 2)"
    ),
    "filters over everything": (
        "SELECT x FROM (SELECT a AS x, count(*) AS n FROM (SELECT a FROM t UNION ALL SELECT a FROM u)"
        " AS d GROUP BY a) AS e WHERE x > 1 AND n > 2"
    ),
    "a union of joins with the same table": (
        "SELECT x, sum(y) AS z FROM (SELECT 'one' AS x, t.b * u.c AS y FROM t JOIN u ON t.a = u.a"
        " WHERE u.c = 1 AND t.b > 0 UNION ALL SELECT 'two', t.b * u.c FROM t JOIN u ON t.a = u.a"
        " WHERE u.c = 2 AND t.b > 0 UNION ALL SELECT s, 3 FROM t) AS d GROUP BY x"
    ),
    "a union of joins with the same two tables": (
        "SELECT t.s, v.k FROM t JOIN u ON t.a = u.a JOIN v ON v.c = u.c WHERE u.c = 1 UNION"
        " SELECT t.s, v.k FROM t JOIN u ON t.a = u.a JOIN v ON v.c = u.c WHERE u.c = 2 UNION"
        " SELECT t.s, v.k FROM t JOIN u ON t.a = u.a JOIN v ON v.c = u.c WHERE u.c = 3"
    ),
    "a union of joins with the same and of others": (
        "SELECT b FROM t WHERE b > 1 AND a NOT IN (SELECT c FROM u) UNION ALL"
        " SELECT t.b FROM t LEFT JOIN u ON t.a = u.a WHERE t.s = 'x' UNION ALL"
        " SELECT b FROM t WHERE b < 1 AND a NOT IN (SELECT c FROM u) UNION ALL"
        " SELECT t.b FROM t LEFT JOIN u ON t.a = u.a WHERE t.s = 'y'"
    ),
}
QUERIES: dict[str, tuple[str, dict[str, Schema]]] = {
    **{name: (text, SCHEMAS) for name, (text, _) in CASES.items()},
    **{name: (text, SCHEMAS) for name, text in _MORE.items()},
}


def add_tpch() -> None:
    from sooner.tpch.load import QUERIES as numbers
    from sooner.tpch.load import query

    for number in numbers:
        QUERIES[f"TPC-H {number}"] = (query(number), TPCH)


add_tpch()


def planned(text: str, schemas: dict[str, Schema] = SCHEMAS) -> Relation:
    found = plan_query(text, schemas)
    assert isinstance(found, Relation), found
    return found


def sql(text: str) -> Scalar:
    return sqlglot.parse_one(text, read="spark")
