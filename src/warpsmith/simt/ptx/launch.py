"""Running PTX: what a compiler hands out is what is tested, ours and XLA's alike.

In: PTX text, buffers, a launch.  Out: the buffers changed, and `PtxStats`.  All threads of many blocks go through the
kernel in lockstep on numpy arrays, batch by batch, with real control flow, shared memory, warps and atomics.

Arithmetic that PTX defines by IEEE is exact, to the bit.  Approximate instructions give the exact result rounded once,
or with `worst` the worst that their documentation allows; the statistics list them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from warpsmith.arrays import Array, Dim3
from warpsmith.dtypes import from_numpy
from warpsmith.errors import SimulationError, did_you_mean
from warpsmith.simt.core.checks import Checks, check_limits, check_memory
from warpsmith.simt.core.results import Counters, Finding
from warpsmith.simt.core.sampling import chosen_blocks
from warpsmith.simt.core.tracked import Tracked
from warpsmith.simt.core.watch import Watch
from warpsmith.simt.ptx.decode import decode
from warpsmith.simt.ptx.layout import Layout
from warpsmith.simt.ptx.machine import Batch, Code, Counts, Frame, Run, execute
from warpsmith.simt.ptx.memory import Memory, Region, padded
from warpsmith.simt.ptx.packing import empty, pack_words, unpack_words, whole_words
from warpsmith.simt.ptx.text.module import Function, PtxModule
from warpsmith.simt.ptx.text.parser import parse_ptx

__all__ = ["PtxLaunch", "PtxStats", "run_ptx", "simulate_ptx"]

BATCH_THREADS = 1 << 18
MOST_BLOCKS = 20_000_000
_MOST_BYTES = 1 << 28  # of shared or local memory in a batch
_MOST_REGISTER_BYTES = 1 << 30
_MOST_THREADS = 1024


@dataclass(slots=True)
class PtxStats:
    """What a launch did.

    `instructions` counts threads that executed an instruction, by class ("float", "integer", "load"...), and
    `warp_instructions` warps; `accesses` threads by (load, store or atomic; state space; bits).  `approximate` names
    the approximate instructions that ran, with their documented error.  `divergent_branches` counts warps that part at
    a branch.  `undefined` are registers that were read before they were written (compilers do that where a value
    doesn't matter), `findings` what the kernel did wrong.  `counters` says what it cost, if that was asked for.
    """

    kernel: str
    threads: int
    batches: int = 0
    instructions: Counter[str] = field(default_factory=Counter[str])
    warp_instructions: int = 0
    accesses: Counter[tuple[str, str, int]] = field(default_factory=Counter[tuple[str, str, int]])
    approximate: dict[str, str] = field(default_factory=dict[str, str])
    divergent_branches: int = 0
    undefined: list[str] = field(default_factory=list[str])
    findings: list[Finding] = field(default_factory=list[Finding])
    counters: Counters | None = None

    @property
    def total(self) -> int:
        """Instructions, a thread at a time."""
        return sum(self.instructions.values())


@dataclass(frozen=True, slots=True)
class PtxLaunch:
    """How a kernel is launched: `grid` and `block` have up to three sizes, x first; `kernel` names one of several.

    `aliases` are (output, input) pairs that are one buffer: both parameters get its address, and it holds the input's
    elements at first.  `words` are outputs whose memory goes on to the end of their last word.  `file` is what errors
    call the text.  `worst`: approximate instructions are as far off as is documented.  `most_blocks` basic blocks end a
    kernel that loops for ever.
    """

    grid: Sequence[int]
    block: Sequence[int]
    kernel: str | None = None
    aliases: Sequence[tuple[int, int]] = ()
    words: Collection[int] = ()
    dynamic_shared: int = 0
    file: str = "<ptx>"
    worst: bool = False
    batch_threads: int = BATCH_THREADS
    most_blocks: int = MOST_BLOCKS


def run_ptx(
    text: str, buffers: Sequence[Array | np.generic], launch: PtxLaunch, checks: Checks | None = None
) -> PtxStats:
    """Run a kernel on buffers, inputs then outputs, which are changed in place.

    `buffers` has one item a kernel parameter: an array (its memory is passed by pointer; sub-byte elements must be
    packed) or a numpy scalar (passed by value).  With `checks` each access is watched.  The launch's `aliases` and
    `words` are for `simulate_ptx`, which makes the buffers.

    Raises PtxSyntaxError for text that isn't PTX; CheckFailed, with the line and the thread, for an access out of
    bounds or misaligned, or a torn barrier; SimulationError for a trap, an instruction that isn't known here, or
    arguments that don't fit.
    """
    program = _program(text, launch.file)
    module = program.module
    if checks is not None:
        module = replace(module, origins=checks.origins)
    function = _kernel(module, launch.kernel)
    sizes = _launch_sizes(module, function, launch)
    memory = Memory()
    copies, parameters, regions = _bind(module, function, buffers, memory)
    layout = Layout(module, memory, launch.dynamic_shared)
    codes = program.codes(layout, launch.worst)
    counts = Counts() if checks is None or checks.found is None else Counts(checks.found)
    numbers = chosen_blocks(int(np.prod(sizes[0], dtype=np.int64)), checks.blocks if checks is not None else None)
    watch = None
    if checks is not None:
        watch = _watch(module, function, sizes, counts, numbers.shape[0], layout, launch.dynamic_shared, checks)
        for i, region in regions.items():
            _track(watch, region, buffers[i].itemsize, i, checks)
    run = Run(module, memory, *sizes, counts, codes, launch.most_blocks, watch)
    batches = _run_batches(run, codes[function.name], parameters, layout, launch.batch_threads, numbers)
    for original, flat in copies:
        original[...] = flat.reshape(original.shape)
    return _stats(run, function, batches)


def simulate_ptx(
    text: str,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[np.dtype[Any], int] | Array],
    launch: PtxLaunch,
    checks: Checks | None = None,
) -> tuple[list[Array], PtxStats]:
    """Run a kernel on flat input arrays in memory order; its flat outputs, and what it did.

    `outputs` gives each output's dtype and number of elements, or an array of what its memory holds before (it isn't
    changed).  Types narrower than a byte, one item an element in numpy, are packed for the kernel, in whole words, and
    unpacked again.  `checks` needs no `read_only` and `fresh` here.  Raises as `run_ptx`.
    """
    sources = dict(launch.aliases)
    made = [from_numpy(each[0]).byte_size(each[1]) for each in outputs if not isinstance(each, np.ndarray)]
    check_memory(sum(each.nbytes for each in inputs) + sum(made))
    given = [pack_words(np.ascontiguousarray(array).reshape(-1)) for array in inputs]
    sizes = [(each.dtype, each.size) if isinstance(each, np.ndarray) else each for each in outputs]
    results = [
        given[sources[i]].copy()
        if i in sources
        else pack_words(each.reshape(-1)).copy()
        if isinstance(each, np.ndarray)
        else empty(from_numpy(each[0]), each[1])
        for i, each in enumerate(outputs)
    ]
    for output in launch.words:
        results[output] = whole_words(results[output])
    for output, source in sources.items():
        given[source] = results[output]
    if checks is not None:
        fresh = {
            len(given) + i: from_numpy(each[0]).byte_size(each[1])
            for i, each in enumerate(outputs)
            if i not in sources and not isinstance(each, np.ndarray)
        }
        read_only = [i for i in range(len(given)) if i not in sources.values()]
        packed = [i for i in fresh if (from_numpy(sizes[i - len(given)][0]).bits or 8) < 8]
        checks = replace(checks, fresh=fresh, read_only=read_only, packed=packed)
    stats = run_ptx(text, [*given, *results], launch, checks)
    found = [unpack_words(data, from_numpy(dtype), n) for data, (dtype, n) in zip(results, sizes, strict=True)]
    return found, stats


# -------------------------------------------------------------------------------------------------------------- set-up
class _Program:
    """A text, read once and decoded once as long as its variables lie where they lay: a loop may launch it a thousand
    times.
    """

    def __init__(self, text: str, file: str) -> None:
        self.module = parse_ptx(text, file)
        self._decoded: tuple[object, dict[str, Code]] | None = None

    def codes(self, layout: Layout, worst: bool) -> dict[str, Code]:
        """The functions with a body by name, nothing of them counted."""
        symbols = {f.name: layout.symbols(f) for f in self.module.functions.values() if f.has_body}
        key, known = (worst, symbols), self._decoded
        if known is None or known[0] != key:
            functions = self.module.functions
            codes = {name: decode(self.module, functions[name], each, worst) for name, each in symbols.items()}
            known = self._decoded = (key, codes)
        return {name: Code(code.function, [copy(block) for block in code.blocks]) for name, code in known[1].items()}


_program = lru_cache(maxsize=32)(_Program)


def _kernel(module: PtxModule, name: str | None) -> Function:
    found = module.kernel(name)
    if found is None:
        names = [f.name for f in module.functions.values() if f.kernel]
        cause = f"no kernel '{name}' in the PTX" if name else "the PTX has no kernel"
        raise SimulationError(cause, help=did_you_mean(name, names) if name else None)
    return found


def _launch_sizes(module: PtxModule, function: Function, launch: PtxLaunch) -> tuple[Dim3, Dim3]:
    sizes: list[Dim3] = []
    for name, given in (("grid", launch.grid), ("block", launch.block)):
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
) -> tuple[list[tuple[Array, Array]], dict[str, Array], dict[int, Region]]:
    """Arrays to memory: those that aren't contiguous are copied (original, copy); the parameters' bytes; and each
    array's region, one for all that are the same memory.
    """
    if len(buffers) != len(function.parameters):
        raise SimulationError(
            f"'{function.name}' takes {len(function.parameters)} parameters, {len(buffers)} were given",
            span=module.span(function.text_line),
        )
    copies: list[tuple[Array, Array]] = []
    values: dict[str, bytes] = {}
    regions: dict[int, Region] = {}
    wholes: dict[tuple[int, int], tuple[Array, Array]] = {}
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
        data = flat.view(np.uint8)
        if _goes_on(data, buffers):
            known = wholes.setdefault(_place(data), (flat, _whole(data)))
            data = known[1]
        region = regions[i] = memory.add(f"'{parameter.name}'", data, flat.nbytes)
        values[parameter.name] = region.base.to_bytes(8, "little")
    rows = {name: np.frombuffer(data, np.uint8).reshape(1, -1) for name, data in values.items()}
    back = [(flat, whole[: flat.nbytes].view(flat.dtype)) for flat, whole in wholes.values() if whole.flags.writeable]
    return [*back, *copies], rows, regions


def _place(array: Array) -> tuple[int, int]:
    return array.__array_interface__["data"][0], array.nbytes


def _goes_on(data: Array, buffers: Sequence[Array | np.generic]) -> bool:
    """Whether a device's memory goes on behind a buffer: always, but of one that overlaps others that isn't known."""
    if data.size == padded(data.size):
        return False
    others = [each for each in buffers if isinstance(each, np.ndarray) and _place(each) != _place(data)]
    return not any(np.may_share_memory(data, each) for each in others)


def _whole(data: Array) -> Array:
    """A buffer's bytes, and those behind them that an aligned access may reach."""
    whole = np.full(padded(data.size), 0xFF, np.uint8)
    whole[: data.size] = data
    whole.flags.writeable = data.flags.writeable
    return whole


