"""cp.async in IR and in PTX: a pipeline of two buffers that is right, and what happens when a part of it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simt.matrix_kernels import COMMIT, COPY_IR, WAIT, Run, ir_kernel, ptx_kernel, run_ir, run_ptx_text

from warpsmith.errors import SimulationError

MACHINES = ("ir", "ptx")
STEPS, WIDTH = 5, 256  # words a step: 64 threads, 16 bytes each


def _pipeline_ir(*, prologue_commit: bool, wait: int | None, last: int, barrier: str, refill_barrier: str) -> str:
    await_ = f"""
    %more = arith.cmpi ult, %i1, %csteps : index
    scf.if %more {{
      "nvvm.cp.async.wait.group"() {{n = {wait} : i32}} : () -> ()
    }} else {{
      "nvvm.cp.async.wait.group"() {{n = {last} : i32}} : () -> ()
    }}"""
    body = f"""
  %csteps = arith.constant {STEPS} : index
  %cwidth = arith.constant {WIDTH} : index
  %c63 = arith.constant 63 : index
  %o = arith.muli %t, %c4 : index
  "nvgpu.device_async_copy"(%tile, %o, %in, %o) {{bytes = 16 : i64}} : {COPY_IR}
  {'"nvvm.cp.async.commit.group"() : () -> ()' if prologue_commit else ""}
  scf.for %i = %c0 to %csteps step %c1 {{
    %i1 = arith.addi %i, %c1 : index
    %ok = arith.cmpi ult, %i1, %csteps : index
    scf.if %ok {{
      %half = arith.remui %i1, %c2 : index
      %d0 = arith.muli %half, %cwidth : index
      %d = arith.addi %d0, %o : index
      %s0 = arith.muli %i1, %cwidth : index
      %s = arith.addi %s0, %o : index
      "nvgpu.device_async_copy"(%tile, %d, %in, %s) {{bytes = 16 : i64}} : {COPY_IR}
      "nvvm.cp.async.commit.group"() : () -> ()
    }}
    {await_ if wait is not None else ""}
    {barrier}
    %now = arith.remui %i, %c2 : index
    %b = arith.muli %now, %cwidth : index
    %other = arith.xori %t, %c63 : index
    %p0 = arith.muli %other, %c4 : index
    %p = arith.addi %p0, %b : index
    %v = vector.load %tile[%p] : memref<512xf32, 3>, vector<4xf32>
    %g0 = arith.muli %i, %cwidth : index
    %g = arith.addi %g0, %o : index
    vector.store %v, %out[%g] : memref<1280xf32>, vector<4xf32>
    {refill_barrier}
  }}"""
    return ir_kernel(body, threads=64, element="f32", inputs=1280, outputs=1280, shared=512)


def _pipeline_ptx(*, prologue_commit: bool, wait: int | None, last: int, barrier: str, refill_barrier: str) -> str:
    await_ = f"""
    setp.lt.u32 %p1, %r1, {STEPS};
    @%p1 cp.async.wait_group {wait};
    @!%p1 cp.async.wait_group {last};"""
    body = f"""
    mad.lo.u32 %r10, %t, 16, %tile;
    mad.wide.u32 %rd0, %t, 16, %in;
    mad.wide.u32 %rd1, %t, 16, %out;
    cp.async.cg.shared.global [%r10], [%rd0], 16;
    {"cp.async.commit_group;" if prologue_commit else ""}
    xor.b32 %r11, %t, 63;
    mad.lo.u32 %r12, %r11, 16, %tile;
    mov.b32 %r0, 0;
$loop:
    add.u32 %r1, %r0, 1;
    setp.ge.u32 %p0, %r1, {STEPS};
    @%p0 bra $ready;
    and.b32 %r2, %r1, 1;
    mad.lo.u32 %r3, %r2, {4 * WIDTH}, %r10;
    mad.wide.u32 %rd2, %r1, {4 * WIDTH}, %rd0;
    cp.async.cg.shared.global [%r3], [%rd2], 16;
    cp.async.commit_group;
