"""Planted faults in small kernels: each is named, with the op, the block, the thread and the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simt.kernels import kernel

from warpsmith.devices import device
from warpsmith.errors import CheckFailed
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import watch_kernel
from warpsmith.simt.core.checks import Checks, check_limits
from warpsmith.simt.core.results import CODES, Finding

TILE = 'memref.global "private" @tile : memref<64xf32, 3> = uninitialized'
GET = "%tile = memref.get_global @tile : memref<64xf32, 3>"
LOAD = "%v = memref.load %in[%t] : memref<64xf32>"


def _findings(body: str, out: str = "64xf32", *, threads: int = 64, blocks: int = 1) -> list[Finding]:
    text = kernel(body, out, "64xf32", threads=threads, blocks=blocks, extra=TILE)
    try:
        _, result = watch_kernel(parse_module(text), [np.arange(64, dtype=np.float32)], 1)
    except CheckFailed as failed:
        return [failed.finding] if isinstance(failed.finding, Finding) else []
    return result.findings


STORE = "memref.store %v, %out[%t] : memref<64xf32>"
EXCHANGE = f"""{GET}
    {LOAD}
    memref.store %v, %tile[%t] : memref<64xf32, 3>
    BETWEEN
    %c63 = arith.constant 63 : index
    %j = arith.subi %c63, %t : index
    %w = memref.load %tile[%j] : memref<64xf32, 3>
    memref.store %w, %out[%t] : memref<64xf32>"""

# body, blocks -> code, op, index of the element, block, thread
PLANTED: dict[str, tuple[str, int, tuple[Any, ...]]] = {
    "no barrier": (EXCHANGE.replace("BETWEEN", ""), 1, ("race", "memref.load", 63, 0, 0)),
    "lanes of one warp": (
        f"""{GET}
        {LOAD}
        memref.store %v, %tile[%t] : memref<64xf32, 3>
        %x = arith.xori %t, %c1 : index
        %w = memref.load %tile[%x] : memref<64xf32, 3>
        memref.store %w, %out[%t] : memref<64xf32>""",
        1,
        ("race", "memref.load", 1, 0, 0),
    ),
    "past the end": (
        f"{LOAD}\n%i = arith.addi %t, %c1 : index\nmemref.store %v, %out[%i] : memref<64xf32>",
        1,
        ("out-of-bounds", "memref.store", None, 0, 63),
    ),
    "blocks write the same elements": (f"{LOAD}\n{STORE}", 2, ("same-value-write", "memref.store", 0, 1, 0)),
    "blocks write other values": (
        f"""%i = arith.muli %b, %c8 : index
        %v = memref.load %in[%i] : memref<64xf32>
        {STORE}""",
        2,
        ("double-write", "memref.store", 0, 1, 0),
    ),
    "threads write one element": (
        f"{LOAD}\n%i = arith.divui %t, %c2 : index\nmemref.store %v, %out[%i] : memref<64xf32>",
        1,
        ("double-write", "memref.store", 0, 0, 1),
    ),
    "an output read first": (
        f"%v = memref.load %out[%t] : memref<64xf32>\n{STORE}",
        1,
        ("uninitialised-read", "memref.load", 0, 0, 0),
    ),
    "shared memory read first": (
        f"{GET}\n%v = memref.load %tile[%t] : memref<64xf32, 3>\n{STORE}",
        1,
        ("uninitialised-read", "memref.load", 0, 0, 0),
    ),
    "an input written": (
        f"{LOAD}\n{STORE}\nmemref.store %v, %in[%t] : memref<64xf32>",
        1,
        ("read-only-write", "memref.store", 0, 0, 0),
    ),
    "a barrier in a branch": (
        f"{LOAD}\n%p = arith.cmpi slt, %t, %c8 : index\nscf.if %p {{ gpu.barrier }}\n{STORE}",
        1,
        ("barrier-divergence", "gpu.barrier", None, 0, 8),
    ),
    "a shuffle in a branch": (
        f"""{LOAD}
        %d = arith.constant 1 : i32
        %n = arith.constant 32 : i32
        %p = arith.cmpi slt, %t, %c8 : index
        scf.if %p {{ %s:2 = gpu.shuffle down %v, %d, %n : f32 }}
        {STORE}""",
        1,
        ("shuffle-divergence", "gpu.shuffle", None, 0, 8),
    ),
    "a lane elected in a branch": (
        f"""{LOAD}
        %p = arith.cmpi slt, %t, %c8 : index
        scf.if %p {{ %e = "nvvm.elect.sync"() : () -> i1 }}
        {STORE}""",
        1,
        ("shuffle-divergence", "nvvm.elect.sync", None, 0, 8),
    ),
    "a crooked vector": (
        f"""%i = arith.addi %c1, %c2 : index
        %w = vector.load %in[%i] {{alignment = 8 : i64}} : memref<64xf32>, vector<2xf32>
        %v = vector.extract %w[0] : f32 from vector<2xf32>
        {STORE}""",
        1,
        ("misaligned", "vector.load", None, 0, 0),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named(name: str) -> None:
    body, blocks, expected = PLANTED[name]
    (found,) = (f for f in _findings(body, blocks=blocks) if f.code != "unwritten-output")
    assert found.site is not None
    assert found.block is not None
    assert found.thread is not None
    assert (found.code, found.site.op, found.index, found.block[0], found.thread[0]) == expected
    assert found.code in CODES
    assert found.code in str(found)


CLEAN = {
    "a barrier between": EXCHANGE.replace("BETWEEN", "gpu.barrier"),
    "a shuffle of whole warps": f"""{LOAD}
        %d = arith.constant 1 : i32
        %n = arith.constant 32 : i32
        %s:2 = gpu.shuffle xor %v, %d, %n : f32
        memref.store %s#0, %out[%t] : memref<64xf32>""",
    "a barrier that whole blocks pass": f"""{LOAD}
        %p = arith.cmpi slt, %b, %c1 : index
        scf.if %p {{ gpu.barrier }}
        {STORE}""",
    "the same thread again": f"{LOAD}\n{STORE}\n{STORE}",
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_right_has_no_finding(name: str) -> None:
    assert _findings(CLEAN[name]) == []


