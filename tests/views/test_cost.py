"""What bringing a view up to date is taken to cost, and making it again."""

from __future__ import annotations

from random_plans import sql

from sooner.algebra import Aggregate, Column, Item, Scan
from sooner.analysis.facts import TableFacts, TableInfo
from sooner.views.cost import cost

ROWS = 1_000_000
TABLES = {"t": TableInfo(facts=TableFacts(rows=ROWS))}
BY_KEY = Aggregate(
    Scan("t", ("k",), (Column("k", "bigint"),)), ("k",), (Item("n", sql("count(*)")),)
)


def test_a_view_that_had_many_groups_is_taken_to_have_many_again() -> None:
    guessed = cost([("", BY_KEY)], TABLES, {})
    known = cost([("", BY_KEY)], TABLES, {}, written=ROWS)
    assert known - guessed > 0.9 * 6.0 * ROWS * 16