def _watch(
    module: PtxModule,
    function: Function,
    sizes: tuple[Dim3, Dim3],
    counts: Counts,
    blocks: int,
    layout: Layout,
    dynamic_shared: int,
    checks: Checks,
) -> Watch:
    grid, block = sizes
    whole = int(np.prod(grid, dtype=np.int64))
    counters = Counters(function.name, "ptx", grid, block, whole, blocks, shared_bytes=layout.shared)
    for finding in check_limits(checks.device, grid, block, layout.shared - dynamic_shared, dynamic_shared):
        counts.findings.add(finding, finding.message)
    instructions = {id(each): each for f in module.functions.values() for each in f.instructions}
    partial = any(each.parts[0] in ("bar", "barrier") and len(each.operands) > 1 for each in instructions.values())
    return Watch(counters, lambda key: module.site(instructions[key]), counts.findings, partial=partial)


def _track(watch: Watch, region: Region, item: int, number: int, checks: Checks) -> None:
    name = checks.names[number] if number < len(checks.names) else region.name
    fresh = number in checks.fresh
    region.tracked = watch.track(
        Tracked(
            name,
            "global",
            region.data,
            0,
            checks.fresh.get(number, 0),
            fresh,
            number in checks.read_only,
            item,
            number in checks.packed,
            end=region.size,
        )
    )


