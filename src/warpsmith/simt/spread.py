"""Loop iterations as threads: when they don't depend on each other, all run at once.

In: a loop and what it carries.  Out: whether it may be spread.  It may when it carries nothing but buffers, reads no
buffer that it writes, and nothing in it concerns other threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import Operation
from warpsmith.simt.interpreter import Frame, Machine
from warpsmith.simt.memory import Buffer, Datum

__all__ = ["can_spread"]

MAX_LANES = 1 << 20  # threads times unrolled iterations

_CROSS_THREAD = frozenset(
    (
        "gpu.barrier",
        "gpu.shuffle",
        "xla_gpu.sync_threads",
        "xla_gpu.shuffle_reduce",
        "xla_gpu.atomic_rmw",
        "xla_gpu.compare_exchange",
        "memref.atomic_rmw",
        "xla_gpu.allocate_shared",
        "memref.alloca",
    )
)
_WRITTEN = {
    "tensor.insert": 1,
    "vector.transfer_write": 1,
    "xla_gpu.predicated_insert": 1,
    "memref.store": 1,
    "vector.store": 1,
    "vector.maskedstore": 0,
}
"""Which operand an op writes to; every other buffer among operands is read."""


def can_spread(machine: Machine, frame: Frame, op: Operation, carried: Sequence[Datum], trips: int) -> bool:
    """Whether the loop's iterations are independent, and neither too few nor too many."""
    if trips < 2 or trips * frame.threads > MAX_LANES or any(not isinstance(d, Buffer) for d in carried):
        return False
    read: set[Buffer] = set()
    written: set[Buffer] = {d for d in carried if isinstance(d, Buffer)}
    stack, called = [op], {""}
    while stack:
        for nested in stack.pop().walk():
            if nested.name in _CROSS_THREAD:
                return False
            if nested is op:
                continue
            target = _WRITTEN.get(nested.name)
            loops = bool(nested.regions)  # what an inner loop carries is what it writes
            for i, operand in enumerate(nested.operands):
                found = frame.known(operand)
                if isinstance(found, Buffer):
                    (written if loops or i == target else read).add(found)
            callee = nested.str_attr("callee") if "callee" in nested.attributes else ""
            if callee not in called:
                called.add(callee)
                stack.append(machine.function(callee))
    return not read & written
