"""ldmatrix, stmatrix and mma.sync in IR and in PTX, against the PTX ISA's own words on which lane holds what."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from simt.fragments import element_a, element_b, element_c, fragment, tile_element
from simt.matrix_kernels import Run, ir_kernel, ptx_kernel, run_ir, run_ptx_text

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError

MACHINES = ("ir", "ptx")
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


# -------------------------------------------------------------------------------------------------------------- tiles
def _load(
    machine: str, tiles: int, *, transpose: bool = False, row: int = 8, barrier: bool = True
) -> tuple[Run, Array]:
    """32 rows of 8, in memory order; lane l asks for row 5 l mod 32.  What each lane holds, and the rows."""
    source = np.arange(256, dtype=np.int16) * 7
    trans = ".trans" if transpose else ""
    if machine == "ir":
        vector = f"vector<{2 * tiles}xi16>"
        body = f"""
  %c5 = arith.constant 5 : index
  %at = arith.muli %t, %c8 : index
  %v = vector.load %in[%at] : memref<256xi16>, vector<8xi16>
  vector.store %v, %tile[%at] : memref<1024xi16, 3>, vector<8xi16>
  {"gpu.barrier" if barrier else ""}
  %r0 = arith.muli %lane, %c5 : index
  %r1 = arith.remui %r0, %c32 : index
  %crow = arith.constant {row} : index
  %r2 = arith.muli %r1, %crow : index
  %f = "nvgpu.ldmatrix"(%tile, %r2) {{num_tiles = {tiles} : i64, transpose = {str(transpose).lower()}}}
      : (memref<1024xi16, 3>, index) -> {vector}
  %cn = arith.constant {2 * tiles} : index
  %o = arith.muli %t, %cn : index
  vector.store %f, %out[%o] : memref<{64 * tiles}xi16>, {vector}"""
        run = run_ir(ir_kernel(body, element="i16", inputs=256, outputs=64 * tiles), source)
    else:
        registers = ", ".join(f"%r{10 + i}" for i in range(tiles))
        stores = "\n".join(f"st.global.b32 [%rd2+{4 * i}], %r{10 + i};" for i in range(tiles))
        body = f"""
    mad.wide.u32 %rd0, %t, 16, %in;
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%rd0];
    mad.lo.u32 %r4, %t, 16, %tile;
    st.shared.v4.b32 [%r4], {{%r0, %r1, %r2, %r3}};
    {"bar.sync 0;" if barrier else ""}
    mul.lo.u32 %r5, %lane, 5;
    and.b32 %r5, %r5, 31;
    mad.lo.u32 %r6, %r5, {2 * row}, %tile;
    ldmatrix.sync.aligned.m8n8.x{tiles}{trans}.shared.b16 {{{registers}}}, [%r6];
    mad.wide.u32 %rd2, %t, {4 * tiles}, %out;
    {stores}"""
        run = run_ptx_text(ptx_kernel(body), source, np.zeros(64 * tiles, np.int16))
    return run, source.reshape(32, 8)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("machine", MACHINES)
def test_ldmatrix_gives_each_lane_its_elements(machine: str, tiles: int, transpose: bool) -> None:
    run, rows = _load(machine, tiles, transpose=transpose)
    whole = np.stack([rows[[5 * (8 * k + r) % 32 for r in range(8)]] for k in range(tiles)])
    if transpose:
        whole = whole.transpose(0, 2, 1)
    assert run.output.reshape(32, -1).tolist() == fragment(whole, tile_element, 2 * tiles).tolist()
    assert run.findings == []


@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_tile_is_one_turn_of_the_banks(machine: str, tiles: int) -> None:
    """8 rows of 16 bytes that lie side by side are all 32 banks; lanes that give no row are no loss."""
    run, _ = _load(machine, tiles)
    assert run.counters is not None
    (found,) = [a for a in run.counters.accesses if "ldmatrix" in a.site.op]
    assert (found.kind, found.space, found.bytes, found.warps, found.threads) == ("load", "shared", 16, 1, 8 * tiles)
    assert (found.wavefronts, found.ideal_wavefronts, found.partial) == (tiles, tiles, 0)


def _strided(machine: str, stride: int) -> Run:
    """Four tiles whose rows lie `stride` bytes apart, first written as rows."""
    if machine == "ir":
        body = f"""
  %cs = arith.constant {stride // 2} : index
  %at = arith.muli %t, %cs : index
  %v = arith.constant dense<1.0> : vector<8xf16>
  vector.store %v, %tile[%at] : memref<4096xf16, 3>, vector<8xf16>
  gpu.barrier
  %f = "nvgpu.ldmatrix"(%tile, %at) {{num_tiles = 4 : i64, transpose = false}}
      : (memref<4096xf16, 3>, index) -> vector<8xf16>
  %o = arith.muli %t, %c8 : index
  vector.store %f, %out[%o] : memref<256xf16>, vector<8xf16>"""
        return run_ir(ir_kernel(body, shared=4096, outputs=256), np.zeros(1024, np.float16))
    body = f"""
    mad.lo.u32 %r4, %t, {stride}, %tile;
    mov.b32 %r0, 1;
    st.shared.v4.b32 [%r4], {{%r0, %r0, %r0, %r0}};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%r4];
    mad.wide.u32 %rd2, %t, 16, %out;
    st.global.v4.b32 [%rd2], {{%r0, %r1, %r2, %r3}};"""
    return run_ptx_text(ptx_kernel(body, shared=8192), np.zeros(4, np.float16), np.zeros(256, np.float16))


@pytest.mark.parametrize(("stride", "turns"), [(16, 4), (32, 8), (64, 16), (128, 32), (144, 4), (80, 4)])
@pytest.mark.parametrize("machine", MACHINES)
def test_conflicts_of_rows_at_a_stride(machine: str, stride: int, turns: int) -> None:
    """Eight rows 128 bytes apart are in the same four banks; a stride of an odd number of 16 bytes has no conflict."""
    run = _strided(machine, stride)
    assert run.counters is not None
    (found,) = [a for a in run.counters.accesses if "ldmatrix" in a.site.op]
    assert (found.wavefronts, found.ideal_wavefronts) == (turns, 4)


def _store(machine: str, tiles: int, *, transpose: bool, barrier: bool = True) -> tuple[Run, Array]:
    """Lane l gives row 5 l mod (8 tiles); the rows are read after it, one a lane."""
    source = (np.arange(64 * tiles, dtype=np.int16) * 3 + 1).reshape(32, 2 * tiles)
    rows = 8 * tiles
    if machine == "ir":
        vector = f"vector<{2 * tiles}xi16>"
        body = f"""
  %c5 = arith.constant 5 : index
  %cn = arith.constant {2 * tiles} : index
  %cr = arith.constant {rows} : index
  %i = arith.muli %t, %cn : index
  %v = vector.load %in[%i] : memref<{64 * tiles}xi16>, {vector}
  %r0 = arith.muli %lane, %c5 : index
  %r1 = arith.remui %r0, %cr : index
  %r2 = arith.muli %r1, %c8 : index
  "nvgpu.stmatrix"(%v, %tile, %r2) {{num_tiles = {tiles} : i64, transpose = {str(transpose).lower()}}}
      : ({vector}, memref<1024xi16, 3>, index) -> ()
  {"gpu.barrier" if barrier else ""}
  %here = arith.cmpi ult, %t, %cr : index
  scf.if %here {{
    %o = arith.muli %t, %c8 : index
    %w = vector.load %tile[%o] : memref<1024xi16, 3>, vector<8xi16>
    vector.store %w, %out[%o] : memref<{64 * tiles}xi16>, vector<8xi16>
  }}"""
        kernel = ir_kernel(body, element="i16", inputs=64 * tiles, outputs=64 * tiles)
        return run_ir(kernel, source.reshape(-1)), source
    loads = "\n".join(f"ld.global.b32 %r{10 + i}, [%rd0+{4 * i}];" for i in range(tiles))
    registers = ", ".join(f"%r{10 + i}" for i in range(tiles))
    body = f"""
    mad.wide.u32 %rd0, %t, {4 * tiles}, %in;
    {loads}
    mul.lo.u32 %r5, %lane, 5;
    rem.u32 %r5, %r5, {rows};
    mad.lo.u32 %r6, %r5, 16, %tile;
    stmatrix.sync.aligned.m8n8.x{tiles}{".trans" if transpose else ""}.shared.b16 [%r6], {{{registers}}};
    {"bar.sync 0;" if barrier else ""}
    setp.ge.u32 %p0, %t, {rows};
    @%p0 bra $end;
    mad.lo.u32 %r7, %t, 16, %tile;
    ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%r7];
    mad.wide.u32 %rd2, %t, 16, %out;
    st.global.v4.b32 [%rd2], {{%r0, %r1, %r2, %r3}};
