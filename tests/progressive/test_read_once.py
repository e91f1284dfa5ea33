"""Rows that a query reads in several places are read once, where they are few; and the answer stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_answer
from hypothesis import given
from hypothesis import strategies as st
from plan_oracle import Table, rows_of, table_of
from small_plans import scalar, scan

from sooner.algebra import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    walk,
)
from sooner.algebra.scalar import column
from sooner.analysis import ColumnFacts, TableFacts, TableInfo
from sooner.explain import table_infos
from sooner.progressive.cut import cut
from sooner.progressive.read_once import read_once
from sooner.progressive.streams import Stream, choose_stream
from sooner.storage.layout import REPLICATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Streamed:
    """As much of a streamed scan as is looked at."""

    table: Named


def facts(rows: int, **distinct: int) -> TableFacts:
    columns = {name: ColumnFacts(nulls=0, distinct=n) for name, n in distinct.items()}
    return TableFacts(rows=rows, columns=columns)


INFOS = {
    "sales": TableInfo(scrambles=(("k",),), facts=facts(100_000, k=1000)),
    "items": TableInfo(key=("k",), scrambles=(("k",),), facts=facts(1000, k=1000, kind=50)),
    "shops": TableInfo(key=("s",), facts=facts(1000, s=1000, kind=50)),
}


def joined(left: Relation, right: Relation, condition: str, kind: str = "INNER") -> Join:
    return Join(left, right, JoinKind[kind], scalar(condition))


def total(plan: Relation, name: str) -> Aggregate:
    return Aggregate(plan, (), (Item("total", scalar(f"sum({name})")),))


def of_items(condition: str, same: str, semi: str = "SEMI") -> Relation:
    """The sales of some items that are above the item's average, as TPC-H's Q17 has it."""
    outer = joined(
        scan("sales", k="k", v="v"),
        Filter(scan("items", i="k", c="kind"), scalar("c = 7")),
        "i = k",
    )
    few = Filter(scan("items", i2="k", c2="kind"), scalar(condition))
    again = joined(scan("sales", k2="k", v2="v"), few, same, semi)
    average = Aggregate(again, ("k2",), (Item("a", scalar("max(v2)")),))
    return total(joined(outer, average, "k2 = k AND v < a"), "v")


def over_shops(kind: int) -> Relation:
    """A total beside a share of it, each over the same sales in some shops, as TPC-H's Q11 has it."""

    def sales(end: str, kind: int) -> Join:
        shops = Filter(
            scan("shops", **{f"s{end}": "s", f"c{end}": "kind"}), scalar(f"c{end} = {kind}")
        )
        names = {f"k{end}": "k", f"b{end}": "shop", f"v{end}": "v"}
        return joined(scan("sales", **names), shops, f"b{end} = s{end}")

    groups = Aggregate(sales("", 7), ("k",), (Item("value", scalar("sum(v)")),))
    return Filter(
        joined(groups, total(sales("_2", kind), "v_2"), "value > total"), scalar("value > 0")
    )


def cheapest(kind: int) -> Relation:
    """The cheapest sale of some items in some shops, with the shop's town, as TPC-H's Q2 has it."""
    few = Filter(scan("items", i="k", c="kind"), scalar("c = 7"))
    shops = Filter(scan("shops", s="s", h="kind", town="town"), scalar("h = 7"))
    sales = joined(few, scan("sales", k="k", b="shop", v="v"), "i = k")
    again = joined(
        scan("sales", k2="k", b2="shop", v2="v"),
        Filter(scan("items", i2="k", c2="kind"), scalar("c2 = 7")),
        "k2 = i2",
        "SEMI",
    )
    same = Filter(scan("shops", s2="s", h2="kind"), scalar(f"h2 = {kind}"))
    least = Aggregate(joined(again, same, "s2 = b2"), ("k2",), (Item("least", scalar("min(v2)")),))
    both = joined(joined(sales, shops, "s = b"), least, "k2 = i AND v = least")
    return Project(both, tuple(Item(name, column(name)) for name in ("i", "v", "town")))


