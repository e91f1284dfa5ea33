"""Random tables, synopses and questions: hard ranges hold, and what is called exact is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from synopsis_cases import Truth, made
from test_answers import FUNCTIONS

from sooner.answer import Answer, Status
from sooner.errors import CannotAnswer

WORDS = ["w = 'b'", "w <> 'c'", "w > 'b'", "w IS NULL", "w IN ('a', 'é')", "w NOT IN ('a')"]


def random_table(rng: np.random.Generator) -> pa.Table:
    """Small and large whole numbers, long tails, one value, huge and tiny ones; few or many nulls."""
    rows = int(rng.choice([1, 2, 5, 30, 300, 2000]))

    def mask() -> np.ndarray:
        return rng.random(rows) < rng.choice([0, 0.1, 0.9])

    def whole() -> pa.Array:
        low, high = [(-5, 5), (-(2**62), 2**62), (0, 3)][rng.integers(3)]
        return pa.array(rng.integers(low, high, rows), mask=mask())

    def floating() -> pa.Array:
        kinds = [
            rng.normal(0, 1, rows),
            rng.lognormal(0, 4, rows) * rng.choice([-1, 1], rows),
            np.full(rows, 3.25),
            rng.choice([0.0, 1e-300, 1e300, -1e15], rows),
        ]
        return pa.array(kinds[rng.integers(4)], mask=mask())

    words = pa.array(rng.choice(list("abcdé"), rows), mask=mask())
    return pa.table({"a": whole(), "f": floating(), "w": words, "m": whole(), "v": floating()})


def random_condition(rng: np.random.Generator, table: pa.Table) -> str:
    parts = []
    for name in ("a", "f", "w"):
        if rng.random() < 0.5:
            continue
        if name == "w":
            parts.append(str(rng.choice(WORDS)))
            continue
        known = [value for value in table.column(name).to_pylist() if value is not None]
        value = known[rng.integers(len(known))] if known else 0
        written = str(value) if name == "a" else f"{value:.3f}" if abs(value) < 1e6 else "0.5"
        parts.append(f"{name} {rng.choice(['>', '>=', '<', '<=', '=', '<>'])} {written}")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def check(answer: Answer, name: str, truth: Any, rounding: float, text: str) -> None:
    low, high = (getattr(answer.hard_bounds[name], end)[0].as_py() for end in ("low", "high"))
    status, value = answer.status(name)[0], answer.table.column(name)[0].as_py()
    if truth is None:
        assert status is Status.UNKNOWN or value is None, (text, name)
        return
    slack = max(rounding, 1e-9 * abs(float(truth)) if name.startswith("avg") else 0.0)
    assert low is None or low <= truth or low <= float(truth) + slack, (text, name, low, truth)
    assert high is None or high >= truth or high >= float(truth) - slack, (text, name, high, truth)
    if status is Status.EXACT and value is not None:
        off = abs(float(value) - float(truth))
        assert off <= max(rounding, 1e-9 * max(1.0, abs(float(truth)))), (text, name, value, truth)


@pytest.mark.parametrize("tables", [15, pytest.param(1500, marks=pytest.mark.slow)])
def test_random_questions_of_random_tables(tables: int) -> None:
    rng = np.random.default_rng(tables)
    asked = 0
    for _ in range(tables):
        table = random_table(rng)
        over = list(rng.permutation(["a", "f", "w"])[: rng.integers(1, 4)])
        synopsis = made(
            table,
            ["m", "v"],
            over,
            [name for name in ("a", "f", "w") if name not in over],
            leaves=int(rng.integers(1, min(table.num_rows, 40) + 1)),
            sample=float(rng.choice([0.01, 0.2, 1.0])),
            seed=int(rng.integers(100)),
            partitioning=str(rng.choice(["fast", "equal"])),
            focus=str(rng.choice(["sum", "avg", "count"])),
            allocation=str(rng.choice(["proportional", "equal", "neyman"])),
        )
        truths = Truth(table)
        for _ in range(12):
            measure = str(rng.choice(["m", "v"]))
            text = f"SELECT {FUNCTIONS.format(measure)} FROM t{random_condition(rng, table)}"
            try:
                answer = synopsis.answer(text)
            except CannotAnswer as error:
                assert "too large for its type" in str(error)
                continue
            (row,) = truths.of(text)
            asked += 1
            sizes = [abs(v) for v in table.column(measure).to_pylist() if v is not None]
            rounding = 1e-9 * sum(sizes) if measure == "v" else 0.0
            for name, truth in zip(answer.table.column_names, row, strict=True):
                check(answer, name, truth, rounding, text)
    assert asked > 10 * tables
