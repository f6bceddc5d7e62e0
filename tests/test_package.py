"""The package as a whole: what importing it costs, what it exports, and that it names no machine."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import warpsmith
from warpsmith.cli import COMMANDS

PACKAGE = Path(warpsmith.__file__).parent
ROOT = Path(__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))


def test_importing_the_package_loads_nothing_that_costs() -> None:
    """`import warpsmith` is in every script's start: LLVM, rich and argparse together cost more than a compile."""
    code = "import sys, warpsmith; print([m for m in ('llvmlite', 'rich', 'argparse', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", warpsmith.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(warpsmith, name) is not None


def test_type_checkers_and_the_interpreter_see_the_same_public_names() -> None:
    """The lazy table and the imports under TYPE_CHECKING say the same twice; they must agree."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name: node.module
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed.keys() == {*warpsmith.__all__} - {"__version__", "WarpsmithError"}
    for name, home in typed.items():
        assert getattr(importlib.import_module(str(home)), name) is getattr(warpsmith, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = warpsmith.nonsense


def test_the_version_is_the_projects() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.*)"', text, re.MULTILINE)
    assert found is not None
    assert found[1] == warpsmith.__version__


@pytest.mark.slow
def test_every_module_says_what_it_is() -> None:
    bare = [path.name for path in FILES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert bare == []


def test_every_command_has_its_module() -> None:
    for command in COMMANDS:
        module = importlib.import_module(f"warpsmith.cli.{command}")
        assert callable(module.register)
        assert callable(module.run)


# --------------------------------------------------------------------------------------------------------- whole tree
_TEXT = {".py", ".md", ".toml", ".yml", ".hlo", ".mlir", ".txt", ".json", ""}


def project_files() -> Iterator[Path]:
    """Files of the project itself: nothing that tools leave beside it."""
    for top in ("src", "tests", "docs", "bench", "examples", ".ci"):
        for path in sorted((ROOT / top).rglob("*")):
            inner = path.relative_to(ROOT / top).parts
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in inner):
                yield path
    yield from (p for p in sorted(ROOT.iterdir()) if p.is_file() and p.suffix in _TEXT and p.name != ".git")


def test_no_file_is_a_binary() -> None:
    """What can't be read can't be reviewed."""
    assert [str(path.relative_to(ROOT)) for path in project_files() if b"\0" in path.read_bytes()[:4096]] == []


# A directory of one computer, or the host of a package registry: neither is true on the reader's machine.
_MACHINE = re.compile(
    r"(?<![\w.~}])/(?:" + "|".join(("home", "root", "Users", "work", "tmp", "mnt")) + r")/\w|"
    r"\b(?:pypi\.org|files\.pythonhosted|registry\.npmjs|deb\.debian)"
)


def test_no_file_names_a_place_that_only_one_machine_has() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in project_files()
        if path != Path(__file__)
        for match in _MACHINE.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []
