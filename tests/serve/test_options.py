"""Times and shares as people type them."""

from __future__ import annotations

import pytest

from sooner.serve.options import seconds, share


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5s", 5.0), ("500ms", 0.5), ("2m", 120.0), ("1.5", 1.5), (" 3 S ", 3.0), (".5h", 1800.0)],
)
def test_times(text, expected) -> None:
    assert seconds("--within", text) == pytest.approx(expected)


@pytest.mark.parametrize(("text", "expected"), [("1%", 0.01), ("0.01", 0.01), (" 2.5 % ", 0.025)])
def test_shares(text, expected) -> None:
    assert share("--error", text, "1%") == pytest.approx(expected)
