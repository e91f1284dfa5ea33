"""SQL text to a sqlglot tree: one reading statement in Spark's dialect."""

from __future__ import annotations

import logging
import re
from typing import NoReturn

import sqlglot
from sqlglot import Dialect, TokenType, exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import TokenError

from sooner.algebra.scalar import bare
from sooner.errors import NotSupported, ParseError
from sooner.sql.quotes import without_doubled_quotes
from sooner.sql.untranslatable import Untranslatable

# It warns of statements that it does not know; those are Spark's to judge.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_WRITES = (exp.Command, exp.DDL, exp.DML, exp.Drop, exp.Set, exp.Use, exp.Cache, exp.Uncache)
_TESTS: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT)
_TESTS += (exp.GTE, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike)
# sqlglot turns suffixed numbers (10L, 1.5BD) into casts with types of its own choosing.
_SUFFIXED_NUMBER = re.compile(r"(?<![\w.`])\d+\.?\d*(?:[eE][+-]?\d+)?(?:BD|[LSYFDlsyfd]|bd)\b")
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`", re.DOTALL)
_CONTINUED_COMMENT = re.compile(r"--[^\n]*\\\n")
_RAW_STRING = re.compile(r"(?<!\w)[rR]['\"]")


def parse(text: str) -> exp.Query:
    """Parse a query. Several statements, or one that writes, is refused.

    Raises ``Untranslatable`` where sqlglot cannot read the text (Spark still might), and
    ``NotSupported`` for statements that are not queries.
    """
    # sqlglot makes one SELECT of operators that follow one another: a LIMIT comes after the count.
    if "|>" in text:
        raise Untranslatable("the operator |>")
    if "${" in text:
        raise Untranslatable("${…}, for which Spark puts the value of a setting")
    if _CONTINUED_COMMENT.search(text):
        raise Untranslatable("a comment that goes on after a \\ at the end of its line")
    try:
        parsed = sqlglot.parse(without_doubled_quotes(text), read="spark")
        statements = [s for s in parsed if s is not None and not isinstance(s, exp.Semicolon)]
    except (SqlglotParseError, TokenError) as error:
        raise Untranslatable(f"the parser cannot read it ({_first_line(error)})") from error
    if not statements:
        raise ParseError("The query is empty. Write a SELECT statement.")
    if len(statements) > 1:
        raise NotSupported("A query is one statement; run several one after the other.")
    (statement,) = statements
    if isinstance(statement, _WRITES):
        refuse_statement(text)
    if not isinstance(statement, exp.Query):
        raise Untranslatable("a query that is not a SELECT")
    if statement.find(exp.Quantile):
        _refuse_frequencies(text, statement)
    bare = _STRING.sub("''", text)
    if _SUFFIXED_NUMBER.search(bare) or _RAW_STRING.search(bare):
        raise Untranslatable("literals with a type letter (10L, 1.5BD, r'…')", statement)
    _refuse_chains(statement)
    _refuse_several_units(statement)
    _refuse_lists_of_one(statement)
    return statement


def _refuse_chains(statement: exp.Query) -> None:
    """Spark does comparisons one after the other, whichever they are; sqlglot does some of them first."""
    for node in statement.find_all(*_TESTS):
        operands = list(node.iter_expressions())
        if isinstance(node, exp.NullSafeEQ):
            operands.append(bare(node.expression))  # here the parentheses may be sqlglot's
        if any(isinstance(operand, (*_TESTS, exp.Not)) for operand in operands):
            raise Untranslatable(
                "a comparison of a comparison; put one of them in parentheses", statement
            )


def _refuse_several_units(statement: exp.Query) -> None:
    """sqlglot takes ``INTERVAL 1 YEAR 2 MONTHS`` apart: added one after the other, days may be lost."""
    for added in statement.find_all(exp.Add):
        if isinstance(added.this, exp.Interval) and isinstance(
            added.expression, exp.Interval | exp.Add
        ):
            raise Untranslatable("an interval of several units", statement)


def _refuse_lists_of_one(statement: exp.Query) -> None:
    """To Spark ``IN ((SELECT …))`` is a list of one value, NULL of no rows; to sqlglot it is all the rows."""
    for test in statement.find_all(exp.In):
        query = test.args.get("query")
        if query is not None and isinstance(query.this, exp.Subquery):
            raise Untranslatable("IN ((SELECT …)), a list of one value", statement)


def _refuse_frequencies(text: str, statement: exp.Query) -> None:
    """sqlglot drops a third argument of ``percentile``: how often each value counts."""
    tokens = Dialect.get_or_raise("spark").tokenize(text)
    for place, token in enumerate(tokens[:-1]):
        if token.text.lower() != "percentile" or tokens[place + 1].text != "(":
            continue
        depth = commas = 0
        for other in tokens[place + 1 :]:
            depth += (other.text in ("(", "[")) - (other.text in (")", "]"))
            commas += depth == 1 and other.token_type is TokenType.COMMA
            if depth == 0:
                break
        if commas > 1:
            raise Untranslatable("percentile of values that count several times", statement)


def statement_text(text: str) -> str:
    """The text without what may follow a statement: semicolons and comments."""
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except TokenError:
        return text.strip().rstrip(";")
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    return text[: tokens[-1].end + 1].strip() if tokens else ""


def refuse_statement(text: str) -> NoReturn:
    """Refuse a statement that is not a query."""
    kind = text.split(maxsplit=1)[0]
    raise NotSupported(
        f"db.sql() and 'sooner query' only read, and this is a statement to {kind.upper()}; nothing was "
        "changed. Use db.register, db.insert, db.update, db.delete or db.drop to change tables."
    )


def table_names(query: exp.Expr) -> tuple[str, ...] | None:
    """The lower-cased names of the tables a query reads, its own WITH names left out.

    ``None`` where only Spark can tell, as for ``IDENTIFIER('…')``.
    """
    if not all(isinstance(table.this, exp.Identifier) for table in query.find_all(exp.Table)):
        return None
    found: dict[str, None] = {}

    def visit(node: exp.Expr, local: frozenset[str]) -> None:
        clause = node.args.get("with_")
        if clause is not None:
            for cte in clause.expressions:
                # A WITH name hides a table from the next WITH entry on, and inside itself if recursive.
                inside = local | {cte.alias.lower()} if clause.args.get("recursive") else local
                visit(cte.this, inside)
                local = local | {cte.alias.lower()}
        if isinstance(node, exp.Table):
            name = ".".join(part.name for part in node.parts).lower()
            if name not in local:
                found.setdefault(name)
        for key, value in node.args.items():
            if key == "with_":
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr):
                    visit(child, local)

    visit(query, frozenset())
    return tuple(found)


def _first_line(error: Exception) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0].rstrip(". ")
