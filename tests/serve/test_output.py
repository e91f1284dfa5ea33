"""Answers as files."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from sooner.answer import Answer, Bounds, Status, Uncertainty
from sooner.serve.output import OutputFormat, write_answer


def an_answer(final: bool) -> Answer:
    table = pa.table({"g": ["a", "b"], "n": [10, 20]})
    low, high = pa.chunked_array([[8.0, None]]), pa.chunked_array([[12.0, None]])
    open_ = {"n": Uncertainty(Bounds(low, high), (Status.ESTIMATE, Status.UNKNOWN))}
    return Answer(table, "progressive", final=final, uncertain={} if final else open_)


def test_an_answer_on_the_way_is_written_with_its_intervals(tmp_path: Path) -> None:
    write_answer(an_answer(final=False), OutputFormat.JSON, tmp_path / "a.json")
    first, second = json.loads((tmp_path / "a.json").read_text())
    assert first == {"g": "a", "n": 10, "n__low": 8.0, "n__high": 12.0}
    assert second == {"g": "b", "n": 20, "n__low": None, "n__high": None}


def test_a_final_answer_is_written_alone(tmp_path: Path) -> None:
    write_answer(an_answer(final=True), OutputFormat.CSV, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines() == ['"g","n"', '"a",10', '"b",20']


def test_nested_values_are_json(tmp_path: Path) -> None:
    nested = {"d": Decimal("2.50"), "f": [1.5, float("nan")], "m": [("k", date(2024, 2, 29))]}
    nested["b"] = b"\x00\xff"
    kind = pa.struct(
        [
            ("d", pa.decimal128(5, 2)),
            ("f", pa.list_(pa.float64())),
            ("m", pa.map_(pa.string(), pa.date32())),
            ("b", pa.binary()),
        ]
    )
    answer = Answer(pa.table({"n": pa.array([nested], kind)}), "exact")
    write_answer(answer, OutputFormat.JSON, tmp_path / "a.json")

    def never(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads((tmp_path / "a.json").read_text(), parse_constant=never)
    assert found == [{"n": {"d": 2.5, "f": [1.5, None], "m": [["k", "2024-02-29"]], "b": "AP8="}}]
