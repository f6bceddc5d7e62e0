"""Devices are found by any usual spelling, and their numbers are those of the data sheets."""

from __future__ import annotations

import pytest

from warpsmith.devices import device, device_names
from warpsmith.errors import UnknownTarget


@pytest.mark.parametrize(
    ("spelling", "name", "cores", "threads"),
    [
        ("sm_80", "sm_80", 108, 2048),
        ("A100-80", "sm_80", 108, 2048),
        ("sm_90", "sm_90", 132, 2048),
        ("H100 SXM", "sm_90", 132, 2048),
        ("NVIDIA H200", "h200", 132, 2048),
        ("b200", "sm_100", 148, 2048),
        ("L4", "l4", 58, 1536),
        ("l40s", "l40s", 142, 1536),
        ("RTX 4090", "rtx_4090", 128, 1536),
        ("rtx-a6000", "rtx_a6000", 84, 1536),
        ("AMD Instinct MI300X", "gfx942", 304, 2048),
        ("Radeon RX 7900 XTX", "gfx1100", 96, 1024),
    ],
)
def test_gpus_by_name(spelling: str, name: str, cores: int, threads: int) -> None:
    found = device(spelling)
    assert (found.name, found.core_count, found.threads_per_core) == (name, cores, threads)
    assert found.is_gpu
    assert found.warp_size == (64 if name == "gfx942" else 32)


def test_every_device_loads_and_is_plausible() -> None:
    for name in device_names():
        found = device(name)
        assert found.core_count >= 1
        if found.is_gpu:
            assert found.is_nvidia == (found.compute_capability >= (8, 0))
            system = 1024 if found.is_nvidia else 0
            assert found.shared_per_block <= found.shared_per_block_optin <= found.shared_per_core - system
            assert 1e11 < found.memory_bandwidth < 1e13
            assert found.peak("f32") is not None
            assert found.peak("token") is None


def test_the_threshold_of_xlas_test_device() -> None:
    """XLA's own tests unroll from 129,024 elements on: the RTX A6000's resident threads."""
    assert device("RTX A6000").resident_threads == 129_024


def test_cpu_counts_its_threads() -> None:
    found = device("cpu")
    assert found.is_cpu
    assert found.resident_threads == found.core_count >= 1


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownTarget) as caught:
        device("h210")
    assert "did you mean 'h200'?" in str(caught.value)
