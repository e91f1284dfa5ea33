"""Functions that give another value each time: no view can be made of them."""

from __future__ import annotations

from sqlglot import Dialect

_WORDS = frozenset(
    (
        "current_date",
        "current_timestamp",
        "current_time",
        "localtimestamp",
        "current_user",
        "tablesample",
    )
)
_TIMES = frozenset(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"))
# DATE'today' is another day tomorrow.
_DAYS = frozenset(("today", "yesterday", "tomorrow", "now"))
_CALLS = frozenset(
    (
        *("now", "curdate", "unix_timestamp", "current_timezone", "user", "session_user"),
        *("current_database", "current_schema", "current_catalog"),
        *("rand", "randn", "random", "uuid", "shuffle", "randstr", "uniform"),
        *("monotonically_increasing_id", "spark_partition_id", "input_file_name"),
    )
)


def changing_functions(text: str) -> list[str]:
    """The functions in a query whose value changes without any row doing so.

    >>> changing_functions("SELECT rand() + now FROM t WHERE d < current_date")
    ['current_date', 'rand()']
    """
    tokens = Dialect.get_or_raise("spark").tokenize(text)
    found = set()
    for place, token in enumerate(tokens):
        word = token.text.lower()
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        kind = token.token_type.name
        quoted = kind == "STRING" or (kind == "IDENTIFIER" and not called)
        before = tokens[place - 1].text.lower() if place else ""
        if token.token_type.name == "STRING" and before in _TIMES and word in _DAYS:
            found.add(f"{before}'{word}'")
        if quoted or (place and tokens[place - 1].text == "."):
            continue
        if word in _WORDS:
            found.add(word)
        # unix_timestamp of a value is a function like any other; without one it is the time of now.
        elif word == "unix_timestamp" and called and tokens[place + 2].text != ")":
            continue
        elif word in _CALLS and called:
            found.add(f"{word}()")
    return sorted(found)
