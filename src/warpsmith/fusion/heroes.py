"""Heroes: the op of a fusion that shapes its kernel, one for each root.

In: a root and the body it lies in.  Out: the hero (the root itself when nothing better is found).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.transposes import TransposeDescription, describe_transpose
from warpsmith.fusion.traversal import is_intermediate, is_parameter, reshape_is_bitcast
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape

__all__ = ["consistent_transpose", "find_hero", "tiled_transpose"]

Predicate = Callable[[HloInstruction], bool]


def tiled_transpose(instruction: HloInstruction) -> TransposeDescription | None:
    """The description of a transpose that wants a tile; None for anything else."""
    if instruction.opcode != "transpose":
        return None
    found = describe_transpose(instruction)
    return found if isinstance(found, TransposeDescription) else None


_PREDICATES: tuple[Predicate, ...] = (
    lambda node: tiled_transpose(node) is not None,
    lambda node: node.opcode == "concatenate",
)


def find_hero(root: HloInstruction, body: HloComputation) -> HloInstruction:
    """The hero of `root`: a tiled transpose, a concatenate, a reduce at the end of a unary chain, or itself."""
    end = root
    while is_intermediate(end, 1) and not is_parameter(end.operands[0]):
        end = end.operands[0]
    for predicate in _PREDICATES:
        found = _search(end, predicate)
        if found is not None and _reached_through_intermediates(found, body):
            return found
    return end if end.opcode == "reduce" else root


def _search(start: HloInstruction, predicate: Predicate) -> HloInstruction | None:
    """The only node that satisfies the predicate among those reached through intermediates; None for two."""
    found: HloInstruction | None = None
    seen = {start}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if predicate(node):
            if found is not None:
                return None
            found = node
            continue
        if not is_intermediate(node, 3):
            continue
        for operand in node.operands:
            if operand not in seen and not is_parameter(operand):
                seen.add(operand)
                queue.append(operand)
    return found


def _reached_through_intermediates(hero: HloInstruction, body: HloComputation) -> bool:
    seen: set[HloInstruction] = set()
    stack = list(body.users(hero))
    while stack:
        user = stack.pop()
        if user in seen:
            continue
        seen.add(user)
        if user.opcode != "tuple" and not is_intermediate(user, 3):
            return False
        stack.extend(body.users(user))
    return True


def consistent_transpose(
    roots: Sequence[HloInstruction], heroes: Sequence[HloInstruction]
) -> TransposeDescription | Reason:
    """The one description that all transposed heroes share; otherwise the failed condition."""
    described = [tiled_transpose(hero) for hero in heroes]
    first: TransposeDescription | None = None
    source: Shape | None = None
    for hero, description in zip(heroes, described, strict=True):
        if description is None:
            continue
        if first is None:
            first, source = description, hero.operands[0].array_shape
        elif not first.is_equivalent(description):
            return reason(
                f"'{hero.name}' is a transpose to {list(description.dimensions)} by {list(description.permutation)} of "
                f"{description.bits} bits, the first one to {list(first.dimensions)} by {list(first.permutation)} of "
                f"{first.bits} bits: they need different tiles"
            )
    if first is None or source is None:
        reasons = [describe_transpose(hero) for hero in heroes if hero.opcode == "transpose"]
        return next((each for each in reasons if isinstance(each, Reason)), reason("no hero is a transpose"))
    for root, description in zip(roots, described, strict=True):
        if description is not None:
            continue
        if isinstance(root.shape, TupleShape) or not reshape_is_bitcast(source, root.shape):
            return reason(
                f"the side output '{root.name}' is {root.shape}, which isn't shaped like the transpose's input {source}"
            )
    return first
