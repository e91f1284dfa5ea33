"""Each rule by what it does to small plans, and by what it must leave alone."""

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
    Opaque,
    Project,
    Relation,
    Scan,
    plan_text,
    walk,
)
from sooner.algebra.scalar import column
from sooner.rewrites import RULES

RULE = {rule.name: rule.apply for rule in RULES}
JOINED = "SELECT t.b FROM t {} u ON t.a = u.a"

# rule, query, the plan after it ("" if it must not change)
CASES = [
    (
        "factor_disjunctions",
        "SELECT b FROM t WHERE (a = 1 AND b = 2) OR (b = 3 AND a = 1)",
        """
        Project [b]
          Filter a = 1 AND (b = 2 OR b = 3)
            Scan t [a, b, s]
        """,
    ),
    (
        "factor_disjunctions",
        "SELECT b FROM t WHERE (a = 1 AND b = 2) OR a = 1",
        """
        Project [b]
          Filter a = 1
            Scan t [a, b, s]
        """,
    ),
    (
        "factor_disjunctions",
        "SELECT t.b FROM t LEFT JOIN u"
        " ON (t.a = u.a AND t.b = 2) OR (t.a = u.a AND u.c = 2 AND u.c > 1)",
        """
        Project [b]
          Join left on a = a_2 AND (b = 2 OR (c = 2 AND c > 1))
            Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """,
    ),
    ("factor_disjunctions", "SELECT b FROM t WHERE (a = 1 AND b = 2) OR (a = 2 AND b = 1)", ""),
    ("factor_disjunctions", "SELECT b FROM t WHERE a = 1 AND b = 2", ""),
    (
        "outer_to_inner",
        JOINED.format("LEFT JOIN") + " WHERE u.c > 1",
        """
        Project [b]
          Filter c > 1
            Join inner on a = a_2
              Scan t [a, b, s]
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "outer_to_inner",
        JOINED.format("LEFT JOIN") + " WHERE u.c IS NOT NULL",
        """
        Project [b]
          Filter NOT c IS NULL
            Join inner on a = a_2
              Scan t [a, b, s]
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "outer_to_inner",
        "SELECT b FROM t WHERE b > (SELECT sum(c) FROM u WHERE u.a = t.a)",
        """
        Project [b]
          Filter b > sum
            Join inner on a_2 = a
              Scan t [a, b, s]
              Aggregate [SUM(c) AS sum] by [a_2]
                Scan u [a AS a_2, c]
        """,
    ),
    *(
        ("outer_to_inner", JOINED.format("LEFT JOIN") + f" WHERE {kept}", "")
        for kept in (
            "u.c IS NULL",
            "coalesce(u.c, 1) = 1",
            "t.b = 1",
            "u.c <=> t.b",
            "u.c = 1 OR t.b = 1",
            "CASE WHEN u.c = 1 THEN 0 ELSE 1 END = 1",
        )
    ),
    ("outer_to_inner", JOINED.format("RIGHT JOIN") + " WHERE u.c > 1", ""),
    ("outer_to_inner", "SELECT b FROM t WHERE 0 = (SELECT count(*) FROM u WHERE u.a = t.a)", ""),
    (
        "push_down_filters",
        "SELECT t.b FROM t, u WHERE t.a = u.a AND t.b = 1 AND u.c = 2",
        """
        Project [b]
          Join inner on a = a_2
            Filter b = 1
              Scan t [a, b, s]
            Filter c = 2
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        JOINED.format("LEFT JOIN") + " AND t.b = 1 AND u.c = 2",
        """
        Project [b]
          Join left on a = a_2 AND b = 1
            Scan t [a, b, s]
            Filter c = 2
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        JOINED.format("LEFT JOIN") + " WHERE t.b = 1 AND u.c = 2",
        """
        Project [b]
          Filter c = 2
            Join left on a = a_2
              Filter b = 1
                Scan t [a, b, s]
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        JOINED.format("RIGHT JOIN") + " AND t.b = 1 AND u.c = 2",
        """
        Project [b]
          Join right on a = a_2 AND c = 2
            Filter b = 1
              Scan t [a, b, s]
            Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        JOINED.format("RIGHT JOIN") + " WHERE t.b = 1 AND u.c = 2",
        """
        Project [b]
          Filter b = 1
            Join right on a = a_2
              Scan t [a, b, s]
              Filter c = 2
                Scan u [a AS a_2, c]
        """,
    ),
    ("push_down_filters", JOINED.format("FULL JOIN") + " AND t.b = 1 AND u.c = 2", ""),
    ("push_down_filters", JOINED.format("FULL JOIN") + " WHERE t.b = 1 AND u.c = 2", ""),
    (
        "push_down_filters",
        JOINED.format("LEFT SEMI JOIN") + " AND t.b = 1 AND u.c = 2",
        """
        Project [b]
          Join semi on a = a_2
            Filter b = 1
              Scan t [a, b, s]
            Filter c = 2
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        JOINED.format("LEFT ANTI JOIN") + " AND t.b = 1 AND u.c = 2",
        """
        Project [b]
          Join anti on a = a_2 AND b = 1
            Scan t [a, b, s]
            Filter c = 2
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x, n FROM (SELECT a AS x, count(*) AS n FROM t GROUP BY a) AS d"
        " WHERE x > 1 AND n > 2",
        """
        Project [a, n]
          Project [a, n]
            Filter n > 2
              Aggregate [COUNT(*) AS n] by [a]
                Filter a > 1
                  Scan t [a, b, s]
        """,
    ),
    (
        "push_down_filters",
        "SELECT n FROM (SELECT count(*) AS n FROM t) AS d WHERE n > 2 AND 1 = 0",
        """
        Project [n]
          Project [n]
            Filter n > 2 AND 1 = 0
              Aggregate [COUNT(*) AS n]
                Scan t [a, b, s]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a + 1 AS x FROM t) AS d WHERE x * 2 > 1",
        """
        Project [x]
          Project [a + 1 AS x]
            Filter (a + 1) * 2 > 1
              Scan t [a, b, s]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a AS x FROM t UNION ALL SELECT c FROM u) AS d WHERE x > 1",
        """
        Project [a]
          Union all
            Project [a]
              Filter a > 1
                Scan t [a, b, s]
            Project [c]
              Filter c > 1
                Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a AS x FROM t EXCEPT SELECT c FROM u) AS d WHERE x > 1",
        """
        Project [a]
          Except
            Project [a]
              Filter a > 1
                Scan t [a, b, s]
            Project [c]
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a AS x FROM t ORDER BY x) AS d WHERE x > 1",
        """
        Project [a]
          Sort [a]
            Project [a]
              Filter a > 1
                Scan t [a, b, s]
        """,
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a AS x FROM t UNION ALL SELECT k FROM v) AS d WHERE x > 1",
        "",
    ),
    (
        "push_down_filters",
        "SELECT x FROM (SELECT a AS x FROM t ORDER BY x LIMIT 3) AS d WHERE x > 1",
        "",
    ),
    ("push_down_filters", "SELECT b FROM t WHERE b NOT IN (SELECT c FROM u) AND a > 1", ""),
    (
        "prune_columns",
        "SELECT count(*) AS n FROM t",
        """
        Aggregate [COUNT(*) AS n]
          Scan t []
        """,
    ),
    (
        "prune_columns",
        "SELECT t.b FROM t JOIN u ON t.a = u.a",
        """
        Project [b]
          Join inner on a = a_2
            Scan t [a, b]
            Scan u [a AS a_2]
        """,
    ),
    (
        "prune_columns",
        "SELECT n FROM (SELECT a, count(*) AS n, sum(b) AS m FROM t GROUP BY a) AS d",
        """
        Project [n]
          Aggregate [COUNT(*) AS n] by [a]
            Scan t [a]
        """,
    ),
    (
        "prune_columns",
        "SELECT a FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS d",
        """
        Distinct [a]
          Scan t [a]
        """,
    ),
    (
        "prune_columns",
        "SELECT 1 AS one FROM (SELECT count(*) AS n, sum(b) AS m FROM t) AS d",
        """
        Project [1 AS one]
          Aggregate [COUNT(*) AS n]
            Scan t []
        """,
    ),
    (
        "prune_columns",
        "SELECT x FROM (SELECT a AS x, b AS y FROM t UNION ALL SELECT a, c FROM u) AS d",
        """
        Union all
          Scan t [a]
          Scan u [a AS a_2]
        """,
    ),
    (
        "prune_columns",
        "SELECT x FROM (SELECT a AS x, b AS y FROM t UNION SELECT a, c FROM u) AS d",
        """
        Project [a]
          Distinct [a, b]
            Union all
              Scan t [a, b]
              Scan u [a AS a_2, c]
        """,
    ),
    (
        "prune_columns",
        "SELECT x FROM (SELECT a AS x, b AS y FROM t INTERSECT SELECT a, c FROM u) AS d",
        """
        Project [a]
          Intersect
            Scan t [a, b]
            Scan u [a AS a_2, c]
        """,
    ),
    (
        "prune_columns",
        "SELECT a FROM t ORDER BY b LIMIT 2",
        """
        Project [a]
          Limit 2
            Sort [sort_key]
              Project [a, b AS sort_key]
                Scan t [a, b]
        """,
    ),
]


