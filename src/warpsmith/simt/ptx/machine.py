"""The machine: all threads of a batch of blocks, in lockstep, through the basic blocks of a decoded function.

A branch that parts the threads runs one side and then the other, each under its mask, and joins them at the branch's
post-dominator; a loop runs until its last thread has left.  A mask of None means every thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NoReturn

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError, Span
from warpsmith.simt.core.checks import Findings, fail, triple
from warpsmith.simt.core.reach import Reach
from warpsmith.simt.core.results import Finding, words
from warpsmith.simt.core.tracked import Groups
from warpsmith.simt.core.watch import Access, Watch
from warpsmith.simt.ptx.flow import END
from warpsmith.simt.ptx.instructions.special_registers import special
from warpsmith.simt.ptx.instructions.warp import Warps
from warpsmith.simt.ptx.memory import Memory, MemoryFault, Place
from warpsmith.simt.ptx.text.module import TYPE_BITS, Function, Instruction, PtxModule, Register, Symbol
from warpsmith.simt.ptx.values import UNSIGNED, choose

__all__ = ["Batch", "Code", "Counts", "DecodedBlock", "Frame", "Mask", "Run", "Step", "execute"]

Mask = Array | None
DEEPEST_CALL = 64


@dataclass(slots=True)
class Counts:
    """What the machine notes while it runs."""

    findings: Findings = field(default_factory=Findings)
    divergent_branches: int = 0
    undefined: dict[str, None] = field(default_factory=dict[str, None])


@dataclass(slots=True)
class Run:
    """What all batches share."""

    module: PtxModule
    memory: Memory
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counts: Counts
    codes: dict[str, Code]
    most_blocks: int
    watch: Watch | None = None

    @property
    def per_block(self) -> int:
        """Threads a block."""
        return self.block[0] * self.block[1] * self.block[2]


class Batch:
    """Some blocks of the grid, by their numbers."""

    def __init__(self, run: Run, numbers: Array) -> None:
        self.run = run
        self.memory = run.memory
        self.numbers = numbers
        self.count = count = numbers.shape[0]
        self.per_block = run.per_block
        self.grid, self.block, self.shared_bytes = run.grid, run.block, run.memory.shared.size
        self.threads = count * self.per_block
        self.finished: Array | None = None
        self.copies = Groups(self.threads)
        self.executed = 0
        self.depth = 0
        if run.watch is not None:
            run.watch.begin_batch(numbers)

    @cached_property
    def warps(self) -> Warps:
        """The warps of these blocks' threads."""
        return Warps(self.count, self.per_block)

    @cached_property
    def specials(self) -> dict[str, Array]:
        """Special registers that were read, by name."""
        return {}

    def special(self, name: str) -> Array:
        """A special register's value, an array of one item where all threads agree."""
        found = self.specials.get(name)
        if found is None:
            found = self.specials[name] = special(self, name[1:])
        return found

    def who(self, lane: int) -> str:
        """A thread in words."""
        block, thread = self.place(lane)
        return f"block {words(block)}, thread {words(thread)}"

    def place(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """A thread's block and its place there."""
        block = int(self.numbers[lane // self.per_block])
        return triple(block, self.run.grid), triple(lane % self.per_block, self.run.block)

    def fail(self, instruction: Instruction, cause: str, lane: int | None = None, help: str | None = None) -> NoReturn:
        """Raise SimulationError at an instruction, with the thread and the source line it came from."""
        raise SimulationError(self._where(instruction, cause, lane), span=self._span(instruction), help=help)

    def _span(self, instruction: Instruction) -> Span:
        return self.run.module.span(instruction.text_line)

    def _where(self, instruction: Instruction, cause: str, lane: int | None) -> str:
        module = self.run.module
        where = f"{cause} ({self.who(lane)})" if lane is not None else cause
        if instruction.source is not None and instruction.source[1]:
            file = module.files.get(instruction.source[0], "")
            where += f"; from {file}:{instruction.source[1]}" if file else ""
        return where

    def _finding(self, code: str, instruction: Instruction, cause: str, lane: int, count: int = 1) -> Finding:
        block, thread = self.place(lane)
        return Finding(code, cause, self.run.module.site(instruction), block=block, thread=thread, count=count)

    def stop(
        self, code: str, instruction: Instruction, cause: str, lane: int, count: int, help: str | None = None
    ) -> NoReturn:
        """Raise CheckFailed for what no hardware would do."""
        finding = self._finding(code, instruction, cause, lane, count)
        fail(finding, cause=self._where(instruction, cause, lane), span=self._span(instruction), help=help)

    def find(self, code: str, instruction: Instruction, cause: str, lane: int, count: int = 1) -> None:
        """Note what a thread did wrong, once an instruction and code."""
        finding = self._finding(code, instruction, cause, lane, count)
        self.run.counts.findings.add(finding, (code, id(instruction)))

    def fault(self, instruction: Instruction, fault: MemoryFault) -> NoReturn:
        """Raise CheckFailed for an access that no hardware would do."""
        cause = f"{instruction.opcode}: {fault.cause}"
        finding = self._finding(fault.code, instruction, cause, fault.lane)
        if fault.region is not None:
            space = fault.region.name.split()[0] if fault.region.copy else "global"
            finding = replace(finding, space=space, buffer=fault.region.name, byte=fault.byte)
        fail(finding, cause=self._where(instruction, cause, fault.lane), span=self._span(instruction))

    def saw(
        self,
        instruction: Instruction,
        kind: str,
        place: Place,
        total: int,
        mask: Mask,
        new: Callable[[], Array] | None = None,
        *,
        whole: bool = False,
        reach: Reach | None = None,
    ) -> None:
        """Tell whoever watches memory of an access of `total` bytes a lane, before its data is stored.

        `whole`: that other lanes of the warp don't access is no loss.  `reach`: of a load, the bytes that count.
        """
        watch, tracked = self.run.watch, place.region.tracked
        if watch is not None and tracked is not None:
            lanes, start = place.lanes, place.positions * total
            if lanes is None and mask is not None:
                lanes = np.flatnonzero(np.broadcast_to(mask, (self.threads,)))
            reach = Reach(((0, total),), kind == "cas") if place.past and reach is None else reach
            made = Access(kind, tracked, start, total, lanes, new=new, whole=whole, reach=reach)
            watch.access(id(instruction), made)

    def finish(self, mask: Mask) -> None:
        """These threads have ended."""
        if mask is None:
            self.finished = np.ones(self.threads, np.bool_)
        else:
            self.finished = mask.copy() if self.finished is None else self.finished | mask


class Frame:
    """The registers of one call, and its parameters as bytes (a row a thread, or one row for all)."""

    __slots__ = ("batch", "carry", "code", "params", "regs")

    def __init__(self, batch: Batch, code: Code, params: dict[str, Array]) -> None:
        self.batch = batch
        self.code = code
        self.regs: list[Array | None] = [None] * len(code.function.registers)
        self.params = params
        self.carry: Array = np.zeros(1, np.bool_)

    def undefined(self, slot: int) -> Array:
        """A register that nothing was written to: zero, and noted."""
        register = self.code.function.registers[slot]
        self.batch.run.counts.undefined.setdefault(f"{register.name} of '{self.code.function.name}'")
        value = np.zeros(1, UNSIGNED[TYPE_BITS[register.type]])
        self.regs[slot] = value
        return value

    def write(self, slot: int, value: Array, mask: Mask) -> None:
        """Bits of the register's width, one item or one a thread, where the mask holds."""
        if mask is None:
            self.regs[slot] = value
            return
        old = self.regs[slot]
        self.regs[slot] = choose(mask, value, np.zeros(1, value.dtype) if old is None else old)

    def write_lanes(self, slot: int, value: Array, lanes: Array) -> None:
        """Bits for some lanes, one item a lane."""
        old = self.regs[slot]
        if old is None:
            new = np.zeros(self.batch.threads, value.dtype)
        else:
            new = np.broadcast_to(old, (self.batch.threads,)).copy()
        new[lanes] = value
        self.regs[slot] = new

    def predicate(self, register: Register, negated: bool) -> Array:
        """A predicate register's value, or its opposite."""
        value = self.regs[register.slot]
        if value is None:
            value = self.undefined(register.slot)
        return ~value if negated else value


Step = Callable[[Frame, Mask], None]


@dataclass(slots=True)
class DecodedBlock:
    """A basic block ready to run: each step with the registers that nobody reads after it."""

    steps: list[tuple[Step, tuple[int, ...]]]
    leave: Instruction | None
    next: int
    targets: tuple[int, ...]
    join: int
    classes: Counter[str]
    accesses: Counter[tuple[str, str, int]]
    approximate: dict[str, str]
    executed: int = 0
    warps: int = 0
    partial: int = 0


@dataclass(slots=True)
class Code:
    """A decoded function."""

    function: Function
    blocks: list[DecodedBlock]


def execute(frame: Frame, mask: Mask) -> None:
    """Run a function until all its threads have returned."""
    batch, code = frame.batch, frame.code
    kernel = code.function.kernel
    here: list[tuple[int, int, Mask]] = [(0, END, mask)]
    while here:
        number, join, mask = here.pop()
        while number not in (join, END):
            block = code.blocks[number]
            _count(batch, block, mask)
            regs = frame.regs
            for step, dead in block.steps:
                step(frame, mask)
                for slot in dead:
                    regs[slot] = None
            leave = block.leave
            if leave is None:
                number = block.next
                continue
            if leave.parts[0] == "call":
                _call(frame, leave, mask)
                number = block.next
                continue
            parts = _part(frame, block, leave, mask)
            if len(parts) == 1:
                target, rest = parts[0]
                if target == END and kernel:
                    batch.finish(rest)
                number = target
                continue
            batch.run.counts.divergent_branches += _diverging(batch, parts)
            if block.join not in (join, END):
                here.append((block.join, join, mask))
            for target, some in reversed(parts):
                if target == END and kernel:
                    batch.finish(some)
                elif target != block.join:
                    here.append((target, block.join, some))
            break


def _count(batch: Batch, block: DecodedBlock, mask: Mask) -> None:
    batch.executed += 1
    if batch.executed > batch.run.most_blocks:
        steps = block.leave
        module = batch.run.module
        span = module.span(steps.text_line) if steps is not None else None
        raise SimulationError(
            f"the kernel ran {batch.executed - 1} basic blocks and hasn't ended",
            span=span,
            help="a loop may never end, or wait for a block that runs later; raise `most_blocks` if it's only long",
        )
    if mask is None:
        block.executed += batch.threads
        block.warps += batch.warps.rows * batch.count
    else:
        block.executed += int(np.count_nonzero(mask))
        some, all_ = batch.warps.count(mask)
        block.warps += some
        block.partial += some - all_


def _diverging(batch: Batch, parts: list[tuple[int, Mask]]) -> int:
    """How many warps have threads in more than one part."""
    rows = [batch.warps.active(mask).any(axis=1) for _, mask in parts]
    return int((np.add.reduce(rows, axis=0, dtype=np.int64) > 1).sum())


def _part(frame: Frame, block: DecodedBlock, leave: Instruction, mask: Mask) -> list[tuple[int, Mask]]:
    """Where the threads go from a block's end: (block, mask) for each place that some go to."""
    if leave.parts[0] == "brx":
        return _indexed(frame, block, leave, mask)
    target = block.targets[0]
    if leave.predicate is None:
        return [(target, mask)]
    taken = frame.predicate(leave.predicate, leave.negated)
    if taken.shape[0] == 1:
        return [(target if taken[0] else block.next, mask)]
    yes = taken if mask is None else taken & mask
    if not yes.any():
        return [(block.next, mask)]
    no = ~taken if mask is None else mask & ~taken
    if not no.any():
        return [(target, mask)]
    return [(target, yes), (block.next, no)]


def _indexed(frame: Frame, block: DecodedBlock, leave: Instruction, mask: Mask) -> list[tuple[int, Mask]]:
    register = leave.operands[0]
    assert isinstance(register, Register)
    value = frame.regs[register.slot]
    index = frame.undefined(register.slot) if value is None else value
    everyone = np.ones(frame.batch.threads, np.bool_) if mask is None else mask
    found: list[tuple[int, Mask]] = []
    left = everyone.copy()
    for i, target in enumerate(block.targets):
        some = everyone & (index == i)
        if some.any():
            found.append((target, mask if bool((some == everyone).all()) else some))
            left &= ~some
    if left.any():
        frame.batch.fail(leave, "the index is past the table of targets", int(np.flatnonzero(left)[0]))
    return found


# --------------------------------------------------------------------------------------------------------------- calls
def _call(frame: Frame, leave: Instruction, mask: Mask) -> None:
    batch = frame.batch
    if leave.predicate is not None:
        taken = frame.predicate(leave.predicate, leave.negated) & (np.ones(1, np.bool_) if mask is None else mask)
        if not taken.any():
            return
        mask = np.broadcast_to(taken, (batch.threads,)) if not taken.all() else mask
    place = next((i for i, each in enumerate(leave.operands) if isinstance(each, Symbol)), -1)
    if place < 0:
        batch.fail(leave, "a call through a register isn't simulated")
    name = leave.operands[place]
    assert isinstance(name, Symbol)
    code = batch.run.codes.get(name.name)
    if code is None:
        batch.fail(leave, f"'{name.name}' has no body")
    results = leave.arguments[0] if place > 0 else ()
    arguments = leave.arguments[1 if place > 0 else 0] if len(leave.arguments) > (place > 0) else ()
    parameters = code.function.parameters
    if len(arguments) != len(parameters) or len(results) != len(code.function.results):
        batch.fail(leave, f"'{name.name}' takes {len(parameters)} arguments, {len(arguments)} are given")
    params: dict[str, Array] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        params[parameter.name] = _argument(frame, leave, argument.name if isinstance(argument, Symbol) else "")
    batch.depth += 1
    if batch.depth > DEEPEST_CALL:
        batch.fail(leave, f"calls are more than {DEEPEST_CALL} deep")
    callee = Frame(batch, code, params)
    execute(callee, mask)
    batch.depth -= 1
    for result, variable in zip(results, code.function.results, strict=True):
        if isinstance(result, Symbol) and variable.name in callee.params:
            frame.params[result.name] = callee.params[variable.name]


def _argument(frame: Frame, leave: Instruction, name: str) -> Array:
    found = frame.params.get(name)
    if found is None:
        frame.batch.fail(leave, f"argument '{name}' was never stored")
    return found
