"""The layers of the package: nothing imports upwards.  If this failed, the data flow would run in circles."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import warpsmith

PACKAGE = Path(warpsmith.__file__).parent
BOTTOM = frozenset({"errors", "dtypes", "arrays", "records", "numerics", "devices", "indexing", "version"})
BELOW_COMPILER = frozenset(
    {
        "hlo",
        "hlo_passes",
        "fusion",
        "schedule",
        "library",
        "ir",
        "passes",
        "kernel",
        "emitters",
        "tile",
        "reference",
        "simt",
    }
    | {"backends", "runtime"}
)

# Layer -> the layers that it may import beside itself and the bottom.  "" is the package's own __init__.
ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(BOTTOM, frozenset[str]()),
    "hlo": frozenset(),
    "ir": frozenset(),
    "fusion": frozenset({"hlo"}),
    "hlo_passes": frozenset({"fusion", "hlo"}),
    "schedule": frozenset({"hlo", "fusion"}),
    "library": frozenset({"hlo", "fusion"}),
    "kernel": frozenset({"ir"}),
    "emitters": frozenset({"fusion", "hlo", "ir", "kernel"}),
    "tile": frozenset({"ir", "kernel"}),
    "passes": frozenset({"ir"}),
    "simt": frozenset({"ir"}),
    "backends": frozenset({"kernel", "passes", "simt", "ir"}),
    "runtime": frozenset({"backends", "schedule", "library"}),
    "reference": frozenset({"tile", "simt", "ir"}),
    "compiler": BELOW_COMPILER,
    "report": BELOW_COMPILER | {"compiler", ""},
    "cli": BELOW_COMPILER | {"compiler", "report", ""},
    "__main__": frozenset({"cli"}),
    "": BELOW_COMPILER | {"compiler", "report"},
}
MOST_FILES = 24
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def imports(tree: ast.AST, name: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """(module, line) for everything of ours that a file imports, at any depth, by statement or by import_module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = name.split(".")[: None if is_package and node.level == 1 else -(node.level - is_package)]
                base = ".".join([*parents, base]).rstrip(".")
            for alias in node.names:
                # `from warpsmith.ir import dialects` is about the module; `from warpsmith import run` about the name.
                full = f"{base}.{alias.name}"
                yield (full if full in MODULES else base), node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.JoinedStr):
                argument = argument.values[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value.rstrip("."), node.lineno


def layer(module: str) -> str | None:
    """The part of the package that a module is in; None for a module of others."""
    parts = module.split(".")
    if parts[0] != "warpsmith":
        return None
    return parts[1] if len(parts) > 1 else ""


def broken_rules(path: Path) -> list[str]:
    name = module_name(path)
    own = layer(name)
    assert own is not None
    allowed = ALLOWED[own] | BOTTOM | {own}
    if own in BOTTOM:
        allowed = BOTTOM
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(PACKAGE)}:{line} imports {target}"
        for target, line in imports(tree, name, path.name == "__init__.py")
        if (found := layer(target)) is not None and found not in allowed
    ]


def circles() -> Iterator[set[str]]:
    """The sets of files of which each reaches each other: Tarjan's strongly connected components, of two and more."""
    arrows: dict[str, set[str]] = {}
    for path in FILES:
        name = module_name(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        arrows[name] = {found for found, _ in imports(tree, name, path.name == "__init__.py")} & MODULES - {name}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []

    def visit(name: str) -> Iterator[set[str]]:
        number[name] = lowest[name] = len(number)
        open_.append(name)
        for other in arrows[name]:
            if other not in number:
                yield from visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            first = open_.index(name)
            found = set(open_[first:])
            del open_[first:]
            if len(found) > 1:
                yield found

    for name in arrows:
        if name not in number:
            yield from visit(name)


@pytest.mark.slow
def test_no_files_import_each_other_but_a_class_and_its_printer() -> None:
    """Files of a circle can be read, tested and moved only together; `str(object)` needs the printer of its class."""
    assert {frozenset(name.removeprefix("warpsmith.") for name in each) for each in circles()} == {
        frozenset({"hlo.module", "hlo.text.printer"}),
        frozenset({"indexing.map", "indexing.map_printer"}),
        frozenset({"indexing.nodes", "indexing.expr_printer"}),
        frozenset({"ir.core.ssa", "ir.text.printer"}),
    }


def test_no_folder_is_too_long_to_be_read_at_a_glance() -> None:
    """A folder of more files hides what belongs together; passes are one file each, and are found by their name."""
    files = Counter(str(path.parent.relative_to(PACKAGE)) for path in FILES if path.name != "__init__.py")
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {"passes": files["passes"]}


def test_every_part_of_the_package_has_its_rule() -> None:
    """A new part without a row would be free to import anything."""
    assert {layer(name) for name in MODULES} <= ALLOWED.keys()


@pytest.mark.slow
def test_nothing_imports_upwards() -> None:
    """Imports inside functions and under TYPE_CHECKING count: a lazy import is a dependency all the same."""
    assert [rule for path in FILES for rule in broken_rules(path)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import warpsmith.cli", ["warpsmith.cli"]),
        ("def f():\n  from warpsmith.ir.core import types", ["warpsmith.ir.core.types"]),
        ("from warpsmith import errors, run", ["warpsmith.errors", "warpsmith"]),
        ("from . import ssa", ["warpsmith.ir.core.ssa"]),
        ("from ...hlo.text import parser", ["warpsmith.hlo.text.parser"]),
        ("import importlib\nimportlib.import_module('warpsmith.hlo')", ["importlib", "warpsmith.hlo"]),
        ("import importlib\nimportlib.import_module(f'warpsmith.cli.{x}')", ["importlib", "warpsmith.cli"]),
    ],
)
def test_every_way_to_import_is_seen(text: str, expected: list[str]) -> None:
    """An import in a form that the walk misses would escape the rule."""
    assert [name for name, _ in imports(ast.parse(text), "warpsmith.ir.core.types", False)] == expected
