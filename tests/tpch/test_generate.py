"""TPC-H tables that are there already are kept, and only for the scale they were made with."""

from __future__ import annotations

from pathlib import Path

import pytest

from sooner.errors import InvalidArgument
from sooner.tpch import generate
from sooner.tpch.load import TABLES


@pytest.fixture
def made(tmp_path: Path) -> Path:
    for table in TABLES:
        (tmp_path / table).mkdir()
    return generate(tmp_path, 10, progress=False)


def test_a_scale_is_the_same_however_it_is_written(made: Path) -> None:
    assert generate(made, 10.0, progress=False) == made


def test_another_scale_is_refused(made: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"of scale 10, not 0\.1\. Choose"):
        generate(made, 0.1, progress=False)
    assert generate(made, 10, progress=False) == made


@pytest.mark.parametrize("scale", [0, -1])
def test_a_scale_must_be_above_nothing(tmp_path: Path, scale: float) -> None:
    with pytest.raises(InvalidArgument, match="above 0"):
        generate(tmp_path / "data", scale, progress=False)
    assert not (tmp_path / "data").exists()
