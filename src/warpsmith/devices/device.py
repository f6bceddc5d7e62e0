"""The `Device` record, and finding one by name.

In: a name in any spelling (`sm_90`, `H100-SXM`, `h100 sxm`).  Out: an immutable `Device`; UnknownTarget with the
nearest name otherwise.  Numbers come from `data/NAME.toml`.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from warpsmith.errors import InternalError, UnknownTarget, did_you_mean, require

__all__ = ["Device", "device", "device_names"]


@dataclass(frozen=True, slots=True)
class Device:
    """What launch rules, code generation and the roofline need to know of a machine.

    Sizes are in bytes, bandwidth in bytes a second, the clock in Hz, `peak_flops` in operations a second by HLO dtype
    (dense, the fastest unit that takes the dtype).  On a CPU `core_count` is the number of threads that may run, a warp
    is one thread, and what isn't known is 0.
    """

    name: str
    title: str
    platform: str  # "cuda", "rocm" or "cpu"
    compute_capability: tuple[int, int]
    core_count: int
    threads_per_core: int
    warp_size: int
    threads_per_block: int
    block_limits: tuple[int, int, int]
    grid_limits: tuple[int, int, int]
    shared_per_block: int
    shared_per_block_optin: int
    shared_per_core: int
    registers_per_core: int
    memory_bytes: int
    memory_bandwidth: float
    l2_bytes: int
    clock_hz: float
    fpus_per_core: int
    vector_bits: int
    ptx_version: str
    peak_flops: tuple[tuple[str, float], ...]
    aliases: tuple[str, ...] = ()

    @property
    def is_gpu(self) -> bool:
        """Whether its kernels are grids of threads."""
        return not self.is_cpu

    @property
    def is_nvidia(self) -> bool:
        """Whether kernels for it are PTX."""
        return self.platform == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether kernels for it are native code of this computer."""
        return self.platform == "cpu"

    @property
    def architecture(self) -> str:
        """The name that LLVM, and ptxas, know a GPU by."""
        if not self.is_nvidia:
            return self.name
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"

    @property
    def is_blackwell(self) -> bool:
        """Compute capability 10.x: 256-bit loads and stores."""
        return self.compute_capability[0] == 10

    @property
    def resident_threads(self) -> int:
        """How many threads the whole device holds at once."""
        return self.core_count * self.threads_per_core

    def peak(self, dtype: str) -> float | None:
        """Peak operations a second for an HLO dtype, or None where the data file has none."""
        return dict(self.peak_flops).get(dtype)


_FILES: dict[str, str] = {
    "sm_80": "a100_sxm_80",
    "sm_90": "h100_sxm",
    "sm_100": "b200",
    "h200": "h200",
    "l4": "l4",
    "l40s": "l40s",
    "rtx_4090": "rtx_4090",
    "rtx_a6000": "rtx_a6000",
    "gfx942": "mi300x",
    "gfx1100": "rx_7900_xtx",
}
"""Canonical name -> data file.  The sm_ and gfx names mean the best-known part of that generation."""

_ALIASES: dict[str, str] = {
    "a100": "sm_80",
    "a100 80": "sm_80",
    "a100 80gb": "sm_80",
    "a100 sxm": "sm_80",
    "a100 sxm4 80gb": "sm_80",
    "h100": "sm_90",
    "h100 sxm": "sm_90",
    "h100 sxm5": "sm_90",
    "h100 80gb hbm3": "sm_90",
    "sm_90a": "sm_90",
    "b200": "sm_100",
    "sm_100a": "sm_100",
    "sm_86": "rtx_a6000",
    "sm_89": "l40s",
    "h200 sxm": "h200",
    "4090": "rtx_4090",
    "geforce rtx 4090": "rtx_4090",
    "a6000": "rtx_a6000",
    "mi300x": "gfx942",
    "instinct mi300x": "gfx942",
    "rx 7900 xtx": "gfx1100",
    "radeon rx 7900 xtx": "gfx1100",
    "host": "cpu",
}


def _key(name: str) -> str:
    """A name without case, vendor and punctuation, so that `H100-SXM` and `h100 sxm` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("nvidia").removeprefix("amd"))


_BY_KEY: dict[str, str] = {_key(name): name for name in ("cpu", *_FILES)} | {_key(k): v for k, v in _ALIASES.items()}


def device_names() -> tuple[str, ...]:
    """Canonical names, the CPU first."""
    return ("cpu", *_FILES)


def device(name: str) -> Device:
    """The device called `name`; UnknownTarget when there is none."""
    require(name, str, "a target is a device's name", help=f"known devices: {', '.join(device_names())}")
    found = _BY_KEY.get(_key(name))
    if found is None:
        known = [*device_names(), *_ALIASES]
        hint = did_you_mean(name.lower(), known) or f"known devices: {', '.join(device_names())}"
        raise UnknownTarget(f"unknown target '{name}'", help=hint)
    return _cpu() if found == "cpu" else _load(found)


@cache
def _load(name: str) -> Device:
    text = resources.files("warpsmith.devices").joinpath("data", f"{_FILES[name]}.toml").read_text(encoding="utf-8")
    row: dict[str, Any] = tomllib.loads(text)
    row["name"] = name
    for key in ("compute_capability", "block_limits", "grid_limits"):
        row[key] = tuple(row[key])
    row["peak_flops"] = tuple(row["peak_flops"].items())
    known = {field.name for field in fields(Device)}
    if unknown := row.keys() - known:
        raise InternalError(f"device file of {name} has unknown keys: {', '.join(sorted(unknown))}")
    return Device(**row)


def core_count() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _cpu() -> Device:
    return Device(
        name="cpu",
        title="this machine's CPU",
        platform="cpu",
        compute_capability=(0, 0),
        core_count=core_count(),
        threads_per_core=1,
        warp_size=1,
        threads_per_block=1,
        block_limits=(1, 1, 1),
        grid_limits=(2**63 - 1, 1, 1),
        shared_per_block=0,
        shared_per_block_optin=0,
        shared_per_core=0,
        registers_per_core=0,
        memory_bytes=0,
        memory_bandwidth=0.0,
        l2_bytes=0,
        clock_hz=0.0,
        fpus_per_core=0,
        vector_bits=0,
        ptx_version="",
        peak_flops=(),
    )
