"""Text of expressions.

In: an expression, and names for its variables.  Out: text that `parser` reads.  There are two spellings of floor
division: `floordiv` (the default in IR dumps, style "mlir") and `/` (what today's XLA prints, style "xla").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from warpsmith.indexing.nodes import (
    Add,
    Binary,
    CeilDiv,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Var,
    const,
    pending,
    split_coefficient,
)

__all__ = ["Style", "print_expr"]

Style = Literal["mlir", "xla"]

_SUM, _PRODUCT, _ATOM = 0, 1, 2  # binding strength
_WORDS: Final[dict[type[Expr], str]] = {Mul: "*", Mod: "mod", CeilDiv: "ceildiv", Max: "max", Min: "min"}
_DIVIDE: Final[dict[Style, str]] = {"mlir": "floordiv", "xla": "/"}


def print_expr(
    expr: Expr, dims: Sequence[str] | None = None, symbols: Sequence[str] | None = None, style: Style = "mlir"
) -> str:
    """The text of an expression; variables print as d0, s0 unless names are given."""
    texts: dict[Expr, tuple[str, int]] = {}
    for node in pending((expr,), texts):
        if type(node) is Const:
            texts[node] = str(node.value), _ATOM
        elif type(node) is Var:
            names, letter = (symbols, "s") if node.is_symbol else (dims, "d")
            texts[node] = (f"{letter}{node.id}" if names is None else names[node.id]), _ATOM
        elif type(node) is Add:
            texts[node] = _print_sum(node, texts), _SUM
        else:
            assert isinstance(node, Binary)
            texts[node] = _print_binary(node, texts, style)
    return texts[expr][0]


def _print_sum(node: Add, texts: Mapping[Expr, tuple[str, int]]) -> str:
    parts = [texts[node.terms[0]][0]]
    for term in node.terms[1:]:
        base, coefficient = (const(1), term.value) if type(term) is Const else split_coefficient(term)
        if coefficient >= 0:
            parts.append(f" + {texts[term][0]}")
        elif type(term) is Const:
            parts.append(f" - {-coefficient}")
        else:
            factor = "" if coefficient == -1 else f" * {-coefficient}"
            parts.append(f" - {_operand(base, Mul, texts)}{factor}")
    return "".join(parts)


def _print_binary(node: Binary, texts: Mapping[Expr, tuple[str, int]], style: Style) -> tuple[str, int]:
    kind = type(node)
    if kind in (Max, Min):
        return f"{_WORDS[kind]}({texts[node.lhs][0]}, {texts[node.rhs][0]})", _ATOM
    if kind is Mul and type(node.rhs) is Const and node.rhs.value == -1:
        return f"-{_operand(node.lhs, Mul, texts)}", _PRODUCT
    word = _DIVIDE[style] if kind is FloorDiv else _WORDS[kind]
    rhs_text, rhs_strength = texts[node.rhs]
    rhs = rhs_text if rhs_strength == _ATOM else f"({rhs_text})"
    return f"{_operand(node.lhs, kind, texts)} {word} {rhs}", _PRODUCT


def _operand(node: Expr, user: type[Expr], texts: Mapping[Expr, tuple[str, int]]) -> str:
    """The left operand of a product-like operator, in parentheses unless it is an atom or the same operator."""
    text, strength = texts[node]
    plain = strength == _ATOM or (strength == _PRODUCT and type(node) is user and not text.startswith("-"))
    return text if plain else f"({text})"
