"""Gates judged here say what a database says, and leave to Spark what is not exact as it is."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from sooner.algebra import Filter, Item, Project, Scan
from sooner.algebra.scalar import Scalar, column
from sooner.algebra.schema import Column
from sooner.progressive.exact_gates import passing_here
from sooner.progressive.gates import Check, Gate

COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ)
TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal": pa.decimal128(25, 2),
    "fine": pa.decimal128(12, 6),
}
STATE = Scan("state", ("k", "g", "v"), (Column("key"), Column("by"), Column("value")))
TOP = Project(
    STATE, (Item("a", column("key")), Item("b", column("by")), Item("c", column("value")))
)


def numbers(rng: np.random.Generator, kind: pa.DataType, rows: int) -> pa.Array:
    """Few distinct numbers and some nulls, so that many are equal."""
    some = rng.integers(-4, 5, rows).tolist()
    if pa.types.is_decimal(kind):
        some = [Decimal(n) / 2 for n in some]
    return pa.array(some, kind, mask=rng.random(rows) < 0.1)


def tables(rng: np.random.Generator, ours: str, theirs: str) -> tuple[pa.Table, pa.Table]:
    pairs = [(k, g) for k in [*range(12), None] for g in ("x", "y", None)]
    chosen = [pairs[place] for place in rng.permutation(len(pairs))[:25]]
    state = {
        "k": pa.array([k for k, _ in chosen], pa.int64()),
        "g": pa.array([g for _, g in chosen], pa.string()),
        "v": numbers(rng, TYPES[theirs], 25),
    }
    waiting = {
        "k1": pa.array(rng.integers(0, 14, 200), pa.int64(), mask=rng.random(200) < 0.1),
        "g1": pa.array(rng.choice(["x", "y", "z"], 200), mask=rng.random(200) < 0.1),
        "n": numbers(rng, TYPES[ours], 200),
        "id": pa.array(range(200)),
    }
    return pa.table(state), pa.table(waiting)


@pytest.mark.parametrize("ours", TYPES)
@pytest.mark.parametrize("theirs", TYPES)
def test_a_database_says_the_same(ours: str, theirs: str) -> None:
    rng = np.random.default_rng(len(ours) * 10 + len(theirs))
    state, waiting = tables(rng, ours, theirs)
    signs = [one(this=column("n"), expression=column("v")).sql("duckdb") for one in COMPARISONS]
    text = f"SELECT id, {', '.join(signs)} FROM waiting JOIN state ON k1 = k AND g1 = g"
    said = duckdb.sql(text).fetchall()
    for place, comparison in enumerate(COMPARISONS, 1):
        gate = Gate(TOP, (("k1", "a"), ("g1", "b")), (Check("n", comparison, column("c")),))
        found = passing_here(waiting, [gate], {"state": state})
        assert found is not None
        assert set(np.flatnonzero(found)) == {row[0] for row in said if row[place]}


def test_all_gates_must_be_passed_and_a_total_has_no_keys() -> None:
    waiting = pa.table({"n": pa.array([1, 2, 3, None], pa.int64()), "m": [5, 5, 0, 5]})
    total = Scan("total", ("t",), (Column("t"),))
    gates = [
        Gate(total, (), (Check("n", exp.GTE, column("t")), Check("m", exp.GT, column("t")))),
        Gate(total, (), (Check("n", exp.NEQ, column("t")),)),
    ]
    for value, expected in ((2, []), (1, [False, True, False, False]), (None, [])):
        found = passing_here(
            waiting, gates, {"total": pa.table({"t": pa.array([value], pa.int64())})}
        )
        assert found is not None
        assert found.tolist() == (expected or [False] * 4)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (exp.Mul(this=column("c"), expression=exp.Literal.number(2)), pa.decimal128(25, 2)),
        (column("c"), pa.float64()),
        (column("c"), pa.decimal128(38, 30)),
    ],
    ids=["computed", "floating", "more digits than there are"],
)
def test_the_rest_is_for_spark(value: Scalar, kind: pa.DataType) -> None:
    state, waiting = tables(np.random.default_rng(0), "bigint", "decimal")
    state = state.set_column(2, "v", pa.nulls(len(state), kind))
    gate = Gate(TOP, (("k1", "a"),), (Check("n", exp.LT, value),))
    assert passing_here(waiting, [gate], {"state": state}) is None


def test_so_are_filters_unknown_states_and_keys_of_another_type() -> None:
    state, waiting = tables(np.random.default_rng(0), "bigint", "decimal")
    checks = (Check("n", exp.LT, column("c")),)
    some = Filter(TOP, exp.GT(this=column("a"), expression=exp.Literal.number(3)))
    assert passing_here(waiting, [Gate(some, (("k1", "a"),), checks)], {"state": state}) is None
    assert passing_here(waiting, [Gate(TOP, (("k1", "a"),), checks)], {}) is None
    assert passing_here(waiting, [Gate(TOP, (("g1", "a"),), checks)], {"state": state}) is None
