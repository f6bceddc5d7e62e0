"""What values are called that have no name of their own: by what they index, and by where they come from."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpsmith.ir.core import Operation, Value
from warpsmith.ir.dialects.arith import constant_int
from warpsmith.ir.types import MemRefType

__all__ = ["index_hint", "is_generic"]

_GENERIC = re.compile(
    r"(|extracted|inserted|dim\d*|xla_loop|cst|c_?\d+|iter.*|pure_call|shmem|atomic_rmw|value|old|current|arg\d*)(_\d+)?"
)
_PARTS = frozenset(("arith.remui", "arith.divui"))
_ACCESSES = frozenset(("memref.load", "memref.store", "vector.load", "vector.store"))
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
    accessed = {_buffer_of(user) for user in value.users if user.name in _ACCESSES and value in user.operands[1:]}
    if accessed:
        return "index" if len(accessed) > 1 else text(accessed.pop()) + "_index"
    if not all(user.name == "arith.addi" for user in value.users):
        return "index"
    bases = {_indexed_by(user.result) for user in value.users}
    base = bases.pop() if len(bases) == 1 else None
    return text(base) + "_base" if base is not None else "base"


def _indexed_by(index: Value) -> Value | None:
    """The buffer that an index with one use is an index of."""
    user = next(iter(index.users), None)
    if user is None or user.name not in _ACCESSES or not index.has_one_use:
        return None
    return _buffer_of(user)


def _buffer_of(access: Operation) -> Value:
    return next(v for v in access.operands if isinstance(v.type, MemRefType))
