"""Every scalar that Sooner lets through sqlglot gives the same through Spark before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlglot
from sqlglot import exp

from sooner.sql.functions import EXAMPLES, require_allowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [(kind, text) for kind, examples in EXAMPLES.items() for text in examples]
IDS = [f"{kind.__name__}: {text}" for kind, text in NAMES]
TABLE = """
SELECT * FROM VALUES
  (1, 2L, 1.25, 0.5D, 'a', DATE '2020-01-31', TIMESTAMP '2020-01-31 10:20:30', TRUE),
  (2, 7L, 2.50, 1.5D, ' b ', DATE '2020-02-29', TIMESTAMP '2021-12-31 23:59:59', FALSE),
  (3, 1L, 2.55, 2.5D, '_ax', DATE '1998-12-01', TIMESTAMP '1969-07-20 00:00:00', NULL),
  (-3, 9L, 0.05, 0.25D, 'A%x_x', DATE '2020-01-02', NULL, TRUE),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (2, 2L, 3.45, -1.5D, '12', DATE '2024-02-29', TIMESTAMP '2020-02-29 12:00:00', FALSE)
AS x(i, b, d, f, s, t, ts, o)
"""


def test_every_class_has_examples_as_a_tuple() -> None:
    assert all(isinstance(examples, tuple) and examples for examples in EXAMPLES.values())


@pytest.mark.parametrize(("kind", "text"), NAMES, ids=IDS)
def test_an_example_contains_its_class_and_is_allowed(kind: type[exp.Expr], text: str) -> None:
    tree = sqlglot.parse_one(text, read="spark")
    assert tree.find(kind) is not None
    require_allowed(tree)


def round_trip(text: str) -> str:
    return sqlglot.parse_one(text, read="spark").sql("spark")


def test_a_cast_that_can_fail_stays_one() -> None:
    assert round_trip("CAST('x' AS INT)") == "CAST('x' AS INT)"
    assert round_trip("TRY_CAST('x' AS INT)") == "TRY_CAST('x' AS INT)"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_examples_give_the_same_through_spark(spark: SparkSession, ansi: str) -> None:
    mode = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.sql(TABLE).createOrReplaceTempView("function_examples")
    # One query for all rows and one for all aggregates: an analysis each would take minutes.
    rows = [text for kind, text in NAMES if not _aggregates(text)]
    totals = [text for kind, text in NAMES if _aggregates(text)]
    assert rows
    assert totals
    try:
        for texts in (rows, totals):
            before = _select(spark, texts)
            after = _select(spark, [round_trip(text) for text in texts])
            for text, one, other in zip(texts, before, after, strict=True):
                assert one == other, f"{text} became {round_trip(text)}"
    finally:
        spark.catalog.dropTempView("function_examples")
        spark.conf.set("spark.sql.ansi.enabled", str(mode))


def _aggregates(text: str) -> bool:
    return sqlglot.parse_one(text, read="spark").find(exp.AggFunc) is not None


def _select(spark: SparkSession, texts: list[str]) -> list[tuple[str, list[object]]]:
    """Type and values of each expression over the table."""
    items = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
    frame = spark.sql(f"SELECT {items} FROM function_examples")
    found = frame.collect()
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    return [(type_, [row[place] for row in found]) for place, type_ in enumerate(types)]