$end:"""
    return run_ptx_text(ptx_kernel(body), source, np.zeros(64 * tiles, np.int16)), source


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("machine", MACHINES)
def test_stmatrix_writes_each_lanes_elements(machine: str, tiles: int, transpose: bool) -> None:
    run, held = _store(machine, tiles, transpose=transpose)
    expected = np.zeros((8 * tiles, 8), np.int16)
    for lane in range(32):
        for i in range(2 * tiles):
            tile, row, column = tile_element(lane, i)
            row, column = (column, row) if transpose else (row, column)
            expected[5 * (8 * tile + row) % (8 * tiles), column] = held[lane, i]
    assert run.output.reshape(-1, 8).tolist() == expected.tolist()
    assert run.findings == []
    assert run.counters is not None
    (found,) = [a for a in run.counters.accesses if "stmatrix" in a.site.op]
    assert (found.kind, found.threads, found.wavefronts, found.partial) == ("store", 8 * tiles, tiles, 0)


# ----------------------------------------------------------------------------------------------------------- products
def _product(machine: str, element: str, a: Array, b: Array, c: Array, *, only: int = 32, threads: int = 32) -> Run:
    """d of fragments a (32, 8), b (32, 4), c (32, 4) that the one warp loads; lanes from `only` on don't multiply."""
    given = np.concatenate([each.reshape(-1).view(np.uint16) for each in (a, b, c)])
    if machine == "ir":
        body = f"""
  %c256 = arith.constant 256 : index
  %c384 = arith.constant 384 : index
  %only = arith.constant {only} : index
  %c3 = arith.constant 3.0 : f32
  %zero = vector.broadcast %c3 : f32 to vector<4xf32>
  %i = arith.muli %lane, %c8 : index
  %a = vector.load %in[%i] : memref<640x{element}>, vector<8x{element}>
  %j0 = arith.muli %lane, %c4 : index
  %j = arith.addi %j0, %c256 : index
  %b = vector.load %in[%j] : memref<640x{element}>, vector<4x{element}>
  %k = arith.addi %i, %c384 : index
  %bits = vector.load %in[%k] : memref<640x{element}>, vector<8x{element}>
  %c = vector.bitcast %bits : vector<8x{element}> to vector<4xf32>
  %here = arith.cmpi ult, %t, %only : index
  %d = scf.if %here -> (vector<4xf32>) {{
    %new = "nvgpu.mma.sync"(%a, %b, %c) {{shape = array<i64: 16, 8, 16>}}
        : (vector<8x{element}>, vector<4x{element}>, vector<4xf32>) -> vector<4xf32>
    scf.yield %new : vector<4xf32>
  }} else {{
    scf.yield %zero : vector<4xf32>
  }}
  %o = arith.muli %t, %c4 : index
  vector.store %d, %out[%o] : memref<{4 * threads}xf32>, vector<4xf32>"""
        text = ir_kernel(body, threads=threads, element=element, inputs=640, outputs=4 * threads, out="f32")
        return run_ir(text, given.view(DTYPES[element]))
    body = f"""
    mad.wide.u32 %rd0, %lane, 16, %in;
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%rd0];
    mad.wide.u32 %rd1, %lane, 8, %in;
    ld.global.v2.b32 {{%r4, %r5}}, [%rd1+512];
    ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%rd0+768];
    setp.ge.u32 %p0, %t, {only};
    @%p0 bra $end;
    mma.sync.aligned.m16n8k16.row.col.f32.{element}.{element}.f32
        {{%f0, %f1, %f2, %f3}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};
$end:
    mad.wide.u32 %rd2, %t, 16, %out;
    st.global.v4.f32 [%rd2], {{%f0, %f1, %f2, %f3}};"""
    return run_ptx_text(ptx_kernel(body), given, np.zeros(4 * threads, np.float32), threads=threads)


