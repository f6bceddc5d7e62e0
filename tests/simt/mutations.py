"""Mutants of kernels: each operator breaks one thing at one site of the IR, and the simulator has to notice.

A mutant is found by a finding, or by outputs that differ from the clean kernel's (which agree with the evaluator).  One
that isn't must be equivalent, and `equivalence` says by what proof, from recordings of every access by every thread:
launches are fixed and indices don't depend on data here, so that a recording covers all that a kernel can do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import warpsmith.simt.ir.launch
import warpsmith.simt.ptx.launch
from warpsmith.arrays import Array
from warpsmith.errors import CheckFailed, SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import INDEX, VectorType, numpy_dtype, vector
from warpsmith.ir.dialects import arith
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt.core.results import Finding
from warpsmith.simt.core.watch import Access, Watch
from warpsmith.simt.ir.launch import watch_kernel

__all__ = ["Mutant", "Recording", "Runner", "equivalence", "ir_runner", "judge", "mutants", "ptx_mutants", "record"]

Change = Callable[[Operation, Builder], bool]

_LOADS = {"memref.load": 0, "vector.load": 0, "vector.transfer_read": 0}
_STORES = {"memref.store": 1, "vector.store": 1, "vector.transfer_write": 1}
_LESS = {"slt": 2, "sle": 3, "ult": 6, "ule": 7}


Runner = Callable[[Sequence[Array]], tuple[list[Array], list[Finding]]]
"""Launches a kernel on inputs: its outputs, and what the checks found."""


@dataclass(frozen=True)
class Mutant:
    """A changed kernel; `site` is the op or instruction that was changed."""

    operator: str
    site: str
    run: Runner


def ir_runner(module: Operation, outputs: int) -> Runner:
    """Launches of a module of IR."""

    def run(inputs: Sequence[Array]) -> tuple[list[Array], list[Finding]]:
        found, result = watch_kernel(module, inputs, outputs)
        return found, result.findings

    return run


# ----------------------------------------------------------------------------------------------------------- operators
def _index_plus(op: Operation, b: Builder, position: int) -> Value:
    one = arith.constant(b, 1, INDEX)
    return b.op1("arith.addi", (op.operands[position], one), INDEX)


def _drop_barrier(op: Operation, b: Builder) -> bool:
    if op.name != "gpu.barrier":
        return False
    op.erase()
    return True


def _shift_index(op: Operation, b: Builder) -> bool:
    base = _LOADS.get(op.name, _STORES.get(op.name))
    if base is None or len(op.operands) <= base + 1:
        return False
    op.set_operand(base + 1, _index_plus(op, b, base + 1))
    return True


def _loosen_bound(op: Operation, b: Builder) -> bool:
    if op.name != "arith.cmpi" or op.int_attr("predicate") not in _LESS.values() or op.operands[1].type is not INDEX:
        return False
    op.set_operand(1, _index_plus(op, b, 1))
    return True


def _drop_bound(op: Operation, b: Builder) -> bool:
    if op.name != "scf.if":
        return False
    op.set_operand(0, arith.constant(b, 1, op.operands[0].type))
    return True


def _drop_mask(side: int) -> Change:
    def change(op: Operation, b: Builder) -> bool:
        if op.name != "arith.andi" or str(op.results[0].type) != "i1":
            return False
        op.results[0].replace_by(op.operands[side])
        return True

    return change


def _duplicate_write(op: Operation, b: Builder) -> bool:
    base = _STORES.get(op.name)
    if base is None or len(op.operands) <= base + 1:
        return False
    operands = list(op.operands)
    operands[base + 1] = _index_plus(op, b, base + 1)
    b.create(op.name, operands, [], {k: v for k, v in op.attributes.items() if k != "alignment"})
    return True


def _shuffle_distance(op: Operation, b: Builder) -> bool:
    if op.name != "gpu.shuffle":
        return False
    defining = op.operands[1].defining_op
    assert defining is not None
    distance = defining.int_attr("value")
    op.set_operand(1, arith.constant(b, distance // 2 if distance > 1 else 2, op.operands[1].type))
    return True


def _widen_access(op: Operation, b: Builder) -> bool:
    """A scalar access of twice the width, as a machine would do it: aligned to its size."""
    if op.name not in ("memref.load", "memref.store"):
        return False
    element = op.results[0].type if op.results else op.operands[0].type
    if str(element) in ("i1", "index") or isinstance(element, VectorType):
        return False
    wide = vector((2,), element)
    size = 2 * numpy_dtype(element).itemsize
    attributes = {"alignment": at.integer_attr(size, at.I64)}
    if op.name == "memref.load":
        loaded = b.op1("vector.load", op.operands, wide, attributes)
        first = b.op1("vector.extract", (loaded,), element, {"static_position": at.dense_array([0])})
        op.results[0].replace_by(first)
    else:
        pair = b.op1("vector.from_elements", (op.operands[0], op.operands[0]), wide)
        b.create("vector.store", (pair, *op.operands[1:]), [], attributes)
    op.erase()
    return True


def _swap_ids(op: Operation, b: Builder) -> bool:
    names = {"gpu.thread_id": "gpu.block_id", "gpu.block_id": "gpu.thread_id"}
    if op.name not in names:
        return False
    new = b.op1(names[op.name], (), op.results[0].type, {"dimension": op.attributes["dimension"]})
    op.results[0].replace_by(new)
    return True


def _plain_update(op: Operation, b: Builder) -> bool:
    """An atomic update as a read, an operation and a write."""
    if op.name == "memref.atomic_rmw":
        value, memory, *index = op.operands
        kind = ATOMIC_KINDS[op.int_attr("kind")]
        function = f"arith.{kind}i" if kind in ("maxs", "maxu", "mins", "minu") else f"arith.{kind}"
        old = b.op1("memref.load", (memory, *index), value.type)
        b.create("memref.store", (b.op1(function, (old, value), value.type), memory, *index), [])
        op.results[0].replace_by(old)
    elif op.name == "xla_gpu.compare_exchange":
        memory, *index, expected, new = op.operands
        b.create("memref.store", (new, memory, *index), [])
        op.results[0].replace_by(expected)
        op.results[1].replace_by(arith.constant(b, 1, op.results[1].type))
    else:
        return False
    op.erase()
    return True


def _loop_bound(position: int) -> Change:
    """The first iteration left out, one more at the end, or every other one."""

    def change(op: Operation, b: Builder) -> bool:
        if op.name != "scf.for":
            return False
        op.set_operand(position, b.op1("arith.addi", (op.operands[position], op.operands[2]), INDEX))
        return True

    return change


OPERATORS: dict[str, Change] = {
    "drop a barrier": _drop_barrier,
    "shift an index": _shift_index,
    "loosen a bound": _loosen_bound,
    "drop a bound": _drop_bound,
    "drop a mask (left)": _drop_mask(1),
    "drop a mask (right)": _drop_mask(0),
    "duplicate a write": _duplicate_write,
    "change a shuffle's distance": _shuffle_distance,
    "widen an access": _widen_access,
    "swap block and thread": _swap_ids,
    "make an atomic plain": _plain_update,
    "start a loop late": _loop_bound(0),
    "end a loop late": _loop_bound(1),
    "double a loop's step": _loop_bound(2),
}


def mutants(module: Operation, outputs: int) -> Iterator[Mutant]:
    """Every operator at every site of a module of IR."""
    count = sum(1 for _ in module.walk())
    for name, change in OPERATORS.items():
        for number in range(count):
            original = next(op for i, op in enumerate(module.walk()) if i == number)
            if not _may_apply(name, original):
                continue
            copy = module.clone()
            op = next(op for i, op in enumerate(copy.walk()) if i == number)
            site = str(original).strip().split("\n", 1)[0]
            if change(op, Builder.before(op)):
                yield Mutant(name, site, ir_runner(copy, outputs))
    yield from _shrunk(module, outputs)


_SITES = {
    "drop a barrier": {"gpu.barrier"},
    "shift an index": {*_LOADS, *_STORES},
    "loosen a bound": {"arith.cmpi"},
    "drop a bound": {"scf.if"},
    "drop a mask (left)": {"arith.andi"},
    "drop a mask (right)": {"arith.andi"},
    "duplicate a write": set(_STORES),
    "change a shuffle's distance": {"gpu.shuffle"},
    "widen an access": {"memref.load", "memref.store"},
    "swap block and thread": {"gpu.thread_id", "gpu.block_id"},
    "make an atomic plain": {"memref.atomic_rmw", "xla_gpu.compare_exchange"},
    "start a loop late": {"scf.for"},
    "end a loop late": {"scf.for"},
    "double a loop's step": {"scf.for"},
}


def _may_apply(operator: str, op: Operation) -> bool:
    return op.name in _SITES[operator]


def _shrunk(module: Operation, outputs: int) -> Iterator[Mutant]:
    """Each shared allocation with one element less."""
    text = str(module)
    for op in module.body:
        if op.name == "memref.global" and not isinstance(op.attributes.get("initial_value"), at.DenseAttr):
            held = op.attributes["type"]
            assert isinstance(held, at.TypeAttr)
            old = str(held.type)
            length, rest = old.removeprefix("memref<").split("x", 1)
            site = str(op).strip()
            smaller = parse_module(text.replace(old, f"memref<{int(length) - 1}x{rest}"))
            yield Mutant("shrink an allocation", site, ir_runner(smaller, outputs))


# ----------------------------------------------------------------------------------------------------- operators on PTX
_ADDRESS = re.compile(r"\[(%\w+)(?:\+(-?\d+))?\]")


def _moved(line: str) -> str:
    """The access four bytes further on."""
    return _ADDRESS.sub(lambda m: f"[{m[1]}+{int(m[2] or 0) + 4}]", line)


PTX_OPERATORS: dict[str, tuple[str, Callable[[str], str]]] = {
    "drop a barrier": (r"\s*(bar|barrier)\.", lambda line: ""),
    "shift an index": (r"\s*(@\S+ )?(ld|st)\.(global|shared)", _moved),
    "drop a predicate": (r"\s*@", lambda line: re.sub(r"@\S+\s+", "", line)),
    "loosen a bound": (
        r"\s*setp\.(lt|le|gt|ge)\.\w+ .*, \d+;",
        lambda line: re.sub(r", (\d+);", lambda m: f", {int(m[1]) + 1};", line),
    ),
    "duplicate a write": (r"\s*(@\S+ )?st\.(global|shared)", lambda line: line + "\n" + _moved(line)),
    "change a shuffle's distance": (
        r"\s*shfl\.sync\.(down|bfly)",
        lambda line: re.sub(r", (\d+), 31", lambda m: f", {int(m[1]) // 2 or 2}, 31", line),
    ),
    "swap block and thread": (
        r".*%(tid|ctaid)\.",
        lambda line: line.replace("%tid", "%swap").replace("%ctaid", "%tid").replace("%swap", "%ctaid"),
    ),
    "shrink an allocation": (
        r"\s*\.shared .*\[\d+\];",
        lambda line: re.sub(r"\[(\d+)\]", lambda m: f"[{int(m[1]) - 4}]", line),
    ),
    "make an atomic plain": (
        r"\s*(@\S+ )?red\.global",
        lambda line: re.sub(r"red\S*global\S*\.(\w)(\d+)", lambda m: f"st.global.b{m[2]}", line),
    ),
}


def ptx_mutants(text: str, runner: Callable[[str], Runner]) -> Iterator[Mutant]:
    """Every operator at every line of PTX."""
    lines = text.splitlines()
    for operator, (pattern, change) in PTX_OPERATORS.items():
        for number, line in enumerate(lines):
            if re.match(pattern, line):
                new = "\n".join([*lines[:number], change(line), *lines[number + 1 :]])
                yield Mutant(operator, line.strip(), runner(new))


# ------------------------------------------------------------------------------------------------------------- judging
@dataclass(frozen=True)
class Recording:
    """All accesses of a launch: how often (interval between barriers, kind, buffer, byte, thread) happens."""

    accesses: Counter[tuple[int, str, str, int, int]]
    read_only: frozenset[str]
    shared: frozenset[str]
    per_block: int

    def place(self, name: str, byte: int, thread: int) -> tuple[str, int, int]:
        """A byte: in shared memory, of the thread's block."""
        return name, byte, thread // self.per_block if name in self.shared else 0