@pytest.mark.parametrize(("rule", "text", "after"), CASES)
def test_rule(rule: str, text: str, after: str) -> None:
    before = planned(text)
    new = RULE[rule](before)
    if after:
        assert plan_text(new) == plan(after)
    else:
        assert new is before


# Where filters have become join conditions.
ORDERS = [
    (
        "SELECT t.b FROM t, u, v WHERE t.a = v.c AND v.k = u.c",
        """
        Project [b]
          Project [a, b, s, a_2, c, k, c_2]
            Join inner on k = c
              Join inner on a = c_2
                Scan t [a, b, s]
                Scan v [k, c AS c_2]
              Scan u [a AS a_2, c]
        """,
    ),
    ("SELECT t.b FROM t, u, v WHERE t.a = u.a", ""),
    ("SELECT t.b FROM t JOIN u ON t.a = u.a JOIN v ON u.c = v.c", ""),
    ("SELECT t.b FROM t, v", ""),
    ("SELECT t.b FROM t LEFT JOIN u ON TRUE LEFT JOIN v ON u.c = v.c", ""),
    (
        "SELECT x.a FROM t AS x, t AS y, t AS z WHERE x.a = z.a AND x.b + y.b = z.b",
        """
        Project [a]
          Project [a, b, s, a_2, b_2, s_2, a_3, b_3, s_3]
            Join inner on b + b_2 = b_3
              Join inner on a = a_3
                Scan t [a, b, s]
                Scan t [a AS a_3, b AS b_3, s AS s_3]
              Scan t [a AS a_2, b AS b_2, s AS s_2]
        """,
    ),
]


