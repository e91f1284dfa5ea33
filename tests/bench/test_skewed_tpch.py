"""The skewed TPC-H tables of the benchmarks: keys stay keys, and updates fit their base."""

from __future__ import annotations

import atexit
import fcntl
import shutil
import sys
from functools import cache
from pathlib import Path

import duckdb
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "bench"))

from skewed_tpch import KEYS, SHARES, TABLES, Split, generate, rows_in, split

SCALE = 0.01
CHANGING = ("l_quantity", "l_extendedprice", "l_discount")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A home with the plain tables, which are kept between runs: making their texts takes a second."""
    cache = pytestconfig.cache
    assert cache is not None, "plain tables are kept in pytest's cache"
    place = cache.mkdir("skewed")
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait, and find them made
        kept = generate(SCALE, 1, home=place)
    home = tmp_path_factory.mktemp("skewed")
    shutil.copytree(kept, home / kept.name)
    return home


@pytest.fixture(scope="module", params=[1, 4], ids=["plain", "skewed"])
def directory(request: pytest.FixtureRequest, home: Path) -> Path:
    return generate(SCALE, request.param, home=home)


@pytest.fixture(scope="module")
def parts(directory: Path) -> Split:
    return split(directory, 0.10)


@pytest.fixture(scope="module")
def skewed(home: Path) -> Path:
    return generate(SCALE, 4, home=home)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    atexit.register(_connection.cache_clear)  # DuckDB complains of what is open at the end
    return duckdb.connect(config={"threads": 1})


def ask(text: str, **folders: Path) -> list[tuple[object, ...]]:
    """The answer to a query over folders of Parquet files."""
    for name, folder in folders.items():
        _connection().read_parquet(str(folder / "*.parquet")).create_view(name, replace=True)
    return _connection().execute(text).fetchall()


def number(text: str, **folders: Path) -> float:
    ((found,),) = ask(text, **folders)
    return float(str(found))


def test_every_table_has_rows(directory: Path) -> None:
    assert all(rows_in(directory / table) for table in TABLES)
    assert sorted(p.name for p in directory.iterdir() if p.name[:5] != "split") == sorted(
        (*TABLES, "made.json")
    )


@pytest.mark.parametrize("table", KEYS)
def test_keys_are_unique(parts: Split, table: str) -> None:
    keys = f"SELECT count(*) - count(DISTINCT ({KEYS[table]})) FROM rows"
    for folders in (parts.base, parts.inserts, parts.updates):
        assert number(keys, rows=folders[table]) == 0


@pytest.mark.parametrize("table", KEYS)
def test_inserts_are_not_in_the_base_and_updates_are(parts: Split, table: str) -> None:
    met = f"SELECT count(*) FROM base JOIN changes USING ({KEYS[table]})"
    assert number(met, base=parts.base[table], changes=parts.inserts[table]) == 0
    updated = number(met, base=parts.base[table], changes=parts.updates[table])
    assert updated == rows_in(parts.updates[table]) > 0


def test_orders_come_with_all_of_their_lineitems(directory: Path, parts: Split) -> None:
    lines = "SELECT count(*) FROM lines WHERE l_orderkey IN (SELECT o_orderkey FROM orders)"
    for folders in (parts.base, parts.inserts, parts.updates):
        expected = number(lines, lines=directory / "lineitem", orders=folders["orders"])
        assert rows_in(folders["lineitem"]) == expected


def test_updates_change_the_values_and_nothing_else(parts: Split) -> None:
    old, new = parts.base["lineitem"], parts.updates["lineitem"]
    without = f"SELECT * EXCLUDE ({', '.join(CHANGING)}) FROM"
    assert (
        number(f"SELECT count(*) FROM ({without} new EXCEPT {without} old)", old=old, new=new) == 0
    )
    same = number("SELECT count(*) FROM (FROM new INTERSECT FROM old)", old=old, new=new)
    assert same < 0.01 * rows_in(new)
    without = "SELECT * EXCLUDE (o_totalprice) FROM"
    old, new = parts.base["orders"], parts.updates["orders"]
    assert (
        number(f"SELECT count(*) FROM ({without} new EXCEPT {without} old)", old=old, new=new) == 0
    )


@pytest.mark.parametrize("share", SHARES)
def test_a_share_has_its_size_over_the_same_base(
    directory: Path, parts: Split, share: float
) -> None:
    found = split(directory, share)
    assert found.base == parts.base
    for folders in (found.inserts, found.updates):
        expected = share / 2 * rows_in(found.base["lineitem"])
        assert rows_in(folders["lineitem"]) == pytest.approx(expected, rel=0.15, abs=80)


def test_a_smaller_share_is_within_a_larger(directory: Path) -> None:
    small, large = split(directory, 0.05), split(directory, 0.20)
    for table in KEYS:
        for less, more in ((small.inserts, large.inserts), (small.updates, large.updates)):
            beyond = "SELECT count(*) FROM (FROM less EXCEPT FROM more)"
            assert number(beyond, less=less[table], more=more[table]) == 0


@pytest.mark.parametrize("share", [0, -0.1, 0.51])
def test_a_share_that_cannot_be_is_refused(directory: Path, share: float) -> None:
    with pytest.raises(ValueError, match=r"at most 0\.5"):
        split(directory, share)


def test_a_few_prices_dominate_only_where_there_is_skew(home: Path, skewed: Path) -> None:
    largest = "(SELECT l_extendedprice AS p FROM lines ORDER BY p DESC LIMIT 100)"
    share = f"SELECT (SELECT sum(p) FROM {largest}) / sum(l_extendedprice) FROM lines"
    assert number(share, lines=skewed / "lineitem") > 1 / 3
    assert number(share, lines=generate(SCALE, 1, home=home) / "lineitem") < 0.01


def test_keys_follow_zipf_and_types_stay(home: Path, skewed: Path) -> None:
    lines = skewed / "lineitem"
    plain = generate(SCALE, 1, home=home) / "lineitem"
    shares = "SELECT avg((l_partkey = {0})::INT) FROM lines"
    assert number(shares.format(1), lines=lines) == pytest.approx(0.924, abs=0.01)
    assert number(shares.format(2), lines=lines) == pytest.approx(0.924 / 16, abs=0.01)
    types = "SELECT column_name, column_type FROM (DESCRIBE lines)"
    assert ask(types, lines=lines) == ask(types, lines=plain)
    keys = f"SELECT {KEYS['lineitem']}, l_tax, l_shipdate, l_comment FROM"
    other = f"SELECT count(*) FROM ({keys} lines EXCEPT {keys} plain)"
    assert number(other, lines=lines, plain=plain) == 0


def test_the_same_rows_come_each_time(home: Path, skewed: Path, tmp_path: Path) -> None:
    plain = generate(SCALE, 1, home=home)
    shutil.copytree(plain, tmp_path / plain.name)
    again = generate(SCALE, 4, home=tmp_path)
    for table in KEYS:
        differ = "SELECT count(*) FROM (FROM first EXCEPT ALL FROM again)"
        assert number(differ, first=skewed / table, again=again / table) == 0
    with pytest.raises(ValueError, match="Remove it first"):
        generate(SCALE, 4, seed=1, home=home)


def test_a_broken_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no disk")

    monkeypatch.setattr("skewed_tpch._run_generator", broken)
    with pytest.raises(RuntimeError, match="no disk"):
        generate(SCALE, 2, home=tmp_path)
    assert not list(tmp_path.iterdir())
