"""The command line, from registering files to writing answers, and what it says when things go wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from sooner.serve.cli import app

pytestmark = pytest.mark.spark


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


@pytest.fixture
def in_steps(run, tmp_path, monkeypatch) -> str:
    """A scrambled table that is read in steps, small as it is, and a query over it."""
    monkeypatch.setattr("sooner.progressive.streams._WORTH_BYTES", 0)
    rows = pd.DataFrame({"id": range(4000)})
    rows["city"] = [["Lyon", "Ghent"][i % 2] for i in rows["id"]]
    rows["fare"] = [float(i * 37 % 101) for i in rows["id"]]
    rows.to_parquet(tmp_path / "rides.parquet")
    assert run("register", "rides", "rides.parquet", "--key", "id").exit_code == 0
    assert run("scramble", "rides", "--by", "id", "--blocks", "32").exit_code == 0
    return "SELECT city, sum(fare) AS total FROM rides GROUP BY city ORDER BY city"


def test_progress_on_a_pipe_is_a_line_an_answer_then_the_exact_table(run, in_steps) -> None:
    done = run("query", in_steps, "--progress")
    assert done.exit_code == 0 and done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if "% read" in line]
    assert len(lines) > 2 and "widest" in lines[0] and "100.0% read" in lines[-1]
    rest = done.stdout.splitlines()[len(lines) :]
    exact = run("query", in_steps).stdout.splitlines()
    assert rest[:-1] == exact[:-1]  # all but the time it took


def test_progress_leaves_standard_output_to_the_data(run, in_steps) -> None:
    done = run("query", in_steps, "--progress", "--format", "json")
    assert json.loads(done.stdout) == json.loads(run("query", in_steps, "--format", "json").stdout)
    assert "100.0% read" in done.stderr
    run("query", in_steps, "--seed", "3", "--format", "csv", "--output", "out.csv")
    assert pd.read_csv("out.csv").to_dict("records") == json.loads(done.stdout)


def test_progress_stops_by_itself(run, in_steps) -> None:
    for option in (("--error", "50%"), ("--within", "1ms", "--confidence", "90%")):
        done = run("query", in_steps, *option, "--stream", "rides")
        assert done.exit_code == 0 and "not final" in done.stderr
        assert "100.0% read" not in done.stdout and "±" in done.stdout


def test_progress_says_when_there_are_no_steps(run, trips) -> None:
    done = run("query", "SELECT sum(fare) AS s FROM trips", "--within", "5s")
    assert done.exit_code == 0 and "exactly in one step" in done.stderr and "8" in done.stdout


def test_interrupted_progress_keeps_the_last_answer(run, in_steps, monkeypatch) -> None:
    from sooner.frame import Frame

    original = Frame.progress

    def interrupted(self, **options):
        yield next(original(self, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(Frame, "progress", interrupted)
    done = run("query", in_steps, "--progress")
    assert done.exit_code == 0
    assert "not final" in done.stderr and "Ghent" in done.stdout and "of the data" in done.stdout


def test_tables_scramble_vacuum_drop(run, trips) -> None:
    assert run("scramble", "trips", "--by", "id", "--blocks", "4").exit_code == 0
    listed = run("tables").stdout
    assert "trips" in listed and "id (4 blocks)" in listed
    assert "Removed 0 files" in run("vacuum").stderr
    assert run("drop", "trips").exit_code == 0
    assert "Would remove" in run("vacuum", "--minutes", "0", "--dry-run").stderr
    assert "No tables yet" in run("tables").stdout


def test_names_in_brackets_are_no_markup(run, tmp_path) -> None:
    pd.DataFrame({"[/id]": [1]}).to_parquet(tmp_path / "odd.parquet")
    run("register", "odd", "odd.parquet", "--key", "[/id]")
    assert "[/id]" in run("tables").stdout


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
        (
            ("query", "SELECT 1", "--error", "0"),
            "--error takes a share such as 1% or 0.01, above 0",
        ),
        (("query", "SELECT 1", "--error", "5"), "Say 5%?"),
        (("query", "SELECT 1", "--error", "close"), "not 'close'"),
        (("query", "SELECT 1", "--error", "nan"), "above 0"),
        (("query", "SELECT 1", "--within", "0s"), "--within takes a time above 0"),
        (("query", "SELECT 1", "--within", "5 parsecs"), "such as 5s, 500ms or 2m"),
        (("query", "SELECT 1", "--confidence", "100%"), "confidence must be between 0 and 1"),
        (("query", "SELECT id FROM trips", "--stream", "tripz"), "tripz"),
        (("register", "trips", "trips.parquet"), "Use --replace to replace it"),
        (("register", "other", "nowhere/*.parquet"), "nowhere"),
        (("scramble", "trips", "--by", "idd"), "Did you mean 'id'?"),
        (("scramble", "trips", "--by", "id", "--blocks", "0"), "blocks"),
        (("vacuum", "--minutes", "-1"), "negative"),
        (("vacuum", "--minutes", "nan"), "negative"),
        (("vacuum", "--minutes", "1e30"), "many years"),
        (("query", "SELECT 1", "-o", "nowhere/a.txt"), "nowhere/a.txt"),
        (("query", "SELECT 1", "--format", "csv", "-o", "nowhere/a.csv"), "nowhere/a.csv"),
        (("query", "SELECT 1", "--format", "parquet", "-o", "."), "irectory"),
        (("query", "--file", "trips.parquet"), "not text in UTF-8"),
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
    assert "The data is small" in first and "in plain Spark" in first
    demo(scale=0.01, directory=Path("kept"))
    assert "Scrambling" not in capsys.readouterr().out
