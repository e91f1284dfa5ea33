"""Answers in steps end where the exact one is: random queries, and the nasty ones by hand."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison import assert_same_rows, rows_of
from fuzz import Query, queries, world
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

from sooner.algebra import plan_text
from sooner.errors import InvalidQuery, SoonerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sooner import Answer, Database
    from sooner.frame import Frame

pytestmark = pytest.mark.spark

WORLDS = 4


def assert_well_formed(answers: list[Answer]) -> None:
    """One schema, progress that only grows, and only the last answer final."""
    assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]
    shares = [answer.progress for answer in answers]
    assert shares == sorted(shares) and shares[-1] == 1
    assert all(0 <= share <= 1 for share in shares)
    last = answers[-1].to_arrow().schema
    methods = {answer.method for answer in answers}
    # Spark reads an Arrow timestamp without a zone as one with: such a query ends as Spark's own.
    gives_up = any(pa.types.is_timestamp(t) and t.tz is None for t in last.types)
    assert len(methods) == 1 or gives_up, f"gave up on the way: {methods}"
    for answer in answers:
        assert answer.to_arrow().schema == last
        for name, column in answer.uncertain.items():
            rows = answer.to_arrow().num_rows
            assert len(column.status) == rows, name
            assert len(column.bounds.low) == len(column.bounds.high) == rows, name
        assert str(answer)  # can be shown


def assert_ends_exactly(
    frame: Frame, batches: int, seed: int, ordered: bool = False
) -> list[Answer]:
    """The last answer in steps is the exact one; should Spark refuse, so do the steps."""
    try:
        exact = frame.exact().to_arrow()
    except SoonerError as error:
        with pytest.raises(type(error)):
            list(frame.progress(batches=batches, seed=seed))
        return []
    answers = list(frame.progress(batches=batches, seed=seed))
    assert_well_formed(answers)
    assert_same_answer(answers[-1].to_arrow(), exact, ordered)
    return answers


def assert_same_answer(ours: pa.Table, theirs: pa.Table, ordered: bool) -> None:
    """As in ``comparison``, but NaN is NaN and zero has a sign or not."""
    assert ours.schema.names == theirs.schema.names
    assert ours.schema.types == theirs.schema.types
    one, other = ([tuple(map(_plain, row)) for row in rows_of(table)] for table in (ours, theirs))
    assert_same_rows(one, other, ordered)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


# --- Random queries ----------------------------------------------------------------------------------


def examples(number: int, always_the_same: bool = False) -> settings:
    return settings(
        max_examples=number,
        derandomize=always_the_same,
        suppress_health_check=list(HealthCheck),
        print_blob=not always_the_same,
    )


@dataclass
class Lab:
    """The worlds, each scrambled in its own way when it is first needed; what became of queries."""

    spark: SparkSession
    place: Path
    opened: dict[int, Database] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def database(self, number: int) -> Database:
        import sooner

        if number not in self.opened:
            home = self.place / f"home{number}"
            self.opened[number] = sooner.connect(home, spark=self.spark, progress=False)
            scrambled_world(self.opened[number], self.place, number)
        return self.opened[number]


def numbered(table: pa.Table) -> pa.Table:
    """With a key of its own: the columns of the random tables hold duplicates and nulls."""
    return table.append_column("pk", pa.array(range(table.num_rows), pa.int64()))


def scrambled_world(database: Database, place: Path, seed: int) -> None:
    """Tables of a random world, most of them scrambled, some together, some changed afterwards."""
    generator = random.Random(seed)
    for name, table in world(seed, rows=16).items():
        file = place / f"{name}{seed}.parquet"
        pq.write_table(numbered(table), file)
        database.register(name, file, key="pk")
    blocks = 4 + seed
    database.scramble("p", ["id" if seed % 2 else "a"], blocks=blocks)
    database.scramble("q", ["id"], like="p")
    if seed in (0, 3):
        database.scramble("r", ["k"], like="p")  # int and bigint are hashed alike
    if seed in (1, 3):
        database.scramble("p", ["s"], blocks=blocks, salt=2)
        database.scramble("q", ["s"], blocks=blocks, salt=2)
    if seed == 2:
        database.scramble("z", ["id"], like="p")
    if seed in (1, 2):  # else as they were
        for name in ("p", "q"):
            rows = numbered(world(seed + 100, rows=10)[name])
            moved = pa.array([100 + n for n in range(rows.num_rows)], pa.int64())
            database.insert(name, rows.set_column(rows.num_columns - 1, "pk", moved))
            gone = [*generator.sample(range(8), 3), 100, 102]
            database.delete(name, pa.table({"pk": pa.array(gone, pa.int64())}))


@pytest.fixture(scope="module")
def lab(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(small_spark, tmp_path_factory.mktemp("progressive-fuzz"))
    yield made
    for opened in made.opened.values():
        opened.close()


def steps_end_exactly(lab: Lab, query: Query, number: int, batches: int, seed: int) -> None:
    note(query.text)
    try:
        frame = lab.database(number).sql(query.text)
    except InvalidQuery:  # Spark refuses some correlated subqueries
        event("refused")
        return
    note(plan_text(frame.prepared.plan))
    answers = assert_ends_exactly(frame, batches, seed, query.ordered)
    lab.seen["answered"] += 1
    lab.seen["in steps"] += len(answers) > 1
    event("in steps" if len(answers) > 1 else "at once")


ARGUMENTS = (queries(), st.integers(0, WORLDS - 1), st.integers(1, 8), st.integers(0, 99))


def test_fuzz_steps_end_exactly(lab: Lab) -> None:
    # Without shrinking, which takes minutes: the long run below shrinks what it finds.
    @settings(examples(25, always_the_same=True), phases=(Phase.explicit, Phase.generate))
    @given(*ARGUMENTS)
    def run(query: Query, number: int, batches: int, seed: int) -> None:
        steps_end_exactly(lab, query, number, batches, seed)

    run()
    print(dict(lab.seen))


@pytest.mark.slow
def test_fuzz_steps_end_exactly_at_length(lab: Lab) -> None:
    @examples(300)
    @given(*ARGUMENTS)
    def run(query: Query, number: int, batches: int, seed: int) -> None:
        steps_end_exactly(lab, query, number, batches, seed)

    run()
    print(dict(lab.seen))
    assert lab.seen["in steps"] > 0.2 * lab.seen["answered"]


@pytest.mark.parametrize("number", [0, 1])  # as they were, and changed
@pytest.mark.parametrize("table", ["p", "q"])
def test_rows_by_replicate_add_up_to_the_table(lab: Lab, number: int, table: str) -> None:
    from sooner.storage.replicate_rows import replicate_rows

    database = lab.database(number)
    (record,) = (known for known in database.tables() if known.name == table)
    rows = database.table(table).exact().to_arrow().num_rows
    assert record.facts.rows == rows
    for scramble in record.scrambles:
        counted = replicate_rows(record, scramble, range(scramble.blocks))
        assert counted.sum() == rows and (counted >= 0).all()
        singly = sum(replicate_rows(record, scramble, [b]) for b in range(scramble.blocks))
        assert (counted == singly).all()


# --- The nasty ones by hand --------------------------------------------------------------------------

_UTC = datetime.UTC
_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int32(),
    "k": pa.int32(),
    "g": pa.string(),
    "n": pa.string(),
    "i": pa.int32(),
    "big": pa.int64(),
    "huge": pa.int64(),
    "x": pa.float64(),
    "z": pa.float64(),
    "d": pa.decimal128(8, 2),
    "w": pa.decimal128(38, 0),
    "c": pa.decimal128(38, 18),
    "day": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
    "flag": pa.bool_(),
    "bin": pa.binary(),
    "arr": pa.list_(pa.int32()),
}


def _row(number: int, generator: random.Random) -> dict[str, Any]:
    pick = generator.choice
    return {
        "id": number,
        "k": pick([None, *range(12)]),
        "g": pick(["a", "b", "A", "", None]),
        "n": pick(["only", "some"]),
        "i": None if number % 5 == 0 else pick([-3, 0, 1, 2, 7, 100]),
        "big": pick([2**53 + 1, 2**53 + 3, -(2**60) - 1, None]),
        "huge": 2**62 + number,
        "x": pick([math.nan, -0.0, 0.0, 1.5, 2.5, None]),
        "z": pick([math.inf, -math.inf, 1.0, math.nan, None]),
        "d": pick([Decimal("0.01"), Decimal("-1.00"), Decimal("999999.99"), None]),
        "w": Decimal(10**38 - 1 - number),
        "c": Decimal("1234567890.123456789012345678"),
        "day": pick([datetime.date(2020, 2, 29), datetime.date(1600, 1, 1), None]),
        "ts": pick([datetime.datetime(2021, 3, 28, 1, 30, tzinfo=_UTC), None])
        or datetime.datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=_UTC),
        "ntz": pick([datetime.datetime(2021, 3, 28, 2, 30), datetime.datetime(2020, 1, 1), None]),
        "flag": pick([True, False, None]),
        "bin": pick([b"\x00", b"\xff\x01", None]),
        "arr": pick([[1, 2], [], [None], None]),
    }


def nasty_rows(count: int, seed: int, first: int = 0) -> pa.Table:
    generator = random.Random(seed)
    rows = [_row(first + number, generator) for number in range(count)]
    return pa.table({n: pa.array([r[n] for r in rows], t) for n, t in _COLUMNS.items()})


@pytest.fixture(scope="module")
def nasty(
    small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """t, u: scrambled together by k (u has changes); o: scrambled otherwise; s: not; e, e2, e0: empty;
    m: scrambled together by a decimal and a date; y: by a view, its rows not known beforehand."""
    import sooner

    place = tmp_path_factory.mktemp("nasty")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as opened:

        def register(name: str, table: pa.Table, key: str | tuple[str, ...] = "id") -> None:
            pq.write_table(table, place / f"{name}.parquet")
            opened.register(name, place / f"{name}.parquet", key=key)

        register("t", nasty_rows(60, 1))
        register("u", nasty_rows(30, 2))
        register("o", nasty_rows(25, 3))
        register("s", nasty_rows(20, 4))
        for name in ("e", "e2", "e0"):
            register(name, nasty_rows(0, 5))
        opened.scramble("t", ["k"], blocks=6)
        opened.scramble("u", ["k"], like="t")
        opened.scramble("o", ["g"], blocks=5, salt=3)
        opened.scramble("e", ["k"], like="t")
        opened.scramble("e2", ["k"], like="t")
        narrow = {"id": pa.int32(), "e": pa.decimal128(6, 1), "l": pa.string(), "j": pa.int64()}
        generator = random.Random(6)
        rows = [
            {
                "id": number,
                "e": generator.choice([Decimal("0.0"), Decimal("-1.0"), Decimal("2.5"), None]),
                "l": generator.choice(["2020-02-29", "2020-2-29", "1600-01-01", "true", None]),
                "j": generator.choice([None, *range(6)]),
            }
            for number in range(20)
        ]
        register(
            "m", pa.table({n: pa.array([r[n] for r in rows], t) for n, t in narrow.items()}), "id"
        )
        # The same salt and blocks, but the texts that are hashed differ although the values are equal.
        opened.scramble("t", ["d"], blocks=4, salt=9)
        opened.scramble("t", ["day"], blocks=7, salt=9)
        opened.scramble("t", ["ntz"], blocks=7, salt=8)
        opened.scramble("m", ["e"], blocks=4, salt=9)
        opened.scramble("m", ["l"], blocks=7, salt=9)
        opened.scramble("u", ["day"], blocks=7, salt=8)
        opened.scramble("m", ["j"], blocks=6)
        opened.insert("u", nasty_rows(12, 7, first=500))
        opened.delete("u", [(number,) for number in (1, 2, 3, 501, 502)])
        opened.update("u", nasty_rows(3, 8, first=505))
        yield opened


QUERIES = """
SELECT * FROM t
SELECT count(*), sum(i), avg(i), min(i), max(i) FROM t
SELECT count(*), sum(i), avg(d), min(g), max(day) FROM e
SELECT g, count(*), sum(i) FROM e GROUP BY g
SELECT * FROM e
SELECT e.g, e2.i FROM e JOIN e2 ON e.k = e2.k
SELECT t.id, e.g FROM t LEFT JOIN e ON t.k = e.k
SELECT count(*), count(e.id) FROM t LEFT JOIN e ON t.k = e.k
SELECT t.id FROM t LEFT ANTI JOIN e ON t.k = e.k
SELECT t.id FROM t LEFT SEMI JOIN e ON t.k = e.k
SELECT count(*) FROM t JOIN e0 ON t.k = e0.k
SELECT count(*) FROM t LEFT JOIN e0 ON t.k = e0.k
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM e0)
SELECT g FROM e UNION ALL SELECT g FROM t
SELECT count(*) FROM (SELECT k FROM e UNION ALL SELECT k FROM t)
SELECT k, count(*), sum(i), avg(d) FROM t GROUP BY k
SELECT k, g, count(*) FROM t GROUP BY k, g
SELECT g, count(*), count(i), sum(i), avg(i), min(i), max(i) FROM t GROUP BY g
SELECT n, sum(i) FILTER (WHERE id % 5 = 0), avg(i) FILTER (WHERE id % 5 = 0), min(i) FILTER (WHERE id % 5 = 0) FROM t GROUP BY n
SELECT g, count(*) FILTER (WHERE i > 1), sum(d) FILTER (WHERE i > 1), avg(d) FILTER (WHERE flag), min(g) FILTER (WHERE k = 3), max(x) FILTER (WHERE i > 0) FROM t GROUP BY g
SELECT count(*) FILTER (WHERE i > 99999), sum(i) FILTER (WHERE i > 99999), avg(d) FILTER (WHERE i > 99999), max(day) FILTER (WHERE i > 99999) FROM t
SELECT sum(i), avg(i), count(*), min(d), max(g) FROM t WHERE id < 0
SELECT sum(i) + 1, count(*) * 2 FROM t WHERE id < 0
SELECT g, avg(d), avg(i), avg(x), avg(big), sum(d), sum(d * d), avg(d * 3) FROM t GROUP BY g
SELECT avg(c), sum(c) FROM t
SELECT avg(huge) FROM t
SELECT g, avg(huge) FROM t GROUP BY g
SELECT sum(huge) FROM t
SELECT g, sum(huge) FROM t GROUP BY g
SELECT g, sum(huge) FILTER (WHERE id % 20 = 0) FROM t GROUP BY g
SELECT sum(w) FROM t
SELECT g, sum(w), avg(w) FROM t GROUP BY g
SELECT sum(w - 99999999999999999999999999999999999999), min(w), max(w) FROM t
SELECT g, sum(z), avg(z), min(z), max(z) FROM t GROUP BY g
SELECT sum(x), avg(x), min(x), max(x) FROM t
SELECT g, min(x), max(x) FROM t WHERE NOT isnan(x) GROUP BY g
SELECT min(g), max(g), min(day), max(day), min(ts), max(ts), min(flag), max(flag), min(d), max(w) FROM t
SELECT min(ntz), max(ntz) FROM t
SELECT min(bin), max(bin) FROM t
SELECT n, min(arr), max(arr) FROM t GROUP BY n
SELECT max(struct(i, id)) FROM t
SELECT g, max(struct(i, id)).id FROM t GROUP BY g
SELECT sum(ts - TIMESTAMP '2000-01-01 00:00:00') FROM t
SELECT g, avg(ts - TIMESTAMP '2000-01-01 00:00:00') FROM t GROUP BY g
SELECT min(ts - TIMESTAMP '2000-01-01 00:00:00') FROM t
SELECT g, count(*) AS n FROM t GROUP BY g HAVING count(*) > 12
SELECT g, sum(i) AS total FROM t GROUP BY g HAVING sum(i) > 100 AND count(*) > 2
SELECT k, sum(i) FROM t GROUP BY k HAVING avg(i) > 10
SELECT g FROM t GROUP BY g HAVING max(i) >= 100
SELECT g, count(*) FROM t GROUP BY g HAVING g IS NOT NULL ORDER BY g
SELECT count(*) FROM t HAVING count(*) > 1000
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 2
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 2 OFFSET 1
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 0
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY g LIMIT 9 OFFSET 8
SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY g DESC NULLS FIRST OFFSET 2
SELECT g, min(i) AS m FROM t GROUP BY g ORDER BY m, g
SELECT g, max(day) AS m FROM t GROUP BY g ORDER BY max(day) DESC, g LIMIT 3
SELECT g, max(i) - min(i) AS m FROM t GROUP BY g ORDER BY m, g
SELECT x, count(*) FROM t GROUP BY x ORDER BY x DESC
SELECT x, count(*) FROM t GROUP BY x ORDER BY x NULLS LAST LIMIT 3
SELECT id, d FROM t ORDER BY d DESC, id LIMIT 5
SELECT id, d FROM t ORDER BY d NULLS LAST, id DESC LIMIT 5 OFFSET 3
SELECT id, x FROM t ORDER BY x DESC, id LIMIT 20
SELECT id FROM t ORDER BY id DESC
SELECT id, d FROM t ORDER BY d LIMIT 0
SELECT k, sum(i) AS v FROM t GROUP BY k ORDER BY v DESC NULLS LAST, k LIMIT 4
SELECT DISTINCT g FROM t
SELECT DISTINCT k FROM t
SELECT DISTINCT k, g FROM t
SELECT DISTINCT x FROM t
SELECT DISTINCT arr FROM t
SELECT DISTINCT bin, flag FROM t
SELECT count(DISTINCT g) FROM t
SELECT count(DISTINCT k) FROM t
SELECT count(DISTINCT x), count(DISTINCT x) FROM t
SELECT g, count(DISTINCT i) FROM t GROUP BY g
SELECT g, count(DISTINCT i), count(*) FROM t GROUP BY g
SELECT k, count(DISTINCT i), sum(DISTINCT i), collect_set(n) IS NULL FROM t GROUP BY k
SELECT g, sum(DISTINCT i) FROM t GROUP BY g
SELECT g, stddev(i), var_pop(x) FROM t GROUP BY g
SELECT k FROM t UNION ALL SELECT k FROM u
SELECT k FROM t UNION SELECT k FROM u
SELECT g, count(*) FROM (SELECT g, k FROM t UNION ALL SELECT g, k FROM u) GROUP BY g
SELECT k, count(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k
SELECT i FROM t UNION ALL SELECT d FROM u
SELECT k FROM t UNION ALL SELECT k FROM s
SELECT k FROM t INTERSECT SELECT k FROM u
SELECT k FROM t EXCEPT SELECT k FROM u
SELECT k FROM t EXCEPT SELECT k FROM u WHERE k IS NOT NULL
SELECT k FROM t INTERSECT ALL SELECT k FROM u
SELECT k FROM t EXCEPT ALL SELECT k FROM u
SELECT k, g FROM t EXCEPT SELECT k, g FROM u
SELECT count(*) FROM (SELECT k FROM t INTERSECT SELECT k FROM u)
SELECT k FROM t INTERSECT SELECT k FROM s
SELECT k FROM t EXCEPT SELECT k FROM s
SELECT k FROM s EXCEPT SELECT k FROM t
SELECT t.id, u.id FROM t JOIN u ON t.k = u.k
SELECT t.id, u.id FROM t JOIN u ON t.k <=> u.k
SELECT count(*) FROM t JOIN u ON t.k <=> u.k
SELECT count(*) FROM t LEFT JOIN u ON t.k <=> u.k
SELECT t.id FROM t LEFT ANTI JOIN u ON t.k <=> u.k
SELECT t.id FROM t LEFT SEMI JOIN u ON t.k <=> u.k
SELECT t.id FROM t LEFT ANTI JOIN u ON t.k = u.k OR t.k IS NULL
SELECT t.id, u.id FROM t LEFT JOIN u ON t.k = u.k AND u.i > 1
SELECT t.id, u.id FROM t RIGHT JOIN u ON t.k = u.k AND t.i > 1
SELECT t.id, u.id FROM t FULL JOIN u ON t.k = u.k
SELECT u.k, count(*), count(t.id) FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.k
SELECT t.g, count(*), count(u.id), sum(u.i) FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.g
SELECT u.g, count(*), sum(t.i) FROM t RIGHT JOIN u ON t.k = u.k GROUP BY u.g
SELECT t.id FROM t LEFT SEMI JOIN u ON t.k = u.k AND t.i > u.i
SELECT t.id FROM t LEFT ANTI JOIN u ON t.k = u.k AND t.g <> u.g
SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM u)
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.g = t.g)
SELECT count(*) FROM t WHERE (k, i) NOT IN (SELECT k, i FROM u WHERE k IS NOT NULL AND i IS NOT NULL)
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM s)
SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM s WHERE k IS NOT NULL)
SELECT count(*) FROM s WHERE k NOT IN (SELECT k FROM t WHERE k > 3)
SELECT id FROM s WHERE k IN (SELECT k FROM t WHERE i > 2)
SELECT id FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.i > s.i)
SELECT id FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k <=> s.k)
SELECT id FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k)
SELECT t.id, s.id FROM t JOIN s ON t.k = s.k
SELECT t.id, s.id FROM t JOIN s ON t.k <=> s.k
SELECT t.id, s.id FROM t LEFT JOIN s ON t.k = s.k
SELECT t.id, s.id FROM t RIGHT JOIN s ON t.k = s.k
SELECT t.id, s.id FROM s LEFT JOIN t ON t.k = s.k
SELECT t.id, s.id FROM s RIGHT JOIN t ON t.k = s.k
SELECT t.id, s.id FROM s FULL JOIN t ON t.k = s.k
SELECT s.g, count(*), sum(t.i) FROM t LEFT JOIN s ON t.i = s.i GROUP BY s.g
SELECT t.id FROM t LEFT SEMI JOIN s ON t.k = s.k
SELECT t.id FROM t LEFT ANTI JOIN s ON t.k = s.k
SELECT s.id FROM s LEFT SEMI JOIN t ON t.k = s.k
SELECT s.id FROM s LEFT ANTI JOIN t ON t.k = s.k
SELECT count(*) FROM t CROSS JOIN s
SELECT count(*) FROM t JOIN s ON t.i < s.i
SELECT count(*) FROM t JOIN o ON t.g = o.g
SELECT count(*), sum(a.i) FROM t AS a JOIN t AS b ON a.k = b.k
SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.k <=> b.k AND a.id < b.id
SELECT a.g, count(*) FROM t AS a JOIN t AS b ON a.g = b.g GROUP BY a.g
SELECT a.id FROM t AS a LEFT ANTI JOIN t AS b ON a.k = b.k AND a.id <> b.id
SELECT id FROM t WHERE i > (SELECT avg(i) FROM t)
SELECT count(*) FROM t WHERE i = (SELECT max(i) FROM t)
SELECT g, sum(i) / (SELECT sum(i) FROM t) FROM t GROUP BY g
SELECT g, sum(i) FROM t GROUP BY g HAVING sum(i) > (SELECT avg(i) FROM t)
SELECT (SELECT count(*) FROM u) AS c, (SELECT sum(i) FROM t) AS s
SELECT (SELECT count(*) FROM s) AS c, count(*) FROM t
SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k) AS c FROM t
SELECT id, (SELECT sum(i) FROM u WHERE u.k = t.k) AS c FROM t
SELECT sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k)
SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) GROUP BY c
SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM t WHERE k IS NOT NULL GROUP BY k) GROUP BY c
SELECT max(c) FROM (SELECT g, count(*) AS c FROM t GROUP BY g)
SELECT avg(c), count(*) FROM (SELECT g, count(*) AS c FROM t GROUP BY g)
SELECT count(*) FROM (SELECT g, sum(i) AS v FROM t GROUP BY g HAVING sum(i) > 50)
SELECT k, sum(v) FROM (SELECT k, g, max(i) AS v FROM t WHERE k IS NOT NULL GROUP BY k, g) GROUP BY k
SELECT g, c FROM (SELECT g, count(*) AS c FROM t GROUP BY g ORDER BY c DESC, g LIMIT 2) WHERE c > 1
SELECT x, count(*) FROM t GROUP BY x
SELECT z, count(*), sum(i) FROM t GROUP BY z
SELECT x, z, count(*) FROM t GROUP BY x, z
SELECT day, count(*) FROM t GROUP BY day
SELECT ts, count(*) FROM t GROUP BY ts
SELECT ntz, count(*) FROM t GROUP BY ntz
SELECT flag, count(*), sum(i) FROM t GROUP BY flag
SELECT bin, count(*) FROM t GROUP BY bin
SELECT d, count(*) FROM t GROUP BY d
SELECT c, count(*) FROM t GROUP BY c
SELECT arr, count(*) FROM t GROUP BY arr
SELECT struct(g, i) AS st, count(*) FROM t GROUP BY struct(g, i)
SELECT g COLLATE UTF8_LCASE AS lower_g, count(*) FROM t GROUP BY g COLLATE UTF8_LCASE
SELECT year(day), month(day), count(*) FROM t GROUP BY year(day), month(day)
SELECT date_trunc('HOUR', ts), count(*) FROM t GROUP BY 1
SELECT flag, g, k, day, ts, count(*), avg(i) FROM t GROUP BY flag, g, k, day, ts
SELECT g AS a, count(*) AS a FROM t GROUP BY g
SELECT count(*) AS a, sum(i) AS a, 1 AS a FROM t
SELECT id, id FROM t
SELECT id AS a, id + 1 AS A FROM t ORDER BY 1 LIMIT 3
SELECT 1 AS one, 'x' AS two, NULL AS three, count(*) FROM t
SELECT 1 AS one, sum(i) AS v, 2.50 AS two, true AS yes, DATE '2020-01-01' AS day FROM t
SELECT 'x' AS one, g, NULL AS nothing FROM t
SELECT 5 AS five FROM t
SELECT g, 7 AS seven, count(*) FROM t GROUP BY g ORDER BY seven, g
SELECT g, CASE WHEN count(*) > 10 THEN sum(i) / count(*) ELSE 0 END AS v FROM t GROUP BY g
SELECT g, CASE WHEN count(*) > 10 THEN 'many' ELSE 'few' END AS v FROM t GROUP BY g
SELECT g, CASE WHEN sum(i) > 0 THEN count(*) END AS v, coalesce(sum(i), -1) AS w FROM t GROUP BY g
SELECT g, count(*) > 10 AS many, sum(i) IS NULL AS none FROM t GROUP BY g
SELECT g, -sum(d), 100.00 * sum(d) / sum(i), round(avg(i), 2), CAST(sum(i) AS STRING) FROM t GROUP BY g
SELECT d / 3 AS third, big + 1 AS next, count(*) FROM t GROUP BY d, big
SELECT sum(i) / count(*) FILTER (WHERE i > 99999) FROM t
SELECT sum(i) / nullif(count(*) FILTER (WHERE i > 99999), 0) FROM t
SELECT 1 / (count(*) - 60) FROM t
SELECT try_divide(sum(i), count(*) - 60) FROM t
SELECT round(sum(i) / count(*) FILTER (WHERE id = 7), 2) FROM t
SELECT CAST(count(*) + 60 AS TINYINT) FROM t
SELECT CAST(round(sum(huge) FILTER (WHERE id = 7)) AS BIGINT) FROM t
SELECT i / 0 FROM t
SELECT sum(i) FROM t WHERE 1 / i > 0
SELECT count(*) FROM t JOIN m ON t.d = m.e
SELECT count(*) FROM t JOIN m ON t.day = m.l
SELECT count(*) FROM t JOIN u ON t.ntz = u.day
SELECT t.id, m.id FROM t JOIN m ON t.k = m.j
SELECT t.id, m.id FROM t LEFT JOIN m ON t.k = m.j
SELECT count(*), count(m.id) FROM t LEFT JOIN m ON t.d = m.e
SELECT d FROM t EXCEPT SELECT e FROM m
SELECT g, count(*), sum(i), min(i), avg(d) FROM u GROUP BY g
SELECT * FROM u
SELECT count(*), sum(id) FROM u
SELECT k, count(*), max(id) FROM u GROUP BY k
SELECT g, count(*), sum(i) FROM o GROUP BY g
SELECT i, count(*) FROM o GROUP BY i ORDER BY 2 DESC, 1 LIMIT 3
SELECT g, first(n) FROM t GROUP BY g ORDER BY g LIMIT 0
SELECT g, any_value(7) FROM t GROUP BY g
SELECT g, mean(i), count_if(i > 1), bool_and(i > 0), every(i > 0), max_by(i, id) FROM t GROUP BY g
SELECT count(i, g), count(1), count(NULL) FROM t
SELECT g, sum(NULL), max(NULL), avg(NULL) FROM t GROUP BY g
SELECT g, sum(CAST(i AS STRING)), avg(CAST(i AS FLOAT)), sum(CAST(i AS TINYINT)) FROM t GROUP BY g
SELECT t.g, s.g, count(*) AS n, sum(t.d) AS v FROM t JOIN u ON t.k = u.k JOIN s ON u.i = s.i GROUP BY t.g, s.g HAVING count(*) > 1 ORDER BY n DESC, 1, 2 LIMIT 5
WITH w AS (SELECT k, count(*) AS c FROM t GROUP BY k) SELECT a.k, a.c, b.c FROM w AS a JOIN w AS b ON a.k = b.k
WITH w AS (SELECT g, sum(i) AS v FROM t GROUP BY g) SELECT g FROM w WHERE v = (SELECT max(v) FROM w)
SELECT g, count(*) FROM t GROUP BY ROLLUP (g)
SELECT count(*) FROM t WHERE rand() >= 0
SELECT count(*) FROM t WHERE ts < current_timestamp()
"""  # noqa: E501
# A second each: every third in `make test`, the others in `make test-slow`.
TEXTS = [
    pytest.param(line, id=str(number), marks=[pytest.mark.slow] if number % 3 else [])
    for number, line in enumerate(line for line in QUERIES.splitlines() if line)
]


@pytest.mark.parametrize("text", TEXTS)
def test_nasty_query_ends_exactly(nasty: Database, text: str) -> None:
    ordered = "ORDER BY" in text and ") WHERE" not in text
    assert_ends_exactly(nasty.sql(text), 4, 11, ordered)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, count(*), sum(i), avg(d), min(x) FROM t GROUP BY g",
        "SELECT g, sum(i) FROM t GROUP BY g HAVING sum(i) > (SELECT sum(i) * 0.01 FROM t)",
        "SELECT g, sum(i) / (SELECT sum(i) FROM t) FROM t GROUP BY g",
    ],
)
def test_too_many_groups_for_replicates_end_exactly(
    nasty: Database, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("sooner.progressive.states._MOST_REPLICATED_GROUPS", 2)
    assert_ends_exactly(nasty.sql(text), 6, 4)
