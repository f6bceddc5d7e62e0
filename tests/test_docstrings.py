"""Every public module, class, function and method says what it's for.

Public: no leading underscore in its name, nor in that of the module or class it's in.  An override says it again, as a
reader finds it alone; overloads and setters needn't.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import warpsmith

ROOT = Path(warpsmith.__file__).parent


def _names(path: Path) -> Sequence[str]:
    """The parts of a module's name, `__init__` and `__main__` left out."""
    return [part for part in path.relative_to(ROOT).with_suffix("").parts if not part.startswith("__")]


MODULES = sorted(each for each in ROOT.rglob("*.py") if not any(part.startswith("_") for part in _names(each)))


def _undocumented(body: Sequence[ast.stmt], inside: str = "") -> Iterator[str]:
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        decorators = [ast.unparse(each).rpartition(".")[2] for each in node.decorator_list]
        if "overload" in decorators or "setter" in decorators:
            continue
        if not ast.get_docstring(node):
            yield f"{inside}{node.name} (line {node.lineno})"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body, f"{inside}{node.name}.")


def undocumented(source: str) -> list[str]:
    """What lacks a docstring in a module's text, each with its line."""
    tree = ast.parse(source)
    return [*([] if ast.get_docstring(tree) else ["the module"]), *_undocumented(tree.body)]


@pytest.mark.parametrize("part", sorted({_names(each)[0] if _names(each) else "" for each in MODULES}))
def test_what_is_public_is_documented(part: str) -> None:
    found = {
        str(path.relative_to(ROOT)): missing
        for path in MODULES
        if (_names(path) or [""])[0] == part and (missing := undocumented(path.read_text()))
    }
    assert found == {}


def test_the_check_sees_what_is_missing() -> None:
    source = '''
"""A module."""
def told(): "It says."
def untold(): pass
def _private(): pass
class Told:
    "It says."
    @property
    def untold(self): return 1
    @untold.setter
    def untold(self, value): pass
class _Private:
    def untold(self): pass
'''
    assert undocumented(source) == ["untold (line 4)", "Told.untold (line 9)"]
    assert undocumented("x = 1") == ["the module"]
