"""A sample is the same wherever in the plan it is taken (Stale View Cleaning, Theorem 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_oracle import rows_of
from random_plans import World, plans, worlds
from sqlglot import exp, parse_one

from sooner.algebra import Column, Filter, Relation, Scalar
from sooner.algebra.scalar import column
from sooner.analysis import TableInfo, primary_key
from sooner.rewrites import rewrite
from sooner.sql import plan_query
from sooner.views.sampling import sampled


def low(key: Sequence[Scalar]) -> Scalar:
    """A condition that about half of all keys fulfil."""
    hashed = exp.Anonymous(this="hash", expressions=[one.copy() for one in key])
    condition: Scalar = parse_one("x % 2 = 0")
    return condition.transform(lambda node: hashed if isinstance(node, exp.Column) else node)


@given(plans(), worlds(), st.data())
def test_the_sample_is_the_same_wherever_it_is_taken(
    plan: Relation, world: World, data: st.DataObject
) -> None:
    key = data.draw(st.lists(st.sampled_from(plan.names), min_size=1, max_size=2, unique=True))
    above = Filter(plan, low([column(name) for name in key]))
    found = sampled(plan, key, low)
    assert found.plan.names == plan.names
    assert found.tables or found.blocked
    if not any(
        "Limit" in line for line in found.blocked
    ):  # which rows a LIMIT gives is anybody's guess
        assert Counter(rows_of(found.plan, world.tables)) == Counter(rows_of(above, world.tables))


SCHEMAS = {
    "log": (Column("sessionId", "bigint"), Column("videoId", "bigint")),
    "video": (
        Column("videoId", "bigint"),
        Column("ownerId", "bigint"),
        Column("duration", "double"),
    ),
}
INFOS = {"log": TableInfo(key=("sessionId",)), "video": TableInfo(key=("videoId",))}
VISITS = """SELECT videoId, ownerId, duration, count(1) AS visitCount
            FROM log JOIN video USING (videoId) GROUP BY videoId, ownerId, duration"""


@pytest.mark.parametrize(
    ("text", "tables", "blocked"),
    [
        (VISITS, {"log", "video"}, False),
        ("SELECT * FROM video WHERE duration > 5", {"video"}, False),
        ("SELECT videoId, count(1) AS n FROM log GROUP BY videoId", {"log"}, False),
        (
            "SELECT c, count(1) AS n FROM"
            " (SELECT videoId, count(1) AS c FROM log GROUP BY videoId) GROUP BY c",
            set(),
            True,
        ),
        ("SELECT sessionId, video.videoId AS v FROM log, video", set(), True),
        ("SELECT videoId FROM video UNION SELECT videoId FROM log", {"video", "log"}, False),
        (
            "SELECT sessionId, ownerId FROM log LEFT JOIN video ON log.videoId = video.videoId",
            {"log"},
            True,
        ),
    ],
)
def test_how_deep_it_goes(text: str, tables: set[str], blocked: bool) -> None:
    plan = rewrite(plan_query(text, SCHEMAS)).plan
    key = primary_key(plan, INFOS)
    assert key
    found = sampled(plan, sorted(key), low)
    assert set(found.tables) == tables
    assert bool(found.blocked) == blocked


def test_the_key_of_the_example_is_the_video_alone() -> None:
    plan = rewrite(plan_query(VISITS, SCHEMAS)).plan
    assert primary_key(plan, INFOS) == frozenset({plan.names[0]})
