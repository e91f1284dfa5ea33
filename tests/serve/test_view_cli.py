"""The commands about views, from making one to dropping it, and what they say when things go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import sooner
from sooner.serve.cli import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Run = Callable[..., Result]

VISITS = """SELECT videoId, ownerId, COUNT(*) AS visitCount
            FROM Log JOIN Video USING (videoId) GROUP BY videoId, ownerId"""
TOTAL = "SELECT SUM(visitCount) AS n FROM visits"


def sessions(first: int, last: int) -> pd.DataFrame:
    number = np.arange(first, last)
    return pd.DataFrame({"sessionId": number, "videoId": number % 300, "bytes": number * 31 % 997})


def call(*args: str, input: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=input)


@pytest.fixture(scope="module")
def home(small_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of visits and the videos they are of, registered."""
    place = tmp_path_factory.mktemp("views")
    sessions(0, 3000).to_parquet(place / "log.parquet")
    video = np.arange(300)
    pd.DataFrame({"videoId": video, "ownerId": video % 10}).to_parquet(place / "video.parquet")
    with sooner.connect(place / ".sooner", spark=small_spark, progress=False) as database:
        database.register("Log", str(place / "log.parquet"), key="sessionId")
        database.register("Video", str(place / "video.parquet"), key="videoId")
    return place


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A command in the directory with the home; views that it made are gone afterwards."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")
    yield call
    with sooner.connect() as database:
        for view in database.views():
            view.drop()


def insert(rows: int) -> int:
    """Let sessions come; how many there are then."""
    with sooner.connect(progress=False) as database:
        before = database.sql("SELECT MAX(sessionId) AS n FROM Log").exact().to_pandas()["n"][0] + 1
        database.insert("Log", sessions(before, before + rows))
    return int(before) + rows


def test_from_making_a_view_to_dropping_it(run: Run) -> None:
    assert "No views yet. Start with: sooner view create --help" in run("view", "list").stdout
    done = run("view", "create", "visits", VISITS, "--sample", "50%")
    assert done.exit_code == 0 and done.stderr == "Created visits: 300 rows.\n"
    listed = run("view", "list").stdout
    assert all(word in listed for word in ("visits", "300", "videoId", "up to date", "50%"))
    assert run("view", "clean", "visits").stderr == "visits is up to date.\n"

    rows = insert(600)
    assert " stale " in run("view", "list").stdout
    shown = run("view", "show", "visits").stdout
    assert shown.startswith("SELECT videoId, ownerId") and "600 rows came or went" in shown
    assert "With refresh():" in shown and "created, " in shown
    assert run("view", "clean", "visits").stderr.startswith("Cleaned 50% of visits: ")

    done = run("view", "query", "visits", TOTAL)
    assert done.exit_code == 0 and "±" in done.stdout and "cleaned sample of 50%" in done.stdout
    still = run("query", TOTAL, "--format", "json").stdout
    assert json.loads(still) == [{"n": rows - 600}]

    done = run("view", "refresh", "visits")
    assert done.exit_code == 0 and "visits: " in done.output and " rows came and " in done.output
    assert json.loads(run("query", TOTAL, "--format", "json").stdout) == [{"n": rows}]
    assert "visits is up to date." in run("view", "refresh", "visits").output
    assert run("view", "drop", "visits").stderr.startswith("Dropped visits.")
    assert "No views yet" in run("view", "list").stdout


def test_answers_in_all_formats(run: Run, tmp_path: Path) -> None:
    assert run("view", "create", "visits", VISITS, "--sample", "0.5").exit_code == 0
    rows = insert(600)
    (narrow,) = json.loads(run("view", "query", "visits", TOTAL, "--format", "json").stdout)
    assert narrow["n__low"] < narrow["n"] < narrow["n__high"]

    file = tmp_path / "q.sql"
    file.write_text(TOTAL)
    output = tmp_path / "out.csv"
    done = run(
        *("view", "query", "visits", "--file", str(file), "--confidence", "99%"),
        *("--estimator", "corr", "--format", "csv", "--output", str(output)),
    )
    assert (done.exit_code, done.stdout) == (0, "")
    (wide,) = pd.read_csv(output).to_dict("records")
    assert wide["n"] == narrow["n"]
    assert wide["n__low"] < narrow["n__low"] and wide["n__high"] > narrow["n__high"]

    alone = run("view", "query", "visits", TOTAL, "--estimator", "aqp").stdout
    assert "row · a cleaned sample of 50%" in alone
    done = run(
        "view", "query", "visits", "--estimator", "exact", "--format", "json", input=f"{TOTAL};"
    )
    assert json.loads(done.stdout) == [{"n": rows}]