def _multiplied(machine: str, element: str, a: Array, b: Array, c: Array) -> Array:
    run = _product(machine, element, fragment(a, element_a, 8), fragment(b, element_b, 4), fragment(c, element_c, 4))
    assert run.findings == []
    assert run.counters is not None
    assert (run.counters.matrix_flops, run.counters.mix["matrix"]) == (2 * 16 * 8 * 16, 1)
    d = np.zeros((16, 8), np.float32)
    for lane in range(32):
        for i in range(4):
            d[element_c(lane, i)] = run.output.reshape(32, 4)[lane, i]
    return d


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("machine", MACHINES)
def test_mma_multiplies_matrices(machine: str, element: str) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 9, shape).astype(DTYPES[element]) for shape in ((16, 16), (16, 8)))
    c = random.integers(-100, 100, (16, 8)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    assert (_multiplied(machine, element, a, b, c) == exact).all()


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("machine", MACHINES)
def test_mma_rounds_the_exact_sum_once(machine: str, element: str) -> None:
    """Terms of very different size, which cancel: the result is the f32 nearest to the exact sum."""
    random = np.random.default_rng(2)
    a, b = (
        (random.standard_normal(shape) * 2.0 ** random.integers(-12, 12, shape)).astype(DTYPES[element])
        for shape in ((16, 16), (16, 8))
    )
    a[:, 8:], b[8:] = -a[:, :8], b[:8] * DTYPES[element].type(1.0)
    a[:, 9] *= DTYPES[element].type(1.5)
    c = (random.standard_normal((16, 8)) * 2.0 ** random.integers(-40, 10, (16, 8))).astype(np.float32)
    d = _multiplied(machine, element, a, b, c)
    for row in range(16):
        for column in range(8):
            terms = [Fraction(float(a[row, k])) * Fraction(float(b[k, column])) for k in range(16)]
            exact = sum(terms, Fraction(float(c[row, column])))
            half = Fraction(float(np.spacing(np.abs(d[row, column])))) / 2
            assert abs(Fraction(float(d[row, column])) - exact) <= half


@pytest.mark.parametrize("machine", MACHINES)
def test_mma_of_infinities_and_nans(machine: str) -> None:
    a, b, c = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16), np.zeros((16, 8), np.float32)
    a[0, 0] = np.inf
    a[1, 0], a[1, 1] = np.inf, -np.inf
    a[2, 0] = np.nan
    a[3, 0], b[0, 3] = 0.0, np.inf
    c[4, 0], c[5, 0] = np.inf, np.float32(3e38)
    a[6] = -0.0
    c[6] = -0.0
    d = _multiplied(machine, "f16", a, b, c)
    with np.errstate(invalid="ignore"):
        expected = np.sum(a[:, :, None].astype(np.float64) * b[None].astype(np.float64), axis=1) + c
    np.testing.assert_array_equal(d, expected.astype(np.float32))
    assert np.isnan(d[1]).all()
    assert np.isnan(d[3, 3])
    assert np.signbit(d[6, 0])


