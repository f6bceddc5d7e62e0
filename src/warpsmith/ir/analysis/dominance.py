"""The dominator tree of a region's blocks (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm").

In: a region of several blocks.  Out: for each block, the blocks that it immediately dominates; and the blocks that no
path reaches.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Block, Region

__all__ = ["dominator_tree"]


def dominator_tree(region: Region) -> tuple[dict[Block, list[Block]], list[Block]]:
    """Children in the dominator tree, in reverse postorder, and the unreachable blocks, in text order."""
    order = _reverse_postorder(region.blocks[0])
    number = {block: i for i, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in order]
    for i, block in enumerate(order):
        for target in _successors(block):
            predecessors[number[target]].append(i)
    idom = [-1] * len(order)
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for i in range(1, len(order)):
            new = -1
            for p in predecessors[i]:
                if idom[p] >= 0:
                    new = p if new < 0 else _meet(idom, p, new)
            if idom[i] != new:
                idom[i] = new
                changed = True
    children: dict[Block, list[Block]] = {}
    for i in range(1, len(order)):
        children.setdefault(order[idom[i]], []).append(order[i])
    return children, [b for b in region.blocks if b not in number]


def _successors(block: Block) -> list[Block]:
    return block.last.successors if block.last is not None else []


def _meet(idom: list[int], a: int, b: int) -> int:
    while a != b:
        while a > b:
            a = idom[a]
        while b > a:
            b = idom[b]
    return a


def _reverse_postorder(entry: Block) -> list[Block]:
    seen = {entry}
    order: list[Block] = []
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(_successors(target))))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order
