"""Scalars with equal terms have one type, and a term is there only where all types are known."""

from __future__ import annotations

import pytest
from random_plans import sql

from sooner.algebra import Aggregate, Column, Filter, Item, Join, JoinKind, Project, Scan, Union
from sooner.algebra.scalar import column
from sooner.analysis.type_term import type_term

COLUMNS = (Column("i", "int"), Column("l", "bigint"), Column("d", "decimal(8,2)"), Column("u"))
T = Scan("t", ("i", "l", "d", "u"), COLUMNS)


@pytest.mark.parametrize(
    ("scalar", "term"),
    [
        ("i", "`int`"),
        ("d * (1 - l)", "`decimal(8,2)` * (1 - `bigint`)"),
        ("'one'", "`string`"),
        ("2147483647", "`int`"),
        ("2147483648", None),
        ("1.5", None),
        ("u", None),
        ("i + u", None),
    ],
)
def test_types_stand_for_columns(scalar: str, term: str | None) -> None:
    found = type_term(sql(scalar), T)
    assert (found and found.sql("spark")) == term


def test_a_column_is_what_it_was_computed_from() -> None:
    product = Project(T, (Item("x", sql("d * i")), Item("k", column("l"))))
    groups = Aggregate(Filter(product, sql("x > 1")), ("k",), (Item("s", sql("sum(x)")),))
    join = Join(Scan("v", ("k",), (Column("k_2", "bigint"),)), groups, JoinKind.INNER)
    found = type_term(sql("s + k_2"), join)
    assert found is not None
    assert found.sql("spark") == "SUM((`decimal(8,2)` * `int`)) + `bigint`"


def test_a_union_has_a_type_that_follows_if_its_sides_agree() -> None:
    def side(name: str, scalar: str) -> Project:
        return Project(T, (Item(name, sql(scalar)),))

    agreed = Union(side("x", "'one'"), side("y", "'two'"))
    assert type_term(column("x"), agreed) == column("string")
    assert type_term(column("x"), Union(side("x", "'one'"), side("y", "2"))) is None