$ready:
    {await_ if wait is not None else ""}
    {barrier}
    and.b32 %r4, %r0, 1;
    mad.lo.u32 %r5, %r4, {4 * WIDTH}, %r12;
    ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r5];
    mad.wide.u32 %rd3, %r0, {4 * WIDTH}, %rd1;
    st.global.v4.b32 [%rd3], {{%r20, %r21, %r22, %r23}};
    {refill_barrier}
    mov.b32 %r0, %r1;
    setp.lt.u32 %p2, %r0, {STEPS};
    @%p2 bra $loop;"""
    return ptx_kernel(body)


def _pipeline(
    machine: str,
    *,
    prologue_commit: bool = True,
    wait: int | None = 1,
    last: int = 0,
    barrier: bool = True,
    refill_barrier: bool = True,
) -> Run:
    """Each step 64 threads copy the next 256 words while they read the present ones, from the thread opposite."""
    source = np.arange(STEPS * WIDTH, dtype=np.float32)
    sync = "gpu.barrier" if machine == "ir" else "bar.sync 0;"
    parts = (sync if barrier else "", sync if refill_barrier else "")
    write = _pipeline_ir if machine == "ir" else _pipeline_ptx
    text = write(prologue_commit=prologue_commit, wait=wait, last=last, barrier=parts[0], refill_barrier=parts[1])
    if machine == "ir":
        return run_ir(text, source)
    return run_ptx_text(text, source, np.zeros(STEPS * WIDTH, np.float32), threads=64)


EXPECTED = np.arange(STEPS * WIDTH, dtype=np.float32).reshape(STEPS, 64, 4)[:, ::-1].reshape(-1)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_pipeline_of_two_buffers(machine: str) -> None:
    """No finding; each step costs 16 sectors a warp, and 4 turns of the banks."""
    run = _pipeline(machine)
    assert run.findings == []
    assert (run.output == EXPECTED).all()
    assert run.counters is not None
    copies = [a for a in run.counters.accesses if "async" in a.site.op]
    read, written = ([a for a in copies if a.space == space] for space in ("global", "shared"))
    assert (sum(a.warps for a in read), sum(a.sectors for a in read)) == (2 * STEPS, 16 * 2 * STEPS)
    assert (sum(a.wavefronts for a in written), sum(a.conflicts for a in written)) == (4 * 2 * STEPS, 0)
    assert {a.kind for a in read} == {"load"}
    assert {a.kind for a in written} == {"store"}
    assert run.counters.mix["copy"] == 2 * STEPS


# What is wrong; the first finding's code, the kind of access, its thread and the other side's.
PLANTED: dict[str, tuple[dict[str, Any], tuple[str, str, int, int], str]] = {
    "no wait": (
        {"wait": None},
        ("copy-in-flight", "load", 0, 63),
        "still writes: its thread hasn't waited for it",
    ),
    "a wait for one group too few": (
        {"wait": 2, "last": 0},
        ("copy-in-flight", "load", 0, 63),
        "leaves 2 of its groups in flight, this one too; wait until at most 1 is",
    ),
    "a last wait for one group too few": (
        {"wait": 1, "last": 1},
        ("copy-in-flight", "load", 0, 63),
        "leaves 1 of its groups in flight, this one too; wait until none is",
    ),
    "no barrier after the wait": (
        {"barrier": False},
        ("race", "load", 0, 63),
        "which another thread copies, with no barrier after the copying thread's wait",
    ),
    "a buffer refilled before it was read": (
        {"refill_barrier": False},
        ("race", "store", 0, 63),
        "which another thread reads, with no barrier between them",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_part_of_the_pipeline_is_missing(machine: str, case: str) -> None:
    options, expected, words = PLANTED[case]
    run = _pipeline(machine, **options)
    found = run.findings[0]
    assert found.thread is not None
    assert found.other is not None
    assert found.other.thread is not None
    assert (found.code, found.kind, found.thread[0], found.other.thread[0]) == expected
    assert words in found.message
    assert found.site is not None
    assert "async" in (found.site if found.kind == "store" else found.other.site).op
    assert {each.code for each in run.findings} == {found.code}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_copy_in_no_group(machine: str) -> None:
    """What isn't committed joins the next group: the wait comes one group too early."""
    run = _pipeline(machine, prologue_commit=False)
    assert run.codes[0] == "copy-in-flight"
    assert "wait until none is" in run.findings[0].message
    assert not (run.output == EXPECTED).all()  # the old contents of shared memory are read


