"""Our own PTX, run: it gives what the reference interpreter gives, and the CPU's bits where both are exact.

A third of the corpus, each case on one of three architectures in turn.  So the last steps (LLVM's back end, the text)
are tested as the passes before them are.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from differential import assert_close, assert_same, fusion_of
from fusion_corpus import CASES, Case, inputs_of
from kernel_runner import from_memory, to_memory
from simt.ptx_runner import HEADER

from warpsmith.arrays import Array
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.compiler import compile, lower_fusion
from warpsmith.devices import device
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, PtxStats, run_ptx, simulate_ptx

TARGETS = ("sm_80", "sm_90", "sm_100")
NAMES = [name for name, case in CASES.items() if not case.large][::3]
LARGE = [name for name, case in CASES.items() if case.large][::2]


def run_on(module: HloModule, arrays: Sequence[Array], target: str) -> tuple[list[Array], PtxStats]:
    """The one kernel of a module as PTX for `target`, on arrays in logical order."""
    lowered = lower_fusion(fusion_of(module), device(target))
    kernel = lowered.kernel
    shapes = kernel.arguments
    flat = [to_memory(array, shape) for array, shape in zip(arrays, shapes, strict=False)]
    outputs = shapes[len(arrays) :]
    blanks = [np.zeros(0, shape.dtype.numpy).real.dtype for shape in outputs]
    found, stats = simulate_ptx(
        ptx_from_llvm(lowered.code, target),
        flat,
        [(t, s.elements * (2 if s.dtype.is_complex else 1)) for t, s in zip(blanks, outputs, strict=True)],
        PtxLaunch(kernel.launch.grid, kernel.launch.block, aliases=kernel.aliases),
        checks=Checks(),
    )
    return [from_memory(data, shape) for data, shape in zip(found, outputs, strict=True)], stats


def _check(case: Case, target: str) -> PtxStats:
    module = case.module()
    arrays = inputs_of(case, module)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    found, stats = run_on(module, arrays, target)
    assert_close(found, expected, bounds, module, f"{case.name} on {target}")
    return stats


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, TARGETS[i % 3]) for i, name in enumerate(NAMES)],
)
def test_ptx_agrees_with_the_interpreter(name: str, target: str) -> None:
    """Within the interpreter's bounds, on edge values, with indices out of range, outputs starting as NaN."""
    _check(CASES[name], target)


@pytest.mark.parametrize(("name", "target"), [(name, TARGETS[i % 3]) for i, name in enumerate(LARGE)])
def test_unrolled_kernels_agree_with_the_interpreter(name: str, target: str) -> None:
    """Large enough for several elements a thread."""
    _check(CASES[name], target)


def test_large_kernels_move_vectors() -> None:
    """Four bf16 elements a thread: one 64-bit load and one 64-bit store each, and no other access to global memory."""
    text = """HloModule m
        f { p = bf16[1081344] parameter(0)  ROOT n = bf16[1081344] negate(p) }"""
    source = np.arange(1081344, dtype=np.float32).astype(ml_dtypes.bfloat16)
    (found,), stats = run_on(parse_hlo(text), [source], "sm_90")
    assert (found == -source).all()
    accesses = {access: number for access, number in stats.accesses.items() if access[1] == "global"}
    assert accesses == {("load", "global", 64): 270336, ("store", "global", 64): 270336}


EXACT = (
    *("bf16 exact", "f32 exact", "f64 exact", "f16 compare", "s8 elementwise", "u64 elementwise", "s32 power"),
    *("convert f64", "convert bf16", "pad", "gather pairs", "reduce s32", "iota bf16"),
)


@pytest.mark.parametrize("name", EXACT)
def test_ptx_gives_the_bits_that_the_cpu_gives(name: str) -> None:
    """Ops that are correctly rounded, or have no rounding, must not differ between the two machines."""
    case = CASES[name]
    module = case.module()
    arrays = inputs_of(case, module)
    gpu, _ = run_on(module, arrays, "sm_90")
    cpu = compile(module, "cpu", cache=False)(*arrays)
    assert_same(gpu, [np.asarray(each) for each in cpu], name)


