"""Unions of joins with the same rows: which become one join, and what keeps them apart."""

from __future__ import annotations

import pytest
from rewrite_cases import plan, planned, sql

from sooner.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Join,
    JoinKind,
    Map,
    Project,
    Relation,
    Scalar,
    Scan,
    Union,
    plan_text,
    walk,
)
from sooner.algebra.scalar import column
from sooner.rewrites import RULES, rewrite
from sooner.rewrites.factor_unions import factor_unions

# As in the list of rules: after the filters have moved, before columns go.
EARLIER = RULES[: [rule.name for rule in RULES].index("factor_unions")]


def before(text: str) -> Relation:
    return rewrite(planned(text), rules=EARLIER).plan


def union(*branches: str) -> str:
    return " UNION ALL ".join(branches)


def joined(items: str, where: str, kind: str = "JOIN", on: str = "t.a = u.a") -> str:
    return f"SELECT {items} FROM t {kind} u ON {on} WHERE {where}"


FACTORED = {
    "conditions on the partners go with them": (
        union(joined("b, c", "c = 1"), joined("b, c", "c = 2")),
        """
        Project [b, c]
          Join inner on a = a_2
            Scan t [a, b, s]
            Union all
              Filter c = 1
                Scan u [a AS a_2, c]
              Filter c_2 = 2
                Scan u [a AS a_4, c AS c_2]
        """,
    ),
    "the shared side is the left or the right one": (
        union(
            joined("c, b", "b = 1 AND c > 0"),
            "SELECT c, b FROM u JOIN t ON t.a = u.a WHERE b > 1 AND c > 0",
        ),
        """
        Project [c, b]
          Join inner on a = a_2
            Union all
              Project [a, b]
                Filter b = 1
                  Scan t [a, b, s]
              Project [a_4, b_2]
                Filter b_2 > 1
                  Scan t [a AS a_4, b AS b_2, s AS s_2]
            Filter c > 0
              Scan u [a AS a_2, c]
        """,
    ),
    "three branches, and something else among them": (
        union(joined("b", "c = 1"), joined("b", "c = 2"), "SELECT a FROM t", joined("b", "c = 3")),
        """
        Union all
          Project [b]
            Join inner on a = a_2
              Scan t [a, b, s]
              Union all
                Union all
                  Project [a_2]
                    Filter c = 1
                      Scan u [a AS a_2, c]
                  Project [a_4]
                    Filter c_2 = 2
                      Scan u [a AS a_4, c AS c_2]
                Project [a_7]
                  Filter c_3 = 3
                    Scan u [a AS a_7, c AS c_3]
          Project [a_5]
            Scan t [a AS a_5, b AS b_3, s AS s_3]
        """,
    ),
    "two tables shared": (
        union(
            *(
                f"SELECT b, k FROM t JOIN u ON t.a = u.a JOIN v ON v.c = u.c WHERE u.c = {number}"
                for number in (1, 2)
            )
        ),
        """
        Project [b, k]
          Join inner on c_2 = c
            Project [b, c]
              Join inner on a = a_2
                Scan t [a, b, s]
                Union all
                  Filter c = 1
                    Scan u [a AS a_2, c]
                  Filter c_3 = 2
                    Scan u [a AS a_4, c AS c_3]
            Scan v [k, c AS c_2]
        """,
    ),
    "constants that say where a row is from": (
        union(joined("'one' AS kind, 1 AS n, b", "c = 1"), joined("'two', 2, b", "c = 2")),
        """
        Project [kind, n, b]
          Join inner on a = a_2
            Scan t [a, b, s]
            Union all
              Project [a_2, 'one' AS kind, 1 AS n]
                Filter c = 1
                  Scan u [a AS a_2, c]
              Project [a_4, 'two' AS two, 2 AS 2]
                Filter c_2 = 2
                  Scan u [a AS a_4, c AS c_2]
        """,
    ),
    "other columns of the partners, of one type": (
        union(joined("c", "b = 1"), joined("c", "b = 2", on="t.b = u.a")),
        """
        Project [c]
          Join inner on a = a_2
            Union all
              Project [a]
                Filter b = 1
                  Scan t [a, b, s]
              Project [b_2]
                Filter b_2 = 2
                  Scan t [a AS a_3, b AS b_2, s AS s_2]
            Scan u [a AS a_2, c]
        """,
    ),
    "the same computed of both sides": (
        union(joined("b * c AS x", "c = 1"), joined("b * c AS y", "c = 2")),
        """
        Project [b * c AS x]
          Join inner on a = a_2
            Scan t [a, b, s]
            Union all
              Filter c = 1
                Scan u [a AS a_2, c]
              Filter c_2 = 2
                Scan u [a AS a_4, c AS c_2]
        """,
    ),
    "an outer join that keeps rows of the partners": (
        union(
            *(
                joined("b", f"c IS NULL AND s = '{s}'", "LEFT JOIN", "t.a = u.a AND t.b > 1")
                for s in "xy"
            )
        ),
        """
        Project [b]
          Filter c IS NULL
            Join left on a = a_2 AND b > 1
              Union all
                Project [a, b]
                  Filter s = 'x'
                    Scan t [a, b, s]
                Project [a_3, b_2]
                  Filter s_2 = 'y'
                    Scan t [a AS a_3, b AS b_2, s AS s_2]
              Scan u [a AS a_2, c]
        """,
    ),
    "NOT IN the same": (
        union(*(f"SELECT b FROM t WHERE b = {n} AND a NOT IN (SELECT c FROM u)" for n in (1, 2))),
        """
        Project [b]
          Join null-aware anti on a = c
            Union all
              Project [a, b]
                Filter b = 1
                  Scan t [a, b, s]
              Project [a_3, b_2]
                Filter b_2 = 2
                  Scan t [a AS a_3, b AS b_2, s AS s_2]
            Project [c]
              Scan u [a AS a_2, c]
        """,
    ),
    "an aggregate as partner, below a DISTINCT": (
        " UNION ".join(
            "SELECT s, m FROM t JOIN (SELECT a, max(c) AS m FROM u"
            f" WHERE c > {number} GROUP BY a) AS d ON t.a = d.a"
            for number in (1, 2)
        ),
        """
        Distinct [s, m]
          Project [s, m]
            Join inner on a = a_2
              Scan t [a, b, s]
              Union all
                Project [a_2, m]
                  Aggregate [MAX(c) AS m] by [a_2]
                    Filter c > 1
                      Scan u [a AS a_2, c]
                Project [a_4, m_2]
                  Aggregate [MAX(c_2) AS m_2] by [a_4]
                    Filter c_2 > 2
                      Scan u [a AS a_4, c AS c_2]
        """,
    ),
}