AVERAGES = "(SELECT a, avg(c) AS m FROM u GROUP BY a)"
REDUCED = """
    Project [b]
      Join {kind} on a = a_2
        Filter s = 'x'
          Scan t [a, b, s]
        Project [a_2, m]
          Aggregate [AVG(c) AS m] by [a_2]
            Join semi on a_2 = a_3
              Scan u [a AS a_2, c]
              Project [a_3]
                Filter s_2 = 'x'
                  Scan t [a AS a_3, b AS b_2, s AS s_2]
    """
# Where filters have moved to the tables.
REDUCTIONS = [
    (
        f"SELECT t.b FROM t JOIN {AVERAGES} AS g ON t.a = g.a WHERE t.s = 'x'",
        REDUCED.format(kind="inner"),
    ),
    (
        f"SELECT t.b FROM t LEFT JOIN {AVERAGES} AS g ON t.a = g.a WHERE t.s = 'x'",
        REDUCED.format(kind="left"),
    ),
    # through what is equal in a join, from its other side, and below a join
    (
        "SELECT b FROM t WHERE a IN (SELECT c FROM v WHERE k = 1) AND b <"
        " (SELECT sum(u.c) FROM u JOIN t AS w ON w.b = u.c WHERE u.a = t.a)",
        """
        Project [b]
          Filter b < sum
            Join left on a_2 = a
              Join semi on a = c
                Scan t [a, b, s]
                Project [c]
                  Filter k = 1
                    Scan v [k, c]
              Aggregate [SUM(c_2) AS sum] by [a_2]
                Join inner on b_2 = c_2
                  Join semi on a_2 = c_3
                    Scan u [a AS a_2, c AS c_2]
                    Project [c_3]
                      Filter k_2 = 1
                        Scan v [k AS k_2, c AS c_3]
                  Scan t [a AS a_3, b AS b_2, s AS s_2]
        """,
    ),
    # a filter that may let most pass; none; rows without a partner count; NULL meets NULL; other types
    (f"SELECT t.b FROM t JOIN {AVERAGES} AS g ON t.a = g.a WHERE t.s > 'x'", ""),
    (f"SELECT t.b FROM t JOIN {AVERAGES} AS g ON t.a = g.a", ""),
    (f"SELECT t.b FROM t RIGHT JOIN {AVERAGES} AS g ON t.a = g.a AND t.s = 'x'", ""),
    (f"SELECT t.b FROM t FULL JOIN {AVERAGES} AS g ON t.a = g.a WHERE t.s = 'x'", ""),
    (f"SELECT t.b FROM t JOIN {AVERAGES} AS g ON t.a <=> g.a WHERE t.s = 'x'", ""),
    (f"SELECT v.c FROM v JOIN {AVERAGES} AS g ON v.k = g.a WHERE v.c = 1", ""),
    # groups of the very table, which would be read twice
    ("SELECT b FROM t WHERE s = 'x' AND b < (SELECT avg(b) FROM t AS w WHERE w.a = t.a)", ""),
    # groups of all, and groups by another column
    (f"SELECT t.b FROM t JOIN {AVERAGES} AS g ON t.a = g.m WHERE t.s = 'x'", ""),
    ("SELECT b FROM t WHERE s = 'x' AND b < (SELECT avg(c) FROM u)", ""),
]


