"""The commands about missing rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sooner.missing.files import read_constraints
from sooner.serve.cli import app

pytestmark = pytest.mark.spark

MISSING = """
- where: branch = 'Chicago'
  values: {price: [0, 149.99]}
  rows: [0, 5]
"""


def test_from_history_to_a_range(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    sales = pd.DataFrame({"branch": ["Chicago", "Trenton"] * 10, "price": range(20)})
    sales.to_parquet("sales.parquet")
    Path("missing.yaml").write_text(MISSING)

    def run(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, list(words))
        assert found.exit_code == code, found.output
        return found.output

    run("register", "sales", "sales.parquet")
    text = "SELECT count(*) AS n FROM sales"
    assert "[20, 25]" in run("bounds", text, "--constraints", "missing.yaml")
    assert '"n__high": 25' in run("bounds", text, "-c", "missing.yaml", "--format", "json")
    assert "0 of 1 constraints hold" in run(
        "constraints", "check", "sales", "-c", "missing.yaml", code=1
    )
    run(
        "constraints",
        "suggest",
        "sales",
        "--measure",
        "price",
        "--over",
        "branch",
        "-o",
        "found.yaml",
    )
    assert {one.rows for one in read_constraints("found.yaml")} == {(0, 10)}
    assert "2 of 2 constraints hold" in run("constraints", "check", "sales", "-c", "found.yaml")
    run("register", "told", "sales.parquet", "--missing", "missing.yaml")
    assert "[20, 25]" in run("query", "SELECT count(*) AS n FROM told")
    assert "no file" in run("bounds", text, "-c", "nothing.yaml", code=1)
