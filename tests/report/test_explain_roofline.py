"""The roofline and occupancy agree with numbers worked out by hand."""

from __future__ import annotations

import pytest
from hero_kernels import analysis_of

from warpsmith.devices import device
from warpsmith.devices.occupancy import occupancy
from warpsmith.report.explain.roofline import Work, roofline, work_of

H100 = device("sm_90")


def operations_of(text: str) -> Work:
    return work_of(analysis_of(text).instructions)


@pytest.mark.parametrize(
    ("text", "narrow", "wide"),
    [
        ("x = f32[100] parameter(0)\n n = f32[100] negate(x)\n ROOT r = f32[100] exponential(n)", 200, 0),
        ("x = f64[100] parameter(0)\n ROOT r = f64[100] add(x, x)", 0, 100),
        ("x = f32[10,20] parameter(0)\n ROOT r = f32[20,10] transpose(x), dimensions={1,0}", 0, 0),
        (
            """x = f32[30,40] parameter(0)
            z = f32[] constant(0)
            ROOT r = f32[30] reduce(x, z), dimensions={1}, to_apply=add_f32""",
            1200,
            0,
        ),
        (
            """x = f32[4,5] parameter(0)
            y = f32[5,6] parameter(1)
            ROOT r = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
            2 * 4 * 5 * 6,
            0,
        ),
        (
            """x = f32[8] parameter(0)
            z = f32[] constant(0)
            ROOT r = f32[6] reduce-window(x, z), window={size=3}, to_apply=add_f32""",
            18,
            0,
        ),
        (
            """x = f32[2,9,9,3] parameter(0)
            k = f32[2,2,3,5] parameter(1)
            ROOT r = f32[2,8,8,5] convolution(x, k), window={size=2x2}, dim_labels=b01f_01io->b01f""",
            2 * (2 * 8 * 8 * 5) * (2 * 2 * 3),
            0,
        ),
    ],
)
def test_operations_are_those_of_the_hlo(text: str, narrow: int, wide: int) -> None:
    """Wrong: what counts as an operation, or how often it is done."""
    found = operations_of(text)
    assert (found.narrow, found.wide) == (narrow, wide)


def test_times_are_bytes_operations_and_instructions_over_rates() -> None:
    """H100: 3,352.32 GB/s; 132 x 128 lanes at 1.98 GHz; 132 x 4 schedulers at 1.98 GHz."""
    found = roofline(Work(33454080, 0, None), 3352320, 1045440, H100)
    assert found.memory_us == pytest.approx(1.0)
    assert found.arithmetic_us == pytest.approx(1.0)
    assert found.issue_us == pytest.approx(1.0)
    assert roofline(Work(0, 0, None), 3352320, None, H100).bound == "memory"
    assert roofline(Work(10**9, 0, None), 3352320, 0, H100).bound == "arithmetic"
    assert roofline(Work(0, 0, None), 3352320, 10**9, H100).bound == "issue"
    assert roofline(Work(1, 0, None), 1, None, device("cpu")).time_us is None


@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ("sm_90", 256, 0, 0, 8, "warps"),  # 2048 threads
        ("sm_90", 32, 0, 0, 32, "blocks"),
        ("sm_90", 256, 64, 0, 4, "registers"),  # 65,536 registers
        ("sm_90", 128, 255, 0, 2, "registers"),  # 8,192 a warp: 8 warps
        ("sm_90", 128, 32, 48 * 1024, 4, "shared"),  # 233,472 bytes, 49 KiB each
        ("rtx_a6000", 128, 0, 0, 12, "warps"),  # 1536 threads
        ("rtx_a6000", 32, 0, 0, 16, "blocks"),
        ("l40s", 32, 0, 0, 24, "blocks"),
    ],
)
def test_occupancy(target: str, threads: int, registers: int, shared: int, blocks: int, limiter: str) -> None:
    """As NVIDIA's occupancy calculator has it."""
    found = occupancy(device(target), threads, registers=registers, shared=shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // 32)
    assert found.limits[limiter] == blocks
