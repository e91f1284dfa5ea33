"""Unions of joins in steps: what their branches share is streamed or kept once, and the end is exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_differential import assert_ends_exactly

from sooner.algebra import Relation, Scan, walk
from sooner.answer import Status
from sooner.explain import table_infos
from sooner.progressive.streams import Stream, choose_stream
from sooner.rewrites import rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Database
    from sooner.frame import Frame

pytestmark = pytest.mark.spark

ORDERS, LINES = 300, 1200


@pytest.fixture(scope="module")
def shop(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Orders o and their lines l, scrambled together; parts p, read once; returns r, not scrambled."""
    import sooner

    pick = random.Random(3)
    made = {
        "o": {"k": range(ORDERS), "day": [pick.randrange(9) for _ in range(ORDERS)]},
        "l": {
            "id": range(LINES),
            "ok": [pick.randrange(ORDERS) for _ in range(LINES)],
            "p": [pick.randrange(20) for _ in range(LINES)],
            "mode": [pick.choice("arts") for _ in range(LINES)],
            "q": [pick.randrange(1, 50) for _ in range(LINES)],
        },
        "p": {"pk": range(20), "brand": [number % 3 for number in range(20)]},
        "r": {"rk": [pick.randrange(ORDERS) for _ in range(40)], "q": [1] * 40},
    }
    place = tmp_path_factory.mktemp("unions")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:
        for name, key in (("o", "k"), ("l", "id"), ("p", "pk"), ("r", ())):
            columns = {column: list(values) for column, values in made[name].items()}
            pq.write_table(pa.table(columns), place / f"{name}.parquet")
            opened.register(name, place / f"{name}.parquet", key=key)
        opened.scramble("o", ["k"], blocks=6)
        opened.scramble("l", ["ok"], like="o")
        yield opened


def stream_of(frame: Frame, plan: Relation) -> Stream:
    database = frame._database
    tables = {name: database._bind(name) for name in frame.prepared.tables}
    return choose_stream(plan, tables, table_infos(tables.values()), None)


def as_written(frame: Frame) -> Relation:
    return rewrite(frame.prepared.written, without=["factor_unions"]).plan


def scans(plan: Relation) -> list[str]:
    return sorted(node.table for node in walk(plan) if isinstance(node, Scan))


BOTH = "SELECT {} FROM o JOIN l ON o.k = l.ok WHERE mode = '{}'"
PARTS = "SELECT brand, q FROM l JOIN p ON l.p = p.pk WHERE mode = '{}'"
FEW = "SELECT {} FROM o JOIN l ON o.k = l.ok WHERE day = {}"
ORDER = "SELECT day, l.ok FROM l LEFT JOIN o ON o.k = l.ok AND o.day > 3 WHERE mode = '{}'"
KNOWN = "SELECT q FROM l WHERE mode = '{}' AND ok IN (SELECT k FROM o WHERE day < 5)"
ABOVE = "SELECT q FROM l WHERE mode = '{}' AND q > (SELECT avg(q) FROM l)"
TWO = "SELECT day, brand, q FROM o JOIN l ON o.k = l.ok JOIN p ON l.p = p.pk WHERE mode = '{}'"
# query, the tables that the plan reads after factoring
UNIONS = [
    (
        "SELECT day, sum(q) AS v, count(*) AS n FROM ("
        f"{BOTH.format('day, q', 'a')} UNION ALL {BOTH.format('day, q', 'r')}) GROUP BY day",
        ["l", "l", "o"],
    ),
    (
        f"SELECT kind, sum(q) AS v FROM ({BOTH.format('1 AS kind, q', 'a')} UNION ALL"
        f" {BOTH.format('2, q', 'r')} UNION ALL {BOTH.format('3, q', 't')}) GROUP BY kind",
        ["l", "l", "l", "o"],
    ),
    (
        f"SELECT k, sum(q) AS v FROM ({BOTH.format('k, q', 'a')} UNION ALL"
        f" {BOTH.format('k, q', 'r')}) GROUP BY k",
        ["l", "l", "o"],
    ),
    (f"{PARTS.format('a')} UNION ALL {PARTS.format('r')}", ["l", "l", "p"]),
    (f"{FEW.format('q', 1)} UNION ALL {FEW.format('q', 2)}", ["l", "o", "o"]),
    (f"{FEW.format('day', 1)} UNION {FEW.format('day', 2)}", ["l", "o", "o"]),
    (f"{ORDER.format('a')} UNION ALL {ORDER.format('r')}", ["l", "l", "o"]),
    (f"{KNOWN.format('a')} UNION ALL {KNOWN.format('r')}", ["l", "l", "o"]),
    (
        f"SELECT count(*) AS n FROM ({ABOVE.format('a')} UNION ALL {ABOVE.format('r')})",
        ["l", "l", "l"],
    ),
    (
        f"SELECT brand, avg(q) AS m FROM ({TWO.format('a')} UNION ALL {TWO.format('r')})"
        " GROUP BY brand",
        ["l", "l", "o", "p"],
    ),
    # Of two partners one is streamed and the other is not: as it is written each meets the stream.
    (
        "SELECT sum(q) AS v FROM (SELECT l.q FROM o JOIN l ON o.k = l.ok"
        " UNION ALL SELECT r.q FROM o JOIN r ON o.k = r.rk)",
        ["l", "o", "o", "r"],
    ),
]


@pytest.mark.parametrize(("text", "read"), UNIONS)
def test_a_union_streams_no_less_than_as_it_is_written(
    shop: Database, text: str, read: list[str]
) -> None:
    frame = shop.sql(text)
    plan, before = frame.prepared.plan, as_written(frame)
    assert scans(plan) == read
    factored, written = stream_of(frame, plan), stream_of(frame, before)

    def streamed(stream: Stream) -> set[str]:
        return {one.table.name for one in stream.scans.values()}

    assert streamed(factored) == streamed(written)
    assert factored.static_bytes <= written.static_bytes
    assert len(factored.cut.statics) <= len(written.cut.statics)


# Some seconds each: every third in `make test`, the others in `make test-slow`.
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=str(number), marks=[pytest.mark.slow] if number % 3 else [])
        for number, (text, _) in enumerate(UNIONS)
    ],
)
def test_a_union_in_steps_ends_exactly(shop: Database, text: str) -> None:
    answers = assert_ends_exactly(shop.sql(text), batches=3, seed=5)
    assert len(answers) == 3


def test_an_aggregate_that_branches_are_compared_with_need_not_be_read_beforehand(
    shop: Database,
) -> None:
    """Branches that wait for an open value cannot be put together, but their rows can wait as one."""
    frame = shop.sql(next(text for text, _ in UNIONS if "avg(q) FROM l" in text))
    factored, written = stream_of(frame, frame.prepared.plan), stream_of(frame, as_written(frame))
    assert not factored.cut.statics and written.cut.statics


def test_a_union_is_estimated_on_the_way(shop: Database) -> None:
    first, *_, last = shop.sql(UNIONS[0][0]).progress(batches=6, seed=2)
    assert Status.ESTIMATE in first.status("v")
    assert set(last.status("v")) == {Status.EXACT}
