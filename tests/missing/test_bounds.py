"""Ranges of whole queries: the paper's numbers, groups, nulls, open ends, and what is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sooner.algebra import Column
from sooner.answer import Answer, Status
from sooner.errors import ConstraintViolation, InvalidArgument, NotSupported, UnknownColumn
from sooner.missing.asked import asked_of
from sooner.missing.bounds import Missing
from sooner.missing.constraint import Constraint
from sooner.missing.ranges import Span
from sooner.missing.typed import uncertainty
from sooner.sql import plan_query

SALES = (
    Column("utc", "date"),
    Column("branch", "string"),
    Column("price", "decimal(10,2)"),
    Column("weight", "double"),
    Column("n", "int"),
)
ROWS = pa.table(
    {
        "utc": pa.array([date(2024, 11, 9)] * 4, pa.date32()),
        "branch": ["Chicago", "Chicago", "New York", None],
        "price": pa.array(
            [Decimal("10.00"), Decimal("20.50"), Decimal("5.00"), None], pa.decimal128(10, 2)
        ),
        "weight": [1.5, None, -2.0, 4.0],
        "n": pa.array([1, 2, 3, 4], pa.int32()),
    }
)
NONE = ROWS.slice(0, 0)


@cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def answer(
    text: str, constraints: list[Constraint], rows: pa.Table = ROWS, closed: bool = True
) -> Answer:
    def run(sql: str) -> pa.Table:
        connection = duckdb_connection()
        connection.register("sales", rows)
        return connection.sql(sql.replace("`", '"')).to_arrow_table()

    plan = plan_query(text, {"sales": SALES})
    asked = asked_of(plan)
    contract = run(asked.text).schema
    names = run(text).schema.names
    fields = [contract.field(n).with_name(name) for n, name in enumerate(names)]
    return Missing(asked, constraints, SALES, pa.schema(fields), UTC, closed).answer(run)


def ends(found: Answer, name: str, row: int = 0) -> tuple[Any, Any]:
    return found.bounds[name].low[row].as_py(), found.bounds[name].high[row].as_py()


def by_group(found: Answer, name: str) -> dict[Any, tuple[Any, Any]]:
    keys = found.table.column(0).to_pylist()
    return {key: ends(found, name, row) for row, key in enumerate(keys)}


ELEVENTH = "utc >= '2024-11-11' AND utc < '2024-11-12'"
TWELFTH = "utc >= '2024-11-12' AND utc < '2024-11-13'"
BOTH_DAYS = "utc >= '2024-11-11' AND utc < '2024-11-13'"
TOTAL = "SELECT sum(price) AS total FROM sales WHERE utc >= '2024-11-11' AND utc <= '2024-11-13'"


def test_the_disjoint_example_of_the_paper() -> None:
    constraints = [
        Constraint(ELEVENTH, {"price": (0.99, 129.99)}, (50, 100)),
        Constraint(TWELFTH, {"price": (0.99, 149.99)}, (50, 100)),
    ]
    found = answer(TOTAL, constraints, NONE)
    assert ends(found, "total") == (Decimal("99.00"), Decimal("27998.00"))
    assert found.status("total") == (Status.RANGE,)
    assert found.hard_bounds["total"] == found.bounds["total"]
    assert found.confidence == 1.0


def test_the_overlapping_example_of_the_paper() -> None:
    constraints = [
        Constraint(ELEVENTH, {"price": (0.99, 129.99)}, (50, 100)),
        Constraint(BOTH_DAYS, {"price": (0.99, 149.99)}, (75, 125)),
    ]
    assert ends(answer(TOTAL, constraints, NONE), "total") == (
        Decimal("74.25"),
        Decimal("17748.75"),
    )


CHICAGO = Constraint("branch = 'Chicago'", {"price": (0, 149.99), "weight": (-1, 2)}, (0, 5))


def test_known_rows_are_counted_in() -> None:
    text = """SELECT sum(price) AS s, count(*) AS c, avg(weight) AS a, min(price) AS low, max(price) AS high
        FROM sales"""
    found = answer(text, [CHICAGO])
    assert found.table.to_pylist()[0]["s"] == Decimal("35.50")
    assert ends(found, "s") == (Decimal("35.50"), Decimal("785.45"))
    assert ends(found, "c") == (4, 9)
    low, high = ends(found, "a")
    assert low == pytest.approx((3.5 - 5) / 8) and high == pytest.approx((3.5 + 10) / 8)
    assert ends(found, "low") == (Decimal("0.00"), Decimal("5.00"))
    assert ends(found, "high") == (Decimal("20.50"), Decimal("149.99"))


def test_large_sums_keep_their_digits() -> None:
    big = Decimal("12345678901234567.89")
    schema = pa.schema(
        [("branch", pa.string()), ("price", pa.decimal128(20, 2)), ("n", pa.int64())]
    )
    rows = pa.table({"branch": ["Chicago"], "price": [big], "n": [2**62]}, schema=schema)
    one = Constraint("branch = 'Chicago'", {"price": (0, 1), "n": (-1, 1)}, (1, 1))
    found = answer("SELECT sum(price) AS s FROM sales", [one], rows)
    assert ends(found, "s") == (big, big + 1)


def test_no_end_where_the_type_of_the_answer_has_none() -> None:
    """Spark could not give such a value either."""
    beyond = Constraint(None, {"n": (10**10, 10**11)}, (0, 1))
    found = answer("SELECT max(n) AS m FROM sales", [beyond])
    assert ends(found, "m") == (4, None) and found.status("m") == (Status.UNKNOWN,)
    certain = replace(beyond, rows=(1, 1))
    assert ends(answer("SELECT max(n) AS m FROM sales", [certain]), "m") == (None, None)
    total = uncertainty([Span(0.0, 4.5e19)], pa.int64(), "sum", None, [7])
    assert total.bounds.low.to_pylist() == [7] and total.bounds.high.to_pylist() == [None]
    assert total.status == (Status.UNKNOWN,)


def test_groups_that_only_missing_rows_make() -> None:
    constraints = [CHICAGO, Constraint("branch = 'Boston'", {"price": (1, 2)}, (0, 3))]
    found = answer(
        "SELECT branch, count(*) AS c, sum(price) AS s FROM sales GROUP BY branch", constraints
    )
    assert by_group(found, "c") == {
        "Chicago": (2, 7),
        "New York": (1, 1),
        None: (1, 1),
        "Boston": (0, 3),
    }
    assert by_group(found, "s")["Boston"] == (Decimal("1.00"), Decimal("6.00"))
    assert found.status("s")[found.table.column("branch").to_pylist().index(None)] is Status.EXACT
    assert not any("no end" in note for note in found.remarks)
    row = found.table.column("branch").to_pylist().index("New York")
    assert found.status("c")[row] is Status.EXACT
    assert not any("not listed" in note for note in found.remarks)


def test_groups_that_cannot_be_listed_are_spoken_of() -> None:
    found = answer(
        "SELECT branch, count(*) AS c FROM sales GROUP BY branch",
        [Constraint("branch <> 'Chicago'", {}, (0, 3))],
    )
    assert by_group(found, "c") == {"Chicago": (2, 2), "New York": (1, 4), None: (1, 1)}
    assert any("not listed" in note for note in found.remarks)


def test_whole_numbers_and_days_make_groups() -> None:
    one = Constraint("n BETWEEN 3 AND 5 AND utc = '2024-11-10'", {}, (0, 2))
    found = answer("SELECT n, count(*) AS c FROM sales GROUP BY n", [one])
    assert by_group(found, "c") == {1: (1, 1), 2: (1, 1), 3: (1, 3), 4: (1, 3), 5: (0, 2)}
    days = answer("SELECT utc, count(*) AS c FROM sales GROUP BY utc", [one])
    assert by_group(days, "c")[date(2024, 11, 10)] == (0, 2)


def test_a_required_minimum_may_lie_outside_the_question() -> None:
    one = Constraint("n BETWEEN 10 AND 20", {"weight": (-5, -1)}, (4, 6))
    inside = answer("SELECT sum(weight) AS s FROM sales WHERE n >= 10", [one], NONE)
    assert ends(inside, "s") == (pytest.approx(-30), pytest.approx(-4))
    half = answer("SELECT sum(weight) AS s, count(*) AS c FROM sales WHERE n >= 15", [one], NONE)
    assert ends(half, "s") == (pytest.approx(-30), pytest.approx(-1))
    assert ends(half, "c") == (0, 6)
    # So it is with conditions on columns that have a range themselves.
    value = answer("SELECT count(*) AS c FROM sales WHERE weight < -2", [one], NONE)
    assert ends(value, "c") == (0, 6)


def test_days_have_a_first_and_a_last() -> None:
    one = Constraint("branch = 'Chicago'", {"utc": ("2024-11-01", "2024-11-20")}, (1, 1))
    found = answer("SELECT min(utc) AS first, max(utc) AS last FROM sales", [one])
    assert ends(found, "first") == (date(2024, 11, 1), date(2024, 11, 9))
    assert ends(found, "last") == (date(2024, 11, 9), date(2024, 11, 20))


def test_an_end_that_nobody_knows_is_open() -> None:
    one = Constraint("branch = 'Chicago'", {"weight": (0, None)}, (0, 5))
    found = answer("SELECT sum(weight) AS s, sum(price) AS p, count(*) AS c FROM sales", [one])
    low, high = ends(found, "s")
    assert low == pytest.approx(3.5) and high == float("inf")
    assert found.status("s") == (Status.UNKNOWN,)
    assert ends(found, "p") == (None, None)
    assert ends(found, "c") == (4, 9)
    assert any("no end" in note for note in found.remarks)
    many = Constraint("branch = 'Chicago'", {"weight": (0, 1)}, (0, None))
    assert ends(answer("SELECT sum(weight) AS s FROM sales", [many]), "s")[1] == float("inf")


def test_constraints_of_other_tables_do_not_matter() -> None:
    elsewhere = Constraint("whatever = 1", {"other": (0, 1)}, (3, 5), table="returns")
    here = replace(CHICAGO, table="Sales")
    text = (
        "SELECT branch, count(*) AS c, max(price) AS h, avg(weight) AS a FROM sales GROUP BY branch"
    )
    assert by_group(answer(text, [elsewhere, here]), "c")["Chicago"] == (2, 7)
    found = answer(text, [elsewhere])
    assert by_group(found, "c") == {"Chicago": (2, 2), "New York": (1, 1), None: (1, 1)}
    assert set(found.status("a")) == set(found.status("h")) == {Status.EXACT}


def test_an_average_of_ever_more_rows() -> None:
    few = Constraint("n = 1", {"weight": (10, 10)}, (0, 1))
    many = Constraint("n = 2", {"weight": (-3, 5)}, (0, None))
    found = answer("SELECT avg(weight) AS a FROM sales", [few, many], NONE)
    assert ends(found, "a") == (pytest.approx(-3), pytest.approx(10))
    with_known = answer("SELECT avg(weight) AS a FROM sales WHERE n = 2", [many], ROWS.slice(2, 1))
    assert ends(with_known, "a") == (pytest.approx(-3), pytest.approx(5))


def test_rows_beyond_all_constraints() -> None:
    text = "SELECT count(*) AS c FROM sales WHERE branch = '{}'"
    assert ends(answer(text.format("Chicago"), [CHICAGO], closed=False), "c") == (2, 7)
    found = answer(text.format("Boston"), [CHICAGO], closed=False)
    assert ends(found, "c") == (0, None)
    assert any("no constraint" in note for note in found.remarks)
    assert found.details["uncovered"] == (
        "branch IS NULL",
        "branch = 'Boston'",
        "other values of branch",
    )
    assert ends(answer(text.format("Boston"), [CHICAGO]), "c") == (0, 0)
    days = Constraint("utc BETWEEN '2024-11-01' AND '2024-11-30' AND n > 3", {}, (0, 1))
    found = answer("SELECT count(*) AS c FROM sales", [days], closed=False)
    assert found.details["uncovered"] == (
        "n IS NULL",
        "n <= 3",
        "utc IS NULL",
        "utc <= '2024-10-31'",
        "utc >= '2024-12-01'",
    )
    everything = Constraint(None, {}, (0, 1))
    assert (
        "uncovered"
        not in answer("SELECT count(*) AS c FROM sales", [everything], closed=False).details
    )


def test_constraints_that_disagree_are_named() -> None:
    constraints = [
        Constraint("n > 0", {}, (0, 100), name="all of them"),
        Constraint("n > 5", {"weight": (0, 1)}, (10, 20), name="ten at least"),
        Constraint("n > 3", {"weight": (0, 9)}, (0, 4), name="four at most"),
    ]
    with pytest.raises(ConstraintViolation) as error:
        answer("SELECT count(*) AS c FROM sales", constraints)
    assert "ten at least" in str(error.value) and "four at most" in str(error.value)
    assert "all of them" not in str(error.value)


def test_empty_values_hold_no_rows() -> None:
    constraints = [
        Constraint("n > 0", {"weight": (0, 1)}, (0, 10)),
        Constraint("n > 5", {"weight": (2, 3)}, (0, 10)),
    ]
    found = answer("SELECT count(*) AS c FROM sales WHERE n > 5", constraints, NONE)
    assert ends(found, "c") == (0, 0)
    with pytest.raises(ConstraintViolation):
        answer("SELECT count(*) AS c FROM sales", [*constraints, Constraint("n > 6", {}, (1, 1))])


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (lambda: Constraint("n = 1", {}, (5, 2)), InvalidArgument, "lower number first"),
        (lambda: Constraint("n = 1", {}, (-1, 2)), InvalidArgument, "fewer than no rows"),
        (lambda: Constraint("n = 1", {}, (0, 2**63 - 1)), InvalidArgument, "None is no limit"),
        (lambda: Constraint("n = 1", {}, (0.5, 2)), InvalidArgument, "whole numbers"),
        (lambda: Constraint("n = 1", {"n": (3, 1)}), InvalidArgument, "lower one first"),
        (lambda: Constraint("n = 1", {"n": (3, "x")}), InvalidArgument, "no order"),
        (lambda: Constraint("n = 1", {"n": 3}), InvalidArgument, "lowest and a highest"),
        (lambda: Constraint("n = 1", {"n": (float("nan"), 3)}), InvalidArgument, "not a number"),
        (lambda: Constraint("nn = 1"), UnknownColumn, "nn"),
        (lambda: Constraint("n = 1", {"prize": (0, 1)}), UnknownColumn, "price"),
        (lambda: Constraint("n = = 1"), InvalidArgument, "cannot be read"),
        (lambda: Constraint("n + 1 = 2"), NotSupported, "n \\+ 1"),
        (lambda: Constraint("branch LIKE 'C%'"), NotSupported, "LIKE"),
        (lambda: Constraint("n = 1", {"weight": ("a", "b")}), InvalidArgument, "weight"),
    ],
)
def test_bad_constraints(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        answer("SELECT count(*) AS c FROM sales", [given()])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT branch FROM sales",
        "SELECT sum(price) / 2 AS s FROM sales",
        "SELECT sum(price * 2) AS s FROM sales",
        "SELECT count(DISTINCT n) AS c FROM sales",
        "SELECT n, count(*) AS c FROM sales GROUP BY n HAVING count(*) > 1",
        "SELECT count(*) AS c FROM sales AS a JOIN sales AS b ON a.n = b.n",
        "SELECT stddev(n) AS s FROM sales",
    ],
)
def test_queries_without_a_range(text: str) -> None:
    with pytest.raises(NotSupported):
        answer(text, [CHICAGO])


def test_no_constraints_and_other_things() -> None:
    for given in ([], [3], "n = 1"):
        with pytest.raises(InvalidArgument):
            answer("SELECT count(*) AS c FROM sales", given)  # type: ignore[arg-type]


def test_an_output_that_is_called_like_a_column() -> None:
    found = answer("SELECT count(*) AS price FROM sales", [CHICAGO])
    assert ends(found, "price") == (4, 9)


def test_it_is_shown_as_a_range() -> None:
    assert "[4, 9]" in str(answer("SELECT count(*) AS c FROM sales", [CHICAGO]))


def test_a_chart_of_what_is_known_and_what_is_possible(tmp_path: Path) -> None:
    found = answer("SELECT branch, sum(price) AS s FROM sales GROUP BY branch", [CHICAGO])
    figure = found.plot()
    (axes,) = figure.axes
    first, _ = (text.get_text() for text in axes.get_legend().get_texts())
    assert first == "known"
    figure.savefig(tmp_path / "ranges.png")


def test_constraints_are_read_once() -> None:
    """Reading thousands takes a second, asking them again some milliseconds."""
    many = [
        Constraint(f"n = {n} AND weight >= 0", {"price": (0, n)}, (0, 2), name=f"once {n}")
        for n in range(1500)
    ]
    times = []
    for _ in range(4):
        start = time.perf_counter()
        found = answer("SELECT sum(price) AS s FROM sales WHERE n < 700", many)
        times.append(time.perf_counter() - start)
        assert ends(found, "s")[1] == Decimal("35.50") + 2 * sum(range(700))
    assert min(times[1:]) < 0.2 * times[0]
