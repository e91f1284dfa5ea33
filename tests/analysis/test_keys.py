from __future__ import annotations

import pytest
from plan_oracle import Table, rows_of
from random_plans import sql
from tpch_tables import TABLES, scan

from sooner.algebra import (
    Aggregate,
    Column,
    Except,
    Filter,
    Intersect,
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
from sooner.algebra.scalar import column
from sooner.analysis import TableInfo, plan_dependencies, primary_key, union_key

LOG = Scan(
    "Log", ("sessionId", "videoId"), (Column("session", "bigint"), Column("log_video", "bigint"))
)
VIDEO = Scan(
    "Video",
    ("videoId", "ownerId", "duration"),
    (Column("video", "bigint"), Column("owner", "bigint"), Column("duration", "double")),
)
VIDEOS = {"log": TableInfo(key=("sessionId",)), "video": TableInfo(key=("videoId",))}
VISITS = Join(LOG, VIDEO, JoinKind.INNER, sql("log_video = video"))
COUNT = Item("visits", sql("count(1)"))


def table(name: str, *columns: str, type_: str = "int") -> Scan:
    return Scan(name, columns, tuple(Column(f"{name}_{column}", type_) for column in columns))


T, U = table("t", "k", "a", "b"), table("u", "k", "c", "d")
INFOS = {"t": TableInfo(key=("k",)), "u": TableInfo(key=("k",))}
STRICT = {name: TableInfo(key=("k",), never_null=frozenset({"k"})) for name in ("t", "u")}


def key(plan: Relation, infos: dict[str, TableInfo] = INFOS) -> set[str] | None:
    found = primary_key(plan, infos)
    return None if found is None else set(found)


def test_the_visit_view_of_the_paper_has_the_video_as_its_key() -> None:
    view = Aggregate(VISITS, ("video", "owner", "duration"), (COUNT,))
    assert key(view, VIDEOS) == {"video"}
    assert key(VISITS, VIDEOS) == {"session"}


def test_the_variant_that_leaves_its_key_out_has_none() -> None:
    view = Aggregate(VISITS, ("video",), (COUNT,))
    assert key(Project(view, (Item("n", column("visits")),)), VIDEOS) is None


def test_a_key_column_that_is_not_scanned_is_no_key_but_still_fixes_the_others() -> None:
    orders = Scan("t", ("a",), (Column("a", "int"),))
    assert key(orders) is None
    assert key(orders, {}) is None


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        (JoinKind.INNER, "t_k = u_k", {"t_k"}),
        (JoinKind.INNER, "t_a = u_k", {"t_k"}),
        (JoinKind.INNER, "t_a = u_c", {"t_k", "u_k"}),
        (JoinKind.INNER, "t_a = u_k AND t_k = 7", set()),
        (JoinKind.LEFT, "t_a = u_k", {"t_k"}),
        (JoinKind.LEFT, "t_a = u_k AND t_b > 3", {"t_k"}),
        (JoinKind.LEFT, "t_a = u_c", {"t_k", "u_k"}),
        (JoinKind.RIGHT, "t_k = u_c", {"u_k"}),
        (JoinKind.RIGHT, "t_a = u_k", {"t_k", "u_k"}),
        (JoinKind.FULL, "t_k = u_k", None),
        (JoinKind.SEMI, "t_a = u_c", {"t_k"}),
        (JoinKind.ANTI, "t_a = u_c", {"t_k"}),
        (JoinKind.NULL_AWARE_ANTI, "t_a = u_c", {"t_k"}),
    ],
)
def test_keys_of_joins(kind: JoinKind, condition: str, expected: set[str] | None) -> None:
    assert key(Join(T, U, kind, sql(condition))) == expected


def test_a_full_join_has_both_keys_if_one_is_never_null() -> None:
    plan = Join(T, U, JoinKind.FULL, sql("t_a = u_c"))
    assert key(plan, STRICT) == {"t_k", "u_k"}
    assert key(plan, {"t": INFOS["t"], "u": STRICT["u"]}) == {"t_k", "u_k"}


def test_two_all_null_keys_agree_across_a_full_join() -> None:
    plan = Join(T, U, JoinKind.FULL, sql("t_a = u_c"))
    columns = {"k": "int", "a": "int", "b": "int"}
    rows = rows_of(
        plan,
        {
            "t": Table(columns, [(None, 1, 1)]),
            "u": Table({"k": "int", "c": "int", "d": "int"}, [(None, 2, 2)]),
        },
    )
    assert sorted((row[0], row[3]) for row in rows) == [(None, None), (None, None)]