@pytest.mark.parametrize("machine", MACHINES)
def test_mma_overflows_to_infinity(machine: str) -> None:
    """bf16 reaches as far as f32: a product may be past it, and come back."""
    a, b, c = (np.zeros(s, ml_dtypes.bfloat16) for s in ((16, 16), (16, 8), (1, 1)))
    a[:, 0] = a[8:, 1] = 3e38
    b[0], b[1] = 4.0, -4.0
    d = _multiplied(machine, "bf16", a, b, np.ones((16, 8), np.float32) * c.astype(np.float32) + 1)
    assert np.isposinf(d[:8]).all()
    assert (d[8:] == 1).all()


# ----------------------------------------------------------------------------------------------------------- mistakes
@pytest.mark.parametrize("only", [16, 31, 48])
@pytest.mark.parametrize("machine", MACHINES)
def test_half_a_warp_can_not_multiply(machine: str, only: int) -> None:
    """The first lane that is missing is named; a whole warp beside it is fine."""
    zeros = np.zeros((32, 8), np.float16), np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float32)
    run = _product(machine, "f16", *zeros, only=only, threads=64)
    (found,) = run.findings
    assert (found.code, found.thread, found.count) == ("matrix-divergence", (only, 0, 0), -only % 32)
    assert found.site is not None
    assert "mma.sync" in found.site.op


