"""The command line, from registering files to writing answers, and what it says when things go wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sooner.serve.cli import app


@pytest.fixture
def run(spark, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*args: str, input: str | None = None) -> Result:
        return CliRunner().invoke(app, list(args), input=input)

    return call


@pytest.fixture
def trips(run, tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": [1, 2, 3], "city": ["Lyon", None, "Ghent"], "fare": [1.5, 2.5, 4.0]})
    rows.to_parquet(tmp_path / "trips.parquet")
    done = run("register", "trips", "trips.parquet", "--key", "id")
    assert done.exit_code == 0 and "3 rows" in done.stderr


def test_query_as_table(run, trips) -> None:
    done = run("query", "SELECT city, fare FROM trips ORDER BY id")
    assert done.exit_code == 0
    assert "Lyon" in done.stdout and "NULL" in done.stdout and "3 rows" in done.stdout


def test_query_as_json_keeps_all_digits(run, trips) -> None:
    done = run(
        "query",
        "--format",
        "json",
        "SELECT city, CAST(fare AS DECIMAL(38,20)) f FROM trips WHERE id = 1",
    )
    assert done.stdout.count("1.50000000000000000000") == 1
    assert json.loads(done.stdout) == [{"city": "Lyon", "f": 1.5}]
    assert (
        json.loads(run("query", "--format", "json", "SELECT id FROM trips WHERE id > 9").stdout)
        == []
    )


def test_query_as_csv_and_parquet(run, trips, tmp_path) -> None:
    done = run(
        "query", "--format", "csv", "SELECT id, city, DATE '2024-02-29' AS d FROM trips ORDER BY id"
    )
    assert done.stdout.splitlines()[:2] == ['"id","city","d"', '1,"Lyon","2024-02-29"']
    run(
        "query",
        "SELECT sum(fare) AS s FROM trips",
        "--format",
        "parquet",
        "--output",
        "out.parquet",
    )
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"s": 8.0}]


def test_query_from_file_and_standard_input(run, trips, tmp_path) -> None:
    (tmp_path / "q.sql").write_text("SELECT count(*) AS n\nFROM trips;\n")
    for done in (
        run("query", "--file", "q.sql", "--format", "json"),
        run("query", "--format", "json", input="SELECT count(*) AS n FROM trips"),
        run("query", "-", "--format", "json", input="SELECT count(*) AS n FROM trips"),
    ):
        assert json.loads(done.stdout) == [{"n": 3}]


def test_tables_scramble_vacuum_drop(run, trips) -> None:
    assert run("scramble", "trips", "--by", "id", "--blocks", "4").exit_code == 0
    listed = run("tables").stdout
    assert "trips" in listed and "id (4 blocks)" in listed
    assert "Removed 0 files" in run("vacuum").stderr
    assert run("drop", "trips").exit_code == 0
    assert "Would remove" in run("vacuum", "--minutes", "0", "--dry-run").stderr
    assert "No tables yet" in run("tables").stdout


def test_explain(run, trips) -> None:
    assert "Sooner's own plan" in run("explain", "SELECT count(*) FROM trips").stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("query", "SELECT * FROM tripz"), "Did you mean 'trips'?"),
        (("query", "SELECT 1 +"), "line 1"),
        (("query", "DROP TABLE trips"), "nothing was changed"),
        (("query", "--file", "nowhere.sql"), "Cannot read nowhere.sql"),
        (("query", "SELECT 1", "--file", "nowhere.sql"), "not both"),
        (("register", "trips", "trips.parquet"), "replace=True"),
        (("register", "other", "nowhere/*.parquet"), "nowhere"),
        (("scramble", "trips", "--by", "idd"), "Did you mean 'id'?"),
        (("scramble", "trips", "--by", "id", "--blocks", "0"), "blocks"),
        (("vacuum", "--minutes", "-1"), "negative"),
        (("tpch", "data", "--scale", "0"), "above 0"),
    ],
)
def test_errors_are_one_line_and_exit_1(run, trips, args, says) -> None:
    done = run(*args)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ") and says in done.stderr
    assert "Traceback" not in done.output


def test_tpch_is_made_once(run, tmp_path) -> None:
    assert run("tpch", "data", "--scale", "0.001").exit_code == 0
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.parquet")}
    assert len({path.parent.name for path in made}) == 8
    assert run("tpch", "data", "--scale", "0.001").exit_code == 0
    assert made == {
        path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.parquet")
    }
    other = run("tpch", "data", "--scale", "0.002")
    assert other.exit_code == 1 and "another directory" in other.stderr


def test_demo(spark, tmp_path, monkeypatch, capsys) -> None:
    from sooner.serve.demo import demo

    monkeypatch.chdir(tmp_path)
    demo(scale=0.01, directory=Path("kept"))
    first = capsys.readouterr().out
    assert "Scrambling lineitem" in first and "revenue" in first
    demo(scale=0.01, directory=Path("kept"))
    assert "Scrambling" not in capsys.readouterr().out
