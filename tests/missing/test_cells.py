"""Which cells can hold a row: every decision agrees with z3's."""

from __future__ import annotations

from datetime import UTC
from functools import cache
from itertools import product
from operator import eq, ge, gt, le, lt, ne

import z3
from hypothesis import given
from hypothesis import strategies as st

from sooner.algebra import Column
from sooner.missing.cells import decompose
from sooner.missing.constraint import Constraint
from sooner.missing.grid import grid_of
from sooner.missing.space import space_of

SCHEMA = (Column("i", "int"), Column("x", "double"), Column("w", "string"))
WORDS = ("ant", "bee", "cat")
Leaf = tuple[str, str, int]
Predicate = list[list[Leaf]]  # alternatives of conditions that must all hold

leaves = st.tuples(
    st.sampled_from(("i", "x", "w")),
    st.sampled_from(("<", "<=", "=", "<>", ">=", ">", "IS NULL", "IS NOT NULL")),
    st.integers(0, 2),
)
predicates = st.lists(st.lists(leaves, min_size=1, max_size=2), min_size=1, max_size=2)


def written(leaf: Leaf) -> str:
    column, comparison, constant = leaf
    if comparison.startswith("IS"):
        return f"{column} {comparison}"
    return f"{column} {comparison} " + (f"'{WORDS[constant]}'" if column == "w" else str(constant))


def text(predicate: Predicate) -> str:
    return " OR ".join(f"({' AND '.join(map(written, part))})" for part in predicate)


# A row of unknowns. Words are reals, in which there is always one between two.
VALUES = {"i": z3.Int("i"), "x": z3.Real("x"), "w": z3.Real("w")}
NULL = {name: z3.Bool(f"{name}_null") for name in VALUES}
COMPARE = {"<": lt, "<=": le, "=": eq, "<>": ne, ">=": ge, ">": gt}


@cache
def holds(leaf: Leaf) -> z3.BoolRef:
    column, comparison, constant = leaf
    there = z3.Not(NULL[column])
    if comparison.startswith("IS"):
        return NULL[column] if comparison == "IS NULL" else there
    return z3.And(there, COMPARE[comparison](VALUES[column], constant))


def meaning(predicate: Predicate) -> z3.BoolRef:
    return z3.Or([z3.And([holds(leaf) for leaf in part]) for part in predicate])


@given(given=st.lists(predicates, min_size=1, max_size=4))
def test_cells_are_those_that_z3_finds(given: list[Predicate]) -> None:
    constraints = [Constraint(text(one)) for one in given]
    space = space_of(SCHEMA, constraints, [], [], UTC)
    boxes = [space.boxes(one.where) for one in constraints]
    grid = grid_of(("i", "x", "w"), [box for one in boxes for box in one])
    found = decompose(grid.whole, [grid.part(one) for one in boxes], 10_000)
    cells = {cell.inside for cell in found.cells} | ({()} if found.outside else set())
    solver = z3.Solver()
    is_in = z3.Bools([f"in_{n}" for n in range(len(given))])
    for one, predicate in zip(is_in, given, strict=True):
        solver.add(one == meaning(predicate))
    for inside in product((False, True), repeat=len(given)):
        asked = (one if yes else z3.Not(one) for yes, one in zip(inside, is_in, strict=True))
        possible = solver.check(*asked) == z3.sat
        numbers = tuple(n for n, yes in enumerate(inside) if yes)
        assert (numbers in cells) == possible, (numbers, [one.where for one in constraints])
