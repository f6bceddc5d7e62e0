"""What is left of a kernel after its primitives: element accesses, views, early exits.

In: a module with primitives gone.  Out: none of its ops is of the tile dialect.  Each element's address comes from its
buffer's layout.  A `break` or `continue` becomes a flag that the rest of the turn asks.
"""

from __future__ import annotations

from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_removable
from warpsmith.ir.core.ssa import BlockArgument, Operation, Value
from warpsmith.ir.core.types import MemRefType
from warpsmith.ir.dialects import func
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.tile.dispatch.addressing import coordinate_address
from warpsmith.tile.dispatch.early_exits import lower_early_exits
from warpsmith.tile.dispatch.moves import load_elements, store_elements
from warpsmith.tile.dispatch.storage import Storage
from warpsmith.tile.model.buffers import buffer_of

__all__ = ["finish"]


def finish(module: Operation, function: Operation, storage: Storage) -> None:
    """Lower the remaining ops of the tile dialect."""
    for op in list(function.walk()):
        if op.name == "tile.load":
            _load(op, storage)
        elif op.name == "tile.store":
            _store(op, storage)
    lower_early_exits(function)
    for op in reversed(list(function.walk())):
        if (
            op.name == "tile.device_entry"
            or (op.row.dialect == "tile" and op.is_unused)
            or (op.is_unused and not op.regions and op is not function and is_removable(op))
        ):
            op.erase()
    _mark_variables(function)
    _mark_register_loops(function)
    _mark_invariant_loads(function)
    left = [op.name for op in function.walk() if op.row.dialect == "tile"]
    if left:
        raise InternalError(f"{left[0]} is left after dispatch")
    function.attributes["tile.dispatched"] = at.UNIT


def _mark_invariant_loads(function: Operation) -> None:
    """Loads of parameters that the kernel only reads, which may go through the read-only cache."""
    for argument, attributes in zip(function.body.args, func.arg_attributes(function), strict=True):
        if "xla.invariant" in attributes:
            for op in argument.users:
                if op.name in ("memref.load", "vector.load"):
                    op.attributes["invariant"] = at.UNIT


def _mark_variables(function: Operation) -> None:
    """A single register is a variable in a text, not an array of one element."""
    for op in function.walk():
        if op.name != "memref.alloca" or "tile.variable" in op.attributes:
            continue
        type = op.result.type
        alone = isinstance(type, MemRefType) and type.elements == 1
        if alone and all(user.name in ("memref.load", "memref.store") for user in op.result.users):
            op.attributes["tile.variable"] = at.UNIT


def _mark_register_loops(function: Operation) -> None:
    """Loops whose variable picks a register are to be written out: a register has no index when the kernel runs."""
    for op in function.walk():
        if op.name in _ACCESSES:
            memory_, index = op.operands[_ACCESSES[op.name] :][:2]
            if isinstance(memory_.type, MemRefType) and memory_.type.space == PRIVATE and memory_.type.elements > 1:
                for variable in _loop_variables(index):
                    loop = variable.block.parent_op
                    if loop is not None and loop.name == "scf.for":
                        loop.attributes["tile.unroll"] = at.UNIT


_ACCESSES = {"memref.load": 0, "vector.load": 0, "memref.store": 1, "vector.store": 1}


def _loop_variables(index: Value) -> list[BlockArgument]:
    """The block arguments that an index is computed from."""
    found: list[BlockArgument] = []
    stack, seen = [index], {index}
    while stack:
        value = stack.pop()
        if isinstance(value, BlockArgument):
            found.append(value)
        elif value.defining_op is not None:
            for operand in value.defining_op.operands:
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
    return found


def _load(op: Operation, storage: Storage) -> None:
    b = Builder.before(op)
    buffer = buffer_of(op.operands[0])
    flat = storage.of(buffer)
    loaded = load_elements(b, buffer, flat, coordinate_address(b, buffer, op.operands[1:]))
    loaded.name = loaded.name or op.result.name
    op.replace_by((loaded,))


def _store(op: Operation, storage: Storage) -> None:
    b = Builder.before(op)
    buffer = buffer_of(op.operands[1])
    address = coordinate_address(b, buffer, op.operands[2:])
    store_elements(b, op.operands[0], buffer, storage.of(buffer), address)
    op.erase()
