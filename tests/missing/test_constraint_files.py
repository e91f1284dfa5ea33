"""Constraints as files: what is written is read, and what cannot be read is named."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from sooner.errors import InvalidArgument, MissingFile
from sooner.missing.constraint import Constraint
from sooner.missing.files import constraints_text, read_constraints


def test_what_is_written_is_read(tmp_path: Path) -> None:
    given = [
        Constraint("branch = 'Chicago'", {"price": (0, 149.99)}, (0, 5), name="Chicago"),
        Constraint(None, {"day": (date(2024, 11, 1), None), "p": (Decimal("1.5"), 2)}, (1, None)),
    ]
    file = tmp_path / "missing.yaml"
    file.write_text(constraints_text(given))
    assert read_constraints(file) == given


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("where: a", "list of constraints"),
        ("- a", "where, values and rows"),
        ("- where: a\n  row: [1, 2]", "rows"),
        ("- where: a\n  rows: [2, 1]", "constraint 1"),
        ("- {", "YAML"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "missing.yaml"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=says):
        read_constraints(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_constraints(tmp_path / "nothing.yaml")
