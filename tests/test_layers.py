"""The layers of the design: imports point only upward, and only the engine knows Spark."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import sooner

# A later module may import an earlier one, never the other way round.
ORDER = [
    *("errors", "display", "answer", "algebra", "sql", "analysis", "rewrites", "statistics"),
    *("storage", "engine", "progressive", "synopses", "views", "missing", "route"),
    *(
        "prepare",
        "explain",
        "above",
        "incomplete",
        "view",
        "create_view",
        "keeper",
        "family",
        "frame",
    ),
    *("database", "tpch", "serve"),
]
# The engine talks to Spark; at the front door users hand sessions and DataFrames over.
MAY_IMPORT_SPARK = {"engine", "prepare", "frame", "database", "tpch", "serve"}
SPARK = ("pyspark", "py4j")
PLAIN = ("algebra", "sql", "analysis", "rewrites", "statistics", "storage")

ROOT = Path(sooner.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


@dataclass(frozen=True)
class Import:
    file: Path
    line: int
    module: str
    for_types: bool

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT.parent)}:{self.line} imports {self.module}"


def layer_of(file: Path) -> str:
    first = file.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def package_of(file: Path) -> list[str]:
    return ["sooner", *file.relative_to(ROOT).parts[:-1]]


def statements(body: Iterable[ast.AST], for_types: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All statements, however deep, and whether only a type checker reads them."""
    for node in body:
        yield node, for_types
        guards = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = for_types or (guards and part == "body")
            yield from statements(getattr(node, part, ()), inside)


def imports_of(file: Path) -> Iterator[Import]:
    for node, for_types in statements(ast.parse(file.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, for_types)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = package_of(file)
                parents = package[: len(package) - (node.level - 1)]
                base = ".".join([*parents, base] if base else parents)
            # "from sooner import engine" names a module, "from sooner.engine import lock" a part.
            for alias in node.names:
                yield Import(file, node.lineno, f"{base}.{alias.name}", for_types)


@cache
def all_imports() -> tuple[Import, ...]:
    """Read when a test asks: collecting the tests is not held up by parsing the package."""
    return tuple(found for file in FILES for found in imports_of(file))


def test_every_module_has_a_place_in_the_order() -> None:
    layers = {layer_of(file) for file in FILES} - {"__init__", "__main__"}
    assert layers <= set(ORDER), f"new modules need a place in ORDER: {layers - set(ORDER)}"


def test_imports_point_only_upward() -> None:
    wrong = []
    for found in all_imports():
        parts = found.module.split(".")
        layer = layer_of(found.file)
        if parts[0] != "sooner" or layer in ("__init__", "__main__") or found.for_types:
            continue
        if len(parts) < 2 or parts[1] not in ORDER:
            wrong.append(f"{found}: import the layer that it comes from")
        elif ORDER.index(parts[1]) > ORDER.index(layer):
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_only_the_engine_and_the_front_door_import_spark() -> None:
    wrong = [
        str(found)
        for found in all_imports()
        if found.module.split(".")[0] in SPARK and layer_of(found.file) not in MAY_IMPORT_SPARK
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layer", PLAIN)
def test_plain_layers_do_not_name_spark(layer: str) -> None:
    """Not even for types: a schema comes as plain values."""
    wrong = [
        str(found)
        for found in all_imports()
        if layer_of(found.file) == layer and found.module.split(".")[0] in SPARK
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "file", [f for f in FILES if f.name == "__init__.py"], ids=lambda f: "/".join(package_of(f))
)
def test_init_files_only_re_export(file: Path) -> None:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        exported = isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] in (
            ["__all__"],
            ["__version__"],
        )
        fine = docstring or exported or isinstance(node, ast.Import | ast.ImportFrom)
        assert fine, f"{file}:{node.lineno} has code: {ast.unparse(node)}"


def test_everything_exported_exists() -> None:
    for name in sooner.__all__:
        assert getattr(sooner, name).__doc__, f"sooner.{name} has no docstring"


def test_plain_layers_load_without_spark() -> None:
    """A process of its own, the layers one after another: here Spark may be loaded already.

    ``sooner/__init__`` is passed over, because it re-exports the front door, Spark and all.
    """
    script = f"""
import importlib, sys, types
package = types.ModuleType("sooner")
package.__path__ = [{str(ROOT)!r}]
sys.modules["sooner"] = package
for layer in {PLAIN!r}:
    importlib.import_module("sooner." + layer)
    loaded = sorted(name for name in sys.modules if name.split(".")[0] in {SPARK!r})
    if loaded:
        sys.exit(f"{{layer}} loaded {{loaded[:5]}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
