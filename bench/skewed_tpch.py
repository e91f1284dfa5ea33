"""TPC-H tables with Zipf skew, and updates of them (Stale View Cleaning, §7.1: TPCD-Skew).

Zipf's law with parameter z: what is in place r is about r^-z of what is in the first place. For keys and
discounts it is about how often they occur: key r comes r^-z times as often as key 1. Quantities and prices
follow it by their size: most are small and a few very large. Were it about how often the r-th smallest
amount occurs, larger z would mean fewer large amounts, not more. As sizes by r^-z of millions of rows do not
fit into decimal(15,2), they go by r^-(z/3). At scale 1 with seed 0 the 100 largest of l_extendedprice hold
5% of their sum with z = 2, 75% with z = 3 and 99% with z = 4; how much the very largest is, is luck. With
z = 1 the tables are those of the plain benchmark.

Every draw is a hash of the row's key, the column and the seed, so the same rows come out each time (with
the same version of DuckDB: its hash may change).
"""

from __future__ import annotations

import argparse
import atexit
import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb.func import PythonUDFType
from report import ROOT

TABLES = ("lineitem", "orders", "customer", "nation", "region", "part", "supplier")
KEYS = {"lineitem": "l_orderkey, l_linenumber", "orders": "o_orderkey"}
ORDER_KEYS = {"lineitem": "l_orderkey", "orders": "o_orderkey"}
SHARES = (0.01, 0.025, 0.05, 0.10, 0.20, 0.40)
# Orders by their hash: this share is there from the beginning, the others are held back to be inserted.
IN_BASE = 0.8
_GROUPS_PER_FILE = 8
_LARGEST_GROUP = 122_880  # with eight of them a file has about a million rows
_LEAST_GROUP = 2_048
_DISCOUNTS = 11  # 0.00 to 0.10
_LARGEST = 9_999_999_999_999  # in decimal(15,2)


@dataclass(frozen=True)
class Split:
    """Folders of Parquet files by table: what is there, what is inserted, what takes the place of rows."""

    base: dict[str, Path]
    inserts: dict[str, Path]
    updates: dict[str, Path]


def generate(scale: float, z: float, seed: int = 0, home: Path = ROOT / ".demo") -> Path:
    """Make the tables below ``home``, a folder each, unless they are there already.

    The plain ones, z = 1, are made first: the others are these with some columns replaced.
    """
    if not (scale > 0 and z >= 1):
        raise ValueError(f"The scale must be above 0 and z at least 1, not {scale} and {z}.")
    target = home / f"skewed-{scale:g}-{z:g}"
    made = {"scale": scale, "z": z, "seed": seed if z > 1 else 0}
    if target.exists():
        there = json.loads((target / "made.json").read_text())
        if there != made:
            raise ValueError(f"{target} was made with {there}, not {made}. Remove it first.")
        return target
    if z == 1:
        with _whole(target, made) as scratch, TemporaryDirectory(dir=home) as fresh:
            _run_generator(Path(fresh), scale)
            for table in TABLES:
                _write(Path(fresh) / table, scratch / table)
    else:
        plain = generate(scale, 1, home=home)
        with _whole(target, made) as scratch:
            for table in TABLES:
                values = _skewed(plain, table, z, seed)
                _write(plain / table, scratch / table, values)
    return target


def split(directory: Path, share: float, seed: int = 0, rise: float = 1.0) -> Split:
    """The base of tables that :func:`generate` made, and updates of about ``share`` times its lineitems.

    Half of the updates are orders that the base has not, with all of their lineitems; the other half are
    orders of the base with new prices, and all of their lineitems with new quantities, prices and
    discounts. The base is the same for every share, and a smaller share's updates are among a larger's. New
    prices are drawn like the old ones, times ``rise``.
    """
    if not (share > 0 and IN_BASE * (1 + share / 2) <= 1):
        most = 2 * (1 / IN_BASE - 1)
        raise ValueError(f"The share must be above 0 and at most {most:g}, not {share}.")
    half = IN_BASE * share / 2
    z = json.loads((directory / "made.json").read_text())["z"]
    place = directory / f"split-{seed}"
    risen = "" if rise == 1 else f"-rise-{rise:g}"
    base, changes = place / "base", place / f"share-{share:g}{risen}"
    if not base.exists():
        with _whole(base) as scratch:
            for table in KEYS:
                chosen = f"{_place_of(table, seed)} < {IN_BASE}"
                _write(directory / table, scratch / table, where=chosen)
    if not changes.exists():
        with _whole(changes) as scratch:
            for table in KEYS:
                at = _place_of(table, seed)
                new = f"{at} >= {IN_BASE} AND {at} < {IN_BASE + half}"
                _write(directory / table, scratch / "inserts" / table, where=new)
                values = _changed(table, z, seed, rise)
                _write(base / table, scratch / "updates" / table, values, f"{at} < {half}")
    return Split(
        {table: (base if table in KEYS else directory) / table for table in TABLES},
        {table: changes / "inserts" / table for table in KEYS},
        {table: changes / "updates" / table for table in KEYS},
    )


