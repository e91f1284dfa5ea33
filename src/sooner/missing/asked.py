"""What a query asks of one table: aggregates, a condition, groups. Read from its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sooner.algebra import Aggregate, Filter, Project, Relation, Scan, Sort
from sooner.algebra.relation import aggregate_call
from sooner.algebra.scalar import Scalar, column, conjuncts, is_column, substitute
from sooner.errors import NotSupported
from sooner.sql import quote
from sooner.synopses.question import FUNCTIONS
from sooner.synopses.question import Asked as Output


@dataclass(frozen=True)
class Asked:
    """Of which table, of which rows, in which columns; names are the table's own."""

    table: str
    where: tuple[Scalar, ...]
    keys: tuple[str, ...]
    outputs: tuple[Output, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns that are aggregated."""
        return tuple(dict.fromkeys(one.of for one in self.outputs if one.function and one.of))

    @property
    def text(self) -> str:
        """The query with what is needed to add rows to its answer: counts, sums, and both extremes."""
        shown = [
            quote(one.of or "")
            if one.function is None
            else f"{one.function}({quote(one.of) if one.of else '*'})"
            for one in self.outputs
        ]
        items = [f"{text} AS {quote(f'__{n}')}" for n, text in enumerate(shown)]
        items += [f"{quote(key)} AS {quote(f'__key_{n}')}" for n, key in enumerate(self.keys)]
        items.append("count(*) AS __rows")
        for n, measure in enumerate(self.measures):
            wanted = {one.function for one in self.outputs if one.of == measure}
            needed = ["count", "min", "max", *(["sum"] if wanted & {"sum", "avg"} else [])]
            items += [f"{f}({quote(measure)}) AS __{f}_{n}" for f in needed]
        condition = " AND ".join(f"({one.sql('spark')})" for one in self.where)
        where = f" WHERE {condition}" if condition else ""
        groups = f" GROUP BY {', '.join(quote(key) for key in self.keys)}" if self.keys else ""
        return f"SELECT {', '.join(items)} FROM {quote(self.table)}{where}{groups}"


def aggregate_of(plan: Relation) -> tuple[Aggregate, dict[str, str]]:
    """The aggregate at the top of a plan, and what each output is called there."""
    names = {name: name for name in plan.names}
    while not isinstance(plan, Aggregate):
        if isinstance(plan, Sort):
            plan = plan.child
        elif isinstance(plan, Project) and all(is_column(item.scalar) for item in plan.items):
            below = {item.name: item.scalar.name for item in plan.items}
            names = {name: below[inner] for name, inner in names.items()}
            plan = plan.child
        else:
            raise NotSupported(
                "Ranges are for COUNT, SUM, AVG, MIN and MAX of columns, with WHERE and GROUP BY; this "
                f"query has {described(plan)}."
            )
    return plan, names


def asked_of(query: Relation) -> Asked:
    """What a plan asks. Raises :class:`NotSupported` for what has no range yet."""
    plan, names = aggregate_of(query)
    scan, where, inner = rows_of(plan.child)
    functions: dict[str, Output] = {}
    for key in plan.keys:
        functions[key] = Output(key, None, column_of(inner[key]))
    for item in plan.aggregates:
        call = aggregate_call(item.scalar)
        function = FUNCTIONS.get(type(call)) if call is item.scalar else None
        if call is None or function is None or call.args.get("expressions"):
            raise NotSupported(f"There is no range for {item.scalar.sql('spark')} yet.")
        if isinstance(call.this, exp.Star | exp.Literal) and function == "count":
            functions[item.name] = Output(item.name, function, None)
        else:
            functions[item.name] = Output(
                item.name, function, column_of(substitute(call.this, inner))
            )
    outputs = tuple(
        Output(name, functions[below].function, functions[below].of)
        for name, below in names.items()
    )
    keys = tuple(column_of(inner[key]) for key in plan.keys)
    return Asked(scan.table, where, keys, outputs)


def rows_of(plan: Relation) -> tuple[Scan, tuple[Scalar, ...], Mapping[str, Scalar]]:
    """The table below an aggregate, the conditions on it, and what each column is of the table's own."""
    match plan:
        case Scan():
            own = zip(plan.names, plan.sources, strict=True)
            return plan, (), {name: column(source) for name, source in own}
        case Filter():
            scan, where, names = rows_of(plan.child)
            found = [substitute(part, names) for part in conjuncts(plan.condition)]
            return scan, (*where, *found), names
        case Project():
            scan, where, names = rows_of(plan.child)
            return scan, where, {one.name: substitute(one.scalar, names) for one in plan.items}
    raise NotSupported(f"Ranges are for queries of one table; this one has {described(plan)}.")


def column_of(scalar: Scalar) -> str:
    """The column that a scalar is; anything else has no range."""
    if not is_column(scalar):
        raise NotSupported(f"Ranges are for plain columns, not for {scalar.sql('spark')}.")
    return str(scalar.name)


def described(plan: Relation) -> str:
    """What a part of a plan is called in SQL."""
    name = type(plan).__name__
    known = {
        "Filter": "HAVING",
        "Project": "arithmetic over aggregates",
        "Limit": "LIMIT",
        "Opaque": "something that only Spark understands",
    }
    return known.get(name, f"{'an' if name[0] in 'AEIOU' else 'a'} {name.lower()}")
