"""Doubled quotes in strings, which sqlglot takes for two strings of which one follows the other."""

from __future__ import annotations

from itertools import pairwise

from sqlglot import Dialect, TokenType


def without_doubled_quotes(text: str) -> str:
    """A text of the same length that says in sqlglot what the given one says in Spark.

    Raises sqlglot's ``TokenError``. Strings with something between them stay two.

    >>> without_doubled_quotes("SELECT 'O''Brien', 'a' 'b'")
    "SELECT 'O\\\\'Brien', 'a' 'b'"
    """
    if "''" not in text and '""' not in text:
        return text
    letters = list(text)
    for one, next_ in pairwise(Dialect.get_or_raise("spark").tokenize(text)):
        both = one.token_type is next_.token_type is TokenType.STRING
        if both and one.end + 1 == next_.start and text[one.end] == text[next_.start]:
            letters[one.end] = "\\"
    return "".join(letters)
