"""Walks over expressions: substitution, evaluation.

In: expressions and what to put for their variables.  Out: expressions, integers, arrays.  No walk is recursive: an
expression's depth must not meet the interpreter's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from warpsmith.errors import IndexingError
from warpsmith.indexing.expr import Add, Binary, CeilDiv, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Var, rebuild
from warpsmith.indexing.nodes import pending

__all__ = ["IntArray", "Values", "evaluate", "evaluate_all", "substitute"]

IntArray: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = int | IntArray


def substitute(expr: Expr, replacements: Mapping[Expr, Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Replaces variables (or whole subexpressions), all at once.  Calls with equal replacements may share `memo`."""
    done = {} if memo is None else memo
    if not done:
        done.update(replacements)
    if expr in done:
        return done[expr]
    for node in pending((expr,), done):
        children = node.children
        new = [done[child] for child in children]
        same = all(a is b for a, b in zip(new, children, strict=True))
        done[node] = node if same else rebuild(node, new)
    return done[expr]


def _ceil_div(a: Any, b: Any) -> Any:
    return -(-a // b)


_OPERATIONS: Final[dict[type[Expr], Callable[[Any, Any], Any]]] = {
    Mul: lambda a, b: a * b,
    Mod: lambda a, b: a % b,
    FloorDiv: lambda a, b: a // b,
    CeilDiv: _ceil_div,
    Max: lambda a, b: max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b),
    Min: lambda a, b: min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b),
}


def evaluate_all(exprs: Sequence[Expr], dims: Sequence[Values], symbols: Sequence[Values] = ()) -> list[Values]:
    """The values of expressions for values of the variables: integers, or int64 arrays of broadcastable shapes.

    An expression without array variables gives an integer.  An id without a value is an IndexingError.
    """
    values: dict[Expr, Any] = {}
    for node in pending(exprs, values):
        if type(node) is Const:
            values[node] = node.value
        elif type(node) is Var:
            source = symbols if node.is_symbol else dims
            if node.id >= len(source):
                raise IndexingError(f"no value for {'symbol' if node.is_symbol else 'dimension'} {node.id}")
            values[node] = source[node.id]
        elif type(node) is Add:
            total = values[node.terms[0]]
            for term in node.terms[1:]:
                total = total + values[term]
            values[node] = total
        else:
            assert isinstance(node, Binary)
            values[node] = _OPERATIONS[type(node)](values[node.lhs], values[node.rhs])
    return [values[expr] for expr in exprs]


def evaluate(expr: Expr, dims: Sequence[Values], symbols: Sequence[Values] = ()) -> Values:
    """The value of one expression; see `evaluate_all`."""
    return evaluate_all((expr,), dims, symbols)[0]