# ------------------------------------------------------------------------------------------------------------- running
def _run_batches(
    run: Run, code: Code, parameters: dict[str, Array], layout: Layout, batch_threads: int, numbers: Array
) -> int:
    per_block = run.per_block
    lasting = len(code.function.registers) - sum(len(dead) for each in code.blocks for _, dead in each.steps)
    threads = min(batch_threads, max(1, _MOST_REGISTER_BYTES // (8 * max(1, lasting))))
    step = max(1, threads // per_block)
    marks = 64 if run.watch is not None else 1  # bytes that are kept for a byte of shared memory
    step = min(step, max(1, _MOST_BYTES // max(1, padded(layout.shared) * marks)))
    step = min(step, max(1, _MOST_BYTES // max(1, padded(layout.local) * per_block)))
    count = 0
    with np.errstate(all="ignore"):
        for first in range(0, numbers.shape[0], step):
            chosen = numbers[first : first + step]
            memory = run.memory
            memory.begin_batch(chosen.shape[0], per_block, layout.shared, layout.local)
            if run.watch is not None:
                for region in (memory.shared, memory.local):
                    space = region.name.split()[0]
                    region.tracked = Tracked(region.name, space, region.data, region.copy, end=region.size, fresh=True)
            execute(Frame(Batch(run, chosen), code, dict(parameters)), None)
            count += 1
    return count


def _stats(run: Run, function: Function, batches: int) -> PtxStats:
    threads = int(np.prod(run.grid, dtype=np.int64)) * run.per_block
    stats = PtxStats(function.name, threads, batches)
    for code in run.codes.values():
        for block in code.blocks:
            if not block.executed:
                continue
            for kind, number in block.classes.items():
                stats.instructions[kind] += number * block.executed
                stats.warp_instructions += number * block.warps
                if run.watch is not None and kind != "none":
                    run.watch.mix[kind] += number * block.warps
                    run.watch.counters.thread_instructions += number * block.executed
                    run.watch.counters.partial_instructions += number * block.partial
            for access, number in block.accesses.items():
                stats.accesses[access] += number * block.executed
            stats.approximate.update(block.approximate)
    stats.divergent_branches = run.counts.divergent_branches
    if run.watch is not None:
        run.watch.counters.divergent_branches = run.counts.divergent_branches
        run.watch.finish()
        stats.counters = run.watch.counters
        stats.counters.accesses.sort(key=lambda access: access.site.line)
    stats.undefined = list(run.counts.undefined)
    stats.findings = run.counts.findings.items
    return stats
