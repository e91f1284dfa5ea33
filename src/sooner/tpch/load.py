"""The TPC-H tables in a database: their keys, the scrambles that suit the queries, the queries."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sooner.database import Database
from sooner.errors import InvalidArgument

TABLES: dict[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}

# Tables that advance together, by the key they share.
SCRAMBLES: tuple[tuple[str, str], ...] = (("orders", "o_orderkey"), ("lineitem", "l_orderkey"))
# With these every query has a stream that fits; the large tables are then stored twice more.
MORE_SCRAMBLES = (
    *(("part", "p_partkey"), ("partsupp", "ps_partkey"), ("lineitem", "l_partkey")),
    *(("customer", "c_custkey"), ("orders", "o_custkey")),
)

QUERIES = range(1, 23)


def register(database: Database, directory: str | Path, replace: bool = False) -> None:
    """Register the eight tables of a directory that :func:`generate` made."""
    for table, key in TABLES.items():
        pattern = Path(directory).resolve() / table / "*.parquet"
        database.register(table, str(pattern), key=key, replace=replace)


def scramble(database: Database, blocks: int = 128, more: bool = False) -> None:
    """Scramble the large tables by the keys that most queries join them on, where it is not done.

    With ``more`` also by the keys that the other queries need.
    """
    done = {
        (table.name, scramble.by) for table in database.tables() for scramble in table.scrambles
    }
    for table, key in (*SCRAMBLES, *(MORE_SCRAMBLES if more else ())):
        if (table, (key,)) not in done:
            database.scramble(table, key, blocks=blocks)


def query(number: int) -> str:
    """The text of a TPC-H query, 1 to 22, with its default parameters.

    >>> query(6).splitlines()[0]
    'select sum(l_extendedprice * l_discount) as revenue'
    """
    if number not in QUERIES:
        raise InvalidArgument(f"TPC-H has queries 1 to 22, not {number}.")
    return (files("sooner.tpch") / "queries" / f"q{number:02}.sql").read_text()
