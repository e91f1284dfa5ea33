"""Knobs, budgets and suggestions: what is refused, and what they come to."""

from __future__ import annotations

import pytest

from sooner.errors import InvalidArgument
from sooner.synopses.budgets import parse_size, within_budgets
from sooner.synopses.definition import Knobs, knobs_of
from sooner.synopses.measures import Measure
from sooner.synopses.suggest import suggest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"leaves": 0}, "leaves=0"),
        ({"leaves": 2.5}, "leaves=2.5"),
        ({"sample": 0.0}, "sample=0.0"),
        ({"sample": 1.5}, "sample=1.5"),
        ({"sample": 0.1, "effective": 100}, "not both"),
        ({"effective": 0}, "effective=0"),
        ({"focus": "median"}, "use one of sum, count, avg"),
        ({"partitioning": "magic"}, "use one of fast"),
        ({"delta": 1.0}, "delta"),
        ({"leavs": 3}, "Did you mean 'leaves'"),
    ],
)
def test_knobs_that_do_not_fit(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        knobs_of(given)


def test_how_much_is_stored() -> None:
    assert Knobs(sample=0.01).stored(5000) == 50
    assert Knobs().stored(100_000) == 500
    assert Knobs(effective=100, leaves=64).stored(10**6) == 3200
    assert Knobs(effective=100, leaves=64).stored(1000) == 1000


@pytest.mark.parametrize("type_", ["string", "date", "array<int>", "decimal(38,2)"])
def test_a_measure_is_a_number(type_: str) -> None:
    with pytest.raises(InvalidArgument, match="a column of numbers"):
        Measure("m", type_)


def test_budgets() -> None:
    plain = Knobs()
    small = within_budgets(plain, 10**6, 3, size="100kB")
    large = within_budgets(plain, 10**6, 3, size="1MB")
    assert large.sample is not None and small.sample is not None
    assert large.sample == pytest.approx(10 * small.sample, rel=0.01)
    quick = within_budgets(plain, 10**7, 3, query_within=0.001)
    slow = within_budgets(plain, 10**7, 3, query_within=0.002)
    assert quick.sample is not None and slow.sample is not None and quick.sample < slow.sample
    few = within_budgets(plain, 10**6, 3, build_within=0.8)
    many = within_budgets(plain, 10**6, 3, build_within=5.0)
    assert 4 <= few.leaves < many.leaves <= 1024
    for wrong in (
        {"build_within": 0.01},
        {"build_within": -1},
        {"query_within": 0.0001},
        {"size": "ten"},
        {"size": 1},
        {"size": -5},
    ):
        with pytest.raises(InvalidArgument):
            within_budgets(plain, 10**6, 3, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bytes_"), [("10MB", 10**7), (512, 512), ("2 gb", 2 * 10**9), ("3k", 3000)]
)
def test_sizes(text: str | int, bytes_: int) -> None:
    assert parse_size(text) == bytes_


def test_trees_for_a_workload() -> None:
    texts = [
        *["SELECT sum(v) FROM t WHERE a > 1 AND b < 3"] * 5,
        *["SELECT avg(v) FROM t WHERE b = 3"] * 4,
        *["SELECT max(u) FROM t WHERE c BETWEEN 1 AND 2"] * 3,
        *["SELECT count(*) FROM other WHERE z = 1"] * 2,
        "SELECT a FROM t",
        "this is no SQL (",
    ]
    found = suggest(texts, most=2)
    assert [(one.table, one.over, one.measures, one.questions) for one in found] == [
        ("other", ("z",), (), 2),
        ("t", ("b", "a"), ("v",), 9),
        ("t", ("c",), ("u",), 3),
    ]