@pytest.mark.parametrize("name", FACTORED)
def test_one_join_for_all_branches(name: str) -> None:
    text, after = FACTORED[name]
    assert plan_text(factor_unions(before(text))) == plan(after)


# Each pair would be one join but for one thing.
APART = {
    "another condition on what is shared": (
        joined("b", "b = 1 AND c = 1"),
        joined("b", "b = 2 AND c = 2"),
    ),
    "another condition that joins them": (
        joined("b", "c = 1"),
        joined("b", "c = 2", on="t.a < u.a"),
    ),
    "another column of what is shared": (joined("t.a", "c = 1"), joined("b", "c = 2")),
    "a column of what is shared, and one of the partner": (
        joined("b", "c = 1"),
        joined("c", "c = 2"),
    ),
    "another kind of join": (
        joined("t.b", "s = 'x'", "LEFT JOIN"),
        joined("t.b", "s = 'y'", "LEFT SEMI JOIN"),
    ),
    "a left join that keeps what is shared": tuple(
        f"SELECT b FROM t LEFT JOIN (SELECT * FROM u WHERE c = {n}) AS d ON t.a = d.a"
        for n in (1, 2)
    ),
    "a right join that keeps what is shared": tuple(
        f"SELECT b FROM (SELECT * FROM u WHERE c = {n}) AS d RIGHT JOIN t ON t.a = d.a"
        for n in (1, 2)
    ),
    "a full join": tuple(
        f"SELECT b FROM t FULL JOIN (SELECT * FROM u WHERE c = {n}) AS d ON t.a = d.a"
        for n in (1, 2)
    ),
    "EXISTS": tuple(
        f"SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND c = {n})"
        for n in (1, 2)
    ),
    "NOT EXISTS": tuple(
        f"SELECT b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND c = {n})"
        for n in (1, 2)
    ),
    "a condition of an outer join on the rows it keeps": (
        joined("b", "s = 'x'", "LEFT JOIN", "t.a = u.a AND t.b = 1"),
        joined("b", "s = 'y'", "LEFT JOIN", "t.a = u.a AND t.b = 2"),
    ),
    "partners of unlike types": (
        "SELECT s FROM t JOIN v ON t.a = v.k WHERE v.c = 1",
        "SELECT s FROM t JOIN v ON t.a = v.c WHERE v.c = 2",
    ),
    "constants of unlike types": (joined("1 AS x, b", "c = 1"), joined("'x', b", "c = 2")),
    "a constant and a longer one": (
        joined("1 AS x, b", "c = 1"),
        joined("12345678901, b", "c = 2"),
    ),
    "a computed column and a plain one": (joined("b, c", "c = 1"), joined("b, c + 1", "c = 2")),
    "other constants within a computed column": (
        joined("b, c * 2", "c = 1"),
        joined("b, c * 3", "c = 2"),
    ),
    "one column and two": (joined("c, c AS d, b", "c = 1"), joined("c, u.a, b", "c = 2")),
    "other tables as partners": (
        "SELECT b FROM t JOIN u ON t.a = u.a",
        "SELECT b FROM t JOIN v ON t.a = v.c",
    ),
    "a table and an aggregate of it as partners": (
        joined("b", "c = 1"),
        "SELECT b FROM t JOIN (SELECT DISTINCT a FROM u WHERE c = 2) AS d ON t.a = d.a",
    ),
    "any rows of what is shared": tuple(
        f"SELECT b FROM (SELECT a, b FROM t LIMIT 2) AS d JOIN u ON d.a = u.a WHERE c = {n}"
        for n in (1, 2)
    ),
    "nothing of the partners is used": tuple(
        f"SELECT b FROM t CROSS JOIN u WHERE c = {n}" for n in (1, 2)
    ),
    "nothing is shared": ("SELECT b FROM t JOIN u ON t.a = u.a", "SELECT k FROM v"),
}


