"""Spelling types and constants in LLVM's text, and types in the names of its intrinsics.

In: types and attributes of the llvm dialect.  Out: strings.  Floats are written by their bits.
"""

from __future__ import annotations

import struct

import numpy as np

from warpsmith.errors import InternalError, LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.llvm_types import LLVMArrayType, LLVMStructType, LLVMVoidType
from warpsmith.ir.core.types import FloatType, IntegerType, PointerType, Type, VectorType, element_type

__all__ = ["TypeSpeller", "aggregate", "constant", "literal", "mangle"]

_SCALARS = {"bf16": "bfloat", "f16": "half", "f32": "float", "f64": "double"}


class TypeSpeller:
    """Spells types, each once."""

    def __init__(self) -> None:
        self.known: dict[Type, str] = {}

    def __call__(self, type: Type) -> str:
        found = self.known.get(type)
        if found is None:
            found = self.known[type] = self._spell(type)
        return found

    def _spell(self, type: Type) -> str:
        match type:
            case IntegerType():
                return type.text
            case FloatType() if type.text in _SCALARS:
                return _SCALARS[type.text]
            case VectorType():
                return f"<{type.elements} x {self(type.element)}>"
            case PointerType():
                return f"ptr addrspace({type.space})" if type.space else "ptr"
            case LLVMArrayType():
                return f"[{type.count} x {self(type.element)}]"
            case LLVMStructType():
                return f"{{ {', '.join(map(self, type.fields))} }}"
            case LLVMVoidType():
                return "void"
            case _:
                raise LoweringError(f"type {type} has no LLVM form")


def mangle(type: Type) -> str:
    """The type's suffix in an intrinsic's name."""
    match type:
        case VectorType():
            return f"v{type.elements}{mangle(type.element)}"
        case PointerType():
            return f"p{type.space}"
        case IntegerType() | FloatType():
            return type.text
        case _:
            raise InternalError(f"no intrinsic suffix for {type}")


def aggregate(spell: TypeSpeller, value: at.DenseAttr) -> str:
    """The body of a global array."""
    element = value.type.element
    items = value.array.reshape(-1)
    if value.is_splat:
        text = f"{spell(element)} {literal(at.scalar_attr(items[0], element))}"
        return f"[{', '.join([text] * len(items))}]"
    spelled = spell(element)
    return f"[{', '.join(f'{spelled} {literal(at.scalar_attr(v, element))}' for v in items)}]"


def constant(spell: TypeSpeller, value: at.Attribute, type: Type) -> str:
    """A scalar or a vector, without its type."""
    if isinstance(value, at.DenseAttr):
        element = element_type(type)
        spelled = spell(element)
        splat = value.splat
        if splat is not None:
            return f"splat ({spelled} {literal(splat)})"
        return f"<{', '.join(f'{spelled} {literal(at.scalar_attr(v, element))}' for v in value.array.reshape(-1))}>"
    return literal(value)


def literal(value: at.Attribute) -> str:
    """An LLVM constant: integers in decimal, floats by their bits."""
    if isinstance(value, at.IntegerAttr):
        return str(value.value)
    if not isinstance(value, at.FloatAttr):
        raise InternalError("only scalars have a literal")
    match value.type.text:
        case "bf16":
            return f"0xR{value.bits:04X}"
        case "f16":
            return f"0xH{value.bits:04X}"
        case "f64":
            return f"0x{value.bits:016X}"
        case "f32":
            # LLVM writes a float as the double of the same value; a NaN keeps its payload's high bits.
            bits = value.bits
            if (bits & 0x7F800000) == 0x7F800000 and bits & 0x7FFFFF:
                wide = ((bits & 0x80000000) << 32) | 0x7FF0000000000000 | ((bits & 0x7FFFFF) << 29)
            else:
                wide = struct.unpack("<Q", struct.pack("<d", float(np.uint32(bits).view(np.float32))))[0]
            return f"0x{wide:016X}"
        case _:
            raise InternalError(f"no LLVM literal of type {value.type}")