AFTER_FILTERS = [
    *(("order_joins", *case) for case in ORDERS),
    *(("reduce_groups", *case) for case in REDUCTIONS),
]


@pytest.mark.parametrize(("rule", "text", "after"), AFTER_FILTERS)
def test_rule_after_filters_have_moved(rule: str, text: str, after: str) -> None:
    before = RULE["push_down_filters"](planned(text))
    new = RULE[rule](before)
    if after:
        assert plan_text(new) == plan(after)
    else:
        assert new is before


def test_factoring_leaves_a_null_aware_anti_join_alone() -> None:
    left = Scan("t", ("a", "b"), (Column("a"), Column("b")))
    right = Scan("u", ("c", "d"), (Column("c"), Column("d")))
    condition = sql("(a = c AND b = 1) OR (a = c AND d = 2)")
    join = Join(left, right, JoinKind.NULL_AWARE_ANTI, condition)
    assert RULE["factor_disjunctions"](join) is join


def test_nothing_moves_into_a_map_or_out_of_it() -> None:
    scan = Scan("t", ("a", "b"), (Column("a", "int"), Column("b", "int")))
    node = Map(scan, len, ("a", "b"), (Column("x", "int"), Column("y", "int")))
    top = Aggregate(Filter(node, sql("x > 1")), ("x",), (Item("n", sql("count(*)")),))
    for name, apply in RULE.items():
        assert apply(top) is top, name


def test_opaque_stays_as_it_is() -> None:
    node = Opaque("SELECT 1 AS x", (Column("c1", "int"),), "a test")
    for name, apply in RULE.items():
        assert apply(node) is node, name


def test_a_filter_over_opaque_stays_above_it() -> None:
    node: Relation = Filter(
        Opaque("SELECT 1 AS x", (Column("c1", "int"),), "a test"), sql("c1 = 1")
    )
    assert RULE["push_down_filters"](node) is node


def test_sides_of_a_join_keep_apart_although_nothing_is_read_of_them() -> None:
    """A Project that nobody reads goes, and with it the names that told two copies of a table apart."""

    def renamed(name: str) -> Relation:
        rows = Filter(Scan("t", ("a",), (Column("a", "int"),)), sql("a > 1"))
        return Project(rows, (Item(name, column("a")),))

    joined = Join(renamed("x"), renamed("y"), JoinKind.INNER, None)
    counted = Aggregate(joined, (), (Item("n", sql("count(*)")),))
    pruned = RULE["prune_columns"](counted)
    assert pruned.names == ("n",)
    assert not [node for node in walk(pruned) if isinstance(node, Project) and node.items]
