"""Which names of a function can be plain values: assigned at one place, and read only where that assignment holds.

In: a function's tree.  Out: the names that need a memory of their own, because they are assigned twice or read outside
the block that assigns them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

__all__ = ["stored_in", "variables_of"]


class _Block:
    """A run of statements: the assignments and reads in it, and the blocks in it."""

    def __init__(self, parent: _Block | None) -> None:
        self.parent = parent

    def holds(self, other: _Block) -> bool:
        at: _Block | None = other
        while at is not None:
            if at is self:
                return True
            at = at.parent
        return False


def variables_of(function: ast.FunctionDef) -> frozenset[str]:
    """Names that are stored to more than once, or read outside the block of their one assignment."""
    stores: dict[str, list[_Block]] = {}
    loads: dict[str, list[_Block]] = {}
    _walk(function.body, _Block(None), stores, loads)
    found: set[str] = set()
    for name, blocks in stores.items():
        if len(blocks) > 1 or any(not blocks[0].holds(each) for each in loads.get(name, ())):
            found.add(name)
    return frozenset(found)


def stored_in(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that some statements, and those in them, assign."""
    stores: dict[str, list[_Block]] = {}
    _walk(body, _Block(None), stores, {})
    return frozenset(stores)


def _walk(
    body: Sequence[ast.stmt], block: _Block, stores: dict[str, list[_Block]], loads: dict[str, list[_Block]]
) -> None:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            continue
        inner = [part for part in (_body(statement, "body"), _body(statement, "orelse")) if part]
        for name in _stored(statement):
            stores.setdefault(name, []).append(block)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            stores.setdefault(statement.target.id, []).append(block)
        for name in _loaded(statement):
            loads.setdefault(name, []).append(block)
        for part in inner:
            _walk(part, _Block(block), stores, loads)


def _body(statement: ast.stmt, field: str) -> list[ast.stmt]:
    found: list[ast.stmt] = getattr(statement, field, [])
    return found


def _stored(statement: ast.stmt) -> Iterator[str]:
    """Names that a plain assignment binds (a loop's variable is new in each loop)."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _loaded(statement: ast.stmt) -> Iterator[str]:
    """Names that the statement itself reads, not those of the blocks in it."""
    stack: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, (ast.stmt, ast.ExceptHandler))
    ]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        stack.extend(ast.iter_child_nodes(node))
