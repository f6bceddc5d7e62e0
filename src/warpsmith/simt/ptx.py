"""Running PTX: what a compiler hands out is what is tested, ours and XLA's alike.

In: PTX text, buffers, a launch.  Out: the buffers changed, and `PtxStats`.  All threads of many blocks go through the
kernel in lockstep on numpy arrays, batch by batch, with real control flow, shared memory, warps and atomics.

Arithmetic that PTX defines by IEEE is exact, to the bit.  Approximate instructions give the exact result rounded once,
or with `worst` the worst that their documentation allows; the statistics list them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsmith.dtypes import DType, from_numpy
from warpsmith.errors import SimulationError, did_you_mean
from warpsmith.simt.ptx_decode import decode
from warpsmith.simt.ptx_machine import Batch, Code, Counts, Frame, Launch, run
from warpsmith.simt.ptx_memory import Memory, padded
from warpsmith.simt.ptx_module import Function, PtxModule, Symbol, Variable
from warpsmith.simt.ptx_parser import parse_ptx
from warpsmith.simt.ptx_round import Array
from warpsmith.simt.ptx_watch import Traffic, Watch

__all__ = ["PtxStats", "run_ptx", "simulate_ptx"]

BATCH_THREADS = 1 << 18
MOST_BLOCKS = 20_000_000
_MOST_BYTES = 1 << 28  # of shared or local memory in a batch
_MOST_REGISTER_BYTES = 1 << 30
_MOST_THREADS = 1024

Dim3 = tuple[int, int, int]


@dataclass(slots=True)
class PtxStats:
    """What a launch did.

    `instructions` counts threads that executed an instruction, by class ("float", "integer", "load"...), and
    `warp_instructions` warps; `accesses` threads by (load, store or atomic; state space; bits).  `approximate` names
    the approximate instructions that ran, with their documented error.  `findings` are doubts: registers read before
    they were written, values taken from lanes that don't run.  `traffic` (an entry an instruction) and `races` are
    there if they were watched for.
    """

    kernel: str
    threads: int
    batches: int = 0
    instructions: Counter[str] = field(default_factory=Counter[str])
    warp_instructions: int = 0
    accesses: Counter[tuple[str, str, int]] = field(default_factory=Counter[tuple[str, str, int]])
    approximate: dict[str, str] = field(default_factory=dict[str, str])
    divergent_branches: int = 0
    findings: list[str] = field(default_factory=list[str])
    traffic: list[Traffic] = field(default_factory=list[Traffic])
    races: list[str] = field(default_factory=list[str])

    @property
    def total(self) -> int:
        """Instructions, a thread at a time."""
        return sum(self.instructions.values())


def run_ptx(
    text: str,
    buffers: Sequence[Array | np.generic],
    *,
    grid: Sequence[int],
    block: Sequence[int],
    kernel: str | None = None,
    file: str = "<ptx>",
    dynamic_shared: int = 0,
    unwritten: Sequence[int] | None = None,
    worst: bool = False,
    watch: bool = False,
    batch_threads: int = BATCH_THREADS,
    most_blocks: int = MOST_BLOCKS,
) -> PtxStats:
    """Run a kernel on buffers, inputs then outputs, which are changed in place.

    `buffers` has one item a kernel parameter: an array (its memory is passed by pointer; sub-byte elements must be
    packed) or a numpy scalar (passed by value).  `grid` and `block` have up to three sizes, x first.  `kernel` names
    one of several.  `unwritten` turns on a check: the buffers of these numbers, shared and local memory may not be read
    before they are written.  `watch` counts what accesses cost and looks for races in shared memory (slower).
    `most_blocks` ends a kernel that loops for ever.

    Raises PtxSyntaxError for text that isn't PTX; SimulationError, with the line and the thread, for an access out of
    bounds or misaligned, a torn barrier, a trap, an instruction that isn't known here, or arguments that don't fit.
    """
    module = parse_ptx(text, file)
    function = _kernel(module, kernel)
    sizes = _launch_sizes(module, function, grid, block)
    memory = Memory()
    copies, parameters = _bind(module, function, buffers, memory, unwritten)
    layout = _Layout(module, memory, dynamic_shared)
    codes = {f.name: decode(module, f, layout.symbols(f), worst) for f in module.functions.values() if f.has_body}
    launch = Launch(module, memory, *sizes, Counts(), codes, most_blocks, Watch() if watch else None)
    batches = _run_batches(launch, codes[function.name], parameters, layout, batch_threads, unwritten is not None)
    for original, copy in copies:
        original[...] = copy.reshape(original.shape)
    return _stats(launch, function, batches)


def simulate_ptx(
    text: str,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[np.dtype[Any], int] | Array],
    *,
    grid: Sequence[int],
    block: Sequence[int],
    kernel: str | None = None,
    aliases: Sequence[tuple[int, int]] = (),
    file: str = "<ptx>",
    check_reads: bool = False,
    worst: bool = False,
    watch: bool = False,
) -> tuple[list[Array], PtxStats]:
    """Run a kernel on flat input arrays in memory order; its flat outputs, and what it did.

    `outputs` gives each output's dtype and number of elements, or an array of what its memory holds before (it isn't
    changed).  `aliases` are (output, input) pairs that are one buffer: both parameters get its address, and it holds
    the input's elements at first.  Types narrower than a byte, one item an element in numpy, are packed for the kernel,
    in whole words, and unpacked again.  With `check_reads` outputs, shared and local memory may not be read before they
    are written.  Raises as `run_ptx`.
    """
    sources = dict(aliases)
    given = [_pack(np.ascontiguousarray(array).reshape(-1)) for array in inputs]
    sizes = [(each.dtype, each.size) if isinstance(each, np.ndarray) else each for each in outputs]
    results = [
        given[sources[i]].copy()
        if i in sources
        else _pack(each.reshape(-1)).copy()
        if isinstance(each, np.ndarray)
        else _empty(from_numpy(each[0]), each[1])
        for i, each in enumerate(outputs)
    ]
    for output, source in sources.items():
        given[source] = results[output]
    fresh = [len(given) + i for i, each in enumerate(outputs) if i not in sources and not isinstance(each, np.ndarray)]
    stats = run_ptx(
        text,
        [*given, *results],
        grid=grid,
        block=block,
        kernel=kernel,
        file=file,
        worst=worst,
        watch=watch,
        unwritten=fresh if check_reads else None,
    )
    found = [_unpack(data, from_numpy(dtype), count) for data, (dtype, count) in zip(results, sizes, strict=True)]
    return found, stats


# --------------------------------------------------------------------------------------------------- sub-byte elements
def _per_byte(dtype: DType) -> int:
    return 8 // dtype.bits if dtype.bits and dtype.bits < 8 else 1


def _empty(dtype: DType, count: int) -> Array:
    """Memory for a result; 0xFF bytes are a NaN, or -1, where the kernel forgets to write."""
    if _per_byte(dtype) > 1:
        return np.full(-(-dtype.byte_size(count) // 4) * 4, 0xFF, np.uint8)
    return np.full(count * dtype.numpy.itemsize, 0xFF, np.uint8).view(dtype.numpy)


def _pack(array: Array) -> Array:
    """Elements narrower than a byte, low bits first, to whole words: they are written by 32-bit atomics."""
    dtype = from_numpy(array.dtype)
    per_byte = _per_byte(dtype)
    if per_byte == 1:
        return array
    bits = array.astype(np.int8).view(np.uint8) if dtype.is_integer else array.view(np.uint8)
    fields = np.zeros(-(-array.size // (4 * per_byte)) * 4 * per_byte, np.uint8)
    fields[: array.size] = bits & ((1 << dtype.bits) - 1)
    rows = fields.reshape(-1, per_byte) << (np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits))
    return np.bitwise_or.reduce(rows, axis=1)


def _unpack(data: Array, dtype: DType, count: int) -> Array:
    per_byte = _per_byte(dtype)
    if per_byte == 1:
        return data
    places = np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits)
    fields = ((data[:, None] >> places) & np.uint8((1 << dtype.bits) - 1)).reshape(-1)[:count]
    if not dtype.is_integer:
        return fields.view(dtype.numpy)
    if dtype.is_signed:
        shift = np.uint8(8 - dtype.bits)
        return ((fields << shift).view(np.int8) >> shift.view(np.int8)).astype(dtype.numpy)
    return fields.astype(dtype.numpy)


# -------------------------------------------------------------------------------------------------------------- set-up
def _kernel(module: PtxModule, name: str | None) -> Function:
    found = module.kernel(name)
    if found is None:
        names = [f.name for f in module.functions.values() if f.kernel]
        cause = f"no kernel '{name}' in the PTX" if name else "the PTX has no kernel"
        raise SimulationError(cause, help=did_you_mean(name, names) if name else None)
    return found


def _launch_sizes(
    module: PtxModule, function: Function, grid: Sequence[int], block: Sequence[int]
) -> tuple[Dim3, Dim3]:
    sizes: list[Dim3] = []
    for name, given in (("grid", grid), ("block", block)):
        x, y, z = [*map(int, given), 1, 1, 1][:3]
        if not 1 <= len(given) <= 3 or min(x, y, z) < 1:
            raise SimulationError(f"a {name} has one to three positive sizes, not {tuple(given)}")
        sizes.append((x, y, z))
    threads = int(np.prod(sizes[1]))
    span = module.span(function.text_line)
    if function.exact_threads is not None and sizes[1] != function.exact_threads:
        raise SimulationError(
            f"'{function.name}' wants blocks of {function.exact_threads} threads (.reqntid), not {sizes[1]}", span=span
        )
    if threads > min(_MOST_THREADS, function.most_threads or _MOST_THREADS):
        raise SimulationError(f"'{function.name}' can't have {threads} threads a block", span=span)
    return sizes[0], sizes[1]


def _bind(
    module: PtxModule,
    function: Function,
    buffers: Sequence[Array | np.generic],
    memory: Memory,
    unwritten: Sequence[int] | None,
) -> tuple[list[tuple[Array, Array]], dict[str, Array]]:
    """Arrays to memory, and the parameters' bytes.  Arrays that aren't contiguous are copied: (original, copy)."""
    if len(buffers) != len(function.parameters):
        raise SimulationError(
            f"'{function.name}' takes {len(function.parameters)} parameters, {len(buffers)} were given",
            span=module.span(function.text_line),
        )
    copies: list[tuple[Array, Array]] = []
    values: dict[str, bytes] = {}
    for i, (parameter, given) in enumerate(zip(function.parameters, buffers, strict=True)):
        if isinstance(given, np.generic):
            values[parameter.name] = given.tobytes()
            if len(values[parameter.name]) != parameter.size:
                raise SimulationError(
                    f"parameter '{parameter.name}' has {parameter.size} bytes, {given.dtype} {given} was given"
                )
            continue
        if parameter.size != 8:
            raise SimulationError(f"parameter '{parameter.name}' has {parameter.size} bytes: it's no pointer")
        flat = given.reshape(-1) if given.flags.c_contiguous else np.ascontiguousarray(given).reshape(-1)
        if not given.flags.c_contiguous:
            copies.append((given, flat))
        track = unwritten is not None and i in unwritten
        region = memory.add(f"'{parameter.name}'", flat.view(np.uint8), track)
        values[parameter.name] = region.base.to_bytes(8, "little")
    rows = {name: np.frombuffer(data, np.uint8).reshape(1, -1) for name, data in values.items()}
    return copies, rows


class _Layout:
    """Addresses for all variables of a module."""

    def __init__(self, module: PtxModule, memory: Memory, dynamic_shared: int) -> None:
        self.shared = 0
        self.local = 0
        self.common: dict[str, tuple[str, int]] = {}
        self.own: dict[str, dict[str, tuple[str, int]]] = {}
        addressed: list[tuple[Variable, Array]] = []
        external: list[tuple[dict[str, tuple[str, int]], Variable]] = []
        scopes = [(self.common, module.variables)]
        for function in module.functions.values():
            scope = self.own.setdefault(function.name, {})
            scopes.append((scope, function.variables))
        for scope, variables in scopes:
            for variable in variables:
                if variable.space == "shared" and (variable.external or variable.size == 0):
                    external.append((scope, variable))
                elif variable.space in ("shared", "local"):
                    scope[variable.name] = (variable.space, self._take(variable))
                elif variable.space in ("global", "const"):
                    data = np.zeros(padded(variable.size), np.uint8)
                    data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
                    region = memory.add(f"'{variable.name}'", data[: variable.size])
                    scope[variable.name] = (variable.space, region.base)
                    addressed.append((variable, data))
        start = (self.shared + 127) // 128 * 128 if external else self.shared
        for scope, variable in external:
            scope[variable.name] = ("shared", start)
        self.shared = start + dynamic_shared
        for variable, data in addressed:
            for position, symbol in variable.addresses:
                data[position : position + 8] = np.frombuffer(self._address(symbol), np.uint8)

    def _take(self, variable: Variable) -> int:
        used = self.shared if variable.space == "shared" else self.local
        start = (used + variable.align - 1) // variable.align * variable.align
        if variable.space == "shared":
            self.shared = start + variable.size
        else:
            self.local = start + variable.size
        return start

    def _address(self, symbol: Symbol) -> bytes:
        found = self.common.get(symbol.name)
        if found is None:
            raise SimulationError(f"the initial value of a variable names '{symbol.name}', which isn't one")
        return (found[1] + symbol.offset).to_bytes(8, "little")

    def symbols(self, function: Function) -> dict[str, tuple[str, int]]:
        """What names mean in a function."""
        return {**self.common, **self.own[function.name]}


# ------------------------------------------------------------------------------------------------------------- running
def _run_batches(
    launch: Launch, code: Code, parameters: dict[str, Array], layout: _Layout, batch_threads: int, track: bool
) -> int:
    blocks = int(np.prod(launch.grid, dtype=np.int64))
    per_block = launch.per_block
    lasting = len(code.function.registers) - sum(len(dead) for each in code.blocks for _, dead in each.steps)
    threads = min(batch_threads, max(1, _MOST_REGISTER_BYTES // (8 * max(1, lasting))))
    step = max(1, threads // per_block)
    marks = 64 if launch.watch is not None else 1  # bytes that are kept for a byte of shared memory
    step = min(step, max(1, _MOST_BYTES // max(1, padded(layout.shared) * marks)))
    step = min(step, max(1, _MOST_BYTES // max(1, padded(layout.local) * per_block)))
    count = 0
    with np.errstate(all="ignore"):
        for first in range(0, blocks, step):
            size = min(step, blocks - first)
            launch.memory.begin_batch(size, per_block, layout.shared, layout.local, track)
            batch = Batch(launch, first, size)
            run(Frame(batch, code, dict(parameters)), None)
            count += 1
    return count


def _stats(launch: Launch, function: Function, batches: int) -> PtxStats:
    threads = int(np.prod(launch.grid, dtype=np.int64)) * launch.per_block
    stats = PtxStats(function.name, threads, batches)
    for code in launch.codes.values():
        for block in code.blocks:
            if not block.executed:
                continue
            for kind, number in block.classes.items():
                stats.instructions[kind] += number * block.executed
                stats.warp_instructions += number * block.warps
            for access, number in block.accesses.items():
                stats.accesses[access] += number * block.executed
            stats.approximate.update(block.approximate)
    stats.divergent_branches = launch.counts.divergent_branches
    stats.findings = launch.counts.findings
    if launch.watch is not None:
        stats.traffic = [launch.watch.traffic[line] for line in sorted(launch.watch.traffic)]
        stats.races = list(launch.watch.races.values())
    return stats