def stream_of(plan: Relation, *streamed: str, infos: Mapping[str, TableInfo] = INFOS) -> Stream:
    tables = [node.table for node in walk(plan) if isinstance(node, Scan)]
    chosen = {n: Streamed(Named(name)) for n, name in enumerate(tables) if name in streamed}
    found = cut(plan, infos, dict.fromkeys(chosen, ("k",)))
    return Stream(chosen, found, 0.0, infos)  # type: ignore[arg-type]


def scans(plan: Relation) -> list[str]:
    return [node.table for node in walk(plan) if isinstance(node, Scan)]


@pytest.mark.parametrize("same", ["k2 = i2", "i2 = k2"])
@pytest.mark.parametrize("kind", ["SEMI", "INNER"])
def test_an_aggregate_of_the_rows_it_is_compared_with(same: str, kind: str) -> None:
    once = read_once(stream_of(of_items("c2 = 7", same, kind), "sales", "items"))
    (rows,) = once.cut.commons.values()
    assert sorted(scans(rows)) == ["__stream_0", "__stream_1"]
    (state,) = once.cut.states
    assert state.carried is not None and scans(state.carried) == ["__common_0", "__common_0"]


def test_states_over_the_same_static_rows() -> None:
    once = read_once(stream_of(over_shops(7), "sales"))
    (rows,) = once.cut.commons.values()
    assert len(scans(rows)) == 2
    read = [state.carried or state.delta for state in once.cut.states]
    assert [scans(plan) for plan in read] == [["__common_0"], ["__common_0"]]


def test_the_same_joins_in_another_order_and_with_other_columns() -> None:
    stream = stream_of(cheapest(7), "sales", "items")
    assert len(stream.cut.statics) == 1
    once = read_once(stream)
    (rows,) = once.cut.commons.values()
    assert sorted(scans(rows)) == ["__static_0", "__stream_0", "__stream_1"]
    (state,) = once.cut.states
    assert scans(state.delta) == ["__common_0", "__common_0"]


def test_other_static_rows_leave_what_comes_before_them_in_common() -> None:
    once = read_once(stream_of(cheapest(8), "sales", "items"))
    (rows,) = once.cut.commons.values()
    assert sorted(scans(rows)) == ["__stream_0", "__stream_1"]


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(of_items("c2 = 8", "k2 = i2"), id="other items"),
        pytest.param(of_items("c2 = 7", "k2 = i2", "ANTI"), id="all other items"),
        pytest.param(over_shops(8), id="other shops"),
    ],
)
def test_other_rows_are_read_apart(plan: Relation) -> None:
    stream = stream_of(plan, "sales", "items")
    assert read_once(stream) is stream


def test_to_meet_several_rows_is_not_to_join_them() -> None:
    without_key = {**INFOS, "items": replace(INFOS["items"], key=())}
    stream = stream_of(of_items("c2 = 7", "k2 = i2"), "sales", "items", infos=without_key)
    assert read_once(stream) is stream


def test_many_rows_are_read_again() -> None:
    outer = joined(scan("sales", k="k", v="v"), scan("items", i="k"), "k = i")
    again = joined(scan("sales", k2="k", v2="v"), scan("items", i2="k"), "k2 = i2")
    average = Aggregate(again, ("k2",), (Item("a", scalar("max(v2)")),))
    stream = stream_of(total(joined(outer, average, "k2 = k AND v < a"), "v"), "sales", "items")
    assert read_once(stream) is stream


@cache
def streams(semi: str) -> list[tuple[Stream, Stream, dict[int, str]]]:
    """Streams, the same that read once, and which table each of their scans is of."""
    found = []
    for plan, names in (
        (of_items("c2 = 7", "i2 = k2", semi), {0: "sales", 1: "items", 2: "sales", 3: "items"}),
        (over_shops(7), {0: "sales", 2: "sales"}),
        (cheapest(7), {0: "items", 1: "sales", 3: "sales", 4: "items"}),
        (cheapest(8), {0: "items", 1: "sales", 3: "sales", 4: "items"}),
    ):
        stream = stream_of(plan, *set(names.values()))
        found.append((stream, read_once(stream), names))
    return found


