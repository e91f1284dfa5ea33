"""The examples of the documentation run as they stand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sooner

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("guide", ["guide.md", "guide_views.md"])
def test_guide(guide: str, spark, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / guide).read_text(), re.DOTALL)
    assert len(blocks) > 10
    names: dict[str, object] = {"spark": spark}
    for block in blocks:
        exec(compile(block, f"docs/{guide}", "exec"), names)
    names["db"].close()  # type: ignore[attr-defined]


SOURCE = Path(sooner.__file__).parent
WITH_EXAMPLES = [
    ".".join(("sooner", *file.relative_to(SOURCE).with_suffix("").parts))
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_every_module_can_be_loaded() -> None:
    for module in pkgutil.walk_packages(sooner.__path__, "sooner."):
        importlib.import_module(module.name)


def test_links_in_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"
