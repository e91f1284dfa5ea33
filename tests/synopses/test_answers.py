"""Answers of synopses against DuckDB: exact where aligned, within hard ranges always, named where refused."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synopsis_cases import Truth, made

from sooner.answer import Answer, Status
from sooner.errors import CannotAnswer, InvalidArgument, ParseError
from sooner.synopses.synopsis import Synopses, Synopsis

ROWS = 3000


def everything(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Columns of every type, with nulls, ties, negative values and long tails."""
    rng = np.random.default_rng(seed)
    null = rng.random(rows) < 0.1
    return pa.table(
        {
            "i": pa.array(rng.integers(-50, 50, rows), mask=null),
            "x": pa.array(rng.normal(0, 3, rows).round(1), mask=rng.random(rows) < 0.05),
            "w": pa.array(rng.choice(["red", "green", "blue", "été"], rows), mask=null),
            "b": pa.array(rng.random(rows) < 0.3),
            "day": pa.array(
                [date(2020, 1, 1) + timedelta(int(n)) for n in rng.integers(0, 90, rows)]
            ),
            "ts": pa.array(
                [
                    datetime(2020, 1, 1) + timedelta(minutes=int(n))
                    for n in rng.integers(0, 9000, rows)
                ],
                pa.timestamp("us", "UTC"),
            ),
            "price": pa.array(
                [Decimal(int(n)) / 100 for n in rng.integers(-999, 9999, rows)],
                pa.decimal128(12, 2),
            ),
            "heavy": pa.array(rng.lognormal(0, 2.5, rows), mask=rng.random(rows) < 0.05),
            "n": pa.array(rng.integers(-(10**12), 10**12, rows)),
        }
    )


TABLE = everything()
TRUTH = Truth(TABLE)
MEASURES = ["price", "heavy", "n"]
FUNCTIONS = "count(*), count({0}), sum({0}), avg({0}), min({0}), max({0})"


@cache
def by_number() -> Synopsis:
    return made(TABLE, MEASURES, ["i"], ["w", "x"])


@cache
def by_word() -> Synopsis:
    return made(TABLE, MEASURES, ["w"])


@cache
def by_four() -> Synopsis:
    return made(TABLE, MEASURES, ["i", "x", "w", "day"], leaves=64)


@cache
def by_time() -> Synopsis:
    return made(TABLE, MEASURES, ["ts"])


@cache
def by_day() -> Synopsis:
    return made(TABLE, MEASURES, ["day"])


def check(synopsis: Synopsis, where: str, measure: str) -> Answer:
    """All aggregates at once: the truth lies in every hard range, and is the value where that is exact."""
    text = f"SELECT {FUNCTIONS.format(measure)} FROM t" + (f" WHERE {where}" if where else "")
    answer = synopsis.answer(text)
    (truth,) = TRUTH.of(text)
    for place, name in enumerate(answer.table.column_names):
        within(answer, name, 0, truth[place], text)
    return answer


def within(answer: Answer, name: str, row: int, truth: Any, text: str) -> None:
    value = answer.table.column(name)[row].as_py()
    low, high = (
        ends[row].as_py() for ends in (answer.hard_bounds[name].low, answer.hard_bounds[name].high)
    )
    status = answer.status(name)[row]
    if truth is None or (isinstance(truth, float) and math.isnan(truth)):
        assert status is not Status.ESTIMATE or value is None, (text, name)
        return
    slack = 1e-9 * max(1.0, abs(float(truth))) if math.isfinite(truth) else 0.0
    assert low is None or low <= float(truth) + slack, (text, name, low, truth)
    assert high is None or high >= float(truth) - slack, (text, name, high, truth)
    if status is Status.EXACT:
        assert float(value) == pytest.approx(float(truth), rel=1e-9, abs=2e-6), (text, name)
    if status is Status.ESTIMATE:
        bounds = answer.bounds[name]
        assert bounds.low[row].as_py() <= float(value) + 0.51 <= bounds.high[row].as_py() + 1.02


CONDITIONS = [
    "",
    "i > 10",
    "i >= 10 AND i < 30",
    "i BETWEEN -5 AND 5",
    "NOT i BETWEEN -5 AND 5",
    "i IN (1, 2, 3, 40)",
    "i NOT IN (1, 2, 3)",
    "i <> 7",
    "i IS NULL",
    "i IS NOT NULL AND i <= 3.5",
    "i = 2.5",
    "i > -1e3 AND 20 > i",
    "i < 5 OR i > 40",
    "NOT (i < 5 OR i > 40)",
    "i > 100",
    "i > 10 AND w = 'red'",
    "w IN ('blue', 'été') AND i < 0",
    "x > 1.5 AND i > 0",
    "x <= -2",
]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_on_numbers(where: str, measure: str) -> None:
    check(by_number(), where, measure)


