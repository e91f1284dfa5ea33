"""One reading statement is taken; anything else is refused in words."""

from __future__ import annotations

import pytest

from sooner.errors import NotSupported, ParseError
from sooner.sql import Untranslatable, parse, table_names


@pytest.mark.parametrize("text", ["", "  \n", ";", " ; ; "])
def test_an_empty_query_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="empty"):
        parse(text)


def test_several_statements_are_refused() -> None:
    with pytest.raises(NotSupported, match="one statement"):
        parse("SELECT 1; SELECT 2")


@pytest.mark.parametrize(
    "text",
    ["DROP TABLE t", "INSERT INTO t VALUES (1)", "DELETE FROM t", "CREATE TABLE x AS SELECT 1"],
)
def test_statements_that_write_are_refused(text: str) -> None:
    with pytest.raises(NotSupported, match=f"to {text.split(maxsplit=1)[0]}; nothing was changed"):
        parse(text)


def test_one_semicolon_at_the_end_is_fine() -> None:
    assert parse("SELECT a FROM t;").sql("spark") == "SELECT a FROM t"


@pytest.mark.parametrize("text", ["SELECT 'open FROM t", "SELECT FROM WHERE"])
def test_what_cannot_be_read_may_still_be_sparks(text: str) -> None:
    with pytest.raises(Untranslatable):
        parse(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM T JOIN u ON TRUE", ("t", "u")),
        ("SELECT * FROM t WHERE a IN (SELECT c FROM u)", ("t", "u")),
        ("WITH w AS (SELECT 1 FROM t) SELECT * FROM w, u", ("t", "u")),
        ("WITH t AS (SELECT 1 FROM t) SELECT * FROM t", ("t",)),
        ("WITH w AS (SELECT 1 FROM w2), w2 AS (SELECT 1 FROM t) SELECT * FROM w, w2", ("w2", "t")),
        ("WITH RECURSIVE w AS (SELECT 1 UNION ALL SELECT 1 FROM w) SELECT * FROM w", ()),
        ("SELECT * FROM other.t", ("other.t",)),
        ("SELECT 1", ()),
    ],
)
def test_table_names(text: str, names: tuple[str, ...]) -> None:
    assert table_names(parse(text)) == names