def test_elements_that_nobody_writes() -> None:
    (found,) = _findings(f"{LOAD}\nmemref.store %v, %out[%t] : memref<70xf32>", "70xf32")
    assert (found.code, found.buffer, found.index, found.count) == ("unwritten-output", "output0", 64, 6)


def test_a_race_s_report_in_full() -> None:
    """The op, the element, the threads of both sides."""
    (found,) = _findings(EXCHANGE.replace("BETWEEN", ""))
    assert str(found).splitlines() == [
        "race: memref.load reads element 63 (byte 252) of tile in shared memory, which another thread writes, with no "
        "barrier between them",
        "  at %w = memref.load %tile[%j] : memref<64xf32, 3>; from <string>:19",
        "  by block 0, thread 0 (and 63 more)",
        "  against a store at memref.store %v, %tile[%t] : memref<64xf32, 3>; from <string>:15 by block 0, thread 63",
    ]


def test_a_sample_of_blocks_says_so_and_looks_for_no_unwritten_element() -> None:
    body = """%c64 = arith.constant 64 : index
    %o = arith.muli %b, %c64 : index
    %i = arith.addi %o, %t : index
    %v = memref.load %in[%t] : memref<64xf32>
    memref.store %v, %out[%i] : memref<6400xf32>"""
    text = kernel(body, "6400xf32", "64xf32", threads=64, blocks=100, extra=TILE)
    outputs, result = watch_kernel(parse_module(text), [np.ones(64, np.float32)], 1, Checks(blocks=9))
    counters = result.counters
    assert counters is not None
    assert result.findings == []
    assert (counters.sampled, counters.blocks, counters.blocks_run) == (True, 100, 9)
    written = np.flatnonzero(outputs[0].reshape(100, 64)[:, 0] == 1)
    assert {0, 1, 2, 97, 98, 99} <= set(written.tolist())
    assert len(written) == 9


def test_a_device_s_limits() -> None:
    """Of the CUDA programming guide's tables for compute capability 9.0."""
    h100 = device("H100")
    assert check_limits(h100, (2**31 - 1, 1, 1), (1024, 1, 1), 49152) == []
    assert check_limits(h100, (1, 1, 1), (32, 1, 1), 0, 232448) == []
    bad = {
        "launch-limit": [
            ((1, 65536, 1), (32, 1, 1), 0, 0),
            ((1, 1, 1), (1, 1, 65), 0, 0),
            ((1, 1, 1), (64, 32, 1), 0, 0),
        ],
        "shared-limit": [((1, 1, 1), (32, 1, 1), 49153, 0), ((1, 1, 1), (32, 1, 1), 0, 232449)],
    }
    for code, launches in bad.items():
        for grid, block, shared, dynamic in launches:
            assert [f.code for f in check_limits(h100, grid, block, shared, dynamic)] == [code]
