"""Answer: what it holds and how it looks."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import sooner
from sooner.answer import Answer, Bounds, Status, Uncertainty


def uncertain() -> Answer:
    table = pa.table({"city": ["Lyon", "Ghent", None], "total": [100.0, 50.0, 0.0]})
    bounds = Bounds(pa.chunked_array([[90.0, 45.0, None]]), pa.chunked_array([[110.0, 55.0, None]]))
    status = (Status.ESTIMATE, Status.ESTIMATE, Status.UNKNOWN)
    return Answer(
        table,
        "progressive",
        confidence=0.95,
        progress=0.1,
        final=False,
        uncertain={"total": Uncertainty(bounds, status)},
    )


def test_exact_answer_has_zero_width() -> None:
    answer = Answer(pa.table({"k": ["a"], "d": [Decimal("1.50")]}), "exact")
    assert answer.relative_error == 0.0
    assert list(answer.bounds) == ["d"]
    assert answer.to_pandas(bounds=True).columns.tolist() == ["k", "d", "d__low", "d__high"]
    assert answer.status("k") == (Status.EXACT,)


def test_uncertain_answer_shows_intervals() -> None:
    answer = uncertain()
    text = str(answer)
    assert "100 ± 10" in text and "0 ?" in text and "10% of the data" in text and "NULL" in text
    assert answer.relative_error is None  # a cell is unknown
    assert answer.status("total")[2] is Status.UNKNOWN
    assert answer.to_pandas(bounds=True)["total__high"].tolist()[:2] == [110.0, 55.0]


def test_of_a_list_on_its_way_no_error_is_known() -> None:
    rows = pa.table({"n": [1, 2]})
    assert Answer(rows, "progressive", progress=0.1, final=False).relative_error is None
    assert Answer(rows, "progressive").relative_error == 0.0


def test_relative_error_is_the_widest() -> None:
    bounds = Bounds(pa.chunked_array([[90.0, 49.0]]), pa.chunked_array([[110.0, 51.0]]))
    answer = Answer(
        pa.table({"x": [100.0, 50.0]}),
        "progressive",
        uncertain={"x": Uncertainty(bounds, (Status.ESTIMATE,) * 2)},
    )
    assert answer.relative_error == pytest.approx(0.1)


def test_equal_names_are_kept() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert "x" in str(Answer(table, "exact"))


def test_notebook_display_escapes() -> None:
    html = Answer(pa.table({"<b>": ["<script>"]}), "exact")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_long_answers_are_cut() -> None:
    text = str(Answer(pa.table({"n": list(range(1000))}), "exact"))
    assert "first 20 of 1,000 rows" in text and len(text.splitlines()) < 30


def test_unknown_column() -> None:
    with pytest.raises(sooner.InvalidArgument, match="Did you mean 'total'"):
        uncertain().status("totl")


def test_plot(tmp_path) -> None:
    figure = uncertain().plot()
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
    with pytest.raises(sooner.InvalidArgument, match="no column of numbers"):
        Answer(pa.table({"k": ["a"]}), "exact").plot()
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(sooner.InvalidArgument, match="one name"):
        Answer(twice, "exact").plot()
