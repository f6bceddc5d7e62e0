"""What each type becomes on a target, and what the conversion of every op needs.

In: the types of arith, memref and vector ops.  Out: those of the llvm dialect; a memref is a bare pointer, `index` an
integer of the kernel's width, an f8 or f4 an integer of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.llvm_types import VOID, llvm_struct
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import (
    BF16,
    INDEX,
    ComplexType,
    FloatType,
    IntegerType,
    MemRefType,
    Type,
    VectorType,
    bit_width,
    element_type,
    integer,
    pointer,
    with_element,
)
from warpsmith.ir.dialects import func
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.symbols import declare

# No bf16 arithmetic is left on a CPU, and where the processor has none LLVM goes through f32 even to select or to move.
_NATIVE_FLOATS = {"f16", "bf16", "f32", "f64"}


class Lowering:
    """The state of one module's conversion: what its processor can do, its types, the intrinsics that are declared."""

    def __init__(self, module: Operation) -> None:
        self.module = module
        self.can = capabilities(module)
        self.declared: set[str] = set()
        bits = func.entry(module).attributes.get("warpsmith.index_bits")
        self.index = integer(bits.value if isinstance(bits, at.IntegerAttr) else 64)
        self.types: dict[Type, Type] = {INDEX: self.index}

    def type(self, old: Type) -> Type:
        """What a type becomes."""
        found = self.types.get(old)
        if found is None:
            found = self.types[old] = self._convert(old)
        return found

    def _convert(self, old: Type) -> Type:
        match old:
            case MemRefType():
                return pointer(self.can.spaces.get(old.space, old.space))
            case FloatType() if old.text not in _NATIVE_FLOATS or (old is BF16 and not self.can.has_bf16):
                return integer(old.width)
            case ComplexType():
                return llvm_struct((old.element, old.element))
            case VectorType() if 1 < bit_width(old.element) < 8 and not self.can.has_sub_byte_vectors:
                raise LoweringError(
                    f"vectors of {old.element} have no form on {self.can.target}", help="use elements of 8 bits"
                )
            case VectorType():
                return with_element(old, self.type(old.element))
            case _:
                return old

    def call_intrinsic(self, b: Builder, name: str, operands: Sequence[Value], result: Type = VOID) -> Sequence[Value]:
        """Call an intrinsic that has no op of its own, by its full name; the module then declares it."""
        if name not in self.declared:
            self.declared.add(name)
            declare(self.module, name, result, [v.type for v in operands])
        results = () if result is VOID else (result,)
        return b.create("llvm.call", operands, results, {"callee": at.symbol(name)}).results

    def storage(self, type: Type) -> Type:
        """The type of one element in memory: i1 takes a byte."""
        element = self.type(element_type(type))
        return integer(8) if isinstance(element, IntegerType) and element.width == 1 else element


Handler = Callable[[Lowering, Operation], None]


def number(b: Builder, value: int, type: Type) -> Value:
    """An integer constant; every lane of a vector."""
    attribute = at.splat_or_scalar(at.integer_attr(value, element_type(type)), type)
    return b.op1("llvm.mlir.constant", (), type, {"value": attribute})


def where(op: Operation) -> str:
    """The HLO that an op came from, for the end of a message."""
    return f" (from HLO instruction {', '.join(op.location.names)})" if op.location.names else ""