def _once(machine: str, steps: dict[str, str], size: int = 16, threads: int = 32, shift: int = 0) -> Run:
    """One copy a thread, then the steps, then each thread reads its own words."""
    words = size // 4
    if machine == "ir":
        body = f"""
  %cw = arith.constant {words} : index
  %shift = arith.constant {shift} : index
  %o = arith.muli %t, %cw : index
  %d = arith.addi %o, %shift : index
  "nvgpu.device_async_copy"(%tile, %d, %in, %o) {{bytes = {size} : i64}} : {COPY_IR}
  {steps["ir"]}
  %v = memref.load %tile[%d] : memref<512xf32, 3>
  memref.store %v, %out[%t] : memref<{threads}xf32>"""
        text = ir_kernel(body, threads=threads, element="f32", inputs=1280, outputs=threads, shared=512)
        return run_ir(text, np.arange(1280, dtype=np.float32))
    kind = "cg" if size == 16 else "ca"
    body = f"""
    mad.lo.u32 %r10, %t, {size}, %tile;
    mad.wide.u32 %rd0, %t, {size}, %in;
    mad.wide.u32 %rd1, %t, 4, %out;
    cp.async.{kind}.shared.global [%r10+{4 * shift}], [%rd0], {size};
    {steps["ptx"]}
    ld.shared.b32 %r20, [%r10+{4 * shift}];
    st.global.b32 [%rd1], %r20;"""
    source = np.arange(1280, dtype=np.float32)
    return run_ptx_text(ptx_kernel(body), source, np.zeros(threads, np.float32), threads=threads)


