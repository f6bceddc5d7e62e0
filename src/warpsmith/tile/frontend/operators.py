"""Python in a kernel: what the kernel language calls each operator, what Python itself does with values it knows, and
what to write for that which the language lacks."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

__all__ = ["BINARY", "COMPARE", "INSTEAD", "PAIRING", "PYTHON_BINARY", "PYTHON_COMPARE", "keyword"]

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
PYTHON_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.MatMult: lambda a, b: a @ b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitAnd: lambda a, b: a & b,
    ast.Mod: lambda a, b: a % b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
}
PYTHON_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}

PAIRING: tuple[type, ...] = (enumerate, zip, reversed)
"""What goes through Python values in order, whatever they are."""
INSTEAD: dict[Any, str] = {
    bool: "T.cast(x, 'bool')",
    float: "T.cast(x, 'float32')",
    int: "T.cast(x, 'int32')",
    math.ceil: "T.ceil(x)",
    math.exp: "T.exp(x)",
    math.floor: "T.floor(x)",
    math.log: "T.log(x)",
    math.sqrt: "T.sqrt(x)",
    math.tanh: "T.tanh(x)",
    pow: "x ** y",
    round: "T.round(x)",
    sum: "add the values up in a loop",
}
"""What is written in a kernel for some of Python's own functions."""
_KEYWORDS: dict[type[ast.AST], str] = {
    ast.AsyncFor: "async for",
    ast.AsyncFunctionDef: "async def",
    ast.AsyncWith: "async with",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.DictComp: "comprehension",
    ast.GeneratorExp: "generator expression",
    ast.ImportFrom: "import",
    ast.ListComp: "comprehension",
    ast.NamedExpr: "assignment inside an expression (:=)",
    ast.Set: "set",
    ast.SetComp: "comprehension",
    ast.Starred: "* here",
    ast.TryStar: "try",
}


def keyword(node: ast.AST) -> str:
    """What a kind of statement or expression is called."""
    return _KEYWORDS.get(type(node), type(node).__name__.lower())
