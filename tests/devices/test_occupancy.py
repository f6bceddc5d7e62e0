"""Occupancy against numbers that NVIDIA publishes: its occupancy calculator's, and the programming guide's tables."""

from __future__ import annotations

import pytest

from warpsmith.devices import device
from warpsmith.devices.occupancy import occupancy
from warpsmith.errors import UsageError

# device, threads, registers, shared bytes -> blocks, warps, limiter
CASES = {
    # 2048 threads a core are 64 warps; 32 registers a thread just fill 64 K registers.
    "full": ("A100", 256, 32, 0, 8, 64, "warps"),
    # One more register costs a unit of 8 a thread: 40 x 32 = 1280 a warp, 51 warps fit, in fours 48.
    "33 registers": ("A100", 256, 33, 0, 6, 48, "registers"),
    # 65536 / (64 x 32) = 32 warps.
    "64 registers": ("A100", 256, 64, 0, 4, 32, "registers"),
    "255 registers": ("H100", 256, 255, 0, 1, 8, "registers"),
    # Small blocks: 32 blocks a core on 8.0 and 9.0, 16 on 8.6, 24 on 8.9.
    "blocks on 8.0": ("A100", 32, 16, 0, 32, 32, "blocks"),
    "blocks on 8.6": ("rtx a6000", 32, 16, 0, 16, 16, "blocks"),
    "blocks on 8.9": ("l40s", 32, 16, 0, 24, 24, "blocks"),
    # 164 KiB a core on 8.0; each block takes 1 KiB more than it asks for.
    "48 KiB on 8.0": ("A100", 256, 32, 48 * 1024, 3, 24, "shared"),
    "163 KiB on 8.0": ("A100", 1024, 32, 163 * 1024, 1, 32, "shared"),
    "more than a block may have": ("A100", 1024, 32, 164 * 1024, 0, 0, "shared"),
    # 228 KiB a core on 9.0: 228 / 49 = 4.
    "48 KiB on 9.0": ("H100", 128, 32, 48 * 1024, 4, 16, "shared"),
    # 1536 threads a core on 8.6 and 8.9: one block of 1024.
    "1024 threads on 8.9": ("rtx 4090", 1024, 32, 0, 1, 32, "warps"),
    "768 threads on 8.9": ("l4", 768, 40, 0, 2, 48, "warps"),
    # 100 threads are 4 warps.
    "a part of a warp": ("A100", 100, 32, 0, 16, 64, "warps"),
    "more threads than a block has": ("A100", 1025, 32, 0, 0, 0, "warps"),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_warps_and_limiter(name: str) -> None:
    target, threads, registers, shared, blocks, warps, limiter = CASES[name]
    found = occupancy(device(target), threads, registers, shared)
    assert (found.blocks, found.warps, found.limiter) == (blocks, warps, limiter)
    assert found.fraction == warps * 32 / device(target).threads_per_core


def test_unknown_registers_are_no_limit() -> None:
    assert "registers" not in occupancy(device("H100"), 128).limits


def test_what_is_no_gpu_or_no_block_is_refused() -> None:
    with pytest.raises(UsageError, match="on a GPU"):
        occupancy(device("cpu"), 1)
    with pytest.raises(UsageError, match="of threads"):
        occupancy(device("H100"), 0)
