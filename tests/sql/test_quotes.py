"""Doubled quotes say in sqlglot what they say in Spark."""

from __future__ import annotations

import pytest
import sqlglot

from sooner.sql import parse, without_doubled_quotes


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("'O''Brien'", "O'Brien"),
        ("''''", "'"),
        ("'a'''", "a'"),
        ("'x''''y'", "x''y"),
        ('"a""b"', 'a"b'),
        ("\"a''b\"", "a''b"),
        ("'a\"\"b'", 'a""b'),
        (r"'a\\''b'", r"a\'b"),
    ],
)
def test_what_a_string_means(written: str, means: str) -> None:
    (item,) = parse(f"SELECT {written} AS x FROM t").expressions
    assert item.this == sqlglot.exp.Literal.string(means)


@pytest.mark.parametrize(
    "text", ["SELECT 'a' 'b'", "SELECT r'a''b'", "SELECT '' -- it''s\n", "SELECT `a``b` /* '' */"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert without_doubled_quotes(text) == text
