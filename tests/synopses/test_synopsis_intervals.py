"""Estimates are not biased and their intervals hold: over many seeds, on clustered and skewed data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from synopsis_cases import made

from sooner.answer import Answer, Status
from sooner.synopses.axes import Axis
from sooner.synopses.question import Question, question
from sooner.synopses.shown import Group, shown

ROWS = 20_000
SEEDS = 30
QUESTIONS = 25
CONFIDENCES = (0.95, 0.99)

pytestmark = pytest.mark.simulation


def data(name: str) -> pa.Table:
    rng = np.random.default_rng(11)
    place = np.arange(ROWS)
    values = {
        "clustered": 50 + 40 * np.sin(place / 700) + rng.normal(0, 5, ROWS),
        "skewed": rng.lognormal(0, 1, ROWS),
        "zeros": np.where(place < 0.875 * ROWS, 0.0, rng.normal(50, 20, ROWS)),
        "signs": rng.normal(2, 10, ROWS),
    }[name]
    return pa.table({"k": place, "v": values})


def asked(table: pa.Table) -> tuple[list[Question], np.ndarray]:
    rng = np.random.default_rng(3)
    values = table.column("v").to_numpy()
    ends = np.sort(rng.integers(0, ROWS, (QUESTIONS, 2)), axis=1)
    questions, truth = [], []
    for low, high in ends:
        text = f"SELECT count(*) AS c, sum(v) AS s, avg(v) AS a FROM t WHERE k BETWEEN {low} AND {high}"
        questions.append(question(text))
        inside = values[low : high + 1]
        truth.append([len(inside), inside.sum(), inside.mean()])
    return questions, np.array(truth)


@dataclass(frozen=True)
class Found:
    """Of all seeds, questions and columns: value, interval, hard range, and what is said of them."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    hard_low: np.ndarray
    hard_high: np.ndarray
    status: np.ndarray


@cache
def answered(name: str) -> tuple[dict[float, Found], np.ndarray]:
    """What synopses of all seeds say at each confidence, and the truth.

    A synopsis does not depend on the confidence, nor does what a question touches of it.
    """
    table = data(name)
    questions, truth = asked(table)
    boxes = [one.box({"k": Axis("k", "bigint")}, UTC) for one in questions]
    cells: dict[float, list[tuple[Any, ...]]] = {confidence: [] for confidence in CONFIDENCES}
    for seed in range(SEEDS):
        synopsis = made(table, ["v"], ["k"], leaves=16, sample=0.05, seed=seed, optimizer=1000)
        summary, definition = synopsis.summary, synopsis.definition
        for one, box in zip(questions, boxes, strict=True):
            touched = [Group({}, summary.look(box))]
            for confidence in CONFIDENCES:
                answer = shown(one.asked, touched, definition, summary.share, {}, confidence)
                cells[confidence] += _cells(answer)
    shape = (SEEDS, QUESTIONS, 3)
    return {
        confidence: Found(
            *(np.array(part, float).reshape(shape) for part in parts),
            np.array(status, object).reshape(shape),
        )
        for confidence, (*parts, status) in (
            (c, zip(*rows, strict=True)) for c, rows in cells.items()
        )
    }, truth


def _cells(answer: Answer) -> Iterator[tuple[Any, ...]]:
    """Of each column of an answer of one row what it says."""
    bounds, hard = answer.bounds, answer.hard_bounds
    for column, values in zip("csa", answer.table.columns, strict=True):
        ends = (bounds[column].low, bounds[column].high, hard[column].low, hard[column].high)
        yield (*(end[0].as_py() for end in (values, *ends)), answer.status(column)[0])


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("name", ["clustered", "skewed", "zeros", "signs"])
def test_coverage_and_bias(name: str, confidence: float) -> None:
    answers, truth = answered(name)
    found = answers[confidence]
    assert np.isfinite(found.value).all()
    slack = 1e-9 * np.abs(truth)
    assert (found.hard_low - slack <= truth).all() and (truth <= found.hard_high + slack).all()
    estimated = found.status == Status.ESTIMATE
    exact = (found.status == Status.EXACT).sum()
    known = estimated.sum(axis=(0, 1))
    holds = (found.low - slack <= truth) & (truth <= found.high + slack)
    held = (estimated & holds).sum(axis=(0, 1))
    assert known.sum() + exact > 0.95 * 3 * SEEDS * QUESTIONS
    coverage = held / known
    # Two points of nominal, and one of chance: questions of one seed are not independent.
    assert (np.abs(coverage - confidence) < 0.02 + 0.01).all(), coverage
    errors = found.value - truth
    spread = np.sqrt(np.square(errors).mean(axis=0)) / np.sqrt(SEEDS)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(spread > 0, np.abs(errors.mean(axis=0)) / spread, 0.0)
    assert np.median(apart) < 1.2, (
        "a mean error beyond its own standard error, in half of the questions"
    )
