"""What values are called that have no name of their own: by what they index, and by where they come from."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects.arith import constant_int

__all__ = ["index_hint", "is_generic"]

_GENERIC = re.compile(
    r"(|extracted|inserted|dim\d*|xla_loop|cst|c_?\d+|iter.*|pure_call|shmem|atomic_rmw|value|old|current|arg\d*)(_\d+)?"
)
_PARTS = frozenset(("arith.remui", "arith.divui"))
_ACCESSES = frozenset(
    ("memref.load", "memref.store", "vector.load", "vector.store", "nvgpu.ldmatrix", "nvgpu.device_async_copy")
)
_SUMS = frozenset(f"arith.{name}" for name in ("addi", "xori", "shrui", "andi", "shli"))  # and a swizzle
_FURTHEST = 8  # ops between a part of an index and the access
_WARP = 32


def is_generic(name: str) -> bool:
    """Whether a value's name says nothing about it."""
    return _GENERIC.fullmatch(name) is not None


def index_hint(value: Value, text: Callable[[Value], str]) -> str:
    """What an index is called: `lane` or `tx` for parts of the thread's number, else by the `text` of its buffer."""
    op = value.defining_op
    if op is not None and op.name in _PARTS:
        source = op.operands[0].defining_op
        divisor = constant_int(op.operands[1])
        if source is not None and source.name in ("gpu.thread_id", "gpu.block_id") and divisor is not None:
            is_rest, is_thread = op.name == "arith.remui", source.name == "gpu.thread_id"
            if is_thread and divisor == _WARP:
                return "lane" if is_rest else "warp"
            return ("t" if is_thread else "b") + ("x" if is_rest else "y")
    accessed = {_accessed(user, value) for user in value.users if user.name in _ACCESSES}
    if not accessed and not all(user.name in _SUMS for user in value.users):
        return "index"
    if not accessed:
        _follow(value, accessed, _FURTHEST)
        if all(user.name == "arith.addi" for user in value.users):
            return "base" if len(accessed) != 1 else text(accessed.pop()) + "_base"
    return "index" if len(accessed) != 1 else text(accessed.pop()) + "_index"


def _accessed(access: Operation, index: Value) -> Value:
    """The buffer that an access indexes by `index`, its operand before."""
    return access.operands[access.operands.index(index) - 1]


def _follow(index: Value, found: set[Value], steps: int) -> None:
    """Add the buffers of which `index` is a part of an index: what is added to it, and xored into it."""
    for user in index.users:
        if user.name in _ACCESSES:
            found.add(_accessed(user, index))
        elif user.name in _SUMS and steps:
            _follow(user.result, found, steps - 1)
