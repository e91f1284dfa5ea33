from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sooner.errors import InvalidArgument
from sooner.storage import Change, DataFile, Scramble, Source
from sooner.storage.records import total_rows


def _scramble(**other: Any) -> Scramble:
    values: dict[str, Any] = {
        "id": 0, "by": ("a",), "types": ("bigint",), "salt": 0, "blocks": 4, "replicates": 32,
        "base_version": 1, "directory": "", "files": (),
    }  # fmt: skip
    return Scramble(**(values | other))


@pytest.mark.parametrize(
    "other",
    [
        {"types": ()},
        {"types": ("int",)},
        {"blocks": 0},
        {"replicates": 0},
        {"salt": 2**63},
        {"files": (DataFile("f", 1, 1, block=4),)},
    ],
)
def test_a_scramble_is_checked_when_built(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        _scramble(**other)


def test_same_layout_ignores_letter_case_and_where_it_is() -> None:
    assert _scramble().same_layout(_scramble(by=("A",), id=3, directory="x", replicates=8))
    assert not _scramble().same_layout(_scramble(salt=1))
    assert not _scramble().same_layout(_scramble(types=("string",)))


def test_other_records_are_checked_too() -> None:
    with pytest.raises(InvalidArgument, match="row groups"):
        DataFile("f", 3, 1, row_groups=(1, 1))
    with pytest.raises(InvalidArgument, match="orc"):
        Source("orc", ())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="upsert"):
        Change(2, "upsert", None, "")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="version 2"):
        Change(1, "insert", None, "")


def test_rows_are_unknown_where_one_file_does_not_say() -> None:
    assert total_rows([]) == 0
    assert total_rows([DataFile("a", 1, 1), DataFile("b", None, 1)]) is None


def test_records_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DataFile("a", 1, 1).rows = 2  # type: ignore[misc]