class _Recorder(Watch):
    """A watch that writes down every byte that every thread touches."""

    last: _Recorder | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.accesses: Counter[tuple[int, str, str, int, int]] = Counter()
        self.buffers: set[tuple[str, str, bool]] = set()
        self.interval = 0
        _Recorder.last = self

    def barrier(self, mask: Array | None) -> None:
        super().barrier(mask)
        self.interval += 1

    def access(self, key: Any, made: Access) -> None:
        super().access(key, made)
        buffer, kind, start, size = made.buffer, made.kind, made.start, made.size
        lanes, turns = made.lanes, made.turns
        who = np.arange(self.threads * turns) if lanes is None else lanes
        self.buffers.add((buffer.name, buffer.space, buffer.read_only))
        for thread, first in zip((who // turns).tolist(), np.broadcast_to(start, who.shape).tolist(), strict=True):
            place = first % buffer.copy if buffer.copy else first
            for byte in range(place, place + size):
                self.accesses[self.interval, kind, buffer.name, byte, int(self.order.thread[thread])] += 1


def record(run: Runner, inputs: Sequence[Array]) -> Recording:
    """Launch a kernel and write down what it touches."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (warpsmith.simt.ir.launch, warpsmith.simt.ptx.launch):
            patch.setattr(module, "Watch", _Recorder)
        run(inputs)
    last = _Recorder.last
    assert last is not None
    return Recording(
        last.accesses,
        frozenset(name for name, _, read_only in last.buffers if read_only),
        frozenset(name for name, space, _ in last.buffers if space == "shared"),
        int(np.prod(last.counters.block)),
    )


def judge(mutant: Runner, inputs: Sequence[Array], expected: Sequence[Array]) -> str:
    """How a mutant is found: the code of a finding, "wrong output", "error"; "" if it isn't."""
    try:
        found, findings = mutant(inputs)
    except CheckFailed as failed:
        return failed.finding.code if isinstance(failed.finding, Finding) else "error"
    except SimulationError:
        return "error"
    if findings:
        return findings[0].code
    same = all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in zip(found, expected, strict=True))
    return "" if same else "wrong output"


def equivalence(mutant: Mutant, clean: Recording, changed: Recording) -> str:
    """Why a mutant does what the clean kernel does, from recordings of both; "" if that isn't shown."""
    if mutant.operator == "drop a barrier":
        return _no_meeting(changed)
    if mutant.operator == "change a shuffle's distance":
        return "the lanes that it doesn't reach hold the neutral element" if changed.accesses == clean.accesses else ""
    if changed.accesses == clean.accesses:
        return "every thread makes the same accesses between the same barriers"
    extra, missing = changed.accesses - clean.accesses, clean.accesses - changed.accesses
    place = changed.place
    read = {place(name, byte, who) for _, kind, name, byte, who in changed.accesses if kind != "store"}
    idle = all(
        (kind == "load" and (name in changed.read_only or mutant.operator == "widen an access"))
        or (kind == "store" and name in changed.shared and place(name, byte, who) not in read)
        for _, kind, name, byte, who in (*extra, *missing)
    )
    if idle and mutant.operator == "widen an access":
        return "the second element is read in bounds, aligned, and unused"
    return (
        "it differs in reads of inputs, whose values nobody uses, and writes to shared memory that nobody reads"
        if idle
        else ""
    )


def _no_meeting(changed: Recording) -> str:
    """No byte is touched by two threads, one of which writes, in an interval between the barriers that are left."""
    users: dict[tuple[int, str, int, int], tuple[set[int], bool]] = {}
    for interval, kind, name, byte, thread in changed.accesses:
        place = (interval, *changed.place(name, byte, thread))
        threads, writes = users.get(place, (set[int](), False))
        threads.add(thread)
        users[place] = threads, writes or kind != "load"
    if any(writes and len(threads) > 1 for threads, writes in users.values()):
        return ""
    return "no byte is shared by two threads, one writing, between the barriers that are left"
