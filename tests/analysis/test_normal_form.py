"""Two plans of one form give the same rows; names do not count, and chance has no form."""

from __future__ import annotations

import pytest
from random_plans import sql

from sooner.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Map,
    Project,
    Relation,
    Scan,
    Union,
)
from sooner.analysis.normal_form import normal_form


def scan(table: str, *names: str, type_: str = "int") -> Scan:
    return Scan(table, tuple(n[0] for n in names), tuple(Column(n, type_) for n in names))


def everything(end: str, threshold: int = 1) -> Relation:
    """Every node that has a form, its columns named with this ending."""
    t, u = scan("t", f"a{end}", f"b{end}"), scan("u", f"c{end}")
    join = Join(
        Filter(t, sql(f"`b{end}` > {threshold} AND `a{end}` IS NOT NULL")),
        u,
        JoinKind.LEFT,
        sql(f"`a{end}` = `c{end}`"),
    )
    both = Union(Project(join, (Item(f"x{end}", sql(f"`a{end}` + 1")),)), scan("v", f"d{end}"))
    return Aggregate(both, (f"x{end}",), (Item(f"n{end}", sql(f"sum(DISTINCT `x{end}`)")),))


def test_names_do_not_count() -> None:
    assert normal_form(everything("_1")) == normal_form(everything("_2")) is not None


def test_values_count() -> None:
    assert normal_form(everything("_1")) != normal_form(everything("_2", threshold=2))


T = scan("t", "a", "b")


@pytest.mark.parametrize(
    "other",
    [
        scan("u", "a", "b"),
        scan("t", "b", "a"),
        scan("t", "a", "b", type_="bigint"),
        Filter(T, sql("a = 1")),
    ],
)
def test_other_rows_have_another_form(other: Relation) -> None:
    assert normal_form(other) != normal_form(T)


def test_sides_and_kinds_of_joins_count() -> None:
    u = scan("u", "c")
    forms = [
        normal_form(Join(left, right, kind, sql("`a` = `c`")))
        for left, right in ((T, u), (u, T))
        for kind in (JoinKind.INNER, JoinKind.LEFT)
    ]
    assert len(set(forms)) == 4


@pytest.mark.parametrize(
    "varying",
    [
        Filter(T, sql("a > rand()")),
        Project(T, (Item("x", sql("uuid()")),)),
        Join(T, scan("u", "c"), JoinKind.INNER, sql("a + rand() > c")),
        Aggregate(T, ("a",), (Item("x", sql("first(b)")),)),
        Limit(T, 3),
        Map(T, len, ("a", "b"), (Column("x", "int"),)),
    ],
)
def test_rows_that_may_vary_have_no_form(varying: Relation) -> None:
    assert normal_form(varying) is None
    assert normal_form(Filter(varying, sql("TRUE"))) is None
