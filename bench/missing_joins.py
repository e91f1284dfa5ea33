"""Ranges of joins of missing rows, against elastic sensitivity (Predicate-Constraints, Figure 4.12)."""

from __future__ import annotations

from datetime import UTC

import duckdb
import numpy as np
import pyarrow as pa
from report import record

from sooner.algebra import Column
from sooner.missing.constraint import Constraint
from sooner.missing.joined import joined_of
from sooner.missing.joins import Declared, MissingJoin
from sooner.sql import plan_query

SIZES = (10, 100, 1000, 10_000)
TRIANGLE = "SELECT count(*) AS n FROM r1, r2, r3 WHERE r1.b = r2.a AND r2.b = r3.a AND r3.b = r1.a"
CHAIN = (
    "SELECT count(*) AS n FROM r1, r2, r3, r4, r5"
    " WHERE r1.b = r2.a AND r2.b = r3.a AND r3.b = r4.a AND r4.b = r5.a"
)


def bound(text: str, tables: int, rows: int) -> float:
    """The upper end that Sooner gives; each table has a key of both of its columns."""
    schema = (Column("a", "bigint"), Column("b", "bigint"))
    names = [f"r{n}" for n in range(1, tables + 1)]
    constraints = [Constraint(rows=(0, rows), table=name) for name in names]
    declared = {name: Declared(schema, ("a", "b")) for name in names}
    plan = plan_query(text, dict.fromkeys(names, schema))
    asked = MissingJoin(joined_of(plan), constraints, declared, UTC)
    nothing = pa.table({"n": pa.array([0], pa.int64())})
    answer = asked.answer(lambda: nothing, lambda _: nothing)
    return float(answer.hard_bounds["n"].high[0].as_py())


def elastic(tables: int, rows: int) -> float:
    """Johnson et al.: what each row that is added can change at most, added up over all rows.

    A row joins with no more rows of each other table than its most frequent key has there: as many as
    have been added so far.
    """
    added = np.arange(rows, dtype=float)
    return float((tables * np.maximum(added, 1.0) ** (tables - 1)).sum())


def truth(text: str, tables: int, rows: int) -> int:
    """How many rows such a join of random tables has."""
    rng = np.random.default_rng(rows)
    connection = duckdb.connect()
    for n in range(1, tables + 1):
        pairs = rng.integers(0, max(2, int(rows**0.75)), (4 * rows, 2))
        distinct = np.unique(pairs, axis=0)[:rows]
        connection.register(f"r{n}", pa.table({"a": distinct[:, 0], "b": distinct[:, 1]}))
    ((number,),) = connection.execute(text).fetchall()
    return number


def main() -> None:
    for name, text, tables in (("triangle", TRIANGLE, 3), ("chain of 5", CHAIN, 5)):
        ours = [bound(text, tables, rows) for rows in SIZES]
        theirs = [elastic(tables, rows) for rows in SIZES]
        right = [truth(text, tables, rows) for rows in SIZES]
        assert all(a <= b for a, b in zip(right, ours, strict=True)), "a bound is one"
        shown = [
            f"{rows:,} rows {a:.3g} against {b:.3g} (a random one has {c:,})"
            for rows, a, b, c in zip(SIZES, ours, theirs, right, strict=True)
        ]
        record(
            f"missing_joins-{tables}",
            f"missing rows: {name} against elastic sensitivity",
            "tighter",
            "; ".join(shown),
            {"ours": ours, "theirs": theirs, "truth": right},
        )


if __name__ == "__main__":
    main()