def test_a_tile_goes_through_shared_memory_as_xla_writes_it() -> None:
    """A transpose by 32 x 33 tiles, in the manner of XLA's: dependency wait, selected tile addresses, one barrier."""
    loads = "\n".join(
        f"ld.global.nc.b32 %r20, [%rd4+{4 * 64 * 4 * i}]; st.shared.b32 [%rd6+{4 * 33 * 4 * i}], %r20;"
        for i in range(8)
    )
    stores = "\n".join(
        f"ld.shared.b32 %r20, [%rd7+{4 * 4 * i}]; st.global.b32 [%rd5+{4 * 96 * 4 * i}], %r20;" for i in range(8)
    )
    text = (
        HEADER
        + f"""
    .visible .entry fusion(.param .u64 .ptr .align 16 fusion_param_0, .param .u64 .ptr .align 256 fusion_param_1)
    .reqntid 128, 1, 1
    {{
        .reg .b32 %r<30>; .reg .b64 %rd<10>;
        .shared .align 4 .b8 shared_0[4224];
        ld.param.b64 %rd1, [fusion_param_0]; ld.param.b64 %rd2, [fusion_param_1];
        cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
        griddepcontrol.wait;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        and.b32 %r3, %r1, 31; shr.u32 %r4, %r1, 5;
        and.b32 %r5, %r2, 1; shr.u32 %r6, %r2, 1;
        shl.b32 %r7, %r6, 5; shl.b32 %r8, %r5, 5;
        add.s32 %r9, %r7, %r4; mad.lo.s32 %r10, %r9, 64, %r8; add.s32 %r10, %r10, %r3;
        mul.wide.u32 %rd3, %r10, 4; add.s64 %rd4, %rd1, %rd3;
        mov.b64 %rd8, shared_0;
        mad.lo.s32 %r11, %r4, 33, %r3; mul.wide.u32 %rd3, %r11, 4; add.s64 %rd6, %rd8, %rd3;
        {loads}
        bar.sync 0;
        mad.lo.s32 %r12, %r3, 33, %r4; mul.wide.u32 %rd3, %r12, 4; add.s64 %rd7, %rd8, %rd3;
        add.s32 %r13, %r8, %r4; mad.lo.s32 %r14, %r13, 96, %r7; add.s32 %r14, %r14, %r3;
        mul.wide.u32 %rd3, %r14, 4; add.s64 %rd5, %rd2, %rd3;
        {stores}
        ret;
    }}"""
    )
    source = np.arange(96 * 64, dtype=np.float32).reshape(96, 64)
    target = np.full((64, 96), np.nan, np.float32)
    stats = run_ptx(text, [source, target], PtxLaunch((6,), (128,)), checks=Checks(fresh={1: 4 * source.size}))
    assert (target == source.T).all()
    assert stats.findings == []
    assert stats.accesses[("store", "shared", 32)] == source.size


def test_a_compare_and_swap_loop_adds_narrow_numbers() -> None:
    """Sums of bf16 by 32-bit compare-and-swap, many threads at one address, two numbers a word: nothing is lost."""
    text = (
        HEADER
        + """
    .visible .entry fusion(.param .u64 .ptr .align 16 updates, .param .u64 .ptr .align 256 out)
    {
        .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b16 %rs<5>; .reg .pred %p<2>;
        ld.param.b64 %rd1, [updates]; ld.param.b64 %rd2, [out];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
        mad.lo.s32 %r1, %r2, %r3, %r1;
        mad.wide.u32 %rd3, %r1, 2, %rd1; ld.global.nc.b16 %rs1, [%rd3];
        rem.u32 %r4, %r1, 5; shr.u32 %r5, %r4, 1; mad.wide.u32 %rd4, %r5, 4, %rd2;
        and.b32 %r6, %r4, 1; shl.b32 %r6, %r6, 4; shl.b32 %r7, 65535, %r6; not.b32 %r7, %r7;
        ld.relaxed.sys.global.b32 %r8, [%rd4];
    $again:
        shr.u32 %r9, %r8, %r6; cvt.u16.u32 %rs2, %r9;
        add.rn.bf16 %rs3, %rs2, %rs1;
        cvt.u32.u16 %r10, %rs3; shl.b32 %r10, %r10, %r6;
        and.b32 %r9, %r8, %r7; or.b32 %r10, %r10, %r9;
        atom.relaxed.sys.global.cas.b32 %r11, [%rd4], %r8, %r10;
        setp.ne.b32 %p1, %r11, %r8;
        mov.b32 %r8, %r11;
        @%p1 bra $again;
        ret;
    }"""
    )
    rng = np.random.default_rng(0)
    numbers = rng.integers(-3, 4, 320).astype(np.float32)
    updates = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    out = np.zeros(6, np.uint16)
    run_ptx(text, [updates, out], PtxLaunch((5,), (64,)))
    sums = (out.astype(np.uint32) << 16).view(np.float32)
    assert sums.tolist() == [numbers[i::5].sum() for i in range(5)] + [0.0]