@pytest.mark.parametrize("machine", MACHINES)
def test_the_last_warp_of_a_block_may_be_too_small(machine: str) -> None:
    zeros = np.zeros((32, 8), np.float16), np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float32)
    run = _product(machine, "f16", *zeros, only=48, threads=48)
    assert [(f.code, f.thread, f.count) for f in run.findings] == [("matrix-divergence", (32, 0, 0), 16)]


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_are_aligned_to_16_bytes(machine: str) -> None:
    """Lane 1 asks for row 5, which begins at byte 60 when rows are 12 bytes."""
    run, _ = _load(machine, 1, row=6)
    (found,) = run.findings
    assert (found.code, found.thread, found.space, found.byte) == ("misaligned", (1, 0, 0), "shared", 60)
    assert found.site is not None
    assert "ldmatrix" in found.site.op


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_are_in_bounds(machine: str) -> None:
    """Rows of 512 bytes in 2 KB: lane 1's is row 5, at byte 2560."""
    run, _ = _load(machine, 1, row=256)
    (found,) = run.findings
    assert (found.code, found.thread) == ("out-of-bounds", (1, 0, 0))


@pytest.mark.parametrize("machine", MACHINES)
def test_reading_what_another_lane_stores_needs_a_barrier(machine: str) -> None:
    """stmatrix writes by the lane that gives the row: row 1 is lane 13's (5 x 13 = 65); four lanes read their own."""
    run, _ = _store(machine, 4, transpose=False, barrier=False)
    (found,) = run.findings
    assert (found.code, found.thread, found.byte, found.count) == ("race", (1, 0, 0), 16, 28)
    assert found.other is not None
    assert (found.other.kind, found.other.thread) == ("store", (13, 0, 0))
    assert "stmatrix" in found.other.site.op


@pytest.mark.parametrize("machine", MACHINES)
def test_loading_what_another_lane_wrote_needs_a_barrier(machine: str) -> None:
    """Of 16 lanes that give a row two have written it: 5 l = l mod 32 for 0 and 8.  Lane 1 asks for lane 5's."""
    run, _ = _load(machine, 2, barrier=False)
    (found,) = run.findings
    assert (found.code, found.thread, found.byte, found.count) == ("race", (1, 0, 0), 80, 14)
    assert found.site is not None
    assert found.other is not None
    assert "ldmatrix" in found.site.op
    assert (found.other.kind, found.other.thread) == ("store", (5, 0, 0))


def test_tiles_are_in_shared_memory() -> None:
    """A generic address may be any; one of global memory is refused, at its line."""
    body = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%in];\nst.global.b32 [%out], %r0;"
    with pytest.raises(SimulationError, match="is of shared memory") as failed:
        run_ptx_text(ptx_kernel(body), np.zeros(8, np.int16), np.zeros(2, np.int16))
    assert failed.value.span is not None
    assert "ldmatrix" in failed.value.span.text


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_that_nobody_wrote_are_found(machine: str) -> None:
    """A second row past what was filled: rows 16 bytes apart would be whole, 32 apart reach unwritten memory."""
    run, _ = _load(machine, 4, row=16)
    assert run.codes == ["uninitialised-read"]
    assert (run.findings[0].space, run.findings[0].thread, run.findings[0].count) == ("shared", (4, 0, 0), 16)
