"""Every construct of SQL that the algebra can express becomes the plan that it means."""

from __future__ import annotations

import pytest
from plan_cases import CASES, SCHEMAS

from sooner.algebra import Relation, plan_text
from sooner.sql import plan_query


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_plan(text: str, expected: str) -> None:
    plan = plan_query(text, SCHEMAS)
    assert isinstance(plan, Relation), plan
    assert plan_text(plan) == expected


def test_equal_texts_give_equal_plans() -> None:
    plans = [plan_query("SELECT a FROM t WHERE b > 1", SCHEMAS) for _ in range(2)]
    assert plans[0] == plans[1]
    assert hash(plans[0]) == hash(plans[1])
    assert plans[0] != plan_query("SELECT a FROM t WHERE b > 2", SCHEMAS)


def test_types_are_those_of_the_tables_or_unknown() -> None:
    plan = plan_query("SELECT s, a + 1 AS x, count(*) AS n FROM t GROUP BY s, a", SCHEMAS)
    assert isinstance(plan, Relation)
    assert [column.type for column in plan.schema] == ["string", None, None]


def test_unlike_types_of_a_union_are_unknown() -> None:
    plan = plan_query("SELECT a, s FROM t UNION ALL SELECT k, 'x' FROM v", SCHEMAS)
    assert isinstance(plan, Relation)
    assert [column.type for column in plan.schema] == [None, None]
