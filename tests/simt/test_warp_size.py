"""IR on a machine whose warps are as wide as its device says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simt.kernels import kernel

from warpsmith.devices import device
from warpsmith.errors import SimulationError
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import watch_kernel
from warpsmith.simt.core.checks import Checks, check_memory

BODY = """%v = memref.load %in[%t] : memref<64xf32>
    %width = arith.constant 64 : i32
    %far = arith.constant 32 : i32
    %w, %ok = gpu.shuffle xor %v, %far, %width : f32
    memref.store %w, %out[%t] : memref<64xf32>"""


@pytest.mark.parametrize("width", [32, 64])
def test_a_warp_is_as_wide_as_the_device_says(width: int) -> None:
    """Wrong: a wave of 64 lanes is simulated, or counted, as two warps of 32."""
    target = replace(device("sm_90"), warp_size=width)
    values = np.arange(64, dtype=np.float32)
    module = parse_module(kernel(BODY, "64xf32", "64xf32", threads=64))
    (found,), result = watch_kernel(module, [values], 1, Checks(device=target))
    assert found.tolist() == (np.roll(values, 32) if width == 64 else values).tolist()
    assert result.findings == []
    assert result.counters is not None
    assert (result.counters.shuffles, [a.warps for a in result.counters.accesses]) == (64 // width, [64 // width] * 2)
    assert [a.sectors for a in result.counters.accesses] == [8, 8]


def test_buffers_that_no_memory_holds_are_refused() -> None:
    """Wrong: numpy's MemoryError, which is reported as a bug of ours, or the system ends the process."""
    with pytest.raises(SimulationError, match=r"take 4000000000000000 bytes, and this machine has \d+"):
        check_memory(4 * 10**15)
    text = kernel("", "1000000000000000xf32", "64xf32", threads=64)
    with pytest.raises(SimulationError, match="take 4000000000000256 bytes"):
        watch_kernel(parse_module(text), [np.zeros(64, np.float32)], 1)
