"""How well a single element's address is aligned: LLVM joins neighbouring accesses where it knows that.

In: a buffer and an index, before or after the index became LLVM's.  Out: bytes.  A complex number's parts lie at an
even index and the next: where the first is known to be aligned to 8 bytes, LLVM reads both at once.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.ssa import BlockArgument, Value
from warpsmith.ir.dialects import func

__all__ = ["element_alignment"]

_MOST = 4  # 16 bytes: the widest access
_DEPTH = 8


def element_alignment(base: Value, index: Value, size: int) -> int:
    """The bytes that divide the address of an element of `size` bytes, `size` at least and 16 at most."""
    buffer = _base(base)
    if buffer <= size:
        return size
    return max(size, min(buffer, size << _zeros(index, _DEPTH)))


def _base(base: Value) -> int:
    """What a buffer's start and size are multiples of; 1 for one that nothing is known of."""
    if isinstance(base, BlockArgument):
        owner = base.block.parent_op
        if (
            owner is None
            or owner.row.name not in ("func.func", "llvm.func")
            or base.block is not owner.regions[0].blocks[0]
        ):
            return 1
        known = func.arg_attributes(owner)[base.index]
        align, size = known.get("llvm.align"), known.get("llvm.dereferenceable")
        if not isinstance(align, at.IntegerAttr):
            return 1
        # LLVM may widen an aligned load; one that is aligned no better than the buffer's size stays inside it.
        whole = size.value & -size.value if isinstance(size, at.IntegerAttr) and size.value else 1 << _MOST
        return min(align.value, whole, 1 << _MOST)
    maker = base.defining_op
    return 1 << _MOST if maker is not None and maker.row.name in _GLOBALS else 1


_GLOBALS = frozenset({"memref.get_global", "llvm.mlir.addressof"})


def _zeros(value: Value, depth: int) -> int:
    """How many of the lowest bits of an index are 0 whatever happens, 4 at most."""
    constant = constant_of(value)
    if constant is not None:
        return _low_zeros(constant.value)
    op = value.defining_op
    if op is None or depth == 0:
        return 0
    operands = op.operands
    match op.row.name.rpartition(".")[2]:
        case "add" | "addi" | "sub" | "subi" | "or" | "ori" | "xor" | "xori":
            return min(_zeros(operands[0], depth - 1), _zeros(operands[1], depth - 1))
        case "mul" | "muli":
            return min(_MOST, _zeros(operands[0], depth - 1) + _zeros(operands[1], depth - 1))
        case "and" | "andi":
            return max(_zeros(operands[0], depth - 1), _zeros(operands[1], depth - 1))
        case "shl" | "shli":
            by = constant_of(operands[1])
            return min(_MOST, _zeros(operands[0], depth - 1) + by.value) if by is not None and by.value >= 0 else 0
        case "select":
            return min(_zeros(operands[1], depth - 1), _zeros(operands[2], depth - 1))
        case "sext" | "extsi" | "zext" | "extui" | "index_cast" | "index_castui":
            return _zeros(operands[0], depth - 1)
        case _:
            return 0


def _low_zeros(number: int) -> int:
    return _MOST if number == 0 else min(_MOST, (number & -number).bit_length() - 1)