def test_a_full_join_on_the_keys_has_their_coalesce_as_its_key() -> None:
    # SVC Definition 4: stale and fresh rows side by side.
    join = Join(T, U, JoinKind.FULL, sql("t_k = u_k"))
    plan = Project(join, (Item("k", sql("coalesce(u_k, t_k)")), Item("a", sql("t_a - u_c"))))
    assert key(plan, STRICT) == {"k"}
    assert key(plan, INFOS) is None
    looser = Join(T, U, JoinKind.FULL, sql("t_k = u_k AND t_a > u_c"))
    assert key(Project(looser, plan.items), STRICT) is None


def test_comparing_unlike_types_does_not_make_columns_the_same() -> None:
    texts = table("s", "k", type_="string")
    plan = Join(T, texts, JoinKind.INNER, sql("t_k = s_k"))  # '1' and '01' both equal 1
    infos = {**INFOS, "s": TableInfo(key=("k",))}
    assert not plan_dependencies(plan, infos).is_key(["t_k"])
    assert key(Filter(texts, sql("s_k = 1")), infos) == {"s_k"}
    assert key(Filter(texts, sql("s_k = '1'")), infos) == set()


def test_one_node_used_twice_is_two_rows() -> None:
    first = Project(T, (Item("a1", column("t_a")), Item("k1", column("t_k"))))
    second = Project(T, (Item("a2", column("t_a")), Item("k2", column("t_k"))))
    assert key(Join(first, second, JoinKind.INNER, sql("a1 = a2"))) == {"k1", "k2"}


def test_computed_columns_are_fixed_by_what_they_read() -> None:
    plan = Project(
        T, (Item("a", column("t_a")), Item("twice", sql("t_a * 2")), Item("r", sql("rand()")))
    )
    by_all = Aggregate(plan, ("a", "twice"))
    assert key(by_all) == {"a"}
    assert key(Aggregate(plan, ("a", "r"))) == {"a", "r"}


def test_limits_filters_and_set_operations() -> None:
    a = Project(T, (Item("a", column("t_a")), Item("k", column("t_k"))))
    b = Project(U, (Item("c", column("u_c")), Item("d", column("u_d"))))
    assert key(Limit(T, 1)) == set()
    assert key(Limit(T, 5)) == {"t_k"}
    assert key(Filter(T, sql("t_k IN (1, 2)"))) == {"t_k"}
    assert key(Intersect(a, b)) == {"k"}
    assert key(Intersect(b, a)) == {"d"}
    assert key(Intersect(a, b, all=True)) == {"k"}
    assert key(Except(b, a)) == {"c", "d"}
    assert key(Except(b, a, all=True)) is None
    assert key(Except(a, b, all=True)) == {"k"}


def test_a_map_has_no_key_that_we_could_promise() -> None:
    plan = Map(T, lambda frame: frame, ("k", "a", "b"), (Column("k", "int"),), by=("t_k",))
    assert key(plan) is None


def test_a_union_needs_to_know_the_side() -> None:
    plan = Union(Union(T, U), T)
    assert key(plan) is None
    found = union_key(plan, INFOS)
    assert found is not None
    assert found.branches == (T, U, T)
    assert (found.tag, set(found.columns)) == ("branch", {"t_k"})
    assert union_key(Union(T, U), {"t": INFOS["t"]}) is None


def test_a_union_of_sides_that_differ_has_a_key() -> None:
    def side(scan: Scan, channel: str, name: str) -> Project:
        items = [Item(f"{name}_{c}", column(c)) for c in scan.names]
        return Project(scan, (*items, Item(f"{name}_channel", sql(f"'{channel}'"))))

    web, store, mail = side(T, "web", "w"), side(U, "store", "s"), side(T, "mail", "m")
    assert key(Union(web, store)) == {"w_t_k", "w_channel"}
    assert key(Union(Union(web, store), mail)) == {"w_t_k", "w_channel"}
    assert key(Union(Union(web, store), side(U, "web", "x"))) is None


def test_grouping_lineitem_by_its_orders_columns() -> None:
    join = Join(scan("lineitem"), scan("orders"), JoinKind.INNER, sql("l_orderkey = o_orderkey"))
    plan = Aggregate(join, ("l_orderkey", "o_orderdate"), (Item("n", sql("count(*)")),))
    assert key(plan, TABLES) == {"l_orderkey"}
    assert key(join, TABLES) == {"l_orderkey", "l_linenumber"}
