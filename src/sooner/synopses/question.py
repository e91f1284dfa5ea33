"""What a SELECT asks of a synopsis: aggregates of measures, a condition, groups. Or why it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from threading import local
from typing import Literal, TypeAlias

import sqlglot
from sqlglot import exp

from sooner.errors import CannotAnswer, InvalidArgument, ParseError
from sooner.sql import without_doubled_quotes
from sooner.synopses.axes import Axis
from sooner.synopses.conditions import Conditions
from sooner.synopses.spans import Spans

Function: TypeAlias = Literal["count", "sum", "avg", "min", "max"]
FUNCTIONS: dict[type[exp.Expr], Function] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_NOT_TAKEN = {
    "joins": "it joins tables",
    "having": "it has HAVING",
    "distinct": "it has DISTINCT",
    "order": "it has ORDER BY",
    "limit": "it has LIMIT",
    "offset": "it has OFFSET",
    "windows": "it has window functions",
    "with_": "it has WITH",
    "laterals": "it has LATERAL",
    "qualify": "it has QUALIFY",
}


@dataclass(frozen=True)
class Asked:
    """One column of the answer: a function of a measure (``None`` for COUNT(*)), or a column of groups."""

    name: str
    function: Function | None
    of: str | None


@dataclass(frozen=True)
class Question:
    """What is asked, of which table, of which rows, and by which columns."""

    table: str
    asked: tuple[Asked, ...]
    where: exp.Expr | None
    groups: tuple[str, ...]
    columns: frozenset[str]

    def box(self, axes: Mapping[str, Axis], zone: tzinfo) -> dict[str, Spans]:
        """The condition as spans of axes, which come by lower-case name."""
        return Conditions(axes, zone).box(self.where)

    @property
    def measures(self) -> frozenset[str]:
        """The columns that are aggregated, in lower case."""
        return frozenset(one.of.lower() for one in self.asked if one.function and one.of)


class _Sql(local):
    """Spark's SQL, with a parser for each thread: making one takes as long as reading a question."""

    def __init__(self) -> None:
        dialect = sqlglot.Dialect.get_or_raise("spark")
        self._tokenizer, self._parser = dialect.tokenizer(), dialect.parser()

    def read(self, text: str) -> exp.Expr | None:
        """What a text says, if it is one statement."""
        found = self._parser.parse(self._tokenizer.tokenize(without_doubled_quotes(text)), text)
        return found[0] if len(found) == 1 else None


_sql = _Sql()


def question(text: str) -> Question:
    """Read a SELECT. Raises :class:`CannotAnswer` where no synopsis could answer it."""
    if not isinstance(text, str):
        raise InvalidArgument(f"Ask a synopsis in SQL, as text, not {text!r}.")
    try:
        select = _sql.read(text)
    except sqlglot.errors.SqlglotError as error:
        raise ParseError(f"The query cannot be read: {error}") from None
    if not isinstance(select, exp.Select):
        raise CannotAnswer("it is not one SELECT.")
    for part, reason in _NOT_TAKEN.items():
        if select.args.get(part):
            raise CannotAnswer(f"{reason}.")
    table = _table(select)
    groups = _groups(select)
    where = select.args.get("where")
    asked = tuple(_asked(one, groups) for one in select.expressions)
    if len({one.name for one in asked}) < len(asked):
        raise CannotAnswer("two of its columns have one name, by which their intervals go.")
    if not any(one.function for one in asked):
        raise CannotAnswer("it asks for rows, not for COUNT, SUM, AVG, MIN or MAX.")
    condition = where.this if where else None
    mentioned = {c.name.lower() for c in condition.find_all(exp.Column)} if condition else set()
    return Question(
        table, asked, condition, groups, frozenset({*mentioned, *(g.lower() for g in groups)})
    )


def _table(select: exp.Select) -> str:
    source = select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or source.this.args.get("joins"):
        raise CannotAnswer("it does not read one table.")
    return str(source.this.name)


def _groups(select: exp.Select) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    plain = [one for one in group.expressions if isinstance(one, exp.Column)]
    others = [key for key, value in group.args.items() if key != "expressions" and value]
    if len(plain) != len(group.expressions) or others:
        raise CannotAnswer("it groups by something other than plain columns.")
    return tuple(one.name for one in plain)


def _asked(item: exp.Expr, groups: tuple[str, ...]) -> Asked:
    alias = item.alias if isinstance(item, exp.Alias) else None
    scalar = item.this if isinstance(item, exp.Alias) else item
    if isinstance(scalar, exp.Column):
        if scalar.name.lower() not in {one.lower() for one in groups}:
            raise CannotAnswer(f"{scalar.name} is neither aggregated nor grouped by.")
        return Asked(alias or scalar.name, None, scalar.name)
    function = FUNCTIONS.get(type(scalar))
    of = scalar.this
    if function is None or scalar.args.get("expressions"):
        raise CannotAnswer(
            f"{scalar.sql('spark')} is none of COUNT, SUM, AVG, MIN and MAX of one column."
        )
    if function == "count" and isinstance(of, exp.Star | exp.Literal):
        return Asked(alias or "count(1)", function, None)
    if not isinstance(of, exp.Column):
        raise CannotAnswer(f"{scalar.sql('spark')} does not aggregate one plain column.")
    return Asked(alias or f"{function}({of.name})", function, of.name)
