"""Copies that go on by themselves: which calls cp.async takes, what authors must wait for, how refusals read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.tile.helpers import body, read
from tests.tile.matrix_programs import async_copy
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.devices import device
from warpsmith.errors import DispatchFailed, InvalidTileProgram, TileSyntaxError
from warpsmith.tile import dispatch
from warpsmith.tile.dispatch.registry import variants_of
from warpsmith.tile.model.ops import TABLE

RNG = np.random.default_rng(3)
SHARED = 's = T.alloc_shared((64, 64), "float32")\n'
FETCH = "Tx.cta.copy_async(s, A)\nT.ptx.cp_async.commit_group()\n"
WAIT = "T.ptx.cp_async.wait_group(0)\nT.cuda.cta_sync()\n"
BACK = "Tx.cta.copy(B, s)"


def typed(statements: str, type: str, align: int = 16) -> str:
    parameters = "; ".join(f'{n} = T.match_buffer({n}_ptr, (64, 64), "{type}", align={align})' for n in "AB")
    return body(statements, parameters=parameters, block=64)


@pytest.mark.parametrize(
    ("type", "start", "align", "bytes"),
    [
        ("float32", 0, 16, 16),
        ("float32", 2, 16, 8),
        ("float32", 1, 16, 4),
        ("float32", 0, 8, 8),
        ("float16", 0, 16, 16),
        ("float16", 4, 16, 8),
        ("float16", 2, 16, 4),
        ("int8", 4, 16, 4),
        ("float64", 1, 16, 8),
    ],
)
def test_a_copy_takes_16_8_or_4_bytes_at_a_time(type: str, start: int, align: int, bytes: int) -> None:
    kernel = read(
        typed(
            f's = T.alloc_shared((64, 32), "{type}")\n'
            f"Tx.cta.copy_async(s, A[0:64, {start} : {start + 32}])\nT.ptx.cp_async.commit_group()\n{WAIT}"
            f"Tx.cta.copy(B[0:64, 0:32], s)",
            type,
            align,
        )
    )
    assert explain_tile(kernel)[0].variant == "ldgsts"
    assert f", {bytes})" in tile_text(kernel, "dispatched").split("T.ptx.cp_async(")[1].splitlines()[0]
    assert f"cp.async.{'cg' if bytes == 16 else 'ca'}.shared.global" in tile_text(kernel, "ptx")
    result = run_tile(kernel)
    assert result.ok, (dict(result.mismatches), [str(each) for each in result.findings])


def test_the_text_of_a_kernel_can_be_read_again() -> None:
    kernel = read(body(SHARED + FETCH + "T.ptx.cp_async.wait_group(1)\n" + WAIT + BACK, block=64))
    text = tile_text(kernel, "tirx")
    for line in ("T.ptx.cp_async.commit_group()", "T.ptx.cp_async.wait_group(1)", "T.ptx.cp_async.wait_group(0)"):
        assert f"    {line}" in text.splitlines()
    assert "    Tx.cta.copy_async(s[0:64, 0:64], A[0:64, 0:64])" in text.splitlines()
    assert tile_text(read(text), "tirx") == text
    assert "cp.async.commit_group;" in tile_text(kernel, "ptx")
    assert "cp.async.wait_group" in tile_text(kernel, "cuda")


PIPELINE = """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64, 64), "float32"); B = T.match_buffer(B_ptr, (8, 64), "float32")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([128])
    X = T.alloc_shared((2, 8, 64), "float32")
    total = T.alloc_shared((8, 64), "float32")
    Tx.cta.fill(total, 0.0)
    Tx.cta.copy_async(X[0, 0:8, 0:64], A[0:8, 0:64])
    T.ptx.cp_async.commit_group()
    for i in range(8):
        if i + 1 < 8:
            Tx.cta.copy_async(X[(i + 1) % 2, 0:8, 0:64], A[(i + 1) * 8 : (i + 1) * 8 + 8, 0:64])
        T.ptx.cp_async.commit_group()
        T.ptx.cp_async.wait_group({left})
        T.cuda.cta_sync()
        Tx.cta.add(total, total, X[i % 2, 0:8, 0:64])
    Tx.cta.copy(B, total)
