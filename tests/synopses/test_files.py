"""A synopsis on disk comes back as it was; its parts travel as bytes; parts merge in any order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synopsis_cases import made
from test_answers import TABLE, by_four, by_number

from sooner.errors import CatalogError, MissingFile
from sooner.synopses.files import as_text, from_text, read, write
from sooner.synopses.summary import Summary
from sooner.synopses.synopsis import Synopsis
from sooner.synopses.totals import merged, totals_of


def same(one: Summary, other: Summary) -> None:
    assert one.definition == other.definition
    for name in ("parent", "leaf"):
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(other.tree, name))
    for name, mine in one.tree.totals.measures.items():
        theirs = other.tree.totals.measures[name]
        for part in mine.__dataclass_fields__:
            check = (
                np.testing.assert_allclose if part == "squares" else np.testing.assert_array_equal
            )
            check(getattr(mine, part), getattr(theirs, part))
    np.testing.assert_array_equal(one.samples.starts, other.samples.starts)
    np.testing.assert_array_equal(one.samples.hashes, other.samples.hashes)
    for kind in ("axes", "values", "there"):
        for name, mine in getattr(one.samples, kind).items():
            np.testing.assert_array_equal(mine, getattr(other.samples, kind)[name])


@pytest.mark.parametrize("make", [by_number, by_four], ids=["by i", "by four"])
def test_what_is_written_is_read(make: Callable[[], Synopsis], tmp_path: Path) -> None:
    synopsis = make()
    write(synopsis.summary, str(tmp_path))
    definition = from_text(as_text(synopsis.definition))
    assert definition == synopsis.definition
    same(read(definition, str(tmp_path)), synopsis.summary)
    stored = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert stored < 60 * synopsis.sampled + 40_000


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    write(by_number().summary, str(tmp_path))
    (tmp_path / "samples.parquet").unlink()
    with pytest.raises(MissingFile, match="Create it again"):
        read(by_number().definition, str(tmp_path))


def test_a_newer_format_says_so() -> None:
    text = as_text(by_number().definition).replace('"format": 1', '"format": 9')
    with pytest.raises(CatalogError, match="newer Sooner"):
        from_text(text)


def test_batches_of_any_size_give_the_same() -> None:
    same(made(TABLE, ["n"], ["i"], batches=1).summary, made(TABLE, ["n"], ["i"], batches=7).summary)


numbers = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=12)


@given(numbers, numbers)
def test_totals_merge(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """Merging commutes, nothing is neutral, and parts together are the whole."""

    def of(rows: list[tuple[int, int]]) -> object:
        leaf = np.array([leaf for leaf, _ in rows], np.int64)
        values = np.array([value for _, value in rows], np.int64)
        return totals_of(leaf, 4, {"a": values}, {"v": (values, np.ones(len(rows), np.bool_))})

    def plain(totals) -> list[object]:
        kept = totals.measures["v"]
        parts = [totals.rows, totals.low["a"], totals.high["a"]]
        return [list(p) for p in (*parts, *(getattr(kept, f) for f in kept.__dataclass_fields__))]

    assert plain(merged([of(one), of(other)])) == plain(merged([of(other), of(one)]))
    assert plain(merged([of(one), of(other)])) == plain(of(one + other))
    assert plain(merged([of(one), of([])])) == plain(of(one))
