from __future__ import annotations

import pytest
from random_plans import sql

from sooner.analysis.conditions import implied
from sooner.analysis.types import same_values

TYPES = {"i": "int", "j": "bigint", "s": "string", "f": "double", "t": "date", "u": None}
TYPES |= {"d": "decimal(15,2)", "w": "decimal(38,10)"}


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("i = 1", {"i"}),
        ("i = 1.5", {"i"}),
        ("i <=> NULL", {"i"}),
        ("i IS NULL", {"i"}),
        ("i IN (-1)", {"i"}),
        ("i IN (1, 2)", set()),
        ("i = '1'", set()),
        ("s = '1'", {"s"}),
        ("s = 1", set()),
        ("1 = j", {"j"}),
        ("j = 1e3", set()),  # a double, to which neighbouring bigints round
        ("f = 1e3", {"f"}),
        ("w = 1.12345678901", set()),  # no decimal holds both, so Spark rounds
        ("d = 2.5", {"d"}),
        ("t = DATE '2020-01-01'", {"t"}),
        ("t = '2020-01-01'", {"t"}),
        ("u = 1", set()),
        ("NOT i = 1", set()),
        ("i = 1 OR i = 1", set()),
    ],
)
def test_constants(condition: str, columns: set[str]) -> None:
    assert implied(sql(condition), TYPES).constant == columns


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("i = j", {"i", "j"}),
        ("i <=> j", set()),
        ("i + 1 > j", {"i", "j"}),
        ("i > 1 OR (i < 0 AND j = 1)", {"i"}),
        ("NOT (i IS NULL OR j IS NULL)", {"i", "j"}),
        ("NOT (i > 1 AND j > 1)", set()),
        ("coalesce(i, j) = 1", set()),
        ("i NOT BETWEEN 1 AND j", {"i"}),
        ("i BETWEEN 1 AND j", {"i", "j"}),
        ("s NOT LIKE 'a%'", {"s"}),
        ("i NOT IN (1, 2)", {"i"}),
    ],
)
def test_columns_that_cannot_be_null(condition: str, columns: set[str]) -> None:
    assert implied(sql(condition), TYPES).never_null == columns


def test_equal_columns() -> None:
    assert implied(sql("(i = j) AND s = i AND i = u"), TYPES).equal == (("i", "j"),)
    assert implied(sql("i = j OR i = j"), TYPES).equal == ()


def test_types_whose_equal_values_are_the_same() -> None:
    assert same_values("int", "decimal(15,2)")
    assert not same_values("decimal(38,0)", "decimal(38,10)")
    assert not same_values("bigint", "double")
    assert same_values("double", "double")
