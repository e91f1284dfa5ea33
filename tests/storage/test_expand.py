from __future__ import annotations

from pathlib import Path

import pytest

from sooner.errors import MissingFile, NotSupported
from sooner.storage import expand


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.parquet", "b.parquet", "_SUCCESS", "_hidden.parquet", ".b.parquet.crc", "notes.txt",
        "deep/year=2024/c.parquet", "_tmp/d.parquet", ".git/e.parquet", "_k=1/f.parquet",
        "odd [1]/g.parquet", "t.csv",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def _found(tree: Path, *patterns: str) -> list[str]:
    return [Path(path).relative_to(tree).as_posix() for path in expand(patterns)]


def test_a_directory_means_all_parquet_files_below(tree: Path) -> None:
    everything = [
        "_k=1/f.parquet", "a.parquet", "b.parquet", "deep/year=2024/c.parquet", "odd [1]/g.parquet",
    ]  # fmt: skip
    assert _found(tree, str(tree)) == everything
    assert _found(tree, f"file://{tree}") == everything
    assert _found(tree, f"file:{tree}/") == everything


def test_globs(tree: Path) -> None:
    assert _found(tree, f"{tree}/*.parquet") == ["a.parquet", "b.parquet"]
    assert _found(tree, f"file://{tree}/?.parquet") == ["a.parquet", "b.parquet"]
    assert _found(tree, f"{tree}/{{a,b,z}}.parquet") == ["a.parquet", "b.parquet"]
    assert _found(tree, f"{tree}/d*") == ["deep/year=2024/c.parquet"]
    assert _found(tree, f"{tree}/**/c.parquet") == ["deep/year=2024/c.parquet"]
    assert _found(tree, f"{tree}/**/*.parquet") == _found(tree, str(tree))
    assert _found(tree, f"{tree}/_tmp/*") == ["_tmp/d.parquet"]


def test_names_that_look_like_patterns(tree: Path) -> None:
    assert _found(tree, f"{tree}/odd [1]") == ["odd [1]/g.parquet"]
    assert _found(tree, f"file://{tree}/odd%20[1]/g.parquet") == ["odd [1]/g.parquet"]


def test_each_file_once(tree: Path) -> None:
    assert _found(tree, f"{tree}/a.parquet", f"{tree}/*.parquet") == ["a.parquet", "b.parquet"]


def test_other_suffixes(tree: Path) -> None:
    assert expand(str(tree), suffixes=(".csv", ".csv.gz")) == [str(tree / "t.csv")]


def test_paths_come_back_absolute(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert expand("a.parquet") == [str(tree / "a.parquet")]


def test_links_in_a_circle(tree: Path) -> None:
    (tree / "deep" / "up").symlink_to(tree)
    assert len(expand(str(tree / "deep"))) == 5


def test_nothing_found_names_the_pattern(tree: Path) -> None:
    for pattern in (f"{tree}/*.orc", f"{tree}/missing", f"{tree}/_tmp/.x*"):
        with pytest.raises(MissingFile) as failed:
            expand([f"{tree}/a.parquet", pattern])
        assert repr(pattern) in str(failed.value)
    with pytest.raises(MissingFile):
        expand([])


def test_other_file_systems(tree: Path) -> None:
    with pytest.raises(NotSupported, match="Spark view"):
        expand("s3a://bucket/x")
