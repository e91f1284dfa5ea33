"""An answer for people: the terminal, the notebook, and the numbers behind them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from sooner import Answer, Bounds, Database, InvalidArgument, Status
from sooner.answer import Uncertainty
from sooner.display import cell_text


def chunked(*values: float | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.float64())])


@pytest.fixture
def uncertain() -> Answer:
    table = pa.table({"g": ["a", "b", "<c>"], "s": [10.0, 20.0, None], "n": [1, 2, 3]})
    bounds = Bounds(chunked(9.0, 20.0, None), chunked(11.0, 20.0, None))
    status = (Status.ESTIMATE, Status.EXACT, Status.UNKNOWN)
    return Answer(
        table,
        method="progressive",
        confidence=0.95,
        progress=0.25,
        final=False,
        elapsed=1.5,
        uncertain={"s": Uncertainty(bounds, status)},
    )


def test_text(uncertain: Answer) -> None:
    lines = str(uncertain).splitlines()
    assert lines[0].split() == ["g", "s", "n"]
    assert next(line for line in lines if " a " in f" {line} ").split() == [
        "a",
        "10",
        "±",
        "1",
        "1",
    ]
    assert "NULL ?" in next(line for line in lines if "<c>" in line)
    assert "±" not in next(line for line in lines if line.strip().startswith("b"))
    assert lines[-1] == "3 rows · progressive · 25% of the data · 95% intervals · 1.50 s"


def test_show_prints_the_same(uncertain: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    uncertain.show()
    assert "± 1" in capsys.readouterr().out


def test_into_a_pipe_all_columns_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    wide = Answer(pa.table({f"column_{n}": [f"value of {n}"] for n in range(40)}), "exact")
    wide.show()
    shown = capsys.readouterr().out
    assert all(f"column_{n}" in shown and f"value of {n}" in shown for n in range(40))
    assert str(wide) in shown


def test_html_is_escaped(uncertain: Answer) -> None:
    page = uncertain._repr_html_()
    assert "&lt;c&gt;" in page and "<c>" not in page
    assert page.count("<tr>") == 4
    assert "text-align:right" in page


def test_markup_is_shown_as_it_is() -> None:
    assert "[bold]x[/bold]" in str(Answer(pa.table({"[red]": ["[bold]x[/bold]"]}), "exact"))


def test_bounds(uncertain: Answer) -> None:
    shown = uncertain.to_pandas(bounds=True)
    assert list(shown.columns) == ["g", "s", "s__low", "s__high", "n", "n__low", "n__high"]
    assert shown.s__low[0] == 9.0 and shown.s__high[0] == 11.0
    assert list(shown.n__low) == list(shown.n__high) == [1, 2, 3]
    assert list(uncertain.to_pandas().columns) == ["g", "s", "n"]
    assert uncertain.status("s")[2] is Status.UNKNOWN
    assert uncertain.status("n") == (Status.EXACT,) * 3
    assert uncertain.relative_error is None
    with pytest.raises(InvalidArgument, match="no column 'ss'"):
        uncertain.status("ss")


def test_relative_error_is_the_widest() -> None:
    bounds = Bounds(chunked(9.0, -30.0), chunked(11.0, -10.0))
    table = pa.table({"s": [10.0, -20.0]})
    status = (Status.ESTIMATE,) * 2
    answer = Answer(table, "progressive", uncertain={"s": Uncertainty(bounds, status)})
    assert answer.relative_error == 0.5


def test_exact_answers_are_certain(database: Database) -> None:
    answer = database.sql("SELECT 1 AS n, 'a' AS s, 1.50BD AS d").exact()
    assert (answer.final, answer.progress, answer.confidence) == (True, 1.0, 1.0)
    assert answer.relative_error == 0.0
    assert set(answer.bounds) == {"n", "d"}
    assert answer.bounds["d"].low.to_pylist() == [Decimal("1.50")]
    assert answer.method.startswith("exact")
    assert answer.elapsed > 0
    assert "1 row · exact" in answer.caption


def test_long_answers_are_cut() -> None:
    answer = Answer(pa.table({"n": list(range(1000))}), "exact")
    assert "first 20 of 1,000 rows" in str(answer)
    assert " 19" in str(answer) and " 20\n" not in str(answer)
    assert answer._repr_html_().count("<tr>") == 21


def test_empty_and_odd_answers() -> None:
    assert "0 rows" in str(Answer(pa.table({"n": pa.array([], pa.int64())}), "exact"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    text = str(Answer(twice, "exact"))
    assert "1" in text and "2" in text
    assert "NULL" in str(Answer(pa.table({"n": pa.nulls(1)}), "exact"))


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "NULL"),
        (1.0, "1"),
        (1234.5678, "1,234.57"),
        (12345678.9, "12,345,678.90"),
        (1e-9, "1e-09"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (Decimal("1.20"), "1.20"),
        (True, "True"),
        ("x" * 100, "x" * 39 + "…"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text
