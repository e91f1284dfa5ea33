"""Calculations with several aggregates of a stale view: no lean, and intervals that hold, group by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import sooner
from sooner.answer import Status

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sooner import View

pytestmark = pytest.mark.spark

GROUPS, ORDERS = 120, 900
CALCULATIONS = {
    "price": "sum(a) / sum(b)",
    "mean": "sum(a) / count(a)",
    "share": "100 * sum(a) FILTER (WHERE b > 10) / sum(a)",
    "gain": "sum(a) - 2.5 * sum(b)",
    "two": "avg(a) * count(*) / avg(b)",
}


def lines(orders: np.ndarray, seed: int, times: float) -> pd.DataFrame:
    """One to three lines an order, which are alike; amounts have a long tail."""
    rng = np.random.default_rng(seed)
    number = rng.integers(1, 4, len(orders))
    order = np.repeat(orders, number)
    of_order = np.repeat(rng.integers(1, 20, len(orders)), number)
    b = of_order + rng.integers(0, 3, len(order))
    a = times * b * rng.lognormal(1.0, 0.4, len(order)).round(3)
    line = np.concatenate([np.arange(one) for one in number])
    return pd.DataFrame({"k": order, "line": line, "g": order % GROUPS, "a": a, "b": b})


@pytest.fixture(scope="module")
def view(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """Orders came, and those of a stretch of numbers have new lines; a sample has an order whole."""
    place: Path = tmp_path_factory.mktemp("calculated")
    count = GROUPS * ORDERS
    lines(np.arange(count), 1, 1.0).to_parquet(place / "t.parquet")
    with sooner.connect(place / "home", spark=small_spark, progress=False) as database:
        database.register("t", str(place / "t.parquet"), key=["k", "line"])
        view = database.view("v", "SELECT k, line, g, a, b FROM t", sample=0.1, sample_by="k")
        old = lines(np.arange(count), 1, 1.0)
        hit = old[(old.k >= count // 4) & (old.k < count // 2)]
        database.update("t", hit.assign(a=hit.a * 1.4, b=hit.b + hit.k % 3))
        database.insert("t", lines(np.arange(count, count + count // 10), 3, 1.5))
        yield view


@pytest.mark.parametrize("estimator", ["corr", "aqp", "auto"])
def test_intervals_hold_and_nothing_leans(view: View, estimator: str) -> None:
    asked = ", ".join(f"{text} AS {name}" for name, text in CALCULATIONS.items())
    text = f"SELECT g, {asked} FROM v GROUP BY g"
    found = view.answer(text, estimator=estimator)
    assert not found.final
    rows = found.to_pandas(bounds=True).set_index("g").sort_index()
    truth = view.answer(text, estimator="exact").to_pandas().set_index("g").sort_index()
    assert len(rows) == GROUPS
    for name in CALCULATIONS:
        low, high = rows[f"{name}__low"], rows[f"{name}__high"]
        known = low.notna()
        assert known.mean() > 0.9, name
        held = int(((low <= truth[name]) & (truth[name] <= high))[known].sum())
        # Less often than 95% of so many would be one time in 10,000.
        assert held >= binom.ppf(1e-4, int(known.sum()), 0.95), (name, held)
        off = rows[name] - truth[name]
        assert abs(off.mean()) < 4 * off.std() / np.sqrt(GROUPS), name
        # Those of corrected sums are as wide: a few orders that came decide them.
        assert (high - low)[known].mean() / 2 < 4.5 * off.std(), name


def test_a_sum_over_a_count_is_the_average(view: View) -> None:
    text = "SELECT g, sum(a) / count(a) AS one, avg(a) AS other FROM v GROUP BY g"
    rows = view.answer(text, estimator="aqp").to_pandas(bounds=True)
    pd.testing.assert_series_equal(rows.one, rows.other, check_names=False)
    reach, as_average = (rows[f"{name}__high"] - rows[name] for name in ("one", "other"))
    # What the sample lacks of large values is told by what they bring, which is not the same.
    assert (reach / as_average).between(0.5, 2.0).all()


def test_where_all_rows_agree_a_sample_does_not_say_that_the_others_do(view: View) -> None:
    found = view.answer("SELECT sum(b * 3.0) / sum(b) AS three FROM v")
    assert found.to_pandas().three[0] == pytest.approx(3.0)
    assert found.status("three") == (Status.UNKNOWN,)


def test_a_divisor_near_nothing_leaves_no_interval(view: View) -> None:
    one, other = (f"sum(a) FILTER (WHERE g = {group})" for group in (1, 2))
    found = view.answer(f"SELECT sum(b) / ({one} - {other}) AS far FROM v")
    assert found.status("far") == (Status.UNKNOWN,)
    assert "divided by next to nothing" in found.remarks[0]