@pytest.mark.parametrize("name", APART)
def test_what_differs_keeps_branches_apart(name: str) -> None:
    found = before(union(*APART[name]))
    assert factor_unions(found) is found


def test_only_a_union_puts_branches_together() -> None:
    for word in ("INTERSECT ALL", "EXCEPT ALL", "EXCEPT"):
        found = before(f" {word} ".join(joined("b", f"c = {n}") for n in (1, 2)))
        assert factor_unions(found) is found


def scan(table: str, *names: str, type_: str | None = "int") -> Scan:
    return Scan(table, tuple(n[0] for n in names), tuple(Column(n, type_) for n in names))


def partner(number: int, type_: str | None = "int") -> Relation:
    """Other rows for each number, so that they are not shared."""
    scanned = scan("u", f"c{number}", f"d{number}", type_=type_)
    return Filter(scanned, sql(f"`d{number}` = {number}"))


def branch(
    number: int, type_: str | None = "int", on: str = "", shared: str = "", shown: str = ""
) -> Relation:
    """A join of t and u; ``on`` joins them too, ``shared`` filters t, ``shown`` is in the output."""

    def numbered(text: str) -> Scalar:
        return sql(text.replace("#", str(number)))

    left: Relation = scan("t", f"a{number}", f"b{number}")
    if shared:
        left = Filter(left, numbered(shared))
    condition = numbered("`a#` = `c#`" + (on and f" AND {on}"))
    join = Join(left, partner(number, type_), JoinKind.INNER, condition)
    return Project(join, (Item(f"x{number}", numbered(shown or "`b#`")),))


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ({}, False),
        ({"type_": None}, True),
        ({"on": "`b#` < `d#`"}, False),
        ({"on": "rand() * `b#` < `d#`"}, True),
        ({"shared": "`b#` > 1"}, False),
        ({"shared": "`b#` > rand()"}, True),
        ({"shown": "`b#` + `d#`"}, False),
        ({"shown": "`b#` + rand()"}, True),
        ({"shown": "mine(`b#`)"}, False),  # a plan has none that are not deterministic
    ],
)
def test_chance_and_types_that_are_not_known(given: dict[str, str], blocks: bool) -> None:
    both = Union(branch(1, **given), branch(2, **given))
    assert (factor_unions(both) is both) == blocks


def test_any_value_is_not_shared() -> None:
    def grouped(number: int, call: str) -> Relation:
        total = Item(f"m{number}", sql(call.replace("#", str(number))))
        shared = Aggregate(scan("t", f"a{number}", f"b{number}"), (f"a{number}",), (total,))
        condition = sql(f"`a{number}` = `c{number}`")
        return Join(shared, partner(number), JoinKind.INNER, condition)

    settled = Union(grouped(1, "sum(`b#`)"), grouped(2, "sum(`b#`)"))
    assert factor_unions(settled) is not settled
    for call in ("first(`b#`)", "sum(rand())"):
        both = Union(grouped(1, call), grouped(2, call))
        assert factor_unions(both) is both


def test_a_function_of_the_users_is_not_shared() -> None:
    def mapped(number: int) -> Relation:
        shared = Map(scan("t", f"a{number}"), len, ("a",), (Column(f"m{number}", "int"),))
        condition = sql(f"`m{number}` = `c{number}`")
        return Join(shared, partner(number), JoinKind.INNER, condition)

    both = Union(mapped(1), mapped(2))
    assert factor_unions(both) is both


def test_filters_that_have_not_moved_yet() -> None:
    """On the partner alone they go with it; others stay above the join and must be the same."""

    def filtered(number: int, above: int) -> Relation:
        join = Join(
            scan("t", f"a{number}", f"b{number}"),
            scan("u", f"c{number}", f"d{number}"),
            JoinKind.INNER,
            sql(f"`a{number}` = `c{number}`"),
        )
        shown = Project(join, tuple(Item(n, column(n)) for n in (f"b{number}", f"d{number}")))
        return Filter(shown, sql(f"`b{number}` > {above} AND `d{number}` = {number}"))

    after = """
        Project [b1, d1]
          Filter b1 > 5
            Join inner on a1 = c1
              Scan t [a AS a1, b AS b1]
              Union all
                Filter d1 = 1
                  Scan u [c AS c1, d AS d1]
                Filter d2 = 2
                  Scan u [c AS c2, d AS d2]
    """
    assert plan_text(factor_unions(Union(filtered(1, 5), filtered(2, 5)))) == plan(after)
    unlike = Union(filtered(1, 5), filtered(2, 6))
    assert factor_unions(unlike) is unlike


def test_many_branches_leave_one_join() -> None:
    text = union(*(joined("b", f"c = {number}") for number in range(40)))
    joins = [node for node in walk(factor_unions(before(text))) if isinstance(node, Join)]
    assert len(joins) == 1