"""


def test_one_tile_is_on_its_way_while_another_is_added() -> None:
    a = RNG.integers(-8, 8, (64, 64)).astype(np.float32)
    result = run_tile(read(PIPELINE.format(left=1)), {"A_ptr": a})
    assert result.ok, (dict(result.mismatches), [str(each) for each in result.findings])
    np.testing.assert_array_equal(result.outputs["B_ptr"], a.reshape(8, 8, 64).sum(axis=0))


def test_waiting_for_too_few_groups_is_found() -> None:
    result = run_tile(read(PIPELINE.format(left=2)))
    assert any("copy-in-flight" in str(each) for each in result.findings)


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        ("T.ptx.cp_async.commit_group()\nT.cuda.cta_sync()\n", "its thread hasn't waited for it"),
        (WAIT, "no commit follows the copy"),
        ("T.ptx.cp_async.commit_group()\nT.ptx.cp_async.wait_group(1)\nT.cuda.cta_sync()\n", "leaves 1 of its groups"),
    ],
)
def test_a_copy_that_nobody_waits_for_is_found(between: str, cause: str) -> None:
    result = run_tile(read(body(SHARED + "Tx.cta.copy_async(s, A)\n" + between + BACK, block=64)))
    assert any("copy-in-flight" in str(each) and cause in str(each) for each in result.findings)


def test_waiting_for_ones_own_copies_is_no_barrier() -> None:
    """Threads that read what others fetched need a barrier besides."""
    statements = SHARED + FETCH + "T.ptx.cp_async.wait_group(0)\nTx.cta.copy(B, s.permute(1, 0))"
    assert any("race" in str(each) for each in run_tile(read(body(statements, block=64))).findings)


KNOWN = """\
  dsmem (10)         needs thread block clusters (compute capability 9): no lowering here uses it
  smem_tmem (10)     needs tensor memory (compute capability 10): no lowering here uses it
  tma_auto (10)      needs a tensor map and an asynchronous barrier (compute capability 9): no lowering here uses it
  tma_explicit (10)  needs a tensor map and an asynchronous barrier (compute capability 9): no lowering here uses it
  tmem_local (10)    needs tensor memory (compute capability 10): no lowering here uses it"""


def refusal(source: str, target: str = "sm_90") -> list[str]:
    with pytest.raises(DispatchFailed) as caught:
        explain_tile(read(source), target)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("Tx.cta.copy_async(A, s)", "from global to shared memory: s is in shared, A in global memory"),
        ("Tx.cta.copy_async(B, A)", "from global to shared memory: A is in global, B in global memory"),
        ("Tx.cta.copy_async(s, A, mbar=1)",
         "no mbarrier is named: the call names mbar; cp.async is awaited by T.ptx.cp_async.wait_group(n)"),
        ("Tx.cluster.copy_async(s, A)",
         "the scope is thread, warp, warpgroup or cta: scope cluster needs thread block clusters (compute capability 9)"
         ", which no lowering here uses"),
        ("if tid < 16:\n    Tx.warp.copy_async(s, A)",
         "all threads of the scope are active, or none: [0, 16) of 32 threads are active in group 0"),
    ],
)  # fmt: skip
def test_what_cp_async_refuses(call: str, reason: str) -> None:
    lines = refusal(body(SHARED + call))
    assert lines[3] == f"  ldgsts (20)        {reason}"
    assert "\n".join(lines[4:9]) == KNOWN


def test_cp_async_refuses_single_elements_of_two_bytes_and_older_hardware() -> None:
    lines = refusal(typed('s = T.alloc_shared((64, 64), "float16")\nTx.cta.copy_async(s, A)', "float16", align=2))
    assert lines[3] == (
        "  ldgsts (20)        cp.async moves 4, 8 or 16 bytes at a time, but layouts, beginnings and alignment of "
        "A[0:64, 0:64] and s[0:64, 0:64] leave 2"
    )
    older = dataclasses.replace(device("sm_80"), compute_capability=(7, 5))
    with pytest.raises(DispatchFailed, match=r"cp\.async needs compute capability 8\.0; sm_80 has 7\.5"):
        dispatch.dispatch(read(body(SHARED + FETCH)), older)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ('Tx.copy_async(s, A, dispatch="tma_auto")',
         "  tma_auto (10)  needs a tensor map and an asynchronous barrier (compute capability 9): no lowering here "
         "uses it"),
        ('Tx.copy_async(s, A, dispatch="dsmem")',
         "  dsmem (10)  needs thread block clusters (compute capability 9): no lowering here uses it"),
        ("Tx.gemm_async(s, s, s)",
         "  tcgen05 (10)  needs tcgen05 matrix units (compute capability 10): no lowering here uses it"),
        ("Tx.compose_op(s)", "  trn (10)  needs a Trainium core: no lowering here uses it"),
        ('Tx.binary_chain(s, s, s, s, op0="add", op1="add")',
         "  trn (10)  needs a Trainium core: no lowering here uses it"),
    ],
)  # fmt: skip
def test_known_lowerings_say_what_they_need(call: str, line: str) -> None:
    found = refusal(body(SHARED + call))[3:]
    assert found[0] == line
    forced = "  help: without dispatch= the first variant that fits takes the call"
    assert found[1:] == ([forced] if "dispatch=" in call else [])


@pytest.mark.parametrize(
    ("statement", "error", "message", "help"),
    [
        ("T.ptx.cp_async.wait_group(-1)", InvalidTileProgram,
         "wait_group takes an integer that is known while the kernel is read, 0 or more, not -1",
         "wait_group(1) leaves the latest group in flight, wait_group(0) none"),
        ("T.ptx.cp_async.wait_group(tid)", InvalidTileProgram, "not a value of the kernel", "wait_group(0) none"),
        ("T.ptx.cp_async.wait_groups(0)", TileSyntaxError, "T.ptx.cp_async has no 'wait_groups'",
         "did you mean 'wait_group'?"),
        ("T.ptx.cp_asnyc.commit_group()", TileSyntaxError, "T.ptx has no 'cp_asnyc'", "did you mean 'cp_async'?"),
        ("T.ptx.cp_async(A, B)", InvalidTileProgram, "T.ptx.cp_async copies nothing by itself",
         "Tx.cta.copy_async(dst, src)"),
        ("T.ptx.ldmatrix(A)", InvalidTileProgram, "T.ptx.ldmatrix isn't called by authors",
         "Tx.warp.copy(registers, shared)"),
        ("T.ptx.mbarrier.init(A)", InvalidTileProgram,
         "T.ptx.mbarrier needs asynchronous barriers (compute capability 9); no lowering here uses it yet", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_wait_is_said_at_its_place(
    statement: str, error: type[Exception], message: str, help: str
) -> None:
    with pytest.raises(error) as caught:
        read(body(statement))
    assert message in str(caught.value)
    assert help in str(caught.value)
    assert f"|     {statement}" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_pipelines(first: int) -> None:
    for seed in range(first, first + 20):
        kernel = read(async_copy(seed))
        result = run_tile(kernel, seed=seed)
        assert result.ok, (seed, async_copy(seed), dict(result.mismatches), [str(f) for f in result.findings])
        assert explain_tile(kernel)[0].variant == "ldgsts"


def test_every_primitive_has_a_lowering_or_a_known_one() -> None:
    assert [name for name in TABLE if not variants_of(name)] == []
