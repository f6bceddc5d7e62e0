"""Threads, barriers, shuffles and the instructions of a warp."""

from __future__ import annotations

from warpsmith.backends.cuda_cpp.memory import is_aligned, pointer
from warpsmith.backends.cuda_cpp.plan import stored_next
from warpsmith.backends.cuda_cpp.types import BOOL, INT, Expr, atom, call
from warpsmith.backends.cuda_cpp.writer import Handler, Statement, Writer, initial, place
from warpsmith.errors import LoweringError
from warpsmith.ir.core.attributes import IntegerAttr
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import BF16, IntegerType, element_type
from warpsmith.ir.dialects import gpu
from warpsmith.ir.dialects.arith import constant_int
from warpsmith.passes.support.capabilities import capabilities, check_capability

__all__ = ["EXPRESSIONS", "STATEMENTS"]

_REGISTERS = {
    "gpu.thread_id": ("threadIdx", "tid"),
    "gpu.block_id": ("blockIdx", "bid"),
    "gpu.block_dim": ("blockDim", "threads"),
    "gpu.grid_dim": ("gridDim", "blocks"),
}
_WARP = 32


def _id(w: Writer, op: Operation) -> None:
    """A variable: CUDA's own have no sign, and an index may be compared with a negative number."""
    if not op.result.users:
        return
    dimension = gpu.dimension(op)
    register, name = _REGISTERS[op.name]
    hint = op.result.name
    if hint.startswith((op.name.removeprefix("gpu."), "workgroup_id")) or not hint:
        hint = name if dimension == "x" else f"{name}_{dimension}"
    w.declare(op.result, atom(f"{register}.{dimension}", w.index), hint=hint)


def _lane(w: Writer, op: Operation) -> None:
    if op.result.users:
        w.unit.need("lane_id")
        w.declare(op.result, atom("lane_id()", w.index), hint="lane")


def _shuffle(w: Writer, op: Operation) -> Expr:
    value, offset, width = op.operands
    size, kind = constant_int(width), gpu.shuffle_mode(op)
    if size is None or op.results[1].users or kind not in ("xor", "up", "down", "idx"):
        raise LoweringError(f"{op.name} over an unknown width, or with its second result in use{place(op)}")
    function = "__shfl_sync" if kind == "idx" else f"__shfl_{kind}_sync"
    arguments = [atom("0xffffffff", INT), w.value(value), w.value(offset)]
    if size != _WARP:
        arguments.append(w.value(width))
    type = w.type(value.type)
    found = call(function, tuple(arguments), type)
    if isinstance(value.type, IntegerType):
        # Narrow ones go as an int, and come back as it went.
        given = w.value(value)
        return found.of_type(given.type, exact=given.exact)
    return found


def _barrier(w: Writer, _: Operation) -> None:
    w.line("__syncthreads();")


def _warp_sync(w: Writer, op: Operation) -> None:
    mask = constant_int(op.operands[0])
    w.line("__syncwarp();" if mask == -1 else f"__syncwarp({w.value(op.operands[0]).text});")


def _named_barrier(w: Writer, op: Operation) -> None:
    w.unit.need("named_barrier")
    w.line(f"named_barrier({', '.join(w.value(v).text for v in op.operands)});")


def _elect(w: Writer, op: Operation) -> None:
    w.unit.need("elect_one")
    w.declare(op.result, atom("elect_one()", BOOL), hint="elected")


# ------------------------------------------------------------------------------------------------- matrices and copies
def _copy_async(w: Writer, op: Operation) -> None:
    dest, i, source, j = op.operands
    size = op.attributes["bytes"]
    assert isinstance(size, IntegerAttr)
    w.unit.need("copy_async")
    w.line(f"copy_async<{size.value}>({pointer(w, dest, i)}, {pointer(w, source, j)});")


def _commit(w: Writer, _: Operation) -> None:
    w.unit.need("copy_async_commit")
    w.line("copy_async_commit();")


