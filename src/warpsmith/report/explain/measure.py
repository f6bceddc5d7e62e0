"""What a kernel costs, measured without a GPU: its PTX runs in the simulator (some blocks of a large grid), and
`ptxas`, where there is one, says how many registers it takes.

In: a lowered kernel and its PTX.  Out: `Measured`.  Inputs are zeros; those that hold indices hold numbers that spread
evenly over what they index, and are sorted where the op says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.nvptx import ptxas
from warpsmith.backends.nvptx.ptxas import KernelResources
from warpsmith.backends.simulator.launch import run_ptx
from warpsmith.compiler.lowering import LoweredKernel
from warpsmith.devices import Device
from warpsmith.emitters import EmittedKernel
from warpsmith.emitters.kernel.index_width import index_operands
from warpsmith.errors import SimulationError, ToolFailed, ToolMissing
from warpsmith.fusion.scatters import Scatter
from warpsmith.hlo.indexing.maps import fusion_indexing
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap
from warpsmith.kernel import Argument, Launch
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import Counters

__all__ = ["MOST_BYTES", "Measured", "least_bytes", "measure"]


WHOLE_THREADS = 1 << 17
"""A grid of up to so many threads runs in full, if each has no more than `THREAD_BYTES` to read and write."""
THREAD_BYTES = 512
SAMPLE_BLOCKS = 48
"""So many blocks of another grid run at most, and no more than read and write `SAMPLE_BYTES`."""
SAMPLE_BYTES = 1 << 20
MOST_BYTES = 1 << 30
"""Buffers of more bytes than this aren't made."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`counters` of the blocks that ran, and `resources` of a thread; None with a note in `notes` where unknown.

    `instructions` are how many PTX instructions stem from each line of the HLO.
    """

    counters: Counters | None
    resources: KernelResources | None
    instructions: Mapping[int, int]
    notes: tuple[str, ...] = ()

    @property
    def scale(self) -> float:
        """What counts of the blocks that ran are multiplied with to stand for the grid."""
        return 1.0 if self.counters is None else self.counters.blocks / max(1, self.counters.blocks_run)

    def scaled(self, count: int) -> int:
        """A count of the simulated blocks, for the whole grid."""
        return round(count * self.scale)


def measure(kernel: LoweredKernel, ptx: str, target: Device) -> Measured:
    """Run `ptx` in the simulator, and assemble it if there is a `ptxas`."""
    counters, notes = _simulated(kernel, ptx, target)
    try:
        resources = next(iter(ptxas.assemble(ptx, target.architecture).kernels), None)
    except (ToolMissing, ToolFailed) as error:
        resources = None
        notes.append(f"registers are unknown: {error.cause}" + (f"; {error.help}" if error.help else ""))
    return Measured(counters, resources, _by_line(ptx), tuple(notes))


_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_INSTRUCTION = re.compile(r"\s*(?:@!?%\w+\s+)?[a-z][\w.]*\s.*;")


def _by_line(ptx: str) -> Counter[int]:
    """How many instructions stand behind each line that a `.loc` names; 0 is what has none."""
    found: Counter[int] = Counter()
    line = 0
    for text in ptx.splitlines():
        if match := _LOC.match(text):
            line = int(match[1])
        elif _INSTRUCTION.match(text):
            found[line] += 1
    return found


def _simulated(kernel: LoweredKernel, ptx: str, target: Device) -> tuple[Counters | None, list[str]]:
    emitted = kernel.kernel
    size = sum(each.byte_size for each in emitted.arguments)
    if size > MOST_BYTES:
        return None, [f"not simulated: its buffers take {size} bytes, more than {MOST_BYTES}"]
    checks = Checks(
        names=[each.name for each in emitted.arguments],
        origins=_origins(emitted.origin.analysis.body),
        device=target,
        blocks=_sample(emitted.launch, size),
    )
    try:
        _, result = run_ptx(emitted, ptx, [*inputs_of(emitted), *[None] * len(emitted.outputs)], checks)
    except SimulationError as error:
        return None, [f"the simulator stopped: {error.cause}"]
    # What the checks find is left to `warpsmith run --platform sim`, which has real inputs and runs every block.
    return None if result is None else result.counters, []


def _sample(launch: Launch, size: int) -> int | None:
    """How many blocks to run; None for all."""
    threads = launch.workgroups * launch.threads
    if threads <= WHOLE_THREADS and size <= THREAD_BYTES * threads:
        return None
    return max(1, min(SAMPLE_BLOCKS, SAMPLE_BYTES * launch.workgroups // max(1, size)))


def _origins(body: HloComputation) -> dict[int, tuple[str, ...]]:
    """The instructions of each line of the HLO file."""
    found: dict[int, tuple[str, ...]] = {}
    for computation in (body, *(called for each in body for called in each.called_computations)):
        for each in computation:
            if each.span is not None:
                found[each.span.line] = (*found.get(each.span.line, ()), each.name)
    return found


# -------------------------------------------------------------------------------------------------------------- inputs
def inputs_of(kernel: EmittedKernel) -> list[Array]:
    """Flat arrays in memory order, one an input."""
    limits = dict(_indexed(kernel.origin.analysis.instructions))
    arrays: list[Array] = []
    for parameter in kernel.origin.analysis.parameters:
        shape = parameter.array_shape
        if parameter in limits and shape.dtype.is_integer:
            limit = min(limits[parameter], 1 << min(31, shape.dtype.bits - 1))
            arrays.append(_spread(shape, limit))
        else:
            arrays.append(np.zeros(shape.elements, shape.dtype.numpy))
    return arrays


def _spread(shape: Shape, limit: int) -> Array:
    """Numbers from 0 to below `limit`, rising: sorted indices are the case that every scatter allows."""
    count = max(1, shape.elements)
    return (np.arange(shape.elements, dtype=np.int64) * max(1, limit) // count).astype(shape.dtype.numpy)


def _indexed(instructions: Sequence[HloInstruction]) -> Iterator[tuple[HloInstruction, int]]:
    """The parameters that hold indices, and how many places these choose from."""
    for each in instructions:
        for operand in index_operands(each):
            source = operand
            while source.operands and source.opcode != "parameter":
                source = source.operands[0]
            if source.opcode == "parameter":
                yield source, _places(each)


def _places(instruction: HloInstruction) -> int:
    """How many places along its narrowest indexed dimension an op may start at."""
    sizes = instruction.operands[0].array_shape.dims
    match instruction.opcode:
        case "gather":
            dims, taken = instruction.ints("start_index_map"), instruction.ints("slice_sizes")
        case "scatter":
            dims, taken = instruction.ints("scatter_dims_to_operand_dims", ()), Scatter(instruction).window
        case "dynamic-slice":
            dims, taken = tuple(range(len(sizes))), instruction.ints("dynamic_slice_sizes")
        case _:
            dims, taken = tuple(range(len(sizes))), instruction.operands[1].array_shape.dims
    return min((max(1, sizes[d] - taken[d] + 1) for d in dims), default=1)


# --------------------------------------------------------------------------------------------------------- least bytes
def least_bytes(kernel: EmittedKernel) -> tuple[int, int]:
    """The bytes that any kernel of this fusion reads and writes: inputs once, outputs once.

    Of an input what results are made of, where the maps say it: a slice doesn't need all.  Of an output that shares an
    input's buffer, what is updated.
    """
    shared = dict(kernel.aliases)
    needed = _needed(kernel)
    read = sum(size for number, size in enumerate(needed) if number not in shared.values())
    written = sum(_updated(kernel, i, s) if i in shared else s.byte_size for i, s in enumerate(kernel.outputs))
    return read, written


def _needed(kernel: EmittedKernel) -> list[int]:
    """For each input: the bytes that the results depend on, at most."""
    body = kernel.origin.analysis.body
    results = len(body.root.operands) if body.root.opcode == "tuple" else 1
    by_result = [fusion_indexing(body, output) for output in range(results)]
    sizes: list[int] = []
    for number, parameter in enumerate(kernel.origin.analysis.parameters):
        shape = parameter.array_shape
        maps = [map for found in by_result for map in found[number]]
        # Without a map it isn't read, or nobody knows where.
        points = sum(_points(map) for map in maps) if maps else shape.elements * bool(body.users(parameter))
        sizes.append(shape.dtype.byte_size(min(points, shape.elements)))
    return sizes


def _points(map: IndexingMap) -> int:
    """How many elements a map reads, were each another one."""
    return 0 if map.known_empty else math.prod(each.size for each in (*map.dim_vars, *map.range_vars))


def _updated(kernel: EmittedKernel, number: int, made: Argument) -> int:
    """The bytes of an output in place that the fusion writes, at most."""
    root = kernel.origin.analysis.roots[0]
    updates = [each.operands[1] for each in kernel.origin.analysis.updates]
    updates += root.operands[len(root.operands) // 2 + 1 :] if root.opcode == "scatter" else ()
    if not updates:
        return made.byte_size
    return min(made.byte_size, updates[min(number, len(updates) - 1)].array_shape.byte_size)