SMALL = st.integers(0, 3)
ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), max_size=8)


@given(ROWS, st.dictionaries(SMALL, st.sampled_from([7, 8])), st.sampled_from(["SEMI", "INNER"]))
def test_the_rows_stay_the_same(
    sales: list[tuple[int, ...]], kinds: dict[int, int], semi: str
) -> None:
    columns = {"k": "int", "v": "int", "shop": "int", REPLICATE: "int"}
    own = Table({"k": "int", "kind": "int"}, list(kinds.items()))
    for stream, once, names in streams(semi):
        towns = [(shop, kind, -shop) for shop, kind in kinds.items()]
        shops = Table({"s": "int", "kind": "int", "town": "int"}, towns)
        tables = {
            f"__stream_{place}": Table(columns, sales) if name == "sales" else own
            for place, name in names.items()
        }
        for name, static in stream.cut.statics.items():
            tables[name] = table_of(static, {"shops": shops})
        for name, rows in once.cut.commons.items():
            tables[name] = table_of(rows, tables)
        for before, after in zip(stream.cut.states, once.cut.states, strict=True):
            assert _rows(before.carried or before.delta, tables) == _rows(
                after.carried or after.delta, tables
            )


def _rows(plan: Relation, tables: dict[str, Table]) -> list[tuple[Any, ...]]:
    return sorted(rows_of(plan, tables), key=repr)


TEXTS = {
    "an average of the same rows": """
        SELECT sum(v) AS total FROM sales JOIN items ON items.k = sales.k
        WHERE kind = 7 AND v < (SELECT 0.9 * avg(v) FROM sales AS i WHERE i.k = items.k)""",
    "a total of the same groups": """
        SELECT sales.k, sum(v) AS value FROM sales JOIN shops ON shop = s WHERE kind = 7 GROUP BY sales.k
        HAVING sum(v) > (SELECT 0.004 * sum(v) FROM sales JOIN shops ON shop = s WHERE kind = 7)""",
    "the least of the same rows": """
        SELECT items.k, v, town FROM items, sales, shops
        WHERE items.k = sales.k AND shop = s AND items.kind = 7 AND shops.kind < 5 AND v = (
            SELECT min(v) FROM sales, shops WHERE sales.k = items.k AND shop = s AND kind < 5)""",
}


@pytest.fixture(scope="module", params=["scrambled", "by row groups"])
def shop(
    small_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Database]:
    import sooner

    random, place = np.random.default_rng(3), tmp_path_factory.mktemp("read-once")
    sales = {name: random.integers(0, 300, 6000) for name in ("k", "shop", "v")}
    kinds = [number % 10 for number in range(300)]
    pq.write_table(pa.table(sales), place / "sales.parquet", row_group_size=250)
    pq.write_table(pa.table({"k": range(300), "kind": kinds}), place / "items.parquet")
    pq.write_table(
        pa.table({"s": range(300), "kind": kinds, "town": kinds}), place / "shops.parquet"
    )
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        for name, key in (("sales", ()), ("items", "k"), ("shops", "s")):
            opened.register(name, place / f"{name}.parquet", key=key)
        if request.param == "scrambled":
            opened.scramble("sales", "k", blocks=32)
        yield opened


@pytest.mark.parametrize(("batches", "slack"), [(1, 2.0), (9, 0.0)])
@pytest.mark.parametrize("name", TEXTS)
def test_it_ends_exactly(shop: Database, name: str, batches: int, slack: float) -> None:
    frame = shop.sql(TEXTS[name])
    tables = {one: shop._bind(one) for one in frame.prepared.tables}
    stream = choose_stream(frame.prepared.plan, tables, table_infos(tables.values()), None)
    assert read_once(stream).cut.commons
    *_, last = frame.progress(batches=batches, slack=slack, seed=5)
    assert last.final
    assert_same_answer(last.to_arrow(), frame.exact().to_arrow(), ordered=False)
