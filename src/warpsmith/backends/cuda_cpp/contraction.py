"""Which products a compiler might fuse with a sum.

In: a product.  Out: whether what it gives may reach an addition.  Such products are written as `__fmul_rn`, which is
never fused, so that the code rounds as the IR does whatever `-fmad` says.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Block, BlockArgument, Operation, OpResult, Trait, Value

__all__ = ["feeds_sum"]

_SUMS = frozenset(("arith.addf", "arith.subf"))
_PASSES = frozenset(("arith.negf", "arith.select"))
_STORES = frozenset(("memref.store", "vector.store"))
_LOADS = frozenset(("memref.load", "vector.load"))


def feeds_sum(product: Operation) -> bool:
    """Whether a compiler that sees all of the function could find a sum that takes the product's result."""
    seen: set[Value] = set()
    todo: list[Value] = list(product.results)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        for user in value.users:
            if user.name in _SUMS or user.name in ("func.call", "func.return"):
                return True
            if user.name in _STORES:
                todo.extend(_read_back(user.operands[1]))
            elif user.name == "scf.for":
                todo.extend(a for a, init in zip(user.body.args[1:], user.operands[3:], strict=True) if init is value)
            elif user.row.traits & Trait.TERMINATOR:
                todo.extend(_carried(user, value))
            elif user.name in _PASSES or user.name.startswith(("vector.", "scf.")):
                todo.extend(user.results)
    return False


def _read_back(base: Value) -> list[Value]:
    """What may be read where a product was written: a compiler knows what it has just stored."""
    return [result for user in base.users if user.name in _LOADS for result in user.results]


def _carried(terminator: Operation, value: Value) -> list[Value]:
    """The values that a yielded one becomes."""
    parent = terminator.parent
    if parent is None:
        return []
    found: list[Value] = []
    offset = 1 if terminator.name == "scf.condition" else 0
    for i, operand in enumerate(terminator.operands[offset:]):
        if operand is not value:
            continue
        results: list[OpResult] = parent.results
        if i < len(results):
            found.append(results[i])
        for block in _blocks(parent):
            arguments: list[BlockArgument] = block.args[1:] if parent.name == "scf.for" else block.args
            if i < len(arguments):
                found.append(arguments[i])
    return found


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]
