"""Cells of the emitter matrix (`bench/emitter_matrix.py` runs all), and what the hero emitters' accesses cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hero_kernels import body, emitted
from matrix import CELLS, Cell, check

from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.compiler import Simulation, simulate
from warpsmith.compiler.lowering import lower_fusion
from warpsmith.devices import device
from warpsmith.dtypes import by_name
from warpsmith.emitters import emit
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.schedule.schedule import make_schedule
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

# What these found once: a peeled loop within one that was peeled before it; words that reach past an odd buffer; bytes
# read by one thread and exchanged by another; vectors across slices of updates that aren't row-major.
FOUND = (
    "transpose, minor moved: f64, odd",
    "scatter, add: s8, odd",
    "scatter, product: bf16, odd",
    "scatter, unique: s4, odd",
    "scatter, add: s4, layout",
    "reduction, row: s4, odd",
)
SAMPLE = [cell for cell in CELLS if cell.kind != "wide"][::14]
SAMPLE += [cell for cell in CELLS if cell.name in FOUND and cell not in SAMPLE]


@pytest.mark.parametrize("cell", SAMPLE, ids=lambda cell: cell.name)
def test_a_cell_is_right_everywhere(cell: Cell) -> None:
    """On this computer and, as IR and as PTX, in the simulator, with no finding; or refused by a rule, and right."""
    verdict = check(cell)
    assert verdict.wrong == ""
    assert verdict.taken_by == cell.emitter or verdict.refused


REFUSED = {
    ("transpose", "minor moved", "s4"),  # 64 x 96 elements of 4 bits fill no packed tile
    ("transpose", "three dims", "s4"),
    ("transpose", "minor kept", "f64"),  # two elements of 64 bits are wide enough for direct access
    ("transpose", "minor kept", "c64"),
    ("input_slices", "two or three", "s4"),  # slices begin within a byte
}


@pytest.mark.slow
def test_every_emitter_takes_its_round_shapes() -> None:
    """Wrong: an emitter that refuses what it is for, so that the matrix tests the loop emitter instead."""
    refused: set[tuple[str, str, str]] = set()
    for cell in CELLS:
        if cell.kind == "round":
            (step,) = make_schedule(wrap(cell.module())).steps
            if emit(step.instruction, device("sm_90")).origin.emitter != cell.emitter:
                refused.add((cell.emitter, cell.variant, cell.dtype))
    assert refused == REFUSED


# ------------------------------------------------------------------------------------------------- what accesses cost
@dataclass(frozen=True)
class Moved:
    """A kernel, and the bytes that its input and its output have."""

    text: str
    read: int
    written: int


def transposed(dtype: str, dims: tuple[int, ...], order: tuple[int, ...]) -> Moved:
    given, made = (",".join(map(str, each)) for each in (dims, [dims[d] for d in order]))
    size = by_name(dtype).byte_size(math.prod(dims))
    text = f"""x = {dtype}[{given}] parameter(0)
        ROOT t = {dtype}[{made}] transpose(x), dimensions={{{",".join(map(str, order))}}}"""
    return Moved(text, size, size)


def reduced(dtype: str, dims: tuple[int, ...], gone: int) -> Moved:
    kept = [n for d, n in enumerate(dims) if d != gone]
    width = by_name(dtype).bits // 8
    text = f"""x = {dtype}[{",".join(map(str, dims))}] parameter(0)
        z = {dtype}[] constant({"(0,0)" if dtype == "c64" else "0"})
        ROOT r = {dtype}[{",".join(map(str, kept))}] reduce(x, z), dimensions={{{gone}}}, to_apply=add_{dtype}"""
    return Moved(text, width * math.prod(dims), width * math.prod(kept))


def watched(text: str) -> Simulation:
    module = parse_hlo(body(text))
    arrays = [
        random_array(p.array_shape.dtype, p.array_shape.dims, seed=1, parameter=i, profile=Profile.TAME)
        for i, p in enumerate(module.entry.parameters)
    ]
    return simulate(module, *arrays, target="sm_90")


TRANSPOSES = {
    "padded, f32": transposed("f32", (64, 96), (1, 0)),
    "padded, f64": transposed("f64", (64, 96), (1, 0)),
    "padded, c64": transposed("c64", (64, 96), (1, 0)),
    "padded, three dims": transposed("f32", (3, 64, 96), (0, 2, 1)),
    "padded, minor kept, f32": transposed("f32", (64, 96, 2), (1, 0, 2)),
    "padded, minor kept, bf16": transposed("bf16", (64, 96, 4), (1, 0, 2)),
    "padded, minor kept, s8": transposed("s8", (64, 96, 8), (1, 0, 2)),
    "packed, bf16": transposed("bf16", (128, 128), (1, 0)),
    "packed, s8": transposed("s8", (128, 256), (1, 0)),
    "packed, s4": transposed("s4", (256, 256), (1, 0)),
}


@pytest.mark.parametrize("name", TRANSPOSES)
def test_a_transpose_of_full_tiles_is_coalesced_both_ways_and_free_of_bank_conflicts(name: str) -> None:
    """Each sector of the input is read once, and each of the output written once; a warp never waits for a bank."""
    moved = TRANSPOSES[name]
    found = watched(moved.text)
    (counters,) = found.counters
    assert found.findings == []
    assert counters.conflicts == 0
    assert counters.wavefronts > 0
    for kind, size in (("load", moved.read), ("store", moved.written)):
        accesses = [each for each in counters.accesses if (each.kind, each.space) == (kind, "global")]
        assert sum(each.sectors for each in accesses) * 32 == size


REDUCTIONS = {
    "row": reduced("f32", (24, 1024), 1),
    "row, bf16": reduced("bf16", (24, 2048), 1),
    "row, f64": reduced("f64", (24, 1024), 1),
    "row, c64": reduced("c64", (24, 1024), 1),
    "multi_row": reduced("f32", (4096, 16), 1),
    "multi_row, bf16": reduced("bf16", (4096, 16), 1),
    "column": reduced("f32", (256, 128), 0),
    "column, bf16": reduced("bf16", (256, 256), 0),
    "column, f64": reduced("f64", (256, 64), 0),
    "column, c64": reduced("c64", (256, 64), 0),
    "small_column": reduced("f32", (4, 512, 8), 1),
    "small_column, bf16": reduced("bf16", (4, 512, 8), 1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_reads_each_element_once_coalesced(name: str) -> None:
    moved = REDUCTIONS[name]
    assert emitted(moved.text).origin.variant == name.partition(",")[0]
    found = watched(moved.text)
    (counters,) = found.counters
    assert found.findings == []
    loads = [each for each in counters.accesses if (each.kind, each.space) == ("load", "global")]
    assert sum(each.requested for each in loads) == moved.read
    assert sum(each.sectors for each in loads) * 32 == moved.read
    stores = [each for each in counters.accesses if (each.kind, each.space) == ("store", "global")]
    assert sum(each.requested for each in stores) == moved.written


# ----------------------------------------------------------------------------------------------------- words of atomics
def scattered(dtype: str, count: int) -> str:
    """`count` elements, each the sum of what 40 threads add."""
    return f"""
        x = {dtype}[{count}] parameter(0)
        i = s32[{40 * count},1] parameter(1)
        u = {dtype}[{40 * count}] parameter(2)
        ROOT r = {dtype}[{count}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=more"""


@pytest.mark.parametrize(("dtype", "count"), [("s8", 1), ("s8", 5), ("u8", 7), ("s16", 3), ("s16", 4)])
def test_steps_on_narrow_elements_lose_no_neighbour(dtype: str, count: int) -> None:
    """A step exchanges the 32-bit word around an element: all sums arrive, and what is behind the buffer stays."""
    more = f"more {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  ROOT r = {dtype}[] add(a, b) }}\n"
    module = parse_hlo(body(scattered(dtype, count)).replace("HloModule m\n", "HloModule m\n" + more))
    (step,) = make_schedule(wrap(module)).steps
    kernel = lower_fusion(step.instruction, device("sm_90"))
    (output,) = kernel.kernel.outputs
    assert output.whole_words
    numpy = by_name(dtype).numpy
    each = 4 // numpy.itemsize
    memory = np.full(-(-count // each) * each, 77, numpy)  # to the end of the last word, and no further
    memory[:count] = 0
    indices = np.tile(np.arange(count, dtype=np.int32), 40)
    updates = np.ones(40 * count, numpy)
    run_ptx(
        ptx_from_llvm(kernel.code, "sm_90"),
        [memory, indices, updates, memory],
        PtxLaunch(kernel.kernel.launch.grid, kernel.kernel.launch.block),
    )
    assert memory[:count].tolist() == [40] * count
    assert (memory[count:] == 77).all()


def test_only_steps_on_narrow_elements_need_whole_words() -> None:
    """Wrong: every kernel asks for room behind its buffers, which hides an access out of bounds."""
    wide = "x = s8[5] parameter(0)\n ROOT r = s8[5] negate(x)"
    assert not any(each.whole_words for each in emitted(wide).arguments)
    assert not any(each.whole_words for each in emitted(scattered("f32", 5).replace("more", "add_f32")).arguments)
    narrow = "x = s4[5] parameter(0)\n ROOT r = s4[5] negate(x)"
    assert [each.whole_words for each in emitted(narrow).arguments] == [False, True]