BOTH = {machine: f"{COMMIT[machine]}\n{WAIT[machine]}" for machine in MACHINES}


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("machine", MACHINES)
def test_ones_own_copy_needs_no_barrier(machine: str, size: int) -> None:
    run = _once(machine, BOTH, size)
    assert run.findings == []
    assert run.output.tolist() == [float(i * size // 4) for i in range(32)]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_wait_does_not_end_what_no_commit_made_a_group(machine: str) -> None:
    run = _once(machine, WAIT)
    (found,) = run.findings
    assert (found.code, found.count) == ("copy-in-flight", 32)
    assert "no commit follows the copy, so it is in no group that a wait could end" in found.message


@pytest.mark.parametrize("machine", MACHINES)
def test_a_commit_is_no_wait(machine: str) -> None:
    run = _once(machine, COMMIT)
    assert [each.code for each in run.findings] == ["copy-in-flight"]
    assert "its thread hasn't waited for it" in run.findings[0].message


def test_wait_all_needs_no_commit() -> None:
    run = _once("ptx", {"ptx": "cp.async.wait_all;"})
    assert run.findings == []
    assert run.output.tolist() == [4.0 * i for i in range(32)]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_copy_is_aligned_to_its_size(machine: str) -> None:
    run = _once(machine, BOTH, 16, shift=1)
    (found,) = run.findings
    assert (found.code, found.thread, found.space, found.byte) == ("misaligned", (0, 0, 0), "shared", 4)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_copy_is_in_bounds(machine: str) -> None:
    """64 threads of 16 bytes from word 448 of 512 on: the 17th is past the end."""
    run = _once(machine, BOTH, 16, threads=64, shift=448)
    (found,) = run.findings
    assert (found.code, found.thread) == ("out-of-bounds", (16, 0, 0))


@pytest.mark.parametrize("machine", MACHINES)
def test_two_copies_to_one_place(machine: str) -> None:
    """Nothing orders two copies of one thread until it has waited for the first."""
    again = {
        "ir": f'"nvgpu.device_async_copy"(%tile, %d, %in, %c8) {{bytes = 16 : i64}} : {COPY_IR}\n{BOTH["ir"]}',
        "ptx": f"cp.async.cg.shared.global [%r10], [%in+32], 16;\n{BOTH['ptx']}",
    }
    run = _once(machine, again)
    (found,) = run.findings
    assert (found.code, found.kind, found.count) == ("copy-in-flight", "store", 32)
    assert "no commit follows" in found.message


@pytest.mark.parametrize("machine", MACHINES)
def test_the_source_may_not_change_meanwhile(machine: str) -> None:
    """The output is copied to shared memory and written again before the wait, and after it."""
    results: list[list[str]] = []
    for early in (True, False):
        if machine == "ir":
            copy = f"""
  %one = arith.constant 1.0 : f32
  memref.store %one, %out[%t] : memref<1280xf32>
  "nvgpu.device_async_copy"(%tile, %t, %out, %t) {{bytes = 4 : i64}} : {COPY_IR}
  STORE1
  {BOTH["ir"]}
  STORE2"""
            store = "memref.store %one, %out[%t] : memref<1280xf32>"
            body = copy.replace("STORE1", store if early else "").replace("STORE2", "" if early else store)
            text = ir_kernel(body, element="f32", inputs=32, outputs=1280, shared=512)
            run = run_ir(text, np.zeros(32, np.float32))
        else:
            store = "st.global.b32 [%rd1], %t;"
            body = f"""
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.b32 [%rd1], %t;
    mad.lo.u32 %r10, %t, 4, %tile;
    cp.async.ca.shared.global [%r10], [%rd1], 4;
    {store if early else ""}
    {BOTH["ptx"]}
    {"" if early else store}"""
            run = run_ptx_text(ptx_kernel(body), np.zeros(32, np.float32), np.zeros(32, np.float32))
        results.append([each for each in run.codes if each != "unwritten-output"])
        if early:
            assert "which an asynchronous copy still reads" in run.findings[0].message
    assert results == [["copy-in-flight"], []]


@pytest.mark.parametrize("machine", MACHINES)
def test_blocks_copy_for_themselves(machine: str) -> None:
    """Three blocks, each with its own shared memory and its own groups; one thread reads what its neighbour copied."""
    if machine == "ir":
        body = f"""
  %b = gpu.block_id x {{xla.range = [0 : index, 2 : index]}}
  %b0 = arith.muli %b, %c32 : index
  %g = arith.addi %b0, %t : index
  "nvgpu.device_async_copy"(%tile, %t, %in, %g) {{bytes = 4 : i64}}
      : (memref<512xf32, 3>, index, memref<96xf32>, index) -> ()
  {BOTH["ir"]}
  gpu.barrier
  %n = arith.xori %t, %c1 : index
  %v = memref.load %tile[%n] : memref<512xf32, 3>
  memref.store %v, %out[%g] : memref<96xf32>"""
        text = ir_kernel(body, element="f32", inputs=96, outputs=96, shared=512, blocks=3)
        run = run_ir(text, np.arange(96, dtype=np.float32))
    else:
        body = f"""
    mov.u32 %r0, %ctaid.x;
    mad.lo.u32 %r1, %r0, 32, %t;
    mad.wide.u32 %rd0, %r1, 4, %in;
    mad.wide.u32 %rd1, %r1, 4, %out;
    mad.lo.u32 %r10, %t, 4, %tile;
    cp.async.ca.shared.global [%r10], [%rd0], 4;
    {BOTH["ptx"]}
    bar.sync 0;
    xor.b32 %r2, %t, 1;
    mad.lo.u32 %r3, %r2, 4, %tile;
    ld.shared.b32 %r4, [%r3];
    st.global.b32 [%rd1], %r4;"""
        run = run_ptx_text(ptx_kernel(body), np.arange(96, dtype=np.float32), np.zeros(96, np.float32), blocks=3)
    assert run.findings == []
    assert run.output.tolist() == [float(i ^ 1) for i in range(96)]


@pytest.mark.parametrize(("size", "reads"), [("%r5", [8, 8, 0, 0]), ("", [16, 16, 16, 16]), ("%p3", [0, 16, 16, 16])])
def test_ptx_fills_up_with_zeros(size: str, reads: list[int]) -> None:
    """Four threads copy 16 bytes each, of which a register says how many are read, or a predicate whether any are."""
    body = f"""
    setp.lt.u32 %p1, %t, 2;
    selp.b32 %r5, 8, 0, %p1;
    setp.eq.u32 %p3, %t, 0;
    mad.lo.u32 %r10, %t, 16, %tile;
    mad.wide.u32 %rd0, %t, 16, %in;
    mad.wide.u32 %rd1, %t, 16, %out;
    @!%p1 mov.b64 %rd0, {"0" if size == "%r5" else "%rd0"};
    cp.async.cg.shared.global [%r10], [%rd0], 16{size and ", " + size};
    cp.async.wait_all;
    ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r10];
    st.global.v4.b32 [%rd1], {{%r20, %r21, %r22, %r23}};"""
    source = np.arange(1, 17, dtype=np.int32)
    run = run_ptx_text(ptx_kernel(body), source, np.zeros(16, np.int32), threads=4)
    assert run.findings == []
    expected = [word if 4 * (i % 4) < reads[i // 4] else 0 for i, word in enumerate(source.tolist())]
    assert run.output.tolist() == expected


WARPS_COPY_ONE_SOURCE = """
    shr.b32 %r0, %t, 5;
    setp.eq.u32 %p0, %r0, 0;
    mad.wide.u32 %rd1, %lane, 4, %out;
    mad.lo.u32 %r10, %t, 4, %tile;
    @%p0 st.global.b32 [%rd1], %t;
    bar.sync 0;
    @!%p0 bra $second;
    cp.async.ca.shared.global [%r10], [%rd1], 4;
$second:
    @%p0 bra $both;
    cp.async.ca.shared.global [%r10], [%rd1], 4;
$both:
    cp.async.commit_group;
    @!%p0 cp.async.wait_group 0;
    bar.sync 0;
    @%p0 st.global.b32 [%rd1], %t;
    cp.async.wait_group 0;"""


def test_the_copy_that_is_named_is_one_in_flight() -> None:
    """Two warps copy one source; the second, which started later, has waited when the first writes the source."""
    run = run_ptx_text(ptx_kernel(WARPS_COPY_ONE_SOURCE), np.zeros(4, np.float32), np.zeros(32, np.float32), threads=64)
    (found,) = run.findings
    assert (found.code, found.thread) == ("copy-in-flight", (0, 0, 0))
    assert found.other is not None
    assert found.other.thread == (0, 0, 0)
    assert "its thread hasn't waited for it" in found.message


@pytest.mark.parametrize("words", [4, 1])
def test_what_a_copy_does_not_read_is_not_in_flight(words: int) -> None:
    """4 bytes of 16 are read: the next word, if there is one, may be written meanwhile."""
    body = f"""
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.b32 [%rd1], %t;
    bar.sync 0;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra $end;
    cp.async.cg.shared.global [%tile], [%out], 16, 4;
    {"st.global.b32 [%out+4], %t;" if words > 1 else ""}
    cp.async.wait_all;
    st.global.b32 [%out], %t;
$end:"""
    run = run_ptx_text(ptx_kernel(body), np.zeros(4, np.float32), np.zeros(words, np.float32), threads=words)
    assert run.findings == []


def test_a_copy_reads_no_more_than_it_writes() -> None:
    kernel = ptx_kernel("mov.b32 %r5, 20; cp.async.cg.shared.global [%tile], [%in], 16, %r5;")
    with pytest.raises(SimulationError, match=r"a copy of 16 bytes can't read 20 \(block 0, thread 0\)"):
        run_ptx_text(kernel, np.zeros(8, np.float32), np.zeros(1, np.float32), threads=1)