def test_a_query_from_a_file_and_from_standard_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "best.sql"
    file.write_text(
        "SELECT videoId, COUNT(*) AS n FROM Log GROUP BY videoId\nORDER BY n LIMIT 10;\n"
    )
    assert run("view", "create", "best", "--file", str(file)).stderr == "Created best: 10 rows.\n"
    done = run(
        *("view", "create", "by_owner", "-", "--sample-by", "videoId", "--outlier", "bytes=20"),
        *("--outlier", "sessionId=3 sd"),
        input=VISITS.replace("COUNT(*) AS visitCount", "SUM(bytes) AS b"),
    )
    assert done.exit_code == 0, done.output
    shown = run("view", "show", "by_owner").stdout
    assert "the 20 largest of bytes of Log" in shown
    assert "those 3 deviations above the mean of sessionId of Log" in shown

    insert(30)
    refused = run("view", "refresh", "best", "--how", "incremental")
    assert refused.exit_code == 1 and "because of LIMIT" in refused.stderr
    assert run("view", "refresh", "best", "--how", "recompute").exit_code == 0
    assert "recomputed, " in run("view", "show", "best").stdout
    assert run("view", "refresh", "by_owner", "--how", "incremental").exit_code == 0
    assert "incremental, " in run("view", "show", "by_owner").stdout


def test_what_is_due(run: Run) -> None:
    for name, *options in (
        ("soon", "--refresh", "20 rows"),
        ("later", "--refresh", "1h", "--clean", "20 rows"),
        ("never", "--sample", "0"),
    ):
        assert run("view", "create", name, VISITS, *options).exit_code == 0
    insert(10)
    assert run("view", "refresh").stderr == "Nothing is due.\n"
    insert(10)
    done = run("view", "refresh")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == ["refresh: soon", "clean: later"]
    assert run("view", "refresh").stderr == "Nothing is due.\n"


@pytest.fixture(scope="module")
def known(home: Path) -> Iterator[None]:
    """A view for commands that are refused."""
    made = call("view", "create", "visits", VISITS, "--home", str(home / ".sooner"))
    assert made.exit_code == 0, made.output
    yield
    call("view", "drop", "visits", "--home", str(home / ".sooner"))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("create", "visits", "SELECT * FROM Log"), "a view 'visits' already"),
        (("create", "Log", "SELECT * FROM Video", "--replace"), "a table 'Log' already"),
        (("create", "v", "SELECT * FROM Logg"), "Did you mean"),
        (("create", "v", "SELECT 1 AS one"), "reads none"),
        (("create", "v", "SELECT rand() AS r FROM Log"), "cannot hold rand()"),
        (("create", "v", "--file", "nowhere.sql"), "Cannot read nowhere.sql"),
        (("create", "v", "SELECT * FROM Log", "--file", "nowhere.sql"), "not both"),
        (("create", "v", "SELECT * FROM Log", "--sample", "ten"), "--sample takes a share"),
        (("create", "v", "SELECT * FROM Log", "--sample", "10"), "Say 10%?"),
        (("create", "v", "SELECT * FROM Log", "--sample", "200%"), "up to 1"),
        (("create", "v", "SELECT * FROM Log", "--sample-by", "video"), "no column 'video'"),
        (("create", "v", "SELECT * FROM Log", "--outlier", "bytes"), "--outlier takes"),
        (("create", "v", "SELECT * FROM Log", "--outlier", "bytes=many"), "'many'"),
        (("create", "v", "SELECT * FROM Log", "--outlier", "bite=5"), "Did you mean 'bytes'?"),
        (("create", "v", "SELECT * FROM Log", "--refresh", "often"), "give a time"),
        (("create", "v", "SELECT * FROM Log", "--clean", "0 rows"), "at least 1"),
        (("show", "visit"), "Did you mean 'visits'?"),
        (("refresh", "visit"), "Did you mean 'visits'?"),
        (("refresh", "visits", "--how", "fast"), "--how takes auto, incremental or recompute"),
        (("clean", "Log"), "There is no view 'Log'"),
        (("drop", "visit"), "Did you mean 'visits'?"),
        (("query", "visits", "SELECT COUNT(*) FROM Log"), "write FROM visits"),
        (("query", "visits", "SELECT COUNT(*) FROM visits WHERE n > 1"), "no column 'n'"),
        (("query", "visits", "DROP TABLE visits"), "nothing was changed"),
        (("query", "visits", TOTAL, "--estimator", "best"), "estimator must be"),
        (("query", "visits", TOTAL, "--confidence", "100%"), "between 0 and 1"),
        (("query", "visits", TOTAL, "--confidence", "sure"), "--confidence takes a share"),
    ],
)
def test_errors_are_one_line_and_exit_1(
    home: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(home)
    done = call("view", *args)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ") and says in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert "Traceback" not in done.output
