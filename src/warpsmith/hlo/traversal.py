"""Walking HLO without recursion.

In: instructions or computations.  Out: them and all that they reach, operands before users, callees before callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from warpsmith.errors import InvalidHlo
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["callees_first", "operands_first", "post_order"]

Node = TypeVar("Node")


def operands_first(roots: Iterable[HloInstruction]) -> list[HloInstruction]:
    """`roots` and every instruction that they depend on, each after its operands."""
    return post_order(roots, lambda instruction: instruction.operands, lambda instruction: instruction.name)


def callees_first(roots: Iterable[HloComputation]) -> list[HloComputation]:
    """`roots` and every computation that they call, each after its callees; InvalidHlo for recursion."""
    return post_order(roots, _callees, lambda computation: computation.name)


def _callees(computation: HloComputation) -> Sequence[HloComputation]:
    return tuple(dict.fromkeys(callee for each in computation for callee in each.called_computations))


def post_order(
    roots: Iterable[Node], following: Callable[[Node], Sequence[Node]], name: Callable[[Node], str]
) -> list[Node]:
    """`roots` and all that `following` leads to, each after what follows it; InvalidHlo for a circle."""
    order: dict[Node, None] = {}
    open_nodes: set[Node] = set()
    for root in roots:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                open_nodes.discard(node)
                order[node] = None
            elif node not in order:
                if node in open_nodes:
                    raise InvalidHlo(f"'{name(node)}' depends on itself")
                open_nodes.add(node)
                stack.append((node, True))
                stack.extend((each, False) for each in reversed(following(node)) if each not in order)
    return list(order)
