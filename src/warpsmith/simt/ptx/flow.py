"""A function's instructions in, its basic blocks out, each with the block where its diverging threads meet again.

That block is the immediate post-dominator: the first one that every path from the branch to the function's end passes
(Cooper, Harvey and Kennedy's algorithm, run on the graph with its edges turned round).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.errors import PtxSyntaxError, did_you_mean
from warpsmith.simt.ptx.text.module import Function, Instruction, PtxModule, Register, Symbol

__all__ = ["END", "BasicBlock", "basic_blocks"]

END = -1
"""The block after the last: where a function returns to."""

_LEAVES = frozenset({"bra", "brx", "ret", "exit", "call"})


@dataclass(slots=True)
class BasicBlock:
    """Instructions `[start, stop)`, the last of which may be `leave`: the branch, return or call that ends the block.

    `next` is the block that follows in the text (END after the last), `targets` where a branch goes, `join` where
    threads that part here meet again.
    """

    start: int
    stop: int
    leave: Instruction | None
    next: int
    targets: tuple[int, ...] = ()
    join: int = END

    @property
    def successors(self) -> tuple[int, ...]:
        """The blocks that may come next."""
        leave = self.leave
        if leave is None or leave.parts[0] == "call":
            return (self.next,)
        return (*self.targets, self.next) if leave.predicate is not None else self.targets


def basic_blocks(module: PtxModule, function: Function) -> list[BasicBlock]:
    """The blocks in the order of the text; the first is the entry.  PtxSyntaxError for a branch to nowhere."""
    instructions = function.instructions
    starts = {0, *function.labels.values()}
    starts.update(i + 1 for i, each in enumerate(instructions) if each.parts[0] in _LEAVES)
    ordered = sorted(start for start in starts if start < len(instructions))
    number = {start: i for i, start in enumerate(ordered)}
    blocks: list[BasicBlock] = []
    for i, start in enumerate(ordered):
        stop = ordered[i + 1] if i + 1 < len(ordered) else len(instructions)
        last = instructions[stop - 1]
        leave = last if last.parts[0] in _LEAVES else None
        block = BasicBlock(start, stop, leave, i + 1 if i + 1 < len(ordered) else END)
        if leave is not None and leave.parts[0] != "call":
            names = _target_names(module, function, leave)
            block.targets = tuple(_position(module, function, number, leave, name) for name in names)
            if leave.parts[0] in ("ret", "exit"):
                block.targets = (END,)
        blocks.append(block)
    _find_joins(blocks)
    return blocks


def _target_names(module: PtxModule, function: Function, leave: Instruction) -> Sequence[str]:
    if leave.parts[0] in ("ret", "exit"):
        return ()
    if leave.parts[0] == "bra" and leave.operands and isinstance(leave.operands[0], Symbol):
        return (leave.operands[0].name,)
    if leave.parts[0] == "brx" and len(leave.operands) == 2 and isinstance(leave.operands[0], Register):
        table = leave.operands[1]
        if isinstance(table, Symbol) and table.name in function.targets:
            return function.targets[table.name]
    raise PtxSyntaxError(f"'{leave.opcode}' names no place to go to", span=module.span(leave.text_line))


def _position(module: PtxModule, function: Function, number: dict[int, int], leave: Instruction, label: str) -> int:
    found = function.labels.get(label)
    if found is None:
        raise PtxSyntaxError(
            f"no label '{label}' in '{function.name}'",
            span=module.span(leave.text_line),
            help=did_you_mean(label, function.labels),
        )
    return number.get(found, END)  # a label after the last instruction


def _find_joins(blocks: list[BasicBlock]) -> None:
    count = len(blocks)
    exit_node = count
    successors = [[exit_node if s == END else s for s in block.successors] for block in blocks]
    predecessors: list[list[int]] = [[] for _ in range(count + 1)]
    for node, following in enumerate(successors):
        for each in following:
            predecessors[each].append(node)
    order = _postorder(exit_node, predecessors)
    rank = {node: i for i, node in enumerate(order)}
    dominator: dict[int, int] = {exit_node: exit_node}

    def common(a: int, b: int) -> int:
        while a != b:
            while rank[a] < rank[b]:
                a = dominator[a]
            while rank[b] < rank[a]:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == exit_node:
                continue
            known = [s for s in successors[node] if s in dominator]
            best = known[0]
            for each in known[1:]:
                best = common(best, each)
            if dominator.get(node) != best:
                dominator[node] = best
                changed = True
    for node, block in enumerate(blocks):
        join = dominator.get(node, exit_node)  # a block that never reaches the end joins there
        block.join = END if join == exit_node else join


def _postorder(root: int, following: list[list[int]]) -> list[int]:
    seen = {root}
    order: list[int] = []
    stack: list[tuple[int, int]] = [(root, 0)]
    while stack:
        node, position = stack.pop()
        children = following[node]
        while position < len(children) and children[position] in seen:
            position += 1
        if position == len(children):
            order.append(node)
            continue
        stack.append((node, position + 1))
        seen.add(children[position])
        stack.append((children[position], 0))
    return order