def rows_in(folder: Path) -> int:
    """How many rows the Parquet files of a folder have."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _run_generator(target: Path, scale: float) -> None:
    """All tables in one call: each call first spends a second on the text that comments are cut from."""
    generator = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(generator), "parquet", "--scale-factor", str(scale), "--parts", "1"]
    command += ["--tables", ",".join(TABLES), "--output-dir", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tpchgen-cli failed: {done.stderr.strip() or done.stdout.strip()}")


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    atexit.register(_connection.cache_clear)  # DuckDB complains of what is open at the end
    return duckdb.connect()


def _skewed(plain: Path, table: str, z: float, seed: int) -> dict[str, str]:
    """The columns of a table that are skewed, as SQL."""

    def key(column: str, of: str) -> str:
        return f"{_rank(rows_in(plain / of), z)}({_uniform(KEYS[table], column, seed)})"

    def price(column: str) -> str:
        # A thousandth of the plain price to begin with, so that there is room for the largest.
        return _decimal(f"{column} / 1000 * {_size(KEYS[table], column, z, seed)}")

    if table == "lineitem":
        discount = _uniform(KEYS[table], "l_discount", seed)
        return {
            "l_partkey": key("l_partkey", "part"),
            "l_suppkey": key("l_suppkey", "supplier"),
            "l_quantity": _decimal(_size(KEYS[table], "l_quantity", z, seed)),
            "l_extendedprice": price("l_extendedprice"),
            "l_discount": _decimal(f"({_rank(_DISCOUNTS, z)}({discount}) - 1) / 100"),
        }
    if table == "orders":
        return {"o_custkey": key("o_custkey", "customer"), "o_totalprice": price("o_totalprice")}
    return {}


def _changed(table: str, z: float, seed: int, rise: float) -> dict[str, str]:
    """The columns of a table that an update changes, as SQL: drawn anew, skewed as they were."""

    def draw(what: str) -> str:
        return _uniform(KEYS[table], f"new {what}", seed)

    def size(what: str) -> str:
        return _size(KEYS[table], f"new {what}", z, seed)

    if table == "orders":
        if z > 1:
            # Not the old price times a size: that would often be the old price again.
            return {"o_totalprice": _decimal(f"(1 + 300 * {draw('price')}) * {size('total')}")}
        return {"o_totalprice": _decimal(f"o_totalprice * (0.5 + {draw('price')})")}
    if z > 1:
        quantity = size("quantity")
        price = f"(0.9 + 75 * {draw('price')}) * {size('total')}"
        discount = f"({_rank(_DISCOUNTS, z)}({draw('discount')}) - 1)"
    else:
        quantity = f"(1 + floor(50 * {draw('quantity')}))"
        price = f"l_extendedprice / l_quantity * {quantity}"
        discount = f"floor({_DISCOUNTS} * {draw('discount')})"
    return {
        "l_quantity": _decimal(quantity),
        "l_extendedprice": _decimal(f"{rise} * {price}"),
        "l_discount": _decimal(f"{discount} / 100"),
    }


@cache
def _rank(ranks: int, z: float) -> str:
    """The name of a function in SQL from a uniform number to a rank: r comes r^-z times as often as 1."""
    name = f"rank_of_{ranks}_by_{z:g}".replace(".", "_")
    shares = np.arange(1, ranks + 1, dtype=float) ** -z
    ends = np.cumsum(shares) / shares.sum()
    ends[-1] = 1.0

    def rank(numbers: pa.ChunkedArray) -> pa.Array:
        return pa.array(np.searchsorted(ends, numbers.to_numpy(), side="right") + 1)

    _connection().create_function(name, rank, ["DOUBLE"], "BIGINT", type=PythonUDFType.ARROW)
    return name


def _size(keys: str, what: str, z: float, seed: int) -> str:
    """A whole number in SQL: of n rows the r-th largest is about (n / r)^(z/3), the least is 1."""
    return f"floor(pow({_uniform(keys, what, seed)}, {-z / 3}))"


def _place_of(table: str, seed: int) -> str:
    """Where the order of a row comes among all orders, from 0 to 1."""
    return _uniform(ORDER_KEYS[table], "order", seed)


def _uniform(keys: str, what: str, seed: int) -> str:
    """A number between 0 and 1 in SQL, another one for everything it is used for.

    Hashed twice: DuckDB combines the hashes of several values so simply that draws would go together.
    """
    return f"(((hash(hash({keys}, '{what}', {seed})) >> 12)::DOUBLE + 0.5) / {2**52})"


def _decimal(number: str) -> str:
    return f"least({number}, {_LARGEST})::DECIMAL(15, 2)"


def _write(
    source: Path,
    target: Path,
    values: dict[str, str] | None = None,
    where: str = "true",
) -> None:
    """Write the chosen rows with some columns replaced: some files even of small tables."""
    group = min(_LARGEST_GROUP, max(_LEAST_GROUP, rows_in(source) // 16))
    replaced = ", ".join(f"{value} AS {column}" for column, value in (values or {}).items())
    columns = f"* REPLACE ({replaced})" if replaced else "*"
    target.mkdir(parents=True)
    _connection().execute(
        f"COPY (SELECT {columns} FROM read_parquet('{source}/*.parquet') WHERE {where}) TO '{target}' "
        f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}, "
        f"ROW_GROUPS_PER_FILE {_GROUPS_PER_FILE})"
    )


@contextmanager
def _whole(target: Path, made: dict[str, float] | None = None) -> Iterator[Path]:
    """A directory to write into; it gets its name, and a note of how it was made, only when all went well."""
    scratch = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
    scratch.mkdir(parents=True)
    try:
        yield scratch
        if made:
            (scratch / "made.json").write_text(json.dumps(made) + "\n")
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--z", type=float, default=2.0, help="1 (plain) to 4")
    parser.add_argument("--share", type=float, default=0.10, help="of updates, up to 0.5")
    options = parser.parse_args()
    start = perf_counter()
    directory = generate(options.scale, options.z)
    generated = perf_counter()
    parts = split(directory, options.share)
    print(f"{directory}: {generated - start:.1f} s, split: {perf_counter() - generated:.1f} s")
    named = {"base": parts.base, "inserts": parts.inserts, "updates": parts.updates}
    for name, folders in named.items():
        for table, folder in folders.items():
            print(f"{name:8} {table:9} {rows_in(folder):>12,}")


if __name__ == "__main__":
    main()
