"""Integers as C++ has them: with or without a sign, all bits right or the low ones only."""

from __future__ import annotations

from warpsmith.backends.cuda_cpp.literals import integer_literal, unsigned_literal
from warpsmith.backends.cuda_cpp.types import BOOL, INT, CType, Expr, atom, cast, exact, integer_type
from warpsmith.backends.cuda_cpp.writer import Writer

__all__ = ["flexible", "signed", "unsigned", "wide_type"]


def unsigned(value: Expr, width: int) -> Expr:
    """The bits as a number without sign."""
    if value.literal is not None:
        return unsigned_literal(value.literal & (1 << width) - 1, max(width, 32))
    value = exact(value, width)
    if not value.type.signed or value.type is BOOL:
        return value
    return cast(integer_type(width, False), value)


def signed(value: Expr, width: int, w: Writer) -> Expr:
    """The bits as a number in two's complement."""
    if value.literal is not None:
        shifted = (value.literal + (1 << (width - 1)) & (1 << width) - 1) - (1 << (width - 1))
        return integer_literal(shifted, width)
    if value.exact and value.type.signed:
        return value
    if width in (8, 16, 32, 64):
        return cast(integer_type(width, True), value)
    w.unit.need("sign_extend")
    return atom(f"sign_extend<{width}>({value.text})", INT)


def wide_type(width: int, *, signed: bool = False) -> CType:
    """The type that C++ computes in."""
    return integer_type(max(width, 32), signed)


def flexible(value: Expr, other: Expr, width: int) -> Expr:
    """A literal next to a value without sign: small ones stay plain numbers."""
    if value.literal is None or other.literal is not None:
        return value
    if 0 <= value.literal <= 4096:
        return integer_literal(value.literal, 32)
    return unsigned_literal(value.literal, max(width, 32))