@pytest.mark.parametrize(
    "where",
    [
        "w = 'red'",
        "w <> 'red'",
        "w > 'green'",
        "w LIKE 'r%'",
        "w NOT LIKE 'bl%'",
        "w IS NULL",
        "w IN ('red', 'none')",
        "w < 'h'",
        "w = 'none'",
    ],
)
def test_words(where: str) -> None:
    answer = check(by_word(), where, "n")
    assert answer.status("count(1)")[0] is Status.EXACT, "leaves of words are aligned"


@pytest.mark.parametrize(
    "where",
    [
        "ts BETWEEN '2020-01-02' AND '2020-01-04'",
        "ts >= TIMESTAMP '2020-01-02 10:30:00' AND ts < TIMESTAMP '2020-01-03 00:00:00'",
        "ts < DATE '2020-01-03'",
    ],
)
def test_moments(where: str) -> None:
    check(by_time(), where, "price")


@pytest.mark.parametrize(
    "where", ["day = '2020-02-01'", "day >= DATE '2020-02-01'", "day < '2020-01-15'"]
)
def test_days(where: str) -> None:
    check(by_day(), where, "price")


@given(
    st.lists(
        st.sampled_from(
            [
                "i > {0}",
                "i <= {0}",
                "x < {1}",
                "x >= {1}",
                "w = 'red'",
                "w <> 'blue'",
                "day > '2020-02-{2}'",
            ]
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(-60, 60),
    st.floats(-8, 8).map(lambda n: round(n, 1)),
    st.integers(10, 28),
    st.sampled_from(MEASURES),
)
def test_boxes_of_four_columns(parts: list[str], i: int, x: float, day: int, measure: str) -> None:
    check(by_four(), " AND ".join(parts).format(i, x, day), measure)


def test_an_aligned_question_is_exact_without_a_sample() -> None:
    tree = by_number().summary.tree
    at = int(np.flatnonzero(tree.leaf == 2)[0])
    low, high = tree.totals.low["i"][at], tree.totals.high["i"][at]
    answer = check(by_number(), f"i BETWEEN {low} AND {high}", "price")
    assert answer.final and answer.relative_error == 0.0
    assert answer.details["rows_read"] == 0 and answer.skipped == 1.0
    for name in answer.table.column_names:
        assert answer.status(name) == (Status.EXACT,)
        assert answer.hard_bounds[name].low.equals(answer.hard_bounds[name].high)


def test_sums_of_whole_numbers_are_exact_beyond_floating_ones() -> None:
    big = 2**62 - 1
    table = pa.table({"k": pa.array([1, 1, 2, 2]), "n": pa.array([big, big, -big, 3])})
    synopsis = made(table, ["n"], ["k"], leaves=2, sample=1.0)
    answer = synopsis.answer("SELECT sum(n) AS s, min(n), max(n) FROM t WHERE k = 2")
    assert answer.table.to_pylist() == [{"s": 3 - big, "min(n)": -big, "max(n)": 3}]


def test_one_row_says_its_hard_ranges_in_words() -> None:
    answer = by_number().answer("SELECT count(*) AS c, max(n) AS most FROM t WHERE i > 7 AND x > 1")
    assert any(line.startswith("c is between") and "for certain" in line for line in answer.remarks)
    assert "for certain" in str(answer)


def test_groups() -> None:
    text = "SELECT w, count(*) AS c, sum(n) AS s FROM t WHERE i > 3 GROUP BY w"
    answer = by_four().answer(text)
    truth = {row[0]: row[1:] for row in TRUTH.of(text)}
    shown = answer.table.column("w").to_pylist()
    assert set(shown) <= set(truth)
    assert {"red", "green", "blue"} <= set(shown)
    for row, word in enumerate(shown):
        for place, name in enumerate(("c", "s")):
            within(answer, name, row, truth[word][place], text)
    assert by_word().answer("SELECT w, count(*) AS c FROM t GROUP BY w").table.num_rows == 5


def test_groups_of_days() -> None:
    text = (
        "SELECT day, count(*) AS c, sum(price) AS s FROM t WHERE day >= '2020-03-10' GROUP BY day"
    )
    answer = made(TABLE, ["price"], ["day"], leaves=90, sample=0.2).answer(text)
    truth = {row[0]: row[1:] for row in TRUTH.of(text)}
    days = answer.table.column("day").to_pylist()
    assert set(days) == set(truth)
    for row, day in enumerate(days):
        for place, name in enumerate(("c", "s")):
            within(answer, name, row, truth[day][place], text)


def test_the_schema_is_sparks() -> None:
    answer = by_number().answer(
        "SELECT COUNT(*), SUM(price), AVG(price), SUM(n), AVG(n), MAX(heavy) m FROM t"
    )
    assert answer.table.schema.names == [
        *("count(1)", "sum(price)", "avg(price)", "sum(n)", "avg(n)", "m")
    ]
    assert [str(one) for one in answer.table.schema.types] == [
        *("int64", "decimal128(22, 2)", "decimal128(16, 6)", "int64", "double", "double")
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT sum(n) FROM other", "asked about 'other'"),
        ("SELECT sum(n) FROM t JOIN u ON t.i = u.i", "joins tables"),
        ("SELECT sum(n) FROM t, u", "joins tables"),
        ("SELECT sum(n) FROM t WHERE i > 1 OR w = 'red'", "by OR"),
        ("SELECT sum(zebra) FROM t", "measures are price, heavy, n"),
        ("SELECT sum(n) FROM t WHERE day > '2020-01-01'", "does not hold the column 'day'"),
        ("SELECT sum(n + 1) FROM t", "does not aggregate one plain column"),
        ("SELECT stddev(n) FROM t", "none of COUNT, SUM, AVG, MIN and MAX"),
        ("SELECT i FROM t", "neither aggregated nor grouped by"),
        ("SELECT sum(n) FROM t GROUP BY x", "groups by words, booleans, whole numbers and dates"),
        ("SELECT sum(n) FROM t GROUP BY i", "groups by i, which has nulls"),
        ("SELECT sum(n) FROM t WHERE i > x", "compared with"),
        ("SELECT sum(n) FROM t WHERE i > 'high'", "plain constants of that type"),
        ("SELECT sum(n) FROM t WHERE abs(i) > 3", "does not compare a column with a constant"),
        ("SELECT sum(n) FROM t HAVING sum(n) > 1", "HAVING"),
        ("SELECT count(DISTINCT i) FROM t", "does not aggregate one plain column"),
        ("SELECT sum(n) FROM (SELECT * FROM t)", "does not read one table"),
        ("SELECT sum(n) AS a, avg(n) AS a FROM t", "two of its columns have one name"),
    ],
)
def test_what_it_cannot_answer_it_says(text: str, reason: str) -> None:
    with pytest.raises(CannotAnswer, match=reason) as raised:
        by_number().answer(text)
    assert "cannot answer this, because" in str(raised.value) or "SELECT" not in str(raised.value)


def test_bad_input() -> None:
    with pytest.raises(ParseError):
        by_number().answer("SELEC sum(n) FROM t")
    with pytest.raises(InvalidArgument, match="confidence"):
        by_number().answer("SELECT sum(n) FROM t", confidence=1.0)


def test_the_closest_of_several_is_chosen() -> None:
    both = Synopses([by_number(), by_word(), by_four()])
    answer = both.answer("SELECT sum(n) FROM t WHERE w = 'red'")
    assert answer.final, "exact by words, and an estimate by i with its samples"
    with pytest.raises(CannotAnswer, match="no synopsis of 'u'"):
        both.answer("SELECT sum(n) FROM u")


ODD: dict[str, list[float | None]] = {
    "all equal": [4.0] * 500,
    "one row": [3.5],
    "all null": [None] * 40,
    "nulls": [None, 1.0, None, -2.0] * 60,
    "not a number": [1.0, math.nan, 2.0, 5.0] * 50,
    "infinite": [1.0, math.inf, -3.0, 2.0] * 50,
    "negative": [-float(n) for n in range(300)],
    "heavy": [10.0 ** (n % 17) for n in range(400)],
}


@pytest.mark.parametrize("name", ODD)
def test_adversarial_values(name: str) -> None:
    values = pa.array(ODD[name], pa.float64())
    table = pa.table({"k": pa.array(np.arange(len(values))), "v": values})
    truth = Truth(table)
    synopsis = made(table, ["v"], ["k"], leaves=min(8, len(values)), sample=0.3)
    for low in range(0, len(values), max(1, len(values) // 5)):
        for high in (low, low + 3, low + len(values) // 3, len(values)):
            text = f"SELECT {FUNCTIONS.format('v')} FROM t WHERE k BETWEEN {low} AND {high}"
            answer = synopsis.answer(text)
            (row,) = truth.of(text)
            for place, column in enumerate(answer.table.column_names):
                within(answer, column, 0, row[place], text)


def test_one_value_everywhere_is_known_though_its_weight_is_not() -> None:
    table = pa.table({"k": pa.array(np.arange(1000)), "v": pa.array(np.full(1000, 7.0))})
    answer = made(table, ["v"], ["k"]).answer(
        "SELECT avg(v) AS a, count(*) AS c FROM t WHERE k < 500"
    )
    assert answer.table.column("a").to_pylist() == [7.0]
    assert answer.status("a") == (Status.EXACT,)