def _wait(w: Writer, op: Operation) -> None:
    count = op.attributes["n"]
    assert isinstance(count, IntegerAttr)
    w.unit.need("copy_async_wait")
    w.line(f"copy_async_wait<{count.value}>();")


def _matrix(op: Operation) -> str:
    """Tiles of 8 x 8, and whether they are transposed on the way."""
    tiles, flag = op.attributes["num_tiles"], op.attributes.get("transpose")
    assert isinstance(tiles, IntegerAttr)
    return f"x{tiles.value}" + ("_trans" if isinstance(flag, IntegerAttr) and flag.value else "")


def _lanes(w: Writer, value: Value) -> str:
    """A pointer to the lanes of a vector: where it lies in memory, if it's read for this use, else to a variable's."""
    source = value.defining_op
    if source is not None and source.name == "vector.load" and w.is_folded(source) and is_aligned(source, value.type):
        return pointer(w, *source.operands)
    return f"{w.named_operand(value)}.lane"


def _load_matrix(w: Writer, op: Operation) -> None:
    base, index = op.operands
    function = f"ldmatrix_{_matrix(op)}"
    w.unit.need(function)

    def load(target: str) -> None:
        w.line(f"{function}({target}, {pointer(w, base, index)});")

    store = stored_next(op)
    if store is not None and is_aligned(store, op.result.type):
        w.fills[op.result] = load
        return
    type = w.type(op.result.type)
    name = w.name(op.result, op.result.name or "tile")
    w.line(f"{type.name} {name};")
    load(f"{name}.lane")
    w.named(op.result, name, type, const=False)


def _store_matrix(w: Writer, op: Operation) -> None:
    value, base, index = op.operands
    function = f"stmatrix_{_matrix(op)}"
    w.unit.need(function)
    w.line(f"{function}({pointer(w, base, index)}, {_lanes(w, value)});")


def _multiply(w: Writer, op: Operation) -> None:
    """c += a b, a fragment of it in each lane: in c's own variable or place in an array, if nothing else needs that."""
    a, b, c = op.operands
    function = "mma_m16n8k16_" + ("bf16" if element_type(a.type) is BF16 else "f16")
    w.unit.need(function)

    def multiply(target: str) -> None:
        w.line(f"{function}({target}, {_lanes(w, a)}, {_lanes(w, b)});")

    store, source = stored_next(op), c.defining_op
    if store is not None and source is not None and w.is_folded(source) and source.operands == store.operands[1:]:
        w.fills[op.result] = multiply
        return
    type = w.type(op.result.type)
    start = w.value(c)
    if start.text in w.mutable and c.has_one_use and c.parent_block is op.block:
        w.bind(op.result, start)
        multiply(f"{start.text}.lane")
        return
    name = w.name(op.result, op.result.name or "product")
    w.line(f"{type.name} {name} = {initial(start.text, type.name)};")
    w.named(op.result, name, type, const=False)
    multiply(f"{name}.lane")


def _needing(handler: Statement) -> Statement:
    """LoweringError where the target that the kernel names lacks the instruction."""

    def checked(w: Writer, op: Operation) -> None:
        can = capabilities(w.function)
        if can.target:
            check_capability(op, can)
        handler(w, op)

    return checked


EXPRESSIONS: dict[str, Handler] = {"gpu.shuffle": _shuffle}
STATEMENTS: dict[str, Statement] = {
    **dict.fromkeys(_REGISTERS, _id),
    "gpu.lane_id": _lane,
    "gpu.barrier": _barrier,
    "nvvm.bar.warp.sync": _warp_sync,
    "nvvm.barrier": _named_barrier,
    "nvvm.elect.sync": _elect,
    "nvgpu.device_async_copy": _needing(_copy_async),
    "nvvm.cp.async.commit.group": _needing(_commit),
    "nvvm.cp.async.wait.group": _needing(_wait),
    "nvgpu.ldmatrix": _needing(_load_matrix),
    "nvgpu.stmatrix": _needing(_store_matrix),
    "nvgpu.mma.sync": _needing(_multiply),
}
