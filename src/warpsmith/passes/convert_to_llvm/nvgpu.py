"""Copies in flight, matrices and what else a warp does together: calls of LLVM's NVVM intrinsics.

    %t = nvgpu.ldmatrix %s, %i {num_tiles = 2} : vector<4xf16>
      ->  %p = llvm.getelementptr %s[%i]
          %r = llvm.call @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(%p)    two registers of 32 bits
          %t = llvm.bitcast %v : vector<2xi32> to vector<4xf16>                 %v: those of %r

A register has two 16-bit elements, the first one in the low half, as a bitcast of the vector has them.  What a target
lacks is refused (`capabilities.py`).  Reference: LLVM's NVPTX usage guide, PTX ISA.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.llvm_types import VOID, llvm_struct
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import (
    BF16,
    F32,
    I1,
    I32,
    I64,
    Type,
    VectorType,
    bit_width,
    element_type,
    pointer,
    vector,
)
from warpsmith.passes.convert_to_llvm.memory import address
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, number
from warpsmith.passes.support.capabilities import check_capability

_ELEMENT = "elem_type"
_GLOBAL = 1  # LLVM's address space of it
_ELECTS = 90  # compute capability (times ten) from which a warp has elect.sync


# -------------------------------------------------------------------------------------------------- calls and registers
def _call(low: Lowering, b: Builder, intrinsic: str, operands: Sequence[Value], result: Type = VOID) -> Sequence[Value]:
    return low.call_intrinsic(b, f"llvm.nvvm.{intrinsic}", operands, result)


def _registers(b: Builder, value: Value) -> list[Value]:
    """The 32-bit registers of a vector."""
    type = value.type
    assert isinstance(type, VectorType)
    count = type.elements * bit_width(type.element) // 32
    if count == 1:
        return [b.op1("llvm.bitcast", (value,), I32)]
    words = b.op1("llvm.bitcast", (value,), vector((count,), I32))
    return [b.op1("llvm.extractelement", (words, number(b, i, I64)), I32) for i in range(count)]


def _vector(b: Builder, values: Sequence[Value]) -> Value:
    """A vector of scalars."""
    type = vector((len(values),), values[0].type)
    whole = b.op1("llvm.mlir.poison", (), type)
    for i, value in enumerate(values):
        whole = b.op1("llvm.insertelement", (whole, value, number(b, i, I64)), type)
    return whole


def _fields(b: Builder, struct: Value, count: int, type: Type) -> list[Value]:
    return [b.op1("llvm.extractvalue", (struct,), type, {"position": at.dense_array((i,))}) for i in range(count)]


def _replace(op: Operation, value: Value) -> None:
    value.name = op.result.name
    op.replace_by((value,))


# ----------------------------------------------------------------------------------------------------- copies in flight
def note_elements(ops: Iterable[Operation]) -> None:
    """Write on each copy what it copies: once its buffers are pointers, they don't say."""
    for op in ops:
        if op.name == "nvgpu.device_async_copy":
            op.attributes[_ELEMENT] = at.type_attr(element_type(op.operands[0].type))


def _copy(low: Lowering, op: Operation) -> None:
    """16 bytes go past the first cache (cg); fewer can't (ca)."""
    check_capability(op, low.can)
    b = Builder.before(op)
    target, i, source, j = op.operands
    size = op.int_attr("bytes")
    noted = op.attributes[_ELEMENT]
    assert isinstance(noted, at.TypeAttr)
    element = low.storage(noted.type)
    from_ = b.op1("llvm.addrspacecast", (address(b, source, j, element),), pointer(_GLOBAL))
    cache = "cg" if size == 16 else "ca"
    _call(low, b, f"cp.async.{cache}.shared.global.{size}", (address(b, target, i, element), from_))
    op.erase()


def _commit(low: Lowering, op: Operation) -> None:
    check_capability(op, low.can)
    _call(low, Builder.before(op), "cp.async.commit.group", ())
    op.erase()


def _wait(low: Lowering, op: Operation) -> None:
    check_capability(op, low.can)
    b = Builder.before(op)
    _call(low, b, "cp.async.wait.group", (number(b, op.int_attr("n"), I32),))
    op.erase()


# ------------------------------------------------------------------------------------------------------------- matrices
def _matrix(op: Operation, verb: str) -> str:
    transpose = ".trans" if op.int_attr("transpose") else ""
    return f"{verb}.sync.aligned.m8n8.x{op.int_attr('num_tiles')}{transpose}.b16.p3"


def _load_matrix(low: Lowering, op: Operation) -> None:
    check_capability(op, low.can)
    b = Builder.before(op)
    base, index = op.operands
    count = op.int_attr("num_tiles")
    place = address(b, base, index, low.storage(op.result.type))
    # One register is a result of its own, several are a struct.
    found = _call(low, b, _matrix(op, "ldmatrix"), (place,), llvm_struct([I32] * count) if count > 1 else I32)
    words = _vector(b, _fields(b, found[0], count, I32)) if count > 1 else found[0]
    _replace(op, b.op1("llvm.bitcast", (words,), op.result.type))


def _store_matrix(low: Lowering, op: Operation) -> None:
    check_capability(op, low.can)
    b = Builder.before(op)
    value, base, index = op.operands
    place = address(b, base, index, low.storage(value.type))
    _call(low, b, _matrix(op, "stmatrix"), (place, *_registers(b, value)))
    op.erase()


def _multiply(low: Lowering, op: Operation) -> None:
    """The intrinsic takes pairs of bf16 as integers, pairs of f16 as vectors."""
    check_capability(op, low.can)
    b = Builder.before(op)
    a, other, c = op.operands
    factors = [*_registers(b, a), *_registers(b, other)]
    element = element_type(a.type)
    kind = "bf16"
    if element is not BF16:
        factors = [b.op1("llvm.bitcast", (each,), vector((2,), element)) for each in factors]
        kind = "f32.f32"
    count = 4
    sums = [b.op1("llvm.extractelement", (c, number(b, i, I64)), F32) for i in range(count)]
    (found,) = _call(low, b, f"mma.m16n8k16.row.col.{kind}", (*factors, *sums), llvm_struct([F32] * count))
    _replace(op, _vector(b, _fields(b, found, count, F32)))


# ---------------------------------------------------------------------------------------------------------------- lanes
def _elect(low: Lowering, op: Operation) -> None:
    """Older GPUs have no such instruction: there it is the lowest lane that is active."""
    if low.can.compute_capability >= _ELECTS:
        return
    b = Builder.before(op)
    (active,) = _call(low, b, "activemask", (), I32)
    lane = b.op1("nvvm.read.ptx.sreg.laneid", (), I32)
    lowest = b.op1("llvm.intr.cttz", (active,), I32, {"is_zero_poison": at.boolean(True)})
    equal: dict[str, at.Attribute] = {"predicate": at.integer_attr(0, I64)}
    _replace(op, b.op1("llvm.icmp", (lane, lowest), I1, equal))


TABLE: dict[str, Handler] = {
    "nvgpu.device_async_copy": _copy,
    "nvvm.cp.async.commit.group": _commit,
    "nvvm.cp.async.wait.group": _wait,
    "nvgpu.ldmatrix": _load_matrix,
    "nvgpu.stmatrix": _store_matrix,
    "nvgpu.mma.sync": _multiply,
    "nvvm.elect.sync": _elect,
}
