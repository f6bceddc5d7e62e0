"""Whether an integer is best declared with a sign: by the ops that make and use it.

IR integers have none.  Any choice is right, since uses convert; a good one leaves fewest conversions.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects.arith import CMPI
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS

__all__ = ["is_signed", "memory_is_signed"]

_SIGNED = frozenset(
    f"arith.{name}"
    for name in ("divsi", "remsi", "floordivsi", "maxsi", "minsi", "shrsi", "extsi", "sitofp", "fptosi", "index_cast")
)
_SIGNED_PREDICATES = frozenset(number for name, number in CMPI.items() if name[0] == "s")
_LOADS = frozenset(("memref.load", "vector.load"))
_STORES = frozenset(("memref.store", "vector.store"))


def is_signed(value: Value) -> bool:
    """Whether a signed op makes the value or takes it."""
    op = value.defining_op
    return (op is not None and _has_sign(op)) or any(_has_sign(user) for user in value.users)


def _has_sign(op: Operation) -> bool:
    if op.name == "arith.cmpi":
        return op.int_attr("predicate") in _SIGNED_PREDICATES
    return op.name in _SIGNED


def memory_is_signed(base: Value) -> bool:
    """The same of what is read from a buffer and written to it."""
    for user in base.users:
        if user.name in _LOADS and is_signed(user.result):
            return True
        if user.name in _STORES:
            maker = user.operands[0].defining_op
            if maker is not None and _has_sign(maker) and maker.name != "arith.cmpi":
                return True
        if user.name == "memref.atomic_rmw" and _is_signed_atomic(user):
            return True
    return False


def _is_signed_atomic(op: Operation) -> bool:
    return ATOMIC_KINDS[op.int_attr("kind")] in ("maxs", "mins")
