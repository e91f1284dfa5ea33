"""Ranges over joins: whatever rows are missing, the truth is within; and not wider than the cover."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.algebra import Column, Relation
from sooner.answer import Answer, Status
from sooner.errors import ConstraintViolation, InvalidArgument, NotSupported
from sooner.missing.answering import missing_answer
from sooner.missing.constraint import Constraint
from sooner.missing.cover import cover_bound
from sooner.missing.joins import Declared
from sooner.rewrites import rewrite
from sooner.sql import plan_query

SCHEMAS = {
    "r": (Column("a", "int"), Column("b", "int"), Column("v", "int")),
    "s": (Column("b", "int"), Column("c", "int")),
    "t": (Column("c", "int"), Column("a", "int")),
}
Rows = list[tuple[int | None, ...]]
Tables = Mapping[str, Rows]


@cache
def connection() -> sqlite3.Connection:
    """SQLite, which plans a query over five rows in no time."""
    opened = sqlite3.connect(":memory:")
    for name, function in (("least", min), ("greatest", max)):  # of what is not null, as in Spark
        opened.create_function(
            name, -1, lambda *of, f=function: f((v for v in of if v is not None), default=None)
        )
    return opened


def run(text: str, tables: Tables) -> pa.Table:
    """The answer to a query about whole numbers."""
    given = []
    for name, rows in tables.items():
        names = [one.name for one in SCHEMAS[name]]
        values = [", ".join("NULL" if v is None else str(v) for v in row) for row in rows]
        listed = ", ".join(f"({row})" for row in values)
        none = f"SELECT {', '.join('0' for _ in names)} WHERE FALSE"
        given.append(f"{name}({', '.join(names)}) AS ({f'VALUES {listed}' if rows else none})")
    found = connection().execute(f"WITH {', '.join(given)} {text}")
    schema = pa.schema([(name, pa.int64()) for name, *_ in found.description])
    return pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in found], schema
    )


@cache
def planned(text: str) -> Relation:
    return rewrite(plan_query(text, SCHEMAS)).plan


def answer(
    text: str,
    tables: Tables,
    constraints: list[Constraint],
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> Answer:
    declared = {n: Declared(schema, (keys or {}).get(n, ())) for n, schema in SCHEMAS.items()}
    known = run(text, tables)
    return missing_answer(
        planned(text),
        declared,
        constraints,
        UTC,
        known.schema,
        lambda sql: run(sql, tables),
        lambda: known,
        closed=True,
    )


def ends(found: Answer, name: str) -> tuple[float, float]:
    low, high = found.bounds[name].low[0].as_py(), found.bounds[name].high[0].as_py()
    first = float("-inf") if low is None else float(low)
    return first, float("inf") if high is None else float(high)


def about(table: str, rows: Rows) -> Constraint:
    """A constraint that some rows fulfil."""
    values = {
        column.name: (min(row[n] for row in rows), max(row[n] for row in rows))
        for n, column in enumerate(SCHEMAS[table])
        if rows and all(row[n] is not None for row in rows)
    }
    return Constraint(None, values, (0, len(rows)), table=table)


numbers = st.none() | st.integers(-2, 2)
rows_of = {
    name: st.lists(st.tuples(*([numbers] * len(one))), max_size=4) for name, one in SCHEMAS.items()
}
tables_of = st.fixed_dictionaries(rows_of)
QUERIES = [
    "SELECT count(*) AS c, sum(v) AS s FROM r JOIN s ON r.b = s.b",
    "SELECT count(*) AS c, sum(r.v) AS s FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a",
    "SELECT count(*) AS c, sum(v) AS s FROM r JOIN s ON r.b = s.b WHERE r.a > 0 AND s.c < 2",
]


@pytest.mark.parametrize("text", QUERIES)
@given(known=tables_of, missing=tables_of)
def test_the_truth_is_in_the_range(text: str, known: Tables, missing: Tables) -> None:
    constraints = [about(name, rows) for name, rows in missing.items()]
    found = answer(text, known, constraints)
    both = {name: [*known[name], *missing[name]] for name in SCHEMAS}
    truth = run(text, both).to_pylist()[0]
    for name, value in truth.items():
        low, high = ends(found, name)
        assert low <= (value or 0) <= high, (name, value, low, high)


@given(known=tables_of, missing=tables_of)
def test_keys_make_it_tighter_and_it_still_holds(known: Tables, missing: Tables) -> None:
    distinct: dict[str, dict[str, Rows]] = {"known": {}, "missing": {}}
    for name, width in (("r", 2), ("s", 2), ("t", 2)):
        seen: set[tuple[int | None, ...]] = set()
        for kind, given_ in (("known", known), ("missing", missing)):
            distinct[kind][name] = []
            for row in given_[name]:
                if None not in row and row[:width] not in seen:
                    seen.add(row[:width])
                    distinct[kind][name].append(row)
    constraints = [about(name, rows) for name, rows in distinct["missing"].items()]
    keys = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "a")}
    found = answer(QUERIES[1], distinct["known"], constraints, keys)
    both = {name: [*distinct["known"][name], *distinct["missing"][name]] for name in SCHEMAS}
    truth = run(QUERIES[1], both).to_pylist()[0]
    loose = answer(QUERIES[1], distinct["known"], constraints)
    for name, value in truth.items():
        low, high = ends(found, name)
        assert low <= (value or 0) <= high
        assert high <= ends(loose, name)[1] + 1e-6


TRIANGLES = "SELECT count(*) AS c FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a"
EDGES = [Constraint(None, {}, (0, 100), table=name) for name in ("r", "s", "t")]
NOTHING: Tables = {"r": [], "s": [], "t": []}


def test_triangles_are_no_more_than_the_cover_allows() -> None:
    keys = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "a")}
    assert ends(answer(TRIANGLES, NOTHING, EDGES, keys), "c") == (0, 1000)
    # Without keys the same edge may be there a hundred times.
    assert ends(answer(TRIANGLES, NOTHING, EDGES), "c") == (0, 10**6)


def test_known_and_missing_rows_meet() -> None:
    known: Tables = {"r": [(1, 1, 5), (1, 2, 7)], "s": [(1, 0), (3, 0)], "t": []}
    constraints = [Constraint("b = 1", {"c": (0, 9)}, (0, 3), table="s")]
    found = answer(QUERIES[0], known, constraints)
    assert found.table.to_pylist() == [{"c": 1, "s": 5}]
    assert ends(found, "c") == (1, 1 + 2 * 3)
    assert ends(found, "s") == (5, 5 + 12 * 3)
    assert found.status("c") == (Status.RANGE,)
    exact = answer(QUERIES[0], known, [Constraint("b = 1", {}, (0, 3), table="t")])
    assert ends(exact, "c") == (1, 1) and exact.status("c") == (Status.EXACT,)


def test_a_chain_is_covered_by_every_other_table() -> None:
    chain = [{f"x{n}", f"x{n + 1}"} for n in range(5)]
    assert cover_bound(chain, [10] * 5) == pytest.approx(1000)
    assert cover_bound(chain, [10, 10, 0, 10, 10]) == 0
    assert cover_bound(chain, [10, float("inf"), 10, 10, 10]) == pytest.approx(1000)
    assert cover_bound(chain, [10, 10, float("inf"), 10, 10]) == pytest.approx(10_000)
    assert cover_bound(chain, [float("inf"), 10, 10, 10, 10]) == float("inf")


@pytest.mark.parametrize(
    ("text", "constraints", "error"),
    [
        ("SELECT count(*) AS c FROM r JOIN s ON r.b < s.b", EDGES, NotSupported),
        ("SELECT count(*) AS c FROM r LEFT JOIN s ON r.b = s.b", EDGES, NotSupported),
        ("SELECT avg(v) AS c FROM r JOIN s ON r.b = s.b", EDGES, NotSupported),
        ("SELECT r.a, count(*) AS c FROM r JOIN s ON r.b = s.b GROUP BY r.a", EDGES, NotSupported),
        (QUERIES[0], [Constraint("b = 1", {}, (0, 3))], InvalidArgument),
        (
            QUERIES[0],
            [
                Constraint("b = 1", {"c": (0, 1)}, (1, 1), table="s"),
                Constraint("b = 1", {"c": (2, 3)}, (1, 1), table="s"),
            ],
            ConstraintViolation,
        ),
    ],
)
def test_what_has_no_range(
    text: str, constraints: list[Constraint], error: type[Exception]
) -> None:
    with pytest.raises(error):
        answer(text, NOTHING, constraints)
