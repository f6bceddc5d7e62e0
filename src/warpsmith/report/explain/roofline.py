"""What a kernel would take at best: the larger of moving its bytes, doing its arithmetic, and issuing its instructions.

In: a fusion's body, bytes, counted instructions, a device.  Out: `Work` and `Roofline`.  Rates come from the device's
file.  A lane does one operation a cycle: what a data sheet counts twice, a fused multiply-add, isn't used in strict
numerics, and tensor cores aren't either.  Four schedulers of a multiprocessor each issue an instruction a cycle (CUDA
programming guide, "Hardware multithreading", compute capability 7.0 and up).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from warpsmith.devices import Device
from warpsmith.hlo.attributes import ConvDimNumbers, Window
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import OPCODES

__all__ = ["Roofline", "Work", "operations", "roofline", "work_of"]

SCHEDULERS = 4
_MOVES = frozenset(("copy", "bitcast-convert", "select", "real", "imag", "complex", "bitcast"))
"""Elementwise ops that compute nothing."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations that a fusion's HLO asks for: an arithmetic op on one element is one, exp as well as add.

    `wide` are those in f64 and c128, `narrow` all others.  `largest` is the instruction with most of them.
    """

    narrow: int
    wide: int
    largest: HloInstruction | None

    @property
    def operations(self) -> int:
        """Floating point operations of all types."""
        return self.narrow + self.wide


def work_of(instructions: Iterable[HloInstruction]) -> Work:
    """The work of a fusion's instructions, each computed once for each of its elements."""
    counts = [(operations(each), each) for each in instructions]
    wide = sum(count for count, each in counts if _is_wide(each))
    most = max(counts, key=lambda pair: pair[0], default=(0, None))
    return Work(sum(count for count, _ in counts) - wide, wide, most[1] if most[0] else None)


def _is_wide(instruction: HloInstruction) -> bool:
    return any(leaf.dtype.name in ("f64", "c128") for leaf in instruction.shape.leaves())


def operations(instruction: HloInstruction) -> int:
    """Operations of one instruction."""
    elements = instruction.shape.leaves()[0].elements if instruction.shape.leaves() else 0
    match instruction.opcode:
        case "reduce" | "all-reduce":
            return instruction.operands[0].array_shape.elements * _body_operations(instruction)
        case "reduce-window":
            return elements * _window(instruction) * _body_operations(instruction)
        case "scatter":
            return instruction.operands[-1].array_shape.elements * _body_operations(instruction)
        case "dot":
            sizes = instruction.operands[0].array_shape.dims
            return 2 * elements * math.prod(sizes[d] for d in instruction.ints("lhs_contracting_dims", ()))
        case "convolution":
            kernel = instruction.operands[1].array_shape
            outputs = kernel.dims[instruction.attr("dim_labels", ConvDimNumbers).rhs.index("o")]
            return 2 * elements * kernel.elements // max(1, outputs)
        case opcode:
            row = OPCODES.get(opcode)
            computes = row is not None and row.elementwise and opcode not in _MOVES
            return elements if computes else 0


def _window(instruction: HloInstruction) -> int:
    window = instruction.attributes.get("window")
    return math.prod(each.size for each in window.dims) if isinstance(window, Window) else 1


def _body_operations(instruction: HloInstruction) -> int:
    body = instruction.attributes.get("to_apply")
    return sum(operations(each) for each in body) if isinstance(body, HloComputation) else 1


@dataclass(frozen=True, slots=True)
class Roofline:
    """Times in microseconds that a kernel can't beat on a device; None where a number is unknown.

    `bound` names the largest: "memory", "arithmetic" or "issue".
    """

    memory_us: float | None
    arithmetic_us: float | None
    issue_us: float | None
    time_us: float | None
    bound: str


def roofline(work: Work, moved: int, warp_instructions: int | None, device: Device) -> Roofline:
    """The roofline of a kernel that moves `moved` bytes of memory and issues so many instructions for warps."""
    if not device.memory_bandwidth:
        return Roofline(None, None, None, None, "")
    narrow_rate = device.core_count * device.fpus_per_core * device.clock_hz
    wide_rate = (device.peak("f64") or narrow_rate) / 2
    memory = moved / device.memory_bandwidth * 1e6
    arithmetic = (work.narrow / narrow_rate + work.wide / wide_rate) * 1e6
    issue = None
    if warp_instructions is not None:
        issue = warp_instructions / (device.core_count * SCHEDULERS * device.clock_hz) * 1e6
    known = {"memory": memory, "arithmetic": arithmetic, "issue": issue or 0.0}
    bound = max(known, key=lambda name: known[name])
    return Roofline(memory, arithmetic, issue, known[bound], bound)
