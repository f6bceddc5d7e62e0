"""Counters of IR and PTX against numbers counted by hand, one access pattern a case."""

from __future__ import annotations

import numpy as np
import pytest
from simt.kernels import kernel
from simt.ptx_runner import HEADER

from warpsmith.devices import device
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import watch_kernel
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import AccessCounters, Counters
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

TILE = 'memref.global "private" @tile : memref<{size}xf32, 3> = uninitialized'
GET = "%tile = memref.get_global @tile : memref<{size}xf32, 3>"


def _access(counters: Counters, kind: str, space: str) -> AccessCounters:
    (found,) = [a for a in counters.accesses if (a.kind, a.space) == (kind, space)]
    return found


# What each of 64 threads reads: the index, the vector's lanes; then warp accesses, sectors, the least of them.
GLOBAL = {
    "coalesced": ("%i = arith.addi %t, %c0 : index", 1, (2, 8, 8)),
    "one off": ("%i = arith.addi %t, %c1 : index", 1, (2, 10, 8)),
    "every other": ("%i = arith.muli %t, %c2 : index", 1, (2, 16, 8)),
    "a stride of a sector": ("%i = arith.muli %t, %c8 : index", 1, (2, 64, 8)),
    "one for all": ("%i = arith.muli %t, %c0 : index", 1, (2, 2, 2)),
    "eight the same": ("%i = arith.divui %t, %c8 : index", 1, (2, 2, 2)),
    "64 bits": ("%i = arith.muli %t, %c2 : index", 2, (2, 16, 16)),
    "128 bits": ("%i = arith.muli %t, %c4 : index", 4, (2, 32, 32)),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_sectors_of_global_memory(name: str) -> None:
    index, lanes, expected = GLOBAL[name]
    if lanes == 1:
        load = "%v = memref.load %in[%i] : memref<1024xf32>"
    else:
        load = f"""%w = vector.load %in[%i] : memref<1024xf32>, vector<{lanes}xf32>
        %v = vector.extract %w[0] : f32 from vector<{lanes}xf32>"""
    body = f"{index}\n{load}\nmemref.store %v, %out[%t] : memref<64xf32>"
    text = kernel(body, "64xf32", "1024xf32", threads=64)
    _, result = watch_kernel(parse_module(text), [np.zeros(1024, np.float32)], 1)
    assert result.findings == []
    assert result.counters is not None
    found = _access(result.counters, "load", "global")
    assert (found.warps, found.sectors, found.ideal_sectors) == expected
    assert (found.bytes, found.requested) == (4 * lanes, 64 * 4 * lanes)
    stored = _access(result.counters, "store", "global")
    assert (stored.warps, stored.sectors, stored.ideal_sectors, stored.partial) == (2, 8, 8, 0)
    assert result.counters.written_bytes == 256


# Thread (x, y) of 32 by 32 writes a row of a tile and reads a column: turns of the banks of 32 warps each way.
TILES = {"32 by 32": (32, 1024, 32), "32 by 33": (33, 32, 32)}


@pytest.mark.parametrize("name", TILES)
def test_a_tile_read_by_columns(name: str) -> None:
    """Without padding the 32 elements of a column are in one bank; a pad puts them in 32."""
    pitch, turns, least = TILES[name]
    size = 32 * pitch
    body = f"""{GET.format(size=size)}
    %c32 = arith.constant 32 : index
    %pitch = arith.constant {pitch} : index
    %x = arith.remui %t, %c32 : index
    %y = arith.divui %t, %c32 : index
    %v = memref.load %in[%t] : memref<1024xf32>
    %a = arith.muli %y, %pitch : index
    %p = arith.addi %a, %x : index
    memref.store %v, %tile[%p] : memref<{size}xf32, 3>
    gpu.barrier
    %c = arith.muli %x, %pitch : index
    %d = arith.addi %c, %y : index
    %w = memref.load %tile[%d] : memref<{size}xf32, 3>
    memref.store %w, %out[%t] : memref<1024xf32>"""
    text = kernel(body, "1024xf32", "1024xf32", threads=1024, extra=TILE.format(size=size))
    values = np.arange(1024, dtype=np.float32)
    outputs, result = watch_kernel(parse_module(text), [values], 1, Checks(device=device("H100")))
    np.testing.assert_array_equal(outputs[0], values.reshape(32, 32).T.reshape(-1))
    assert result.findings == []
    assert result.counters is not None
    written, read = (_access(result.counters, kind, "shared") for kind in ("store", "load"))
    assert (written.warps, written.wavefronts, written.ideal_wavefronts) == (32, 32, 32)
    assert (read.warps, read.wavefronts, read.ideal_wavefronts, read.conflicts) == (32, turns, least, turns - least)
    assert (result.counters.barriers, result.counters.shared_bytes) == (32, 4 * size)


# Words that thread i of a warp writes from `i * stride`: turns, the least.
BANKS = {
    "4 bytes, a row": (1, 1, 1, 1),
    "4 bytes, every other word": (2, 1, 2, 1),
    "4 bytes, a stride of 32": (32, 1, 32, 1),
    "8 bytes, a row": (2, 2, 2, 2),
    "8 bytes, every other": (4, 2, 4, 2),
    "16 bytes, a row": (4, 4, 4, 4),
    "16 bytes, every other": (8, 4, 8, 4),
}


@pytest.mark.parametrize("name", BANKS)
def test_banks_of_shared_memory(name: str) -> None:
    """8 bytes go in two halves of a warp, 16 in four quarters: a half or quarter fills the banks once."""
    stride, lanes, turns, least = BANKS[name]
    store = "memref.store %v, %tile[%i] : memref<1024xf32, 3>"
    if lanes > 1:
        parts = ", ".join(["%v"] * lanes)
        store = f"""%w = vector.from_elements {parts} : vector<{lanes}xf32>
        vector.store %w, %tile[%i] : memref<1024xf32, 3>, vector<{lanes}xf32>"""
    body = f"""{GET.format(size=1024)}
    %s = arith.constant {stride} : index
    %i = arith.muli %t, %s : index
    %v = memref.load %in[%t] : memref<32xf32>
    {store}
    memref.store %v, %out[%t] : memref<32xf32>"""
    text = kernel(body, "32xf32", "32xf32", threads=32, extra=TILE.format(size=1024))
    _, result = watch_kernel(parse_module(text), [np.zeros(32, np.float32)], 1)
    assert result.counters is not None
    found = _access(result.counters, "store", "shared")
    assert (found.warps, found.wavefronts, found.ideal_wavefronts, found.bytes) == (1, turns, least, 4 * lanes)


def test_masks_branches_and_reuse() -> None:
    """64 threads, 8 of the first warp and all of the second active; every warp reads the same 128 bytes."""
    body = """%c32 = arith.constant 32 : index
    %i = arith.remui %t, %c32 : index
    %v = memref.load %in[%i] : memref<32xf32>
    %far = arith.cmpi sge, %t, %c24 : index
    scf.if %far { memref.store %v, %out[%t] : memref<64xf32> }"""
    text = kernel("%c24 = arith.constant 24 : index\n" + body, "64xf32", "32xf32", threads=64)
    _, result = watch_kernel(parse_module(text), [np.zeros(32, np.float32)], 1)
    counters = result.counters
    assert counters is not None
    stored = _access(counters, "store", "global")
    assert (stored.warps, stored.threads, stored.partial, stored.sectors) == (2, 40, 1, 5)
    assert (counters.divergent_branches, counters.partial_instructions) == (1, 1)
    assert counters.mix["load"] == counters.mix["store"] == 2
    assert (counters.read_bytes, counters.sectors, counters.reuse) == (128, 8 + 5, 13 * 32 / (128 + 160))
    assert [(f.code, f.count, f.index) for f in result.findings] == [("unwritten-output", 24, 0)]
    assert counters.widths == {("load", "global", 32): 2, ("store", "global", 32): 2}
    assert counters.to_dict()["accesses"][0]["site"]["op"] == "memref.load"


def test_contention_of_atomics() -> None:
    """Two warps add to three counters: lanes that meet at one take turns; 16, 8 and 8 lanes a warp."""
    text = (
        HEADER
        + """.visible .entry k(.param .u64 p) { .reg .b64 %a, %o; .reg .b32 %i, %j; .reg .pred %q;
    ld.param.b64 %a, [p]; mov.u32 %i, %tid.x; and.b32 %j, %i, 3; min.u32 %j, %j, 2;
    mad.wide.u32 %o, %j, 4, %a; red.global.add.u32 [%o], 1; ret; }"""
    )
    target = np.zeros(3, np.uint32)
    stats = run_ptx(text, [target], PtxLaunch((1,), (64,)), checks=Checks())
    assert target.tolist() == [16, 16, 32]
    assert stats.findings == []
    assert stats.counters is not None
    found = _access(stats.counters, "atomic", "global")
    assert (found.warps, found.contention, found.turns, found.sectors, stats.counters.atomics) == (2, 16, 32, 2, 2)
