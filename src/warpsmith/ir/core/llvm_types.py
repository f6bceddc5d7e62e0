"""Types of the `llvm` dialect alone: arrays, structs, functions and void (pointers are among the others).

Interned as all types are, and made by the factories below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from warpsmith.ir.core.types import Type

__all__ = [
    "VOID",
    "LLVMArrayType",
    "LLVMFunctionType",
    "LLVMStructType",
    "LLVMVoidType",
    "llvm_array",
    "llvm_function",
    "llvm_struct",
]


class LLVMArrayType(Type):
    """`!llvm.array<count x element>`."""

    __slots__ = ("count", "element")

    def __init__(self, count: int, element: Type) -> None:
        super().__init__(f"!llvm.array<{count} x {_inside_llvm(element)}>")
        self.count = count
        self.element = element


class LLVMStructType(Type):
    """`!llvm.struct<(fields)>`."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Type, ...]) -> None:
        super().__init__(f"!llvm.struct<({', '.join(map(_inside_llvm, fields))})>")
        self.fields = fields


class LLVMVoidType(Type):
    """`!llvm.void`: of a function that returns nothing."""

    __slots__ = ()


class LLVMFunctionType(Type):
    """`!llvm.func<result (inputs)>`."""

    __slots__ = ("inputs", "result")

    def __init__(self, result: Type, inputs: tuple[Type, ...]) -> None:
        super().__init__(f"!llvm.func<{_inside_llvm(result)} ({', '.join(map(_inside_llvm, inputs))})>")
        self.result = result
        self.inputs = inputs


def _inside_llvm(type: Type) -> str:
    """Within an LLVM type, the `!llvm.` of its parts is left out."""
    return type.text.removeprefix("!llvm.")


VOID = LLVMVoidType("!llvm.void")


@cache
def llvm_array(count: int, element: Type) -> LLVMArrayType:
    """The one `!llvm.array`."""
    return LLVMArrayType(count, element)


@cache
def _llvm_struct(fields: tuple[Type, ...]) -> LLVMStructType:
    return LLVMStructType(fields)


def llvm_struct(fields: Sequence[Type]) -> LLVMStructType:
    """The one `!llvm.struct`."""
    return _llvm_struct(tuple(fields))


@cache
def _llvm_function(result: Type, inputs: tuple[Type, ...]) -> LLVMFunctionType:
    return LLVMFunctionType(result, inputs)


def llvm_function(result: Type, inputs: Sequence[Type]) -> LLVMFunctionType:
    """The one `!llvm.func`."""
    return _llvm_function(result, tuple(inputs))
